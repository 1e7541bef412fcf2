package failover

import (
	"sync"
	"time"

	"understudy/llm"
)

// skipCacheLimit bounds the memory of the skip cache; beyond it expired entries are dropped first,
// then everything: forgetting costs one request, remembering wrongly costs an answer.
const skipCacheLimit = 4096

// skipCache remembers authentication failures of candidates that were not first (spec §8.6). It
// lives in memory only.
type skipCache struct {
	mu sync.Mutex
	m  map[skipKey]time.Time // until
}

type skipKey struct {
	session string
	ref     llm.ModelRef
}

func (c *skipCache) put(session string, ref llm.ModelRef, now time.Time, ttl time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil {
		c.m = make(map[skipKey]time.Time)
	}
	if len(c.m) >= skipCacheLimit {
		for k, until := range c.m {
			if !now.Before(until) {
				delete(c.m, k)
			}
		}
		if len(c.m) >= skipCacheLimit {
			clear(c.m)
		}
	}
	c.m[skipKey{session, ref}] = now.Add(ttl)
}

func (c *skipCache) has(session string, ref llm.ModelRef, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	until, ok := c.m[skipKey{session, ref}]
	if ok && !now.Before(until) {
		delete(c.m, skipKey{session, ref})
		return false
	}
	return ok
}
