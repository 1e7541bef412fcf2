package cron

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestFailuresDelayTheNextRun(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.add("every 1m")
		w.work = fails(ReasonOverloaded)
		w.pass(6 * time.Hour)
		var gaps []string
		for i := 1; i < len(w.at); i++ {
			gaps = append(gaps, w.at[i].Sub(w.at[i-1]).String())
		}
		// 30 s and 60 s end before or at the next slot; the others cost runs.
		expect(t, gaps, "1m0s", "1m0s", "5m0s", "15m0s", "1h0m0s", "1h0m0s", "1h0m0s", "1h0m0s", "1h0m0s")
		if len(w.at) != 10 {
			t.Errorf("%d runs before the job was switched off", len(w.at))
		}
	})
}

func TestSuccessEndsTheDelay(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.add("every 1m")
		w.work = func(ctx context.Context, t Task) (Result, error) {
			if n := w.count(); n <= 3 || n == 5 {
				return fails(ReasonRateLimit)(ctx, t)
			}
			return Result{}, nil
		}
		w.pass(11*time.Minute + time.Second)
		expect(t, w.log(c.ID), "01T00:01:00 schedule error failed rate-limit", "01T00:02:00 schedule error failed rate-limit", "01T00:03:00 schedule error failed rate-limit",
			"01T00:08:00 schedule ok succeeded", "01T00:09:00 schedule error failed rate-limit", "01T00:10:00 schedule ok succeeded", "01T00:11:00 schedule ok succeeded")
	})
}

func TestADelayNeverLeavesTheHoursOfAJob(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.slowly(10 * time.Minute)
		w.add("*/5 9-10 * * *")
		w.work = fails(ReasonUnavailable)
		w.pass(72 * time.Hour)
		for _, at := range w.at {
			if h := at.UTC().Hour(); h < 9 || h > 10 {
				t.Errorf("ran at %s", at.UTC())
			}
		}
	})
}

func TestASingleJobIsTriedThreeTimes(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		passing := w.add("1m")
		w.work = fails(ReasonOverloaded)
		w.pass(10 * time.Minute)
		expect(t, w.log(passing.ID), "01T00:01:00 schedule error failed overloaded", "01T00:01:00 retry error failed overloaded", "01T00:01:00 retry error failed overloaded")
		if a, b := w.at[1].Sub(w.at[0]), w.at[2].Sub(w.at[1]); a != 30*time.Second || b != time.Minute {
			t.Errorf("tried again after %s and %s", a, b)
		}
		if job := w.get(passing.ID); job.Enabled || job.State.DisabledReason != "failed for good: the model is overloaded" || job.State.DisabledAt.IsZero() {
			t.Errorf("%v %q", job.Enabled, job.State.DisabledReason)
		}
		for _, task := range w.runs {
			if task.Job.Payload.Message != "do 1m" {
				t.Errorf("a try was given %q", task.Job.Payload.Message)
			}
		}
		permanent := w.add("1m")
		w.work = fails(ReasonAuth)
		w.pass(10 * time.Minute)
		acted := w.add("1m")
		w.work = func(context.Context, Task) (Result, error) {
			return Result{Acted: true}, &Error{Reason: ReasonOverloaded}
		}
		w.pass(10 * time.Minute)
		if a, b := len(w.log(permanent.ID)), len(w.log(acted.ID)); a != 1 || b != 1 {
			t.Errorf("%d and %d tries of what must not be tried again", a, b)
		}
	})
}

func TestARetryThatGoesWellIsTheRun(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.add("1m")
		w.work = func(ctx context.Context, t Task) (Result, error) {
			if w.count() == 1 {
				return fails(ReasonTimeout)(ctx, t)
			}
			return Result{Text: "done"}, nil
		}
		w.pass(2 * time.Minute)
		expect(t, w.texts(), "done")
		if !w.gone(c.ID) {
			t.Error("the job is left over")
		}
	})
}

func TestAlerts(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.add("every 10m", func(d *Draft) { d.Name = "Daily report" })
		w.work = fails(ReasonBilling)
		var at []time.Duration
		began := time.Now()
		w.carry = func(Announcement) (Arrival, error) { at = append(at, time.Since(began)); return Arrived, nil }
		w.pass(4 * time.Hour)
		if len(w.order) == 0 || w.order[0].To != home || !w.order[0].Alert {
			t.Fatalf("%+v", w.order)
		}
		if want := `⏰ Cron "Daily report" failed 2× — the provider account has no credit. Last run 2000-01-01 00:20 UTC. bot cron runs job001`; w.order[0].Text != want {
			t.Errorf("%s\nwant %s", w.order[0].Text, want)
		}
		if at[0] != 20*time.Minute {
			t.Errorf("the first alert after %s", at[0])
		}
		for i := 1; i < len(at); i++ {
			if at[i]-at[i-1] < time.Hour {
				t.Errorf("alerts at %v", at)
			}
		}
		for _, text := range append(w.texts(), w.tales...) {
			if strings.Contains(text, "sk-") || strings.Contains(text, "html") {
				t.Errorf("foreign words: %q", text)
			}
		}
	})
}

func TestAlertsGoWhereTheyShould(t *testing.T) {
	for _, x := range []struct {
		name        string
		job, global Alert
		quiet       bool
		want        string // conversation; "" = the owner; "-" = nobody
	}{
		{"to the results' place", Alert{}, Alert{}, false, "1001"},
		{"to the configured place", Alert{}, Alert{Channel: "telegram", To: "7"}, false, "7"},
		{"to the job's own place", Alert{Channel: "telegram", To: "8"}, Alert{Channel: "telegram", To: "7"}, false, "8"},
		{"to the owner where there is none", Alert{}, Alert{}, true, ""},
		{"to nobody", Alert{Off: true}, Alert{}, false, "-"},
	} {
		t.Run(x.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				if err := w.s.Reload(Config{FailureAlert: x.global}, Home{Zone: time.UTC, Named: true}); err != nil {
					t.Fatal(err)
				}
				w.add("every 1m", func(d *Draft) { d.FailureAlert, d.Quiet = x.job, x.quiet })
				w.work = fails(ReasonAuth)
				w.pass(4 * time.Minute)
				switch {
				case x.want == "-" && len(w.order)+len(w.tales) > 0, x.want == "" && len(w.tales) != 1:
					t.Errorf("%+v, owner %q", w.order, w.tales)
				case x.want != "-" && x.want != "" && (len(w.order) != 1 || w.order[0].To.Conversation != x.want):
					t.Errorf("%+v", w.order)
				}
			})
		})
	}
}

func TestAnAlertThatIsRejectedGoesToTheOwner(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.add("every 1m")
		w.work = fails(ReasonAuth)
		w.carry = func(Announcement) (Arrival, error) { return Rejected, nil }
		w.pass(4 * time.Minute)
		if len(w.tales) != 1 || !strings.Contains(w.tales[0], "refused the credentials") {
			t.Errorf("%q", w.tales)
		}
	})
}

func TestTenFailuresSwitchAJobOff(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.slowly(10 * time.Minute)
		c := w.add("every 2h", func(d *Draft) { d.FailureAlert = Alert{Off: true} })
		w.work = fails(ReasonUnavailable)
		w.deaf = true
		w.pass(72 * time.Hour)
		job := w.get(c.ID)
		if job.Enabled || job.State.DisabledReason != "failed 10 times in a row" || job.State.DisabledAt.Before(job.State.LastRunAt) || !job.State.NextRunAt.IsZero() || w.count() != 10 {
			t.Fatalf("%d runs, %+v", w.count(), job)
		}
		w.deaf = false // the owner is told in the end, also when alerts are off
		w.pass(15 * time.Minute)
		if len(w.tales) != 1 || !strings.Contains(w.tales[0], "switched off") {
			t.Fatalf("%q", w.tales)
		}
		w.work = nil
		if _, err := w.s.Enable(t.Context(), c.ID); err != nil {
			t.Fatal(err)
		}
		w.pass(2*time.Hour + time.Second)
		if job := w.get(c.ID); w.count() != 11 || job.State.ConsecutiveErrors != 0 || job.State.DisabledReason != "" || !job.State.DisabledAt.IsZero() {
			t.Errorf("%d runs, %+v", w.count(), job.State)
		}
	})
}

func TestSkippedRunsAreNotFailures(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		plain := w.add("every 1m")
		told := w.add("every 1m", func(d *Draft) { d.FailureAlert = Alert{IncludeSkipped: true} })
		w.work = func(context.Context, Task) (Result, error) { return Result{}, &Skip{ReasonUnreachable} }
		w.pass(12 * time.Minute)
		if job := w.get(plain.ID); job.State.ConsecutiveErrors != 0 || job.State.ConsecutiveSkips != 12 || !job.Enabled {
			t.Errorf("%+v", job.State)
		}
		if len(w.order) != 1 || !strings.Contains(w.order[0].Text, told.ID) || !strings.Contains(w.order[0].Text, "local model cannot be reached") {
			t.Errorf("%+v", w.order)
		}
	})
}

func TestDeliveryIsNotRetriedThroughTheModel(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.add("every 1h")
		tries := 0
		w.carry = func(a Announcement) (Arrival, error) {
			if a.Alert {
				return Arrived, nil
			}
			switch tries++; {
			case tries < 3:
				return 0, errors.New("no network")
			case tries < 5:
				return OnItsWay, nil
			}
			return Arrived, nil
		}
		w.pass(time.Hour + time.Second)
		expect(t, w.log(c.ID), "01T01:00:00 schedule ok pending")
		w.pass(10 * time.Minute)
		expect(t, w.log(c.ID), "01T01:00:00 schedule ok succeeded")
		if w.count() != 1 || len(w.order) != 1 || tries != 5 {
			t.Errorf("%d runs, said %q in %d tries", w.count(), w.texts(), tries)
		}
	})
}

func TestUndeliveredResultsAreTold(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.add("every 10m")
		w.carry = func(Announcement) (Arrival, error) { return Rejected, nil }
		w.pass(25 * time.Minute)
		job := w.get(c.ID)
		if job.State.ConsecutiveErrors != 0 || job.State.ConsecutiveUndelivered != 2 || job.State.LastStatus != OK || job.State.LastCompletion != Incomplete {
			t.Errorf("%+v", job.State)
		}
		if len(w.tales) != 1 || !strings.Contains(w.tales[0], "failed 2× — the platform rejected the message") {
			t.Errorf("%q", w.tales)
		}
		best := w.add("every 10m", func(d *Draft) { d.BestEffort = true })
		w.pass(11 * time.Minute)
		if job := w.get(best.ID); job.State.LastCompletion != Succeeded {
			t.Errorf("%+v", job.State)
		}
	})
}

func TestAnArrivalThatIsNeverConfirmedIsUnknown(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.slowly(10 * time.Minute)
		c := w.add("1m")
		w.carry = func(Announcement) (Arrival, error) { return OnItsWay, nil }
		w.pass(26 * time.Hour)
		expect(t, w.log(c.ID), "01T00:01:00 schedule ok unknown unsettled")
		if w.gone(c.ID) {
			t.Error("the job is gone although nobody knows")
		}
	})
}

func TestAScheduleThatBreaksSwitchesTheJobOff(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.add("every 1h")
		if _, err := w.db.Writer().ExecContext(t.Context(), `UPDATE cron_jobs SET definition_json = json_set(definition_json, '$.schedule.kind', 'cron', '$.schedule.tz', 'Moon/Sea')`); err != nil {
			t.Fatal(err)
		}
		w.pass(2 * time.Hour)
		job := w.get(c.ID)
		if job.Enabled || w.count() != 0 || len(w.log(c.ID)) != 3 {
			t.Errorf("%+v, %v", job.State, w.log(c.ID))
		}
		if len(w.tales) != 1 || !strings.Contains(w.tales[0], "schedule cannot be read") {
			t.Errorf("%q", w.tales)
		}
	})
}
