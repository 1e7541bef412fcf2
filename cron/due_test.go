package cron

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"understudy/cron/schedule"
)

func TestDue(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	since := now.Add(-time.Hour)
	const day = 24 * time.Hour
	for _, x := range []struct {
		name  string
		job   Waiting
		rules Rules
		want  Step
	}{
		{"nothing to wait for", Waiting{}, Rules{}, Step{}},
		{"later", Waiting{NextRunAt: now.Add(1)}, Rules{}, Step{}},
		{"now", Waiting{NextRunAt: now}, Rules{}, Step{Verb: Start}},
		{"a little late", Waiting{NextRunAt: since}, Rules{}, Step{Verb: Start}},
		{"missed", Waiting{NextRunAt: since.Add(-1)}, Rules{CatchUp: CatchUpSkip}, Step{Verb: Miss}},
		{"missed, to be caught up", Waiting{NextRunAt: since.Add(-30 * day)}, Rules{CatchUp: CatchUpOnce}, Step{Verb: Start, CatchUp: true}},
		{"missed, single", Waiting{Once: true, NextRunAt: now.Add(-day + 1)}, Rules{Grace: day}, Step{Verb: Start, CatchUp: true}},
		{"missed, single, too long ago", Waiting{Once: true, NextRunAt: now.Add(-day)}, Rules{Grace: day, CatchUp: CatchUpOnce}, Step{Verb: GiveUp}},
		{"still going on", Waiting{NextRunAt: now, Running: true}, Rules{}, Step{Verb: Pass}},
		{"single, run by hand at the moment", Waiting{Once: true, NextRunAt: now, Running: true}, Rules{}, Step{}},
		{"a slot of today was run, the clock went back", Waiting{NextRunAt: now.Add(day), LastSlot: now.Add(time.Hour)}, Rules{}, Step{}},
		{"a slot of next year was run", Waiting{NextRunAt: now.Add(366 * day), LastSlot: now.Add(365 * day)}, Rules{}, Step{Verb: Reset}},
	} {
		x.job.ID, x.want.ID = "a", "a"
		steps := Due(now, since, x.rules, []Waiting{x.job})
		if len(steps) > 1 || len(steps) == 1 && steps[0] != x.want || len(steps) == 0 && x.want.Verb != 0 {
			t.Errorf("%s: %+v, want %+v", x.name, steps, x.want)
		}
	}
}

// Whatever the state, nothing before its time is run, and each job gets at most one step.
func TestDueIsNeverEarly(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		moment := rapid.Map(rapid.Int64Range(0, 200*3600), func(s int64) time.Time { return time.Unix(s, 0) })
		now, since := moment.Draw(rt, "now"), moment.Draw(rt, "since")
		var jobs []Waiting
		for i := range rapid.IntRange(0, 20).Draw(rt, "jobs") {
			j := Waiting{ID: fmt.Sprint(i), Once: rapid.Bool().Draw(rt, "once"), Running: rapid.Bool().Draw(rt, "running")}
			if rapid.Bool().Draw(rt, "waits") {
				j.NextRunAt = moment.Draw(rt, "next")
			}
			if rapid.Bool().Draw(rt, "ran") {
				j.LastSlot = moment.Draw(rt, "last")
			}
			jobs = append(jobs, j)
		}
		seen := map[string]bool{}
		for _, s := range Due(now, since, Rules{rapid.SampledFrom([]CatchUp{CatchUpOnce, CatchUpSkip}).Draw(rt, "catchUp"), 24 * time.Hour}, jobs) {
			var j Waiting
			for _, x := range jobs {
				if x.ID == s.ID {
					j = x
				}
			}
			if seen[s.ID] {
				rt.Errorf("two steps for %+v", j)
			}
			seen[s.ID] = true
			if s.Verb == Start && (j.NextRunAt.After(now) || j.NextRunAt.IsZero() || j.Running) {
				rt.Errorf("%+v is started", j)
			}
			if s.Verb != Start && s.Verb != Reset && j.NextRunAt.After(now) {
				rt.Errorf("%+v: %v", j, s)
			}
			if s.Verb == Start && s.CatchUp != j.NextRunAt.Before(since) {
				rt.Errorf("%+v: %+v", j, s)
			}
		}
	})
}

func TestTheLadder(t *testing.T) {
	var got []string
	for n := range 8 {
		got = append(got, ladder(n).String())
	}
	expect(t, got, "30s", "30s", "1m0s", "5m0s", "15m0s", "1h0m0s", "1h0m0s", "1h0m0s")
}

// A recurring job's next run after a failure is a slot of its schedule, not before the step of the
// ladder and not before the slot it had.
func TestADelayedRunIsASlot(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		now := time.Unix(rapid.Int64Range(1_700_000_000, 1_800_000_000).Draw(rt, "now"), 0)
		sched, err := schedule.Parse(rapid.SampledFrom([]string{"every 1m", "every 7m", "*/5 9-17 * * 1-5", "0 9 * * *", "0 */2 * * *"}).Draw(rt, "schedule"),
			schedule.Frame{Now: now.Add(-time.Hour), Zone: time.UTC})
		if err != nil {
			rt.Fatal(err)
		}
		next, _ := sched.Next(now)
		job := Job{Enabled: true, Definition: Definition{Schedule: sched.Spec()}}
		job.State.NextRunAt, job.State.ConsecutiveErrors = next, rapid.IntRange(0, 8).Draw(rt, "errors")
		out := settle(job, Run{Status: Failed, Reason: ReasonOverloaded, Trigger: OnSchedule}, false, sched, Config{}.WithDefaults(), now)
		got := out.state.NextRunAt
		if slot, _ := sched.Next(got.Add(-time.Millisecond)); !slot.Equal(got) {
			rt.Errorf("%s is no slot", got)
		}
		if got.Before(next) || got.Before(now.Add(ladder(job.State.ConsecutiveErrors+1))) {
			rt.Errorf("%s is too early", got)
		}
		if before, _ := sched.Next(now); before.Before(got) {
			// Nothing between the end of the delay and the run was left out.
			for at := before; at.Before(got); at, _ = sched.Next(at) {
				if !at.Before(now.Add(ladder(job.State.ConsecutiveErrors + 1))) {
					rt.Fatalf("%s was left out", at)
				}
			}
		}
	})
}
