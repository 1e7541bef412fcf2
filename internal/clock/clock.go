// Package clock is the one source of time for the rooms that `bot simulate` drives.
//
// The zero Clock is real time: nobody has to think of it. A clock made by NewVirtual belongs to a
// Virtual, which moves time forward only when every goroutine it counts waits. For that to be
// true, the rooms wait for each other only through the Clock (Sleep, Await, AfterFunc, Go) and do
// no other blocking than I/O that ends by itself.
package clock

import (
	"context"
	"time"
)

// Clock tells the time and waits. It is a value; copies are the same clock.
type Clock struct{ v *Virtual }

// Timer is a pending AfterFunc.
type Timer struct {
	real *time.Timer
	v    *Virtual
	w    *waiter
}

// Now returns the time, in milliseconds like everything stored (spec/failover.md §1).
func (c Clock) Now() time.Time {
	if c.v != nil {
		return c.v.Now()
	}
	return time.Now().Truncate(time.Millisecond)
}

// Since is Now minus t.
func (c Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Sleep waits for d, or until ctx ends and then returns its cause.
func (c Clock) Sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if d <= 0 {
		return nil
	}
	if c.v != nil {
		return c.v.wait(ctx, nil, d)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Await waits until done is closed, or until ctx ends and then returns its cause. The channel must
// be one that is closed, not sent to.
func (c Clock) Await(ctx context.Context, done <-chan struct{}) error {
	if c.v != nil {
		return c.v.wait(ctx, done, -1)
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		select { // both may be ready: what was awaited wins
		case <-done:
			return nil
		default:
			return context.Cause(ctx)
		}
	}
}

// Go runs f in a goroutine that the clock counts.
func (c Clock) Go(f func()) {
	if c.v != nil {
		c.v.goCounted(f)
		return
	}
	go f()
}

// AfterFunc runs f in its own goroutine once d has passed.
func (c Clock) AfterFunc(d time.Duration, f func()) *Timer {
	if c.v != nil {
		return &Timer{v: c.v, w: c.v.after(d, f)}
	}
	return &Timer{real: time.AfterFunc(d, f)}
}

// Stop cancels the timer and reports whether it had not fired. A nil Timer is stopped.
func (t *Timer) Stop() bool {
	switch {
	case t == nil:
		return false
	case t.v != nil:
		return t.v.stop(t.w)
	default:
		return t.real.Stop()
	}
}

// WithTimeout returns a context that ends after d with the given cause.
func (c Clock) WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	t := c.AfterFunc(d, func() { cancel(cause) })
	return ctx, func() {
		t.Stop()
		cancel(context.Canceled)
	}
}
