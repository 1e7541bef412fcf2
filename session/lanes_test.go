package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/internal/clock"
	"understudy/llm"
)

// trace records what happens in lanes, in order.
type trace struct {
	mu   sync.Mutex
	seen []string
}

func (r *trace) add(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, fmt.Sprintf(format, args...))
}

func (r *trace) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.seen...)
}

// task runs for a second unless it is cancelled.
func (r *trace) task(name string) Task {
	return Task{
		Owner: name[:1],
		Run: func(ctx context.Context) {
			r.add("%s runs", name)
			if err := (clock.Clock{}).Sleep(ctx, time.Second); err != nil {
				r.add("%s: %v", name, err)
			}
		},
		Dropped: func(cause error) { r.add("%s dropped: %v", name, cause) },
	}
}

func front(t Task) Task {
	t.Front = true
	return t
}

func mustSubmit(t *testing.T, l *Lanes, key string, tasks ...Task) {
	t.Helper()
	for _, x := range tasks {
		if err := l.Submit(key, x); err != nil {
			t.Fatal(err)
		}
	}
}

func check(t *testing.T, r *trace, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, r.list()); diff != "" {
		t.Error(diff)
	}
}

// checkSet is check for things that may happen at the same moment.
func checkSet(t *testing.T, r *trace, want ...string) {
	t.Helper()
	got := r.list()
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// idle reports whether nothing is left of any key.
func idle(l *Lanes) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.lanes) == 0 && l.waiting == 0 && l.active() == 0
}

func TestOneAtATimeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := &trace{}, NewLanes(LaneConfig{}, clock.Clock{}, nil)
		mustSubmit(t, l, "k", r.task("a1"))
		synctest.Wait()
		mustSubmit(t, l, "other", r.task("b1"))
		synctest.Wait()
		check(t, r, "a1 runs", "b1 runs") // side by side: no time has passed
		<-time.After(time.Minute)
	})
	synctest.Test(t, func(t *testing.T) {
		r, l := &trace{}, NewLanes(LaneConfig{}, clock.Clock{}, nil)
		mustSubmit(t, l, "k", r.task("a1"), r.task("a2"), front(r.task("f1")), front(r.task("f2")))
		<-time.After(10 * time.Second)
		check(t, r, "a1 runs", "f1 runs", "f2 runs", "a2 runs")
		if st := l.State("k"); st != (LaneState{}) {
			t.Errorf("the idle key still exists: %+v", st)
		}
		if !idle(l) {
			t.Error("something is left of the keys")
		}
	})
}

func TestGlobalLimitIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &trace{}
		var out bytes.Buffer
		l := NewLanes(LaneConfig{MaxInteractive: 1}, clock.Clock{}, slog.New(slog.NewTextHandler(&out, nil)))
		mustSubmit(t, l, "k1", r.task("a1"), r.task("a2"), r.task("a3"))
		mustSubmit(t, l, "k2", r.task("b1"))
		mustSubmit(t, l, "k3", r.task("c1"))
		mustSubmit(t, l, "k2", r.task("b2")) // a second message does not cost the first its turn
		<-time.After(10 * time.Second)
		check(t, r, "a1 runs", "b1 runs", "c1 runs", "a2 runs", "b2 runs", "a3 runs")
		if n := strings.Count(out.String(), "queued_ms=3000"); n != 1 {
			t.Errorf("waiting is not logged:\n%s", out.String())
		}
	})
}

func TestPoolsDoNotStarveChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := &trace{}, NewLanes(LaneConfig{MaxInteractive: 1, MaxBackground: 1, MaxProbe: 1}, clock.Clock{}, nil)
		for i := range 3 {
			x := r.task(fmt.Sprintf("j%d", i))
			x.Pool = Background
			mustSubmit(t, l, fmt.Sprint("job", i), x)
		}
		synctest.Wait()
		mustSubmit(t, l, "k", r.task("a1"))
		synctest.Wait()
		check(t, r, "j0 runs", "a1 runs")
		// A person's command goes before a job that waits for its pool.
		mustSubmit(t, l, "job2", front(r.task("c1")))
		<-time.After(1500 * time.Millisecond)
		checkSet(t, r, "j0 runs", "a1 runs", "j1 runs", "c1 runs")
		<-time.After(5 * time.Second)
	})
}

func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := &trace{}, NewLanes(LaneConfig{}, clock.Clock{}, nil)
		mustSubmit(t, l, "k", r.task("a1"), r.task("a2"), r.task("b1"))
		synctest.Wait()
		if st := l.State("k"); !st.Active || st.Owner != "a" || st.Queued != 2 {
			t.Errorf("%+v", st)
		}
		if queued, active := l.Stop("k", "c"); queued != 0 || active {
			t.Errorf("somebody without work stopped %d, %v", queued, active)
		}
		if queued, active := l.Stop("k", "a"); queued != 1 || !active {
			t.Errorf("stopped %d, %v", queued, active)
		}
		synctest.Wait()
		checkSet(t, r, "a1 runs", "a2 dropped: stopped by the user", "a1: stopped by the user", "b1 runs")
		if queued, active := l.Stop("k", ""); queued != 0 || !active {
			t.Errorf("stopped %d, %v", queued, active)
		}
		synctest.Wait()
		if queued, active := l.Stop("k", ""); queued != 0 || active {
			t.Errorf("stopped %d, %v of nothing", queued, active)
		}
	})
}

func TestStopOfAKeyThatWaitsForAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := &trace{}, NewLanes(LaneConfig{MaxInteractive: 1}, clock.Clock{}, nil)
		mustSubmit(t, l, "k1", r.task("a1"))
		mustSubmit(t, l, "k2", r.task("b1"))
		if queued, active := l.Stop("k2", ""); queued != 1 || active {
			t.Errorf("stopped %d, %v", queued, active)
		}
		<-time.After(5 * time.Second)
		checkSet(t, r, "b1 dropped: stopped by the user", "a1 runs")
		if !idle(l) {
			t.Error("something is left of the keys")
		}
	})
}

func TestPreemptAndInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := &trace{}, NewLanes(LaneConfig{}, clock.Clock{}, nil)
		reset := front(r.task("reset"))
		reset.Preempt = llm.ErrStopped
		mustSubmit(t, l, "k", r.task("a1"), r.task("a2"))
		synctest.Wait()
		mustSubmit(t, l, "k", reset)
		synctest.Wait()
		check(t, r, "a1 runs", "a1: stopped by the user", "reset runs")
		if !l.Interrupt("k", llm.ErrInterrupted) || l.Interrupt("nobody", llm.ErrInterrupted) {
			t.Error("interrupted the wrong thing")
		}
		<-time.After(5 * time.Second)
		check(t, r, "a1 runs", "a1: stopped by the user", "reset runs", "reset: interrupted by a newer message", "a2 runs")
	})
}

func TestQueuesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := &trace{}, NewLanes(LaneConfig{Cap: 2, MaxWaiting: 4}, clock.Clock{}, nil)
		mustSubmit(t, l, "k", r.task("a0"), front(r.task("f1")), r.task("a1"))
		if err := l.Submit("k", r.task("a2")); !errors.Is(err, ErrFull) {
			t.Errorf("over the cap: %v", err)
		}
		newest := r.task("a3")
		newest.Drop = DropOld
		mustSubmit(t, l, "k", newest, front(r.task("f2")))
		mustSubmit(t, l, "k2", r.task("b0"), r.task("b1"))
		if err := l.Submit("k3", r.task("c0")); !errors.Is(err, ErrFull) {
			t.Errorf("over the limit of all: %v", err)
		}
		<-time.After(10 * time.Second)
		got := strings.Join(r.list(), ", ")
		for _, want := range []string{"a1 dropped: too many", "a3 runs", "f2 runs", "b1 runs"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is missing in %s", want, got)
			}
		}
	})
}

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := &trace{}, NewLanes(LaneConfig{MaxInteractive: 2}, clock.Clock{}, nil)
		slow := r.task("s1")
		slow.Run = func(ctx context.Context) {
			<-ctx.Done()
			r.add("s1: %v", context.Cause(ctx))
		}
		mustSubmit(t, l, "k1", slow, r.task("s2"))
		mustSubmit(t, l, "k2", r.task("b1"))
		mustSubmit(t, l, "k3", r.task("c1"))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		if err := l.Drain(ctx); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != 3*time.Second {
			t.Errorf("drained after %v", d)
		}
		got := r.list()
		if last := got[len(got)-1]; last != "s1: the bot is shutting down" {
			t.Errorf("the last: %s", last)
		}
		for _, want := range []string{"s2 dropped: the bot is shutting down", "c1 dropped: the bot is shutting down"} {
			if !strings.Contains(strings.Join(got, "\n"), want) {
				t.Errorf("%q is missing in %v", want, got)
			}
		}
		if err := l.Submit("k", r.task("x")); !errors.Is(err, ErrDraining) {
			t.Errorf("got %v", err)
		}
		if err := l.Drain(t.Context()); !errors.Is(err, ErrDraining) {
			t.Errorf("drained twice: %v", err)
		}
	})
}

func TestDrainTellsWhoDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLanes(LaneConfig{}, clock.Clock{}, nil)
		stuck := make(chan struct{})
		mustSubmit(t, l, "k", Task{Run: func(context.Context) { <-stuck }})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Drain(ctx); !errors.Is(err, errStuck) {
			t.Errorf("got %v", err)
		}
		close(stuck)
	})
}

func TestAPanicEndsOneTurnOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		r, l := &trace{}, NewLanes(LaneConfig{}, clock.Clock{}, slog.New(slog.NewTextHandler(&out, nil)))
		mustSubmit(t, l, "k", Task{Run: func(context.Context) { panic("oh") }}, r.task("a1"))
		<-time.After(3 * time.Second)
		check(t, r, "a1 runs")
		if !strings.Contains(out.String(), "turn panicked") {
			t.Errorf("the log does not say it:\n%s", out.String())
		}
	})
}

func TestLanesOnAVirtualClock(t *testing.T) {
	start := time.UnixMilli(1_790_000_000_000)
	v := clock.NewVirtual(start)
	l := NewLanes(LaneConfig{MaxInteractive: 1}, v.Clock(), nil)
	ran := 0
	v.Clock().Go(func() {
		for i := range 5 {
			err := l.Submit(fmt.Sprint(i%2), Task{Run: func(ctx context.Context) {
				if v.Clock().Sleep(ctx, time.Minute) == nil {
					ran++
				}
			}})
			if err != nil {
				t.Error(err)
			}
		}
	})
	v.Run(start.Add(time.Hour))
	if ran != 5 || !v.Now().Equal(start.Add(5*time.Minute)) {
		t.Errorf("%d ran until %v", ran, v.Now())
	}
}

// TestLanesUnderLoad: whatever is submitted, stopped and interrupted, no key ever runs twice at
// once, no pool is over its limit, and every task ends in exactly one way.
func TestLanesUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, keys, workers, each = 3, 6, 8, 60
		l := NewLanes(LaneConfig{MaxInteractive: limit, Cap: 4}, clock.Clock{}, slog.New(slog.DiscardHandler))
		var accepted, ended, running, wrong atomic.Int32
		var busy [keys]atomic.Int32
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(w), 3))
				for range each {
					k := r.IntN(keys)
					key, lasts := fmt.Sprint(k), time.Duration(r.IntN(50))*time.Millisecond
					switch r.IntN(8) {
					case 0:
						l.Stop(key, "")
					case 1:
						l.Interrupt(key, llm.ErrInterrupted)
					default:
						err := l.Submit(key, Task{
							Front: r.IntN(5) == 0, Drop: dropPolicies[r.IntN(len(dropPolicies))],
							RunAll: func(ctx context.Context, w Work) {
								if busy[k].Add(1) != 1 || running.Add(1) > limit {
									wrong.Add(1)
								}
								clock.Clock{}.Sleep(ctx, lasts)
								running.Add(-1)
								busy[k].Add(-1)
								ended.Add(int32(len(w.Items) + len(w.Digested)))
							},
							Dropped: func(cause error) {
								if !errors.Is(cause, ErrDigested) { // a later run tells of it
									ended.Add(1)
								}
							},
						})
						if err == nil {
							accepted.Add(1)
						}
					}
					<-time.After(time.Duration(r.IntN(20)) * time.Millisecond)
				}
			})
		}
		wg.Wait()
		<-time.After(time.Minute)
		if wrong.Load() != 0 || ended.Load() != accepted.Load() || accepted.Load() == 0 {
			t.Errorf("%d wrong; %d ended of %d", wrong.Load(), ended.Load(), accepted.Load())
		}
		if !idle(l) {
			t.Error("something is left of the keys")
		}
	})
}
