package cron

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"understudy/internal/clock"
)

// pulse is a chore with an interval; a run takes a while.
type pulse struct {
	every, takes time.Duration
	next         atomic.Int64
	runs, most   atomic.Int64
	busy         atomic.Int64
	work         func()
}

func (p *pulse) Due() time.Time { return at(p.next.Load()) }

func (p *pulse) Do(ctx context.Context) {
	p.next.Store(time.Now().Add(p.every).UnixMilli())
	p.runs.Add(1)
	if n := p.busy.Add(1); n > p.most.Load() {
		p.most.Store(n)
	}
	defer p.busy.Add(-1)
	_ = clock.Clock{}.Sleep(ctx, p.takes)
	if p.work != nil {
		p.work()
	}
}

func (w *world) chores(list ...Chore) {
	w.t.Helper()
	w.deps = func(d *Deps) { d.Chores = list }
	w.reboot(0)
}

func TestChoresAreBegunOnTime(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		fast, slow := &pulse{every: 7 * time.Second}, &pulse{every: 5 * time.Minute}
		for _, p := range []*pulse{fast, slow} {
			p.next.Store(time.Now().Add(p.every).UnixMilli())
		}
		w.chores(fast, slow, &pulse{})
		w.pass(10*time.Minute + time.Second)
		if f, s := fast.runs.Load(), slow.runs.Load(); f != 85 || s != 2 {
			t.Errorf("%d and %d runs", f, s)
		}
	})
}

func TestChoresNeitherOverlapNorHoldUpTasks(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		slow := &pulse{every: time.Minute, takes: 10 * time.Minute}
		slow.next.Store(time.Now().UnixMilli())
		w.chores(slow)
		job := w.add("every 1m")
		w.pass(5*time.Minute + time.Second)
		if n := len(w.log(job.ID)); n != 5 || slow.most.Load() != 1 || slow.runs.Load() != 1 {
			t.Errorf("%d runs of the task; %d of the chore, %d at once", n, slow.runs.Load(), slow.most.Load())
		}
	})
}

func TestAChoreThatCrashesOrForgetsTheTimeEndsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		broken := &pulse{work: func() { panic("broken") }}
		broken.next.Store(time.Now().Add(-time.Hour).UnixMilli()) // every is 0: it is always due
		w.chores(broken)
		job := w.add("every 1m")
		w.pass(time.Minute + time.Second)
		if n := broken.runs.Load(); n < 30 || n > 70 {
			t.Errorf("%d runs in a minute", n)
		}
		if len(w.log(job.ID)) != 1 {
			t.Error("the task did not run")
		}
	})
}

func TestChoresGoOnWhereTasksAreSwitchedOff(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := &pulse{every: time.Minute}
		p.next.Store(time.Now().Add(p.every).UnixMilli())
		off := false
		w.cfg.Enabled = &off
		w.chores(p)
		w.pass(3*time.Minute + time.Second)
		if p.runs.Load() != 3 {
			t.Errorf("%d runs", p.runs.Load())
		}
	})
}

func TestWakingBringsAChoreForward(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := &pulse{every: time.Hour}
		p.next.Store(time.Now().Add(p.every).UnixMilli())
		w.chores(p)
		w.pass(time.Second)
		p.next.Store(time.Now().UnixMilli())
		w.s.Wake()
		w.pass(time.Second)
		if p.runs.Load() != 1 {
			t.Errorf("%d runs", p.runs.Load())
		}
	})
}
