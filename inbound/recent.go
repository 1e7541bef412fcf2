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

// met is when a key came, and whether its message was only overheard.
type met struct {
	at        time.Time
	overheard bool
}

// recent remembers the keys of the newest events. It only saves work: the journal decides.
type recent struct {
	mu   sync.Mutex
	at   map[string]met
	ring []string // the keys in order of arrival
	next int
}

func newRecent() *recent {
	return &recent{at: make(map[string]met), ring: make([]string, recentSize)}
}

// seen reports whether any of the keys came lately, and whether its message was only overheard.
func (r *recent) seen(keys []string, now time.Time) (known, overheard bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range keys {
		if m, ok := r.at[k]; ok && now.Sub(m.at) < recentFor {
			return true, m.overheard
		}
	}
	return false, false
}

// add remembers keys, in place of the oldest.
func (r *recent) add(keys []string, now time.Time, overheard bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range keys {
		if _, ok := r.at[k]; !ok {
			if old := r.ring[r.next]; old != "" {
				delete(r.at, old)
			}
			r.ring[r.next] = k
			r.next = (r.next + 1) % len(r.ring)
		}
		r.at[k] = met{now, overheard}
	}
}
