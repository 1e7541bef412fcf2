package discord

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
)

// Bounds of what waits to be worked on. Beyond them the connection is given up: Discord keeps what
// is said, for a while, and says it again.
const (
	mostWaiting    = 1024
	largestWaiting = 16 << 20 // bytes
)

var errFull = errors.New("too many messages wait to be stored")

// task is one thing to work on: an event, an interaction, or a step of catching up.
type task struct {
	kind    string
	data    json.RawMessage
	ticket  *ticket // of an interaction
	catchUp bool    // a session has begun
	look    bool    // look into the next place
}

// queue keeps tasks in order. One goroutine puts, one takes.
type queue struct {
	mu    sync.Mutex
	list  []task
	bytes int
	wake  chan struct{} // something was put
	taken chan struct{} // something was taken
}

func newQueue() *queue {
	return &queue{wake: make(chan struct{}, 1), taken: make(chan struct{}, 1)}
}

// put appends a task and reports whether there was room. Catching up always has: there are at most
// a few steps of it for each session.
func (q *queue) put(t task) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !t.catchUp && !t.look && (len(q.list) >= mostWaiting || q.bytes+len(t.data) > largestWaiting && len(q.list) > 0) {
		return false
	}
	q.list = append(q.list, t)
	q.bytes += len(t.data)
	signal(q.wake)
	return true
}

// take waits for the next task; false = ctx has ended.
func (q *queue) take(ctx context.Context) (task, bool) {
	for {
		q.mu.Lock()
		if len(q.list) > 0 {
			t := q.list[0]
			q.list[0] = task{}
			q.list = q.list[1:]
			q.bytes -= len(t.data)
			q.mu.Unlock()
			signal(q.taken)
			return t, true
		}
		q.list = nil
		q.mu.Unlock()
		select {
		case <-q.wake:
		case <-ctx.Done():
			return task{}, false
		}
	}
}

// room waits until at most half of the places are taken, or ctx has ended.
func (q *queue) room(ctx context.Context) {
	for {
		q.mu.Lock()
		free := len(q.list) <= mostWaiting/2 && q.bytes <= largestWaiting/2
		q.mu.Unlock()
		if free {
			return
		}
		select {
		case <-q.taken:
		case <-ctx.Done():
			return
		}
	}
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
