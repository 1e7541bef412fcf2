package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/llm"
)

// LaneState is what a key is doing.
type LaneState struct {
	Active bool
	Since  time.Time // when the active run began
	Owner  string    // of the active run
	Queued int
}

// State returns what key is doing now.
func (l *Lanes) State(key string) LaneState {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.lanes[key]
	if n == nil {
		return LaneState{}
	}
	st := LaneState{Queued: len(n.queue)}
	if n.active != nil {
		st.Active, st.Since, st.Owner = true, n.since, n.active.Owner
	}
	return st
}

// Stop drops the owner's waiting tasks of key first, then cancels the active run if it is the
// owner's, both with llm.ErrStopped, so that nothing is promoted into a session that is being
// stopped. owner "" means everybody's.
func (l *Lanes) Stop(key, owner string) (queued int, active bool) {
	own := func(t *Task) bool { return owner == "" || t.Owner == owner }
	return l.stop(key, llm.ErrStopped, own, own)
}

// Interrupt cancels the active run of key with the given cause and leaves what waits.
func (l *Lanes) Interrupt(key string, cause error) (active bool) {
	all := func(*Task) bool { return true }
	_, active = l.stop(key, cause, func(*Task) bool { return false }, all)
	return active
}

// stop drops the waiting tasks that match and cancels the active run if it is one to cancel.
func (l *Lanes) stop(key string, cause error, match, cancel func(*Task) bool) (queued int, active bool) {
	l.mu.Lock()
	n := l.lanes[key]
	if n == nil {
		l.mu.Unlock()
		return 0, false
	}
	place := n.place()
	removed := l.remove(n, match)
	if active = n.active != nil && cancel(n.active); active {
		n.cancel(cause)
	} else if n.active == nil && len(n.queue) == 0 {
		delete(l.lanes, key)
	}
	l.move(n, place)
	l.dispatch()
	l.mu.Unlock()
	drop(removed, cause)
	return len(removed), active
}

// Drain ends the lanes: no new tasks, what waits is dropped with llm.ErrShutdown, what runs may
// finish until ctx ends and is then cancelled with llm.ErrShutdown. It returns once nothing runs,
// or with an error when cancelled runs do not end within the grace time. It must be called once.
func (l *Lanes) Drain(ctx context.Context) error {
	l.mu.Lock()
	if l.draining {
		l.mu.Unlock()
		return ErrDraining
	}
	l.draining = true
	var dropped []*Task
	for key, n := range l.lanes {
		dropped = append(dropped, l.remove(n, func(*Task) bool { return true })...)
		if n.active == nil {
			delete(l.lanes, key)
		}
	}
	l.ready = [pools][]*lane{}
	if l.active() == 0 {
		close(l.empty)
	}
	l.mu.Unlock()
	drop(dropped, llm.ErrShutdown)

	if l.clock.Await(ctx, l.empty) == nil {
		return nil
	}
	l.mu.Lock()
	for _, n := range l.lanes {
		if n.active != nil {
			n.cancel(llm.ErrShutdown)
		}
	}
	l.mu.Unlock()
	grace, cancel := l.clock.WithTimeout(context.WithoutCancel(ctx), l.cfg.Grace, errStuck)
	defer cancel()
	if err := l.clock.Await(grace, l.empty); err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		return fmt.Errorf("%w: %d", err, l.active())
	}
	return nil
}

var errStuck = errors.New("turns did not end when they were cancelled")
