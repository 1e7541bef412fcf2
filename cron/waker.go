package cron

import (
	"log/slog"
	"sync"
	"time"

	"github.com/robfig/cron/v3"

	"understudy/internal/clock"
)

// waker calls somebody when the next run of any job is due. It only wakes: what is to be done then is
// decided by Due, so one call too many does no harm, and what it sleeps through the next tick finds.
type waker interface {
	set(id string, at time.Time) // replaces the earlier time
	drop(id string)
	known() []string
	at(id string) time.Time
	start()
	stop()
}

// newWaker returns the waker for a clock: the library for real time, which also passes in the bubbles
// of tests, or the clock itself where time is made up.
func newWaker(c clock.Clock, log *slog.Logger, ring func()) waker {
	if c != (clock.Clock{}) {
		return &alarm{clock: c, ring: ring, times: map[string]time.Time{}}
	}
	l := libraryLog{log}
	return &library{
		ring: ring,
		// Recover must be the inner one: outside, a panic would leave the job running for ever.
		cron:    cron.New(cron.WithLocation(time.UTC), cron.WithLogger(l), cron.WithChain(cron.SkipIfStillRunning(l), cron.Recover(l))),
		entries: map[string]entry{},
	}
}

// library wakes by robfig/cron. It has an entry for each job, which is replaced when the job's time
// changes: the library never forgets an entry whose time is over, and never looks at the clock again
// (spec/chat.md §9.4). Only the scheduler's own goroutine uses it.
type library struct {
	cron    *cron.Cron
	ring    func()
	entries map[string]entry
}

type entry struct {
	id cron.EntryID
	at time.Time
}

// moment is a schedule of one time. Next is called inside the library's goroutine and must stay pure.
type moment struct{ at time.Time }

// Next implements cron.Schedule.
func (m moment) Next(after time.Time) time.Time {
	if m.at.After(after) {
		return m.at
	}
	return time.Time{}
}

func (l *library) set(id string, at time.Time) {
	l.drop(id)
	l.entries[id] = entry{l.cron.Schedule(moment{at}, cron.FuncJob(l.ring)), at}
}

func (l *library) drop(id string) {
	if e, ok := l.entries[id]; ok {
		l.cron.Remove(e.id)
		delete(l.entries, id)
	}
}

func (l *library) known() []string {
	ids := make([]string, 0, len(l.entries))
	for id := range l.entries {
		ids = append(ids, id)
	}
	return ids
}

func (l *library) at(id string) time.Time { return l.entries[id].at }
func (l *library) start()                 { l.cron.Start() }
func (l *library) stop()                  { <-l.cron.Stop().Done() }

// libraryLog passes the library's errors on; what it does otherwise is not worth a line.
type libraryLog struct{ log *slog.Logger }

// Info implements cron.Logger.
func (libraryLog) Info(string, ...any) {}

// Error implements cron.Logger.
func (l libraryLog) Error(err error, msg string, _ ...any) {
	l.log.Error("scheduler library failed", "message", msg, "error", err)
}

// alarm wakes by the clock itself, with one timer for the earliest time.
type alarm struct {
	clock clock.Clock
	ring  func()

	mu    sync.Mutex
	times map[string]time.Time
	next  time.Time
	timer *clock.Timer
	off   bool
}

func (a *alarm) set(id string, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.times[id]
	a.times[id] = at
	if a.next.IsZero() || at.Before(a.next) || was.Equal(a.next) {
		a.arm()
	}
}

func (a *alarm) drop(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	was, known := a.times[id]
	delete(a.times, id)
	if known && was.Equal(a.next) {
		a.arm()
	}
}

// arm sets the timer for the earliest time to come; a.mu is held.
func (a *alarm) arm() {
	now, first := a.clock.Now(), time.Time{}
	for _, at := range a.times {
		if at.After(now) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if first.Equal(a.next) || a.off {
		return
	}
	a.timer.Stop()
	if a.next = first; !first.IsZero() {
		a.timer = a.clock.AfterFunc(first.Sub(now), a.rings)
	}
}

func (a *alarm) rings() {
	a.mu.Lock()
	a.next = time.Time{}
	a.arm()
	a.mu.Unlock()
	a.ring()
}

func (a *alarm) known() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	ids := make([]string, 0, len(a.times))
	for id := range a.times {
		ids = append(ids, id)
	}
	return ids
}

func (a *alarm) at(id string) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.times[id]
}

func (a *alarm) start() {}

func (a *alarm) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.off = true
	a.timer.Stop()
}
