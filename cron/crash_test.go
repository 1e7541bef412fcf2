package cron

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/chat"
	"understudy/internal/clock"
)

// TestARestartAtAnyMoment ends the process at every point of a run, as a power cut does, and starts it
// again ten minutes later. Nothing is run or said twice, and nothing is lost without a line.
func TestARestartAtAnyMoment(t *testing.T) {
	for _, x := range []struct {
		point    string
		once     []string // log of a single job at 01:00
		daily    []string // log of a job that runs at 01:00 every day, after two days
		said     int      // by the single job
		tellsOne bool     // the owner is told of the single job
	}{
		{
			"before the slot",
			[]string{"01T01:00:00 catch-up ok succeeded"},
			[]string{"01T01:00:00 schedule skipped missed", "02T01:00:00 schedule ok succeeded"},
			1, false,
		},
		{
			"at the begin of the run",
			[]string{"01T01:00:00 schedule error unknown interrupted"},
			[]string{"01T01:00:00 schedule error unknown interrupted", "02T01:00:00 schedule ok succeeded"},
			0, true,
		},
		{
			"in the middle of the run",
			[]string{"01T01:00:00 schedule error unknown interrupted"},
			[]string{"01T01:00:00 schedule error unknown interrupted", "02T01:00:00 schedule ok succeeded"},
			0, true,
		},
		{
			"at the end of the run",
			[]string{"01T01:00:00 schedule error unknown interrupted"},
			[]string{"01T01:00:00 schedule error unknown interrupted", "02T01:00:00 schedule ok succeeded"},
			0, true,
		},
		{
			"before the result is said",
			[]string{"01T01:00:00 schedule ok succeeded"},
			[]string{"01T01:00:00 schedule ok succeeded", "02T01:00:00 schedule ok succeeded"},
			1, false,
		},
		{
			"after the result is said",
			[]string{"01T01:00:00 schedule ok succeeded"},
			[]string{"01T01:00:00 schedule ok succeeded", "02T01:00:00 schedule ok succeeded"},
			1, false,
		},
		{
			"after all of it",
			[]string{"01T01:00:00 schedule ok succeeded"},
			[]string{"01T01:00:00 schedule ok succeeded", "02T01:00:00 schedule ok succeeded"},
			1, false,
		},
	} {
		for _, alone := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, alone %v", x.point, alone), func(t *testing.T) {
				bubble(t, func(t *testing.T, w *world) {
					w.deps = func(d *Deps) { d.Alone = alone }
					c := w.add("1h", func(d *Draft) { d.Keep = true })
					crashAt(w, x.point)
					expect(t, w.log(c.ID), x.once...)
					if len(w.order) != x.said {
						t.Errorf("said %q", w.texts())
					}
					if job := w.get(c.ID); job.Enabled || job.State.Running() || !job.State.NextRunAt.IsZero() {
						t.Errorf("%+v", job)
					}
					if told := len(w.tales) == 1 && strings.Contains(w.tales[0], "interrupted by a restart"); told != x.tellsOne {
						t.Errorf("the owner was told %q", w.tales)
					}
					w.pass(2 * time.Hour)
					expect(t, w.log(c.ID), x.once...)
				})
				bubble(t, func(t *testing.T, w *world) {
					w.deps = func(d *Deps) { d.Alone = alone }
					c := w.add("0 1 * * *")
					crashAt(w, x.point)
					w.pass(24 * time.Hour)
					expect(t, w.log(c.ID), x.daily...)
					if d := w.doubled(); d != nil {
						t.Errorf("run twice: %v", d)
					}
				})
			})
		}
	}
}

// crashAt runs the slot at 01:00 into a power cut and goes on until 01:20.
func crashAt(w *world, point string) {
	broken := false
	kill := func(here string) {
		if here == point && !broken {
			broken = true
			w.kill()
		}
	}
	w.work = func(ctx context.Context, _ Task) (Result, error) {
		kill("at the begin of the run")
		_ = (clock.Clock{}).Sleep(context.WithoutCancel(ctx), 5*time.Second)
		kill("in the middle of the run")
		_ = (clock.Clock{}).Sleep(context.WithoutCancel(ctx), 5*time.Second)
		kill("at the end of the run")
		return Result{Text: "done"}, nil
	}
	w.carry = func(Announcement) (Arrival, error) {
		if point == "before the result is said" && !broken {
			kill(point)
			return 0, context.Canceled
		}
		kill("after the result is said")
		return Arrived, nil
	}
	w.pass(time.Hour - time.Second)
	kill("before the slot")
	w.pass(5 * time.Minute)
	kill("after all of it")
	w.pass(5 * time.Minute)
	w.pace = 10 * time.Minute
	w.boot()
	w.pass(10 * time.Minute)
}

func TestAShutdownInterruptsARun(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.add("every 1h")
		w.work = takes(time.Minute)
		w.pass(time.Hour + 20*time.Second)
		w.reboot(20 * time.Second)
		expect(t, w.log(c.ID), "01T01:00:00 schedule error unknown interrupted")
		w.pass(time.Hour + time.Minute)
		expect(t, w.log(c.ID), "01T01:00:00 schedule error unknown interrupted", "01T02:00:00 schedule ok succeeded")
		if job := w.get(c.ID); job.State.ConsecutiveErrors != 0 || len(w.order) != 1 {
			t.Errorf("%+v, said %q", job.State, w.texts())
		}
	})
}

func TestMissedRuns(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		soon, stale := w.add("31m"), w.add("30h")
		daily := w.add("0 21 * * *", func(d *Draft) { d.Zone = "America/Sao_Paulo" })
		often := w.add("every 10m")
		w.pass(29 * time.Minute)
		w.reboot(5 * time.Minute)
		w.pass(time.Second)
		expect(t, w.log(soon.ID), "01T00:31:00 catch-up ok succeeded")
		expect(t, w.log(often.ID), "01T00:10:00 schedule ok succeeded", "01T00:20:00 schedule ok succeeded", "01T00:30:00 schedule skipped missed")
		if got := w.log(daily.ID); len(got) != 0 {
			t.Errorf("a job whose time has not come: %v", got)
		}
		w.close()
		w.cfg.CatchUp = CatchUpOnce
		w.wait(60 * time.Hour)
		w.boot()
		w.pass(time.Second)
		// The day in São Paulo ended at 02:00 or 03:00 UTC; 21:00 there is 23:00 in summer.
		expect(t, w.log(daily.ID), "01T23:00:00 catch-up ok succeeded")
		if got := w.log(often.ID); got[len(got)-1] != "01T00:40:00 catch-up ok succeeded" || len(got) != 4 {
			t.Errorf("%v", got)
		}
		expect(t, w.log(stale.ID), "02T06:00:00 schedule skipped missed")
		if job := w.get(stale.ID); job.Enabled || job.State.DisabledReason == "" || job.State.DisabledAt.IsZero() {
			t.Errorf("%+v", job)
		}
		if len(w.tales) != 1 || !strings.Contains(w.tales[0], "missed its time 2000-01-02 06:00 UTC") {
			t.Errorf("the owner was told %q", w.tales)
		}
		if _, err := w.s.Enable(t.Context(), stale.ID); err == nil {
			t.Error("a job without a future was switched on")
		}
	})
}

func TestAnAfternoonRestartKeepsTomorrowMorning(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.slowly(10 * time.Minute)
		c := w.add("0 6 * * *", func(d *Draft) { d.Zone = "Asia/Kuala_Lumpur" }) // 22:00 UTC
		w.pass(22*time.Hour + time.Second)
		w.pass(11*time.Hour + 20*time.Minute)
		w.reboot(time.Minute)
		w.pass(14 * time.Hour)
		expect(t, w.log(c.ID), "01T22:00:00 schedule ok succeeded", "02T22:00:00 schedule ok succeeded")
	})
}

func TestTwoSchedulersOnOneDatabase(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.close()
		w.deps = func(d *Deps) { d.Alone = false }
		w.boot()
		for range 12 {
			w.add("every 1m", func(d *Draft) { d.Quiet = true })
		}
		once := w.add("10m", func(d *Draft) { d.Keep = true })
		other := &world{people: w.people, t: t, path: w.path, deps: w.deps}
		other.boot()
		w.work = takes(3 * time.Second)
		w.pass(20*time.Minute + 50*time.Second)
		other.close()
		if d := w.doubled(); d != nil {
			t.Errorf("run twice: %v", d)
		}
		if w.most <= 4 {
			t.Errorf("%d at a time: only one of them worked", w.most)
		}
		expect(t, w.log(once.ID), "01T00:10:00 schedule ok succeeded")
		if n := len(w.order); n != 1 {
			t.Errorf("said %d times", n)
		}
		for id, slots := range w.slots() {
			if id != once.ID && len(slots) != 20 {
				t.Errorf("%s: %d runs", id, len(slots))
			}
		}
	})
}

func TestTheOtherProcessBuriesTheDead(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.close()
		w.deps = func(d *Deps) { d.Alone = false }
		w.boot()
		c := w.add("every 30m")
		other := &world{people: w.people, t: t, path: w.path, deps: w.deps}
		first := true
		w.work = func(ctx context.Context, _ Task) (Result, error) {
			if first {
				first = false
				_ = (clock.Clock{}).Sleep(context.WithoutCancel(ctx), 5*time.Minute)
				return Result{Text: "from the grave"}, nil
			}
			return Result{Text: "done"}, nil
		}
		w.pass(30*time.Minute + time.Second)
		other.boot()
		w.pass(2 * time.Minute)
		expect(t, other.log(c.ID), "01T00:30:00 schedule running") // a claim that is renewed is respected
		w.kill()
		w.pass(3 * time.Minute)
		expect(t, other.log(c.ID), "01T00:30:00 schedule error unknown interrupted")
		w.pass(25 * time.Minute)
		expect(t, w.texts(), "done")
		other.close()
	})
}

// virtual is a process on a clock that is made up.
func virtual(t *testing.T, path string, p *people, start time.Time, pace time.Duration) (*Scheduler, *clock.Virtual, func()) {
	t.Helper()
	v := clock.NewVirtual(start)
	w := &world{people: p, t: t, path: path}
	w.deps = func(d *Deps) { d.Clock = v.Clock() }
	s, closeDB := w.make()
	s.pace = pace
	ctx, cancel := context.WithCancel(context.Background())
	v.Clock().Go(func() { _ = s.Run(ctx) })
	v.Run(start)
	return s, v, func() {
		cancel()
		v.Run(v.Now())
		closeDB()
	}
}

func TestAMachineThatSleeps(t *testing.T) {
	path, p := t.TempDir()+"/bot.sqlite", newPeople()
	start := time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)
	s, v, end := virtual(t, path, p, start, tickEvery)
	defer end()
	var ids []string
	for _, text := range []string{"0 3 * * *", "55 7 * * *", "2026-05-04 05:00"} {
		c, err := s.Add(t.Context(), Draft{Schedule: text, Message: text, Quiet: true, Keep: true})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, c.ID)
	}
	v.Run(start.Add(2 * time.Hour))
	v.Advance(start.Add(8 * time.Hour)) // nobody saw the time pass
	v.Run(start.Add(9 * time.Hour))
	w := &world{t: t, s: s}
	expect(t, w.log(ids[0]), "04T03:00:00 schedule skipped missed")
	expect(t, w.log(ids[1]), "04T07:55:00 schedule ok succeeded") // some minutes late are no miss
	expect(t, w.log(ids[2]), "04T05:00:00 catch-up ok succeeded")
	v.Run(start.Add(27 * time.Hour))
	expect(t, w.log(ids[0]), "04T03:00:00 schedule skipped missed", "05T03:00:00 schedule ok succeeded")
}

func TestAClockThatIsSetBack(t *testing.T) {
	path, p := t.TempDir()+"/bot.sqlite", newPeople()
	noon := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	s, v, end := virtual(t, path, p, noon, 10*time.Minute)
	c, err := s.Add(t.Context(), Draft{Schedule: "every day at 12:30", Message: "x", Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	v.Run(noon.Add(time.Hour))
	end()

	// An hour back: the slot is not run a second time.
	s, v, end = virtual(t, path, p, noon, 10*time.Minute)
	v.Run(noon.Add(23 * time.Hour))
	expect(t, (&world{t: t, s: s}).log(c.ID), "04T12:30:00 schedule ok succeeded")
	v.Run(noon.Add(25 * time.Hour))
	expect(t, (&world{t: t, s: s}).log(c.ID), "04T12:30:00 schedule ok succeeded", "05T12:30:00 schedule ok succeeded")
	end()

	// A year back: the clock was wrong, and the job must not wait for a year.
	s, v, end = virtual(t, path, p, noon.AddDate(-1, 0, 0), 10*time.Minute)
	v.Run(noon.AddDate(-1, 0, 0).Add(25 * time.Hour))
	got := (&world{t: t, s: s}).log(c.ID)
	if len(got) != 4 {
		t.Errorf("%v", got)
	}
	end()
	if d := p.doubled(); d != nil {
		t.Errorf("run twice: %v", d)
	}
}

func TestALookAtTheClock(t *testing.T) {
	base := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	for _, x := range []struct {
		name  string
		gap   time.Duration
		since time.Duration // what is due from then on counts as on time
		tick  bool
	}{
		{"a moment", time.Second, -time.Hour, false},
		{"a tick", 30 * time.Second, -time.Hour, true},
		{"a slow machine", 90 * time.Second, -time.Hour, true},
		{"a short sleep", 5 * time.Minute, -5 * time.Minute, true},
		{"a long sleep", 8 * time.Hour, 8*time.Hour - lateness, true},
		{"a little back", -5 * time.Minute, -time.Hour, true},
		{"far back", -2 * time.Hour, -2 * time.Hour, true},
	} {
		s, err := New(Config{}, Deps{})
		if err != nil {
			t.Fatal(err)
		}
		s.since, s.seen, s.ticked = base.Add(-time.Hour), base, base
		tick := s.observe(base.Add(x.gap))
		if got := s.since.Sub(base); tick != x.tick || got != x.since {
			t.Errorf("%s: since %s, tick %v; want %s, %v", x.name, got, tick, x.since, x.tick)
		}
	}
}

func TestLettersOfARemovedJobAreNotSent(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.add("every 1m")
		w.carry = func(Announcement) (Arrival, error) { return 0, context.DeadlineExceeded }
		w.pass(70 * time.Second)
		if err := w.s.Remove(t.Context(), c.ID); err != nil {
			t.Fatal(err)
		}
		w.carry = nil
		w.pass(time.Hour)
		if len(w.order) != 0 || !slices.Equal(w.log(c.ID), []string{"01T00:01:00 schedule ok unknown"}) {
			t.Errorf("said %q, %v", w.texts(), w.log(c.ID))
		}
	})
}

func TestManyLettersOneBadPlace(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		bad := chat.Address{Channel: "telegram", Conversation: "666", Kind: chat.Direct}
		for range 40 {
			w.add("1m", func(d *Draft) { d.Origin = bad })
		}
		good := w.add("2m")
		w.carry = func(a Announcement) (Arrival, error) {
			if a.To == bad {
				return 0, context.DeadlineExceeded
			}
			return Arrived, nil
		}
		w.pass(2*time.Minute + time.Second)
		if len(w.order) != 1 || !w.gone(good.ID) {
			t.Errorf("said %q: a place that cannot be reached holds up the others", w.texts())
		}
	})
}
