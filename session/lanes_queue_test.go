package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"understudy/internal/clock"
	"understudy/llm"
)

// message is a task that takes a second and writes down what it answers.
func (r *trace) message(name string) Task {
	return Task{
		Owner: name[:1], Item: name, Batch: "here",
		RunAll: func(ctx context.Context, w Work) {
			r.add("answers %s", told(w))
			if err := (clock.Clock{}).Sleep(ctx, time.Second); err != nil {
				r.add("%s: %v", told(w), err)
			}
		},
		Dropped: func(cause error) { r.add("%s dropped: %v", name, cause) },
	}
}

// told writes down what a run is to do.
func told(w Work) string {
	var names []string
	for _, item := range w.Items {
		names = append(names, item.(string))
	}
	text := strings.Join(names, "+")
	for _, item := range w.Digested {
		text += " after " + item.(string)
	}
	return text
}

func TestWaitingMessagesOfOneBatchAreOneTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := &trace{}, NewLanes(LaneConfig{}, clock.Clock{}, nil)
		elsewhere := r.message("b3")
		elsewhere.Batch = "there"
		mustSubmit(t, l, "k", r.message("a1"), r.message("a2"), elsewhere, r.message("a4"), r.message("a5"))
		<-time.After(10 * time.Second)
		check(t, r, "answers a1", "answers a2", "answers b3", "answers a4+a5")
		if !idle(l) {
			t.Error("something is left of the keys")
		}
	})
}

func TestABatchWaitsForQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := &trace{}, NewLanes(LaneConfig{}, clock.Clock{}, nil)
		quiet := func(name string) Task {
			x := r.message(name)
			x.Quiet = 3 * time.Second
			return x
		}
		began := time.Now()
		mustSubmit(t, l, "k", quiet("a1"))
		synctest.Wait()
		check(t, r, "answers a1") // nobody waits in an idle conversation
		mustSubmit(t, l, "k", quiet("a2"))
		<-time.After(2 * time.Second)
		mustSubmit(t, l, "k", quiet("a3"))
		<-time.After(3*time.Second - 1)
		check(t, r, "answers a1")
		<-time.After(2)
		check(t, r, "answers a1", "answers a2+a3")
		if d := time.Since(began); d != 5*time.Second+1 {
			t.Errorf("answered after %v", d)
		}
		// A command does not wait for it, and a conversation that is never quiet is answered too.
		mustSubmit(t, l, "k", quiet("b1"), front(r.task("c1")))
		<-time.After(time.Second)
		check(t, r, "answers a1", "answers a2+a3", "c1 runs")
		for i := range 40 {
			mustSubmit(t, l, fmt.Sprint("noisy", i/40), func() Task { x := quiet(fmt.Sprint("n", i)); x.Cap = 100; return x }())
			<-time.After(time.Second)
		}
		if got := r.list(); len(got) < 6 {
			t.Errorf("never quiet, never answered: %v", got)
		}
		<-time.After(time.Minute)
	})
}

func TestTheRunningTurnTakesSteeredMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := &trace{}, NewLanes(LaneConfig{}, clock.Clock{}, nil)
		steered := func(name string) Task {
			x := r.message(name)
			x.Steer = true
			return x
		}
		if told(l.Take("k")) != "" {
			t.Error("took from nobody")
		}
		mustSubmit(t, l, "k", r.message("a1"))
		synctest.Wait()
		mustSubmit(t, l, "k", steered("a2"), steered("a3"), r.message("a4"), steered("a5"))
		if got := told(l.Take("k")); got != "a2+a3" {
			t.Errorf("took %s", got)
		}
		if got := told(l.Take("k")); got != "" { // a4 goes first
			t.Errorf("took %s", got)
		}
		<-time.After(10 * time.Second)
		check(t, r, "answers a1", "answers a4+a5")
	})
}

func TestANewerMessageInterruptsATurnButNoCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := &trace{}, NewLanes(LaneConfig{}, clock.Clock{}, nil)
		newer := func(name string) Task {
			x := r.message(name)
			x.Preempt = llm.ErrInterrupted
			return x
		}
		mustSubmit(t, l, "k", newer("a1"))
		synctest.Wait()
		mustSubmit(t, l, "k", newer("a2"))
		synctest.Wait()
		check(t, r, "answers a1", "a1: interrupted by a newer message", "answers a2")
		<-time.After(2 * time.Second)
		mustSubmit(t, l, "k", front(r.task("c1")))
		synctest.Wait()
		mustSubmit(t, l, "k", newer("a3"))
		<-time.After(5 * time.Second)
		check(t, r, "answers a1", "a1: interrupted by a newer message", "answers a2", "c1 runs", "answers a3")
	})
}

func TestWhatGivesWayInAFullQueue(t *testing.T) {
	for _, c := range []struct {
		drop DropPolicy
		want []string
		err  error
	}{
		{DropNew, []string{"answers a1", "answers a2+a3"}, ErrFull},
		{DropOld, []string{"answers a1", "a2 dropped: " + ErrFull.Error(), "answers a3+a4"}, nil},
		{DropSummarize, []string{"answers a1", "a2 dropped: " + ErrDigested.Error(), "answers a3+a4 after a2"}, nil},
	} {
		t.Run(string(c.drop), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, l := &trace{}, NewLanes(LaneConfig{}, clock.Clock{}, nil)
				mustSubmit(t, l, "k", r.message("a1"))
				synctest.Wait()
				mustSubmit(t, l, "k", r.message("a2"), r.message("a3"))
				last := r.message("a4")
				last.Cap, last.Drop = 2, c.drop
				if err := l.Submit("k", last); !errors.Is(err, c.err) {
					t.Errorf("got %v", err)
				}
				<-time.After(10 * time.Second)
				check(t, r, c.want...)
			})
		})
	}
}

// TestWhatGaveWayIsToldOfOrDropped follows messages that were taken out of a full queue to where they end: in
// the next run, in the one that takes steered messages, or, where no run tells of them, with the reason.
func TestWhatGaveWayIsToldOfOrDropped(t *testing.T) {
	full := func(t *testing.T, r *trace, l *Lanes, names ...string) {
		t.Helper()
		for _, name := range names {
			x := r.message(name)
			x.Cap, x.Drop, x.Steer = 1, DropSummarize, true
			mustSubmit(t, l, "k", x)
			synctest.Wait()
		}
	}
	for _, c := range []struct {
		name string
		play func(t *testing.T, r *trace, l *Lanes)
		want []string
	}{
		{"in the turn that takes the others", func(t *testing.T, r *trace, l *Lanes) {
			full(t, r, l, "a1", "a2", "b3", "a4")
			r.add("takes %s", told(l.Take("k")))
			<-time.After(2 * time.Second)
			full(t, r, l, "a5")
		}, []string{"answers a1", "a2 dropped: " + ErrDigested.Error(), "b3 dropped: " + ErrDigested.Error(), "takes a4 after a2 after b3", "answers a5"}},
		{"in the next one, when all others were taken back", func(t *testing.T, r *trace, l *Lanes) {
			full(t, r, l, "a1", "a2", "a3")
			l.Withdraw("k", func(item any) bool { return item == "a3" })
			<-time.After(2 * time.Second)
			full(t, r, l, "a4")
		}, []string{"answers a1", "a2 dropped: " + ErrDigested.Error(), "answers a4 after a2"}},
		{"not when it is taken back itself", func(t *testing.T, r *trace, l *Lanes) {
			full(t, r, l, "a1", "a2", "a3")
			if n := l.Withdraw("k", func(item any) bool { return item == "a2" }); n != 1 {
				t.Errorf("withdrew %d", n)
			}
		}, []string{"answers a1", "a2 dropped: " + ErrDigested.Error(), "answers a3"}},
		{"not when its sender stops it", func(t *testing.T, r *trace, l *Lanes) {
			full(t, r, l, "a1", "a2", "b3", "c4")
			l.Stop("k", "b")
		}, []string{
			"answers a1", "a2 dropped: " + ErrDigested.Error(), "b3 dropped: " + ErrDigested.Error(), "b3 dropped: " + llm.ErrStopped.Error(),
			"answers c4 after a2",
		}},
		{"not when the bot shuts down", func(t *testing.T, r *trace, l *Lanes) {
			full(t, r, l, "a1", "a2", "a3")
			if err := l.Drain(t.Context()); err != nil {
				t.Error(err)
			}
		}, []string{
			"answers a1", "a2 dropped: " + ErrDigested.Error(), "a2 dropped: " + llm.ErrShutdown.Error(), "a3 dropped: " + llm.ErrShutdown.Error(),
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, l := &trace{}, NewLanes(LaneConfig{}, clock.Clock{}, nil)
				c.play(t, r, l)
				<-time.After(10 * time.Second)
				check(t, r, c.want...)
				if !idle(l) {
					t.Error("something is left of the key")
				}
			})
		})
	}
}

// TestTheOldestOfTooManyThatGaveWayIsForgotten bounds what a conversation keeps.
func TestTheOldestOfTooManyThatGaveWayIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLanes(LaneConfig{}, clock.Clock{}, nil)
		var work Work
		forgotten := 0
		for i := range mostDigests + 4 {
			mustSubmit(t, l, "k", Task{
				Item: i, Batch: "here", Cap: 1, Drop: DropSummarize,
				RunAll: func(_ context.Context, w Work) {
					work = w
					<-time.After(time.Second)
				},
				Dropped: func(cause error) {
					if errors.Is(cause, ErrFull) {
						forgotten++
					}
				},
			})
			synctest.Wait()
		}
		<-time.After(10 * time.Second)
		if len(work.Digested) != mostDigests || work.Digested[0] != 3 || forgotten != 2 {
			t.Errorf("told of %d, the first %v; %d forgotten", len(work.Digested), work.Digested[0], forgotten)
		}
	})
}

func TestWithdrawnMessagesAreNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := &trace{}, NewLanes(LaneConfig{}, clock.Clock{}, nil)
		mustSubmit(t, l, "k", r.message("a1"), r.message("a2"), r.message("a3"))
		synctest.Wait()
		if n := l.Withdraw("k", func(item any) bool { return item == "a2" || item == "a1" }); n != 1 {
			t.Errorf("withdrew %d: the first turn has begun", n)
		}
		mustSubmit(t, l, "k", r.message("a4"), r.message("a5"))
		if n := l.Withdraw("k", func(item any) bool { return item == "a4" }); n != 1 {
			t.Errorf("withdrew %d", n)
		}
		<-time.After(10 * time.Second)
		check(t, r, "answers a1", "answers a3+a5")
		if l.Withdraw("nobody", func(any) bool { return true }) != 0 || !idle(l) {
			t.Error("something is left of the keys")
		}
	})
}

// TestLanesAgainstAModel plays random moves on one key, between which everybody comes to rest, and
// compares what became of every message with a queue that a reader can check: an active turn, a list
// of waiting messages, nothing else.
func TestLanesAgainstAModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(*testing.T) { playModel(rt) })
	})
}

// model is the reference.
type model struct {
	active  []string
	where   string // batch of the active turn; "" = a command
	waiting []modelTask
	fate    map[string]string
}

type modelTask struct {
	name, batch string
	steer       bool
}

// next begins what is due.
func (m *model) next() {
	if m.active != nil || len(m.waiting) == 0 {
		return
	}
	m.where = m.waiting[0].batch
	for len(m.waiting) > 0 && m.waiting[0].batch == m.where {
		name := m.waiting[0].name
		m.active, m.fate[name], m.waiting = append(m.active, name), "answered", m.waiting[1:]
	}
}

func (m *model) end() { m.active = nil; m.next() }

func playModel(rt *rapid.T) {
	l := NewLanes(LaneConfig{Cap: 4}, clock.Clock{}, nil)
	want := &model{fate: map[string]string{}}
	var mu sync.Mutex
	got := map[string]string{}
	finish := make(chan struct{}, 1)
	is := func(name, fate string) {
		mu.Lock()
		defer mu.Unlock()
		got[name] = fate
	}
	submit := func(name, batch string, steer, interrupt bool) {
		task := Task{
			Owner: batch, Item: name, Batch: batch, Steer: steer,
			RunAll: func(ctx context.Context, w Work) {
				for _, item := range w.Items {
					is(item.(string), "answered")
				}
				select {
				case <-finish:
				case <-ctx.Done():
				}
			},
			Dropped: func(error) { is(name, "dropped") },
		}
		if interrupt {
			task.Preempt = llm.ErrInterrupted
		}
		err := l.Submit("k", task)
		if full := len(want.waiting) >= 4; full != (err != nil) {
			rt.Fatalf("%s: got %v with %d waiting", name, err, len(want.waiting))
		} else if full {
			return
		}
		want.waiting = append(want.waiting, modelTask{name, batch, steer})
		if interrupt && want.active != nil {
			want.end()
		}
		want.next()
	}
	for i := range rapid.IntRange(1, 30).Draw(rt, "moves") {
		switch move := rapid.SampledFrom([]string{"say", "say", "say", "finish", "take", "stop", "withdraw"}).Draw(rt, "move"); move {
		case "say":
			batch := rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "batch")
			submit(fmt.Sprint(i), batch, rapid.Bool().Draw(rt, "steer"), rapid.IntRange(0, 5).Draw(rt, "interrupt") == 0)
		case "finish":
			if want.active != nil {
				finish <- struct{}{}
				want.end()
			}
		case "take":
			for _, item := range l.Take("k").Items {
				is(item.(string), "taken")
			}
			for want.active != nil && len(want.waiting) > 0 && want.waiting[0].steer && want.waiting[0].batch == want.where {
				want.fate[want.waiting[0].name], want.waiting = "taken", want.waiting[1:]
			}
		case "stop":
			owner := rapid.SampledFrom([]string{"", "x", "y"}).Draw(rt, "owner")
			l.Stop("k", owner)
			mine := func(w modelTask) bool { return owner == "" || w.batch == owner }
			for _, w := range want.waiting {
				if mine(w) {
					want.fate[w.name] = "dropped"
				}
			}
			want.waiting = slices.DeleteFunc(want.waiting, mine)
			if want.active != nil && (owner == "" || want.where == owner) {
				want.end()
			}
		case "withdraw":
			if len(want.waiting) > 0 {
				w := rapid.SampledFrom(want.waiting).Draw(rt, "message")
				l.Withdraw("k", func(item any) bool { return item == w.name })
				want.waiting = slices.DeleteFunc(want.waiting, func(x modelTask) bool { return x == w })
				want.fate[w.name] = "withdrawn"
				is(w.name, "withdrawn")
			}
		}
		synctest.Wait()
		if fmt.Sprint(got) != fmt.Sprint(want.fate) {
			rt.Fatalf("fates are %v, want %v", got, want.fate)
		}
	}
	l.Stop("k", "")
	synctest.Wait()
	if !idle(l) {
		rt.Fatal("something is left of the key")
	}
}
