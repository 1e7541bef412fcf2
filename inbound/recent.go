package inbound

import (
	"sync"
	"time"
)

// Bounds of the memory of event keys, the second level of dedupe (spec/chat.md §1.6).
const (
	recentFor  = 20 * time.Minute
	recentSize = 5000
)

// recent remembers the keys of the newest events. It only saves work: the journal decides.
type recent struct {
	mu   sync.Mutex
	at   map[string]time.Time
	ring []string // the keys in order of arrival
	next int
}

func newRecent() *recent {
	return &recent{at: make(map[string]time.Time), ring: make([]string, recentSize)}
}

// seen reports whether any of the keys came lately.
func (r *recent) seen(keys []string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range keys {
		if at, ok := r.at[k]; ok && now.Sub(at) < recentFor {
			return true
		}
	}
	return false
}

// add remembers keys, in place of the oldest.
func (r *recent) add(keys []string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range keys {
		if _, ok := r.at[k]; ok {
			continue
		}
		if old := r.ring[r.next]; old != "" {
			delete(r.at, old)
		}
		r.ring[r.next], r.at[k] = k, now
		r.next = (r.next + 1) % len(r.ring)
	}
}
