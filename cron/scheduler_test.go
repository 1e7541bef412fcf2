package cron

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/llm"
)

func TestARunReportsHome(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.add("every 15m", func(d *Draft) { d.Name = "greet"; d.Model = "gamma/g1" })
		if c.Description != "every 15 minutes" || len(c.Next) != 3 || c.Next[0].Format("15:04") != "00:15" {
			t.Errorf("%s %v", c.Description, c.Next)
		}
		w.work = func(_ context.Context, task Task) (Result, error) {
			if task.Job.Payload.Message != "do every 15m" || task.Job.Payload.Model != "gamma/g1" || task.Trigger != OnSchedule {
				t.Errorf("%+v", task)
			}
			return Result{
				Text: "**hello**", Requested: llm.ModelRef{Provider: "gamma", Model: "g1"}, Model: llm.ModelRef{Provider: "beta", Model: "b1"},
				FallbackUsed: true, FallbackReason: llm.ReasonTimeout, Usage: llm.Usage{Input: 10, Output: 2},
			}, nil
		}
		w.pass(15*time.Minute + time.Second)
		if len(w.order) != 1 || w.order[0].To != home || w.order[0].Text != "**hello**" || w.order[0].Alert || w.order[0].Key != "cron:job001-1" {
			t.Fatalf("%+v", w.order)
		}
		run, err := w.s.store.Run(t.Context(), "job001-1")
		if err != nil {
			t.Fatal(err)
		}
		if run.Status != OK || run.Completion != Succeeded || run.Requested.String() != "gamma/g1" || run.Model.String() != "beta/b1" || !run.FallbackUsed ||
			run.FallbackReason != llm.ReasonTimeout || run.Usage.Input != 10 || run.CostMicros != nil || run.Excerpt != "**hello**" || len(run.Receipts) != 1 {
			t.Errorf("%+v", run)
		}
		job := w.get(c.ID)
		if job.State.LastModel.String() != "beta/b1" || !job.State.LastFallback || job.State.LastStatus != OK || job.State.LastCompletion != Succeeded || job.State.Running() {
			t.Errorf("%+v", job.State)
		}
		if at := w.at[0].Sub(run.ScheduledAt); at != 0 {
			t.Errorf("began %s after its slot", at)
		}
	})
}

func TestNothingToSayIsNotSaid(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.add("every 1m")
		answers := []Result{{Text: "HEARTBEAT_OK"}, {Text: "  **NO_REPLY** \n"}, {Text: ""}, {Text: "the same", Said: true}, {Text: "HEARTBEAT_OK\n\nall quiet"}}
		w.work = func(context.Context, Task) (Result, error) { return answers[w.count()-1], nil }
		w.pass(5*time.Minute + time.Second)
		expect(t, w.texts(), "all quiet")
		for _, line := range w.log(c.ID) {
			if !strings.HasSuffix(line, "schedule ok succeeded") {
				t.Error(line)
			}
		}
		quiet := w.add("every 1m", func(d *Draft) { d.Quiet = true })
		w.work = nil
		if _, err := w.s.Disable(t.Context(), c.ID); err != nil {
			t.Fatal(err)
		}
		w.pass(61 * time.Second)
		if len(w.order) != 1 || len(w.log(quiet.ID)) != 1 {
			t.Errorf("%v %v", w.texts(), w.log(quiet.ID))
		}
	})
}

func TestASingleJobGoesWhenAllOfItWentWell(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		gone := w.add("20m")
		kept := w.add("20m", func(d *Draft) { d.Keep = true })
		refused := w.add("20m", func(d *Draft) { d.Channel, d.To = "telegram", "-5" })
		w.carry = func(a Announcement) (Arrival, error) {
			if a.To.Conversation == "-5" {
				return Rejected, nil
			}
			return Arrived, nil
		}
		w.pass(20*time.Minute + time.Second)
		if !w.gone(gone.ID) || w.gone(kept.ID) || w.gone(refused.ID) {
			t.Fatal("the wrong ones are gone")
		}
		if job := w.get(kept.ID); job.Enabled || job.State.DisabledReason != "" {
			t.Errorf("%+v", job)
		}
		expect(t, w.log(gone.ID), "01T00:20:00 schedule ok succeeded") // the log outlives the job
		expect(t, w.log(refused.ID), "01T00:20:00 schedule ok failed rejected")
		if w.count() != 3 {
			t.Errorf("%d runs: a delivery that fails is not run again", w.count())
		}
		if len(w.tales) != 1 || !strings.Contains(w.tales[0], "rejected") {
			t.Errorf("the owner was told %q", w.tales)
		}
	})
}

func TestNothingRunsBeforeTheChannelsAreThere(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ready := make(chan struct{})
		w.add("every 1m")
		w.close()
		w.deps = func(d *Deps) { d.Ready = ready }
		w.wait(50 * time.Second)
		w.boot()
		w.pass(30 * time.Second) // a slot comes
		if w.count() != 0 {
			t.Fatal("ran before the channels were there")
		}
		close(ready)
		synctest.Wait()
		if w.count() != 1 {
			t.Fatalf("%d runs", w.count())
		}
		w.close()
		w.deps = func(d *Deps) { d.Ready = make(chan struct{}) }
		w.boot()
		w.pass(59 * time.Second)
		if w.count() != 1 {
			t.Fatal("ran before the channels were there")
		}
		w.pass(2 * time.Second) // long enough
		if w.count() != 2 {
			t.Fatalf("%d runs", w.count())
		}
	})
}

func TestFourRunsAtATime(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.slowly(10 * time.Minute)
		const n = 500
		for range n {
			if _, err := w.s.Add(t.Context(), Draft{Schedule: "5 0 * * *", Message: "x", Quiet: true}); err != nil {
				t.Fatal(err)
			}
		}
		w.work = takes(time.Second)
		w.pass(5*time.Minute + n/4*time.Second)
		if w.most != 4 || w.count() != n || w.underway != 0 {
			t.Errorf("%d runs, %d at a time, %d left after %d s", w.count(), w.most, w.underway, n/4)
		}
		if d := w.doubled(); d != nil {
			t.Errorf("run twice: %v", d)
		}
		if w.s.Active() != 0 {
			t.Errorf("%d active", w.s.Active())
		}
	})
}

func TestARunThatLastsIsNotDoubled(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.add("every 1m")
		w.work = takes(150 * time.Second)
		w.pass(5 * time.Minute)
		expect(t, w.log(c.ID), "01T00:01:00 schedule ok succeeded", "01T00:02:00 schedule skipped still-running", "01T00:03:00 schedule skipped still-running",
			"01T00:04:00 schedule running", "01T00:05:00 schedule skipped still-running")
		if w.most != 1 {
			t.Errorf("%d at a time", w.most)
		}
	})
}

func TestATimeOutFreesTheLane(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.add("every 1m", func(d *Draft) { d.TimeoutSeconds = 20 })
		release, causes := make(chan struct{}), []error{}
		w.work = func(ctx context.Context, _ Task) (Result, error) {
			<-ctx.Done()
			causes = append(causes, context.Cause(ctx))
			if w.count() == 1 {
				return Result{Text: "late"}, nil // within the ten seconds
			}
			<-release // takes no notice
			return Result{Text: "very late"}, nil
		}
		w.pass(time.Minute + 21*time.Second)
		expect(t, w.log(c.ID), "01T00:01:00 schedule error failed timeout")
		w.pass(time.Minute) // the second ends at 2:20 and gets ten more seconds
		if got := w.log(c.ID); !strings.HasSuffix(got[1], "running") || w.s.Active() != 1 {
			t.Fatalf("%v", got)
		}
		w.pass(10 * time.Second)
		if got := w.log(c.ID); got[1] != "01T00:02:00 schedule error unknown timeout" || w.s.Active() != 0 {
			t.Fatalf("%v, %d active", got, w.s.Active())
		}
		w.pass(2 * time.Minute) // it is still going on: its job does not run beside it
		if got := w.log(c.ID); got[2] != "01T00:04:00 schedule skipped still-running" || w.count() != 2 {
			t.Fatalf("%v", got)
		}
		close(release)
		w.work = nil
		w.pass(time.Minute)
		if w.count() != 3 {
			t.Errorf("does not run again: %v", w.log(c.ID))
		}
		for _, text := range w.texts() {
			if strings.Contains(text, "late") {
				t.Errorf("a late result was said: %q", text)
			}
		}
		if len(causes) != 2 || !errors.Is(causes[0], errTimeout) {
			t.Errorf("%v", causes)
		}
	})
}

func TestAPanicEndsOneRun(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.add("every 1m")
		w.work = func(context.Context, Task) (Result, error) {
			if w.count() == 1 {
				panic("boom")
			}
			return Result{Text: "done"}, nil
		}
		w.pass(2*time.Minute + time.Second)
		expect(t, w.log(c.ID), "01T00:01:00 schedule error failed panic", "01T00:02:00 schedule ok succeeded")
		if w.s.Active() != 0 {
			t.Error("the lane is not free")
		}
	})
}

func TestDrainLetsRunsFinish(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.add("every 1m")
		w.work = takes(20 * time.Second)
		w.pass(65 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if err := w.s.Drain(ctx); err != nil {
			t.Fatal(err)
		}
		expect(t, w.texts(), "done")
		w.pass(5 * time.Minute)
		if _, err := w.s.RunNow(t.Context(), "job001", false); w.count() != 1 || !errors.Is(err, ErrStopped) {
			t.Errorf("%d runs, %v", w.count(), err)
		}
	})
}

func TestFullHoursAreSpreadUnlessExact(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		spread := w.add("@hourly")
		exact := w.add("@hourly", func(d *Draft) { d.Exact = true })
		w.pass(65*time.Minute + time.Second)
		at := map[string]time.Time{}
		for i, task := range w.runs {
			at[task.Job.ID] = w.at[i]
		}
		ms := w.get(spread.ID).Schedule.StaggerMs
		hour := time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC)
		if ms == 0 || at[spread.ID].Sub(hour).Milliseconds() != ms || !at[exact.ID].Equal(hour) {
			t.Errorf("%d ms, %v", ms, at)
		}
	})
}

// TestAYear runs a year of schedules over two changes of clocks and compares every start with what the
// schedule says.
func TestAYear(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.slowly(6 * time.Hour)
		specs := map[string]string{}
		for _, x := range []struct{ text, tz string }{
			{"30 2 * 4 *", "America/New_York"},
			{"30 1 * 10 *", "America/New_York"},
			{"15 2 * 3,8 *", "Australia/Lord_Howe"},
			{"0 9 * * 1", "Europe/Berlin"},
			{"0 0 1 * *", "America/Sao_Paulo"},
			{"0 9 29 2 *", "Asia/Kolkata"},
			{"0 */12 * * 0", "Europe/Berlin"},
			{"every 47h", ""},
		} {
			specs[w.add(x.text, func(d *Draft) { d.Zone, d.Quiet = x.tz, true }).ID] = x.text
		}
		began := time.Now()
		w.pass(366 * 24 * time.Hour)
		slots := w.slots()
		for id, text := range specs {
			sched, err := w.s.compile(w.get(id))
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for at, ok := sched.Next(began); ok && !at.After(time.Now()); at, ok = sched.Next(at) {
				want = append(want, at.UTC().Format(time.RFC3339))
			}
			if len(want) == 0 || !slices.Equal(want, slots[id]) {
				t.Errorf("%s: %d runs, want %d", text, len(slots[id]), len(want))
			}
		}
		for i, task := range w.runs {
			if !w.at[i].Equal(task.Scheduled) {
				t.Fatalf("%s ran at %s", task.Scheduled, w.at[i])
			}
		}
	})
}

func TestTheRunLogIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.slowly(time.Hour)
		c := w.add("every 6h")
		for _, statement := range []string{
			`INSERT INTO cron_runs (id, job_id, seq, job_name, cause, scheduled_at, started_at, status)
				WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2100) SELECT 'x' || i, 'job001', i, 'x', 'schedule', 946684800000, 946684800000, 'ok' FROM n`,
			`UPDATE cron_jobs SET runs = 2100`,
		} {
			if _, err := w.db.Writer().ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		var n int
		count := func() int {
			if err := w.db.Reader().QueryRowContext(t.Context(), "SELECT count(*) FROM cron_runs WHERE job_id = ?", c.ID).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		w.pass(6*time.Hour + time.Second)
		if count() != maxRuns {
			t.Errorf("%d lines", n)
		}
		w.pass(8 * 24 * time.Hour)
		if count() != 7*4+1 { // both ends
			t.Errorf("%d lines after a week", n)
		}
	})
}
