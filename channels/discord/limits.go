package discord

import (
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const mostRoutes = 1024

// limits are the rate limits that Discord has stated and that are used up. A call that would break
// one is not made: every 429 counts against the bot.
type limits struct {
	mu       sync.Mutex
	routes   map[string]time.Time // when they are open again
	everyone time.Time
}

func newLimits() *limits { return &limits{routes: map[string]time.Time{}} }

// wait returns how long a call has to wait; 0 = it may be made.
func (l *limits) wait(route string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.routes[route].Sub(now), l.everyone.Sub(now), 0)
}

// learn reads the headers of an answer.
func (l *limits) learn(route string, h http.Header, now time.Time) {
	if h.Get("X-RateLimit-Remaining") != "0" {
		return
	}
	after, err := strconv.ParseFloat(h.Get("X-RateLimit-Reset-After"), 64)
	if d := duration(after); err == nil && d > 0 {
		l.block(route, false, now.Add(d))
	}
}

// block closes a route, or all of them.
func (l *limits) block(route string, everywhere bool, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if everywhere {
		l.everyone = until
		return
	}
	if len(l.routes) >= mostRoutes {
		now := time.Now()
		maps.DeleteFunc(l.routes, func(_ string, t time.Time) bool { return !t.After(now) })
		if len(l.routes) >= mostRoutes {
			return
		}
	}
	l.routes[route] = until
}
