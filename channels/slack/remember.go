package slack

import "sync"

// mostRemembered bounds every memory of the adapter.
const mostRemembered = 4096

// recent remembers the latest so many things, for concurrent use. It forgets the oldest first.
type recent[T any] struct {
	mu    sync.Mutex
	most  int
	known map[string]T
	order []string // ring, oldest at next
	next  int
}

func newRecent[T any](most int) *recent[T] { return &recent[T]{most: most, known: map[string]T{}} }

func (r *recent[T]) get(key string) (T, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.known[key]
	return v, ok
}

func (r *recent[T]) put(key string, v T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, known := r.known[key]
	r.known[key] = v
	switch {
	case known:
	case len(r.order) < r.most:
		r.order = append(r.order, key)
	default:
		delete(r.known, r.order[r.next])
		r.order[r.next] = key
		r.next = (r.next + 1) % r.most
	}
}
