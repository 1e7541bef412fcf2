package clock

import (
	"context"
	"sync"
	"time"
)

// Virtual is a clock on which waiting costs nothing. It counts the goroutines started through its
// Clock; when all of them wait, it wakes one whose wait is over (its channel closed, its context
// ended), or else moves the time to the earliest deadline. One goroutine is woken at a time, in
// order of deadline and then of arrival, so a run is repeatable.
type Virtual struct {
	mu      sync.Mutex
	now     time.Time
	running int
	seq     uint64
	waiters []*waiter // in order of arrival
	idle    *sync.Cond
}

type waiter struct {
	seq   uint64
	at    time.Time // zero = no deadline
	ctx   context.Context
	done  <-chan struct{}
	wake  chan struct{}
	fn    func() // AfterFunc
	fired bool
}

// NewVirtual returns a virtual clock that starts at the given time.
func NewVirtual(start time.Time) *Virtual {
	v := &Virtual{now: start.Truncate(time.Millisecond)}
	v.idle = sync.NewCond(&v.mu)
	return v
}

// Clock returns the clock to hand out.
func (v *Virtual) Clock() Clock { return Clock{v} }

// Now returns the virtual time.
func (v *Virtual) Now() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now
}

// Run lets the clock's goroutines work until none of them can go on without time passing limit,
// and reports whether any deadline is left behind it. At the end Now is the last time at which
// something happened. It must be called by one uncounted goroutine at a time.
func (v *Virtual) Run(limit time.Time) (more bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for {
		for v.running > 0 {
			v.idle.Wait()
		}
		w := v.runnable()
		if w == nil {
			w = v.earliest()
			if w == nil {
				return false
			}
			if w.at.After(limit) {
				return true
			}
			if w.at.After(v.now) {
				v.now = w.at
			}
		}
		v.release(w)
	}
}

// Advance sets the time forward to t if nothing waits for an earlier moment; use it after Run.
func (v *Virtual) Advance(t time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if t.After(v.now) {
		v.now = t
	}
}

// runnable returns the oldest waiter that need not wait for time.
func (v *Virtual) runnable() *waiter {
	for _, w := range v.waiters {
		if w.ctx != nil && w.ctx.Err() != nil {
			return w
		}
		if w.done != nil {
			select {
			case <-w.done:
				return w
			default:
			}
		}
	}
	return nil
}

func (v *Virtual) earliest() *waiter {
	var best *waiter
	for _, w := range v.waiters {
		if w.at.IsZero() {
			continue
		}
		if best == nil || w.at.Before(best.at) {
			best = w
		}
	}
	return best
}

// release wakes w and counts it as running; the lock is held.
func (v *Virtual) release(w *waiter) {
	v.remove(w)
	w.fired = true
	v.running++
	if w.fn != nil {
		go v.counted(w.fn)
		return
	}
	close(w.wake)
}

func (v *Virtual) remove(w *waiter) {
	for i, x := range v.waiters {
		if x == w {
			v.waiters = append(v.waiters[:i], v.waiters[i+1:]...)
			return
		}
	}
}

func (v *Virtual) add(w *waiter, d time.Duration) {
	v.seq++
	w.seq = v.seq
	if d >= 0 {
		w.at = v.now.Add(d)
	}
	v.waiters = append(v.waiters, w)
}

// wait blocks the calling, counted goroutine. d < 0 means no deadline.
func (v *Virtual) wait(ctx context.Context, done <-chan struct{}, d time.Duration) error {
	w := &waiter{ctx: ctx, done: done, wake: make(chan struct{})}
	v.mu.Lock()
	v.add(w, d)
	v.parked()
	v.mu.Unlock()
	<-w.wake
	if done != nil {
		select {
		case <-done:
			return nil
		default:
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// parked takes the caller out of the running ones; the lock is held.
func (v *Virtual) parked() {
	v.running--
	if v.running == 0 {
		v.idle.Broadcast()
	}
}

// goCounted starts f once every goroutine that runs now waits, which keeps runs repeatable.
func (v *Virtual) goCounted(f func()) { v.after(0, f) }

func (v *Virtual) counted(f func()) {
	defer func() {
		v.mu.Lock()
		v.parked()
		v.mu.Unlock()
	}()
	f()
}

func (v *Virtual) after(d time.Duration, f func()) *waiter {
	w := &waiter{fn: f}
	v.mu.Lock()
	v.add(w, max(d, 0))
	v.mu.Unlock()
	return w
}

func (v *Virtual) stop(w *waiter) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if w.fired {
		return false
	}
	w.fired = true
	v.remove(w)
	return true
}
