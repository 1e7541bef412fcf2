package discord

import "sync"

// detours remembers which messages for a thread stand in its channel, because the thread is closed: they
// are edited and deleted there. It forgets the oldest first.
type detours struct {
	mu      sync.Mutex
	threads map[string]string // by message
	order   []string
}

func newDetours() *detours { return &detours{threads: map[string]string{}} }

// put remembers the thread that a message was for.
func (d *detours) put(id, thread string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.threads[id]; known {
		return
	}
	if len(d.order) >= mostPlanned {
		delete(d.threads, d.order[0])
		d.order = d.order[1:]
	}
	d.threads[id] = thread
	d.order = append(d.order, id)
}

// get returns the thread that a message was for.
func (d *detours) get(id string) (thread string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	thread, ok = d.threads[id]
	return thread, ok
}
