package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	own, cause := func(t *Task) bool { return owner == "" || t.Owner == owner }, llm.ErrStopped
	if owner != "" {
		cause = &StoppedBy{owner}
	}
	return l.stop(key, cause, own, own)
}

// StoppedBy is the cause with which Stop ends what one person asked for. It is an llm.ErrStopped; what
// others have said in the meantime is not theirs to end.
type StoppedBy struct{ Owner string }

// Error implements error.
func (*StoppedBy) Error() string { return llm.ErrStopped.Error() }

// Unwrap returns llm.ErrStopped.
func (*StoppedBy) Unwrap() error { return llm.ErrStopped }

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
	removed := append(n.forgo(match), l.remove(n, match)...)
	if active = n.active != nil && cancel(n.active); active {
		n.cancel(cause)
	}
	l.move(n, place)
	l.forget(n)
	l.dispatch()
	l.mu.Unlock()
	drop(removed, cause)
	return len(removed), active
}

// Take gives the active run of key the waiting messages it may answer too: those at the head of the
// queue that were submitted with Steer and belong to its Batch, with what gave way before them. Neither
// Run nor Dropped is called for them any more: whoever takes them answers them. Without a run, or with
// anything else at the head, it takes nothing.
func (l *Lanes) Take(key string) Work {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.lanes[key]
	if n == nil || n.active == nil || n.active.Batch == "" {
		return Work{}
	}
	count := 0
	for count < len(n.queue) && n.queue[count].Steer && n.queue[count].Batch == n.active.Batch {
		count++
	}
	if count == 0 {
		return Work{}
	}
	return l.take(n, count, true)
}

// Withdraw takes waiting tasks, and such as gave way, out because their messages were taken back, and
// returns how many. Neither Run nor Dropped is called for them.
func (l *Lanes) Withdraw(key string, match func(item any) bool) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.lanes[key]
	if n == nil {
		return 0
	}
	place := n.place()
	about := func(t *Task) bool { return t.Item != nil && match(t.Item) }
	removed := append(n.forgo(about), l.remove(n, about)...)
	l.move(n, place)
	l.forget(n)
	l.dispatch()
	return len(removed)
}

// forgo takes tasks that match out of those that gave way and that no run has told of; mu is held.
func (n *lane) forgo(match func(*Task) bool) (removed []*Task) {
	n.digested = slices.DeleteFunc(slices.Clone(n.digested), func(t *Task) bool {
		out := match(t)
		if out {
			removed = append(removed, t)
		}
		return out
	})
	return removed
}

// forget drops a key without work; mu is held.
func (l *Lanes) forget(n *lane) {
	if n.active == nil && len(n.queue)+len(n.digested) == 0 {
		delete(l.lanes, n.key)
	}
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
	for _, n := range l.lanes {
		everything := func(*Task) bool { return true }
		dropped = append(append(dropped, n.forgo(everything)...), l.remove(n, everything)...)
		l.settle(n)
		l.forget(n)
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
