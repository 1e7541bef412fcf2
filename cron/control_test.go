package cron

import (
	"context"
	"errors"
	"testing"
	"time"

	"understudy/chat"
	"understudy/llm"
)

func TestRunNow(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.add("0 9 * * *")
		w.work = takes(10 * time.Second)
		id, err := w.s.RunNow(t.Context(), c.ID, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.s.RunNow(t.Context(), c.ID, false); !errors.Is(err, ErrRunning) {
			t.Errorf("a second one: %v", err)
		}
		run, err := w.s.WaitRun(t.Context(), id)
		if err != nil || run.Status != OK || run.Trigger != ByHand || run.Completion != Succeeded {
			t.Errorf("%+v, %v", run, err)
		}
		if job := w.get(c.ID); job.State.NextRunAt.UTC().Format("15:04") != "09:00" {
			t.Errorf("the next run moved to %s", job.State.NextRunAt)
		}
		if _, err := w.s.RunNow(t.Context(), c.ID, true); !errors.Is(err, ErrNotDue) {
			t.Errorf("%v", err)
		}
		if _, err := w.s.RunNow(t.Context(), "nothing", false); !errors.Is(err, ErrNotFound) {
			t.Errorf("%v", err)
		}
		w.work = fails(ReasonAuth)
		for range 12 { // whoever runs it sees that it fails
			id, err := w.s.RunNow(t.Context(), c.ID, false)
			if err != nil {
				t.Fatal(err)
			}
			if run, err := w.s.WaitRun(t.Context(), id); err != nil || run.Status != Failed {
				t.Fatalf("%+v %v", run, err)
			}
		}
		if job := w.get(c.ID); !job.Enabled || job.State.ConsecutiveErrors != 0 || len(w.tales) != 0 {
			t.Errorf("%+v, owner %q", job.State, w.tales)
		}
	})
}

func TestASingleJobRunByHandKeepsItsTime(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.add("1h")
		id, err := w.s.RunNow(t.Context(), c.ID, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.s.WaitRun(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if w.gone(c.ID) {
			t.Fatal("it is gone before its time")
		}
		w.pass(time.Hour)
		expect(t, w.log(c.ID), "01T00:00:00 manual ok succeeded", "01T01:00:00 schedule ok succeeded")
		if !w.gone(c.ID) {
			t.Error("it is left over")
		}
	})
}

func TestRemoveStopsTheRun(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.add("every 1m")
		var cause error
		w.work = func(ctx context.Context, _ Task) (Result, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return Result{Text: "late"}, nil
		}
		w.pass(70 * time.Second)
		if err := w.s.Remove(t.Context(), c.ID); err != nil {
			t.Fatal(err)
		}
		w.pass(5 * time.Minute)
		if !errors.Is(cause, llm.ErrStopped) || len(w.order) != 0 || w.count() != 1 || w.s.Active() != 0 {
			t.Errorf("%v, said %q, %d runs", cause, w.texts(), w.count())
		}
		expect(t, w.log(c.ID), "01T00:01:00 schedule error failed stopped")
		if err := w.s.Remove(t.Context(), c.ID); !errors.Is(err, ErrNotFound) {
			t.Errorf("%v", err)
		}
	})
}

func TestDisabledByConfiguration(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.add("every 1h")
		off, on := false, true
		if err := w.s.Reload(Config{Enabled: &off}, Home{Zone: time.UTC, Named: true}); err != nil {
			t.Fatal(err)
		}
		w.pass(150 * time.Minute)
		if err := w.s.Reload(Config{Enabled: &on}, Home{Zone: time.UTC, Named: true}); err != nil {
			t.Fatal(err)
		}
		w.pass(31 * time.Minute)
		expect(t, w.log(c.ID), "01T01:00:00 schedule skipped missed", "01T03:00:00 schedule ok succeeded")
		if err := w.s.Reload(Config{CatchUp: "perhaps"}, Home{Zone: time.UTC, Named: true}); err == nil {
			t.Error("a bad configuration is taken")
		}
	})
}

func TestMoveFollowsAConversation(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		group := chat.Address{Channel: "telegram", Conversation: "-500", Kind: chat.Group, Thread: "7"}
		c := w.add("every 1h", func(d *Draft) { d.Origin = group })
		other := w.add("every 1h")
		if err := w.s.store.Move(t.Context(), group, "-1001500"); err != nil {
			t.Fatal(err)
		}
		job := w.get(c.ID)
		if job.Origin.Conversation != "-1001500" || job.Delivery.To.Conversation != "-1001500" || job.Delivery.To.Thread != "7" || w.get(other.ID).Delivery.To != home {
			t.Errorf("%+v", job.Delivery)
		}
		w.pass(time.Hour + time.Second)
		if len(w.order) != 2 {
			t.Errorf("%+v", w.order)
		}
	})
}

func TestDueSlotsSurviveLookingAndEditing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c, other := w.add("0 1 * * *"), w.add("0 5 * * *")
		w.close()
		w.deps = func(d *Deps) { d.Ready = make(chan struct{}) } // the tick comes late
		w.wait(59*time.Minute + 30*time.Second)
		w.boot()
		w.pass(32 * time.Second)
		if _, err := w.s.store.List(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		name := "another name"
		for _, id := range []string{other.ID, c.ID} {
			if _, err := w.s.Edit(t.Context(), id, Patch{Name: &name}); err != nil {
				t.Fatal(err)
			}
		}
		w.pass(time.Minute)
		expect(t, w.log(c.ID), "01T01:00:00 schedule ok succeeded")
		if len(w.log(other.ID)) != 0 {
			t.Errorf("%v", w.log(other.ID))
		}
	})
}

func TestAnEditOfTheScheduleMovesTheNextRun(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.add("0 5 * * *")
		text, tz := "0 3 * * *", "Asia/Tokyo"
		card, err := w.s.Edit(t.Context(), c.ID, Patch{Schedule: &text})
		if err != nil || card.State.NextRunAt.UTC().Format("15:04") != "03:00" || card.Description != "every day at 03:00 UTC" {
			t.Fatalf("%+v, %v", card, err)
		}
		card, err = w.s.Edit(t.Context(), c.ID, Patch{Zone: &tz})
		if err != nil || card.State.NextRunAt.UTC().Format("15:04") != "18:00" || len(card.Next) != 3 || card.Next[0].Format("15:04") != "03:00" {
			t.Fatalf("%+v, %v", card, err)
		}
		w.pass(18*time.Hour + time.Second)
		expect(t, w.log(c.ID), "01T18:00:00 schedule ok succeeded")
		text = "every 2h"
		if _, err := w.s.Edit(t.Context(), c.ID, Patch{Schedule: &text}); err != nil {
			t.Fatal(err)
		}
		w.pass(2 * time.Hour)
		if w.count() != 2 {
			t.Errorf("%v", w.log(c.ID))
		}
	})
}

func TestAPlanMadeDuringARunStands(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.add("1m")
		w.work = takes(20 * time.Second)
		w.pass(65 * time.Second)
		text := "1h"
		if _, err := w.s.Edit(t.Context(), c.ID, Patch{Schedule: &text}); err != nil {
			t.Fatal(err)
		}
		w.pass(30 * time.Second)
		if w.gone(c.ID) {
			t.Fatal("the job is gone although it has a new time")
		}
		w.pass(time.Hour)
		if w.count() != 2 || !w.gone(c.ID) {
			t.Errorf("%d runs %v %+v", w.count(), w.log(c.ID), w.get(c.ID))
		}
	})
}

func TestASlotIsClaimedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.add("every 1h")
		stale := w.get(c.ID) // as another process saw it
		w.pass(time.Hour)
		if w.count() != 1 {
			t.Fatalf("%d runs", w.count())
		}
		for name, change := range map[string]func(*Job){
			"as it was":           func(*Job) {},
			"with the new number": func(j *Job) { j.State.Runs++ },
		} {
			job := stale
			change(&job)
			take, err := w.s.takeSlot(&job, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if ok, err := w.s.settleClaim(t.Context(), &errand{job: c.ID}, job, job.State.SlotAt, take); ok || err != nil {
				t.Errorf("%s: claimed %v, %v", name, ok, err)
			}
		}
		expect(t, w.log(c.ID), "01T01:00:00 schedule ok succeeded")
	})
}

func TestASingleJobWaitsForARunThatDoesNotEnd(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.add("10m", func(d *Draft) { d.TimeoutSeconds = 20 })
		release := make(chan struct{})
		w.work = func(context.Context, Task) (Result, error) { <-release; return Result{}, nil }
		if _, err := w.s.RunNow(t.Context(), c.ID, false); err != nil {
			t.Fatal(err)
		}
		w.pass(12 * time.Minute)
		expect(t, w.log(c.ID), "01T00:00:00 manual error unknown timeout")
		if _, err := w.s.RunNow(t.Context(), c.ID, false); !errors.Is(err, ErrRunning) {
			t.Errorf("%v", err)
		}
		close(release)
		w.work = nil
		w.pass(time.Minute)
		expect(t, w.log(c.ID), "01T00:00:00 manual error unknown timeout", "01T00:10:00 schedule ok succeeded")
	})
}

func TestADatabaseThatRefusesForAWhile(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.add("every 10m")
		change := func(statement string) {
			if _, err := w.db.Writer().ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		change(`CREATE TRIGGER refuse BEFORE INSERT ON cron_runs BEGIN SELECT RAISE(ABORT, 'disk full'); END`)
		w.pass(12 * time.Minute)
		if w.count() != 0 {
			t.Fatal("ran although nothing could be written down")
		}
		change(`DROP TRIGGER refuse`)
		change(`CREATE TRIGGER refuse BEFORE UPDATE OF finished_at ON cron_runs BEGIN SELECT RAISE(ABORT, 'disk full'); END`)
		w.pass(32 * time.Second)
		change(`DROP TRIGGER refuse`)
		w.pass(time.Minute)
		expect(t, w.log(c.ID), "01T00:10:00 schedule ok succeeded")
		if w.count() != 1 || len(w.order) != 1 {
			t.Errorf("%d runs, said %q", w.count(), w.texts())
		}
	})
}
