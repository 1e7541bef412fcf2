package cron

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"
)

// Chore is work of the bot's own that the scheduler begins beside people's tasks: the look whether a
// model is back, heartbeats. Nothing of it is stored here, it needs no place in the lane, and it goes on
// where people's schedule is switched off.
type Chore interface {
	// Due returns when the chore is due next; zero = it waits for nothing. It is asked often and must be
	// quick.
	Due() time.Time
	// Do does it, and moves Due. It is never called twice at the same time, and must end soon after ctx
	// does.
	Do(ctx context.Context)
}

// choreRest is the least time between two beginnings of a chore: one that forgets to move its Due must
// not keep the machine busy.
const choreRest = time.Second

// chore is a Chore with what the scheduler knows of it. Only the scheduler's goroutine begins one.
type chore struct {
	Chore
	began   time.Time
	running bool // Scheduler.mu
}

// Wake has the scheduler look at the clock and the chores anew: something has become due earlier.
func (s *Scheduler) Wake() { s.nudge() }

// housekeep begins the chores that are due, and returns for how long there is none.
func (s *Scheduler) housekeep(ctx context.Context, now time.Time) time.Duration {
	next := s.pace
	for _, c := range s.chores {
		due := c.Due()
		if due.IsZero() {
			continue
		}
		if rested := c.began.Add(choreRest); !c.began.IsZero() && due.Before(rested) {
			due = rested
		}
		if wait := due.Sub(now); wait > 0 {
			next = min(next, wait)
			continue
		}
		if s.free(c) {
			c.began = now
			s.spawn(func() { s.do(ctx, c) })
		}
	}
	return next
}

// free marks a chore as running, if it is not and work is still taken.
func (s *Scheduler) free(c *chore) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.running || s.stopped {
		return false
	}
	c.running = true
	return true
}

// do runs a chore; a crash of it ends nothing else.
func (s *Scheduler) do(ctx context.Context, c *chore) {
	defer func() {
		if r := recover(); r != nil {
			s.log.Error("chore panicked", "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
		}
		s.mu.Lock()
		c.running = false
		s.mu.Unlock()
		s.nudge()
	}()
	c.Do(ctx)
}
