package cron

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"understudy/chat"
)

// chart is a file that a tool made.
var chart = chat.Attachment{Name: "chart.png", MediaType: "image/png", Data: []byte("\x89PNG")}

func TestFilesGoWithAResult(t *testing.T) {
	for name, x := range map[string]struct {
		res   Result
		draft func(*Draft)
		text  string
		files int
	}{
		"beside words":            {Result{Text: "here"}, nil, "here", 1},
		"without words":           {Result{}, nil, "", 1},
		"nothing to report":       {Result{Text: "HEARTBEAT_OK"}, nil, "", 1},
		"the agent has spoken":    {Result{Text: "here", Said: true}, nil, "", 1},
		"for the run log":         {Result{Text: "here"}, func(d *Draft) { d.Quiet = true }, "", -1},
		"for a webhook":           {Result{Text: "here"}, func(d *Draft) { d.Webhook = "https://example.com/x" }, "here", 0},
		"for a webhook, no words": {Result{}, func(d *Draft) { d.Webhook = "https://example.com/x" }, "", -1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				x.res.Media = []chat.Attachment{chart}
				w.work = func(context.Context, Task) (Result, error) { return x.res, nil }
				c := w.add("1m", func(d *Draft) {
					d.Keep = true
					if x.draft != nil {
						x.draft(d)
					}
				})
				w.pass(2 * time.Minute)
				expect(t, w.log(c.ID), "01T00:01:00 schedule ok succeeded")
				switch {
				case x.files < 0 && len(w.order) > 0:
					t.Errorf("sent %+v", w.order)
				case x.files < 0:
				case len(w.order) != 1 || w.order[0].Text != x.text || len(w.order[0].Media) != x.files:
					t.Errorf("sent %+v", w.order)
				case x.files == 1 && !bytes.Equal(w.order[0].Media[0].Data, chart.Data):
					t.Errorf("the file became %+v", w.order[0].Media[0])
				}
			})
		})
	}
}

func TestFilesOfAResultSurviveARestart(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.work = func(context.Context, Task) (Result, error) { return Result{Media: []chat.Attachment{chart}}, nil }
		w.carry = func(Announcement) (Arrival, error) { return 0, errors.New("the outbox is closed") }
		c := w.add("1m", func(d *Draft) { d.Keep = true })
		w.pass(2 * time.Minute)
		w.close()
		w.carry = nil
		w.boot()
		w.pass(2 * time.Minute)
		if len(w.order) != 1 || len(w.order[0].Media) != 1 || w.order[0].Media[0].Name != "chart.png" {
			t.Errorf("sent %+v", w.order)
		}
		expect(t, w.log(c.ID), "01T00:01:00 schedule ok succeeded")
	})
}

func TestARunThatNeverGotItsTurnIsSkippedNotFailed(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.work = func(ctx context.Context, _ Task) (Result, error) {
			<-ctx.Done() // the conversation is busy all the time
			return Result{}, &Skip{ReasonBusy}
		}
		c := w.add("every 1h")
		w.pass(2 * time.Hour)
		expect(t, w.log(c.ID)[:1], "01T01:00:00 schedule skipped busy")
		if job := w.get(c.ID); job.State.ConsecutiveErrors != 0 || job.State.ConsecutiveSkips == 0 {
			t.Errorf("%+v", job.State)
		}
	})
}
