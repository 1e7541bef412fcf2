package heartbeat

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"understudy/chat"
)

func TestEventsOfASessionThatBeganAnewAreForgotten(t *testing.T) {
	beating(t, func(h *heart) {
		notice := func(text string, now bool) {
			if err := h.pulse.Notice(h.t.Context(), "main", Event{ID: text, Text: text}, now); err != nil {
				t.Fatal(err)
			}
		}
		notice("old", false)
		h.pass(time.Minute)
		h.mu.Lock()
		h.renewed = time.Now()
		h.mu.Unlock()
		h.pass(time.Minute)
		notice("new", false)
		h.pass(30 * time.Minute)
		if len(h.turns) != 1 || strings.Contains(h.turns[0].Text, "- old") || !strings.Contains(h.turns[0].Text, "- new") {
			t.Fatalf("%+v", h.turns)
		}
		h.busy.Lane = true
		notice("woken", true)
		h.pass(time.Minute)
		h.mu.Lock()
		h.renewed, h.busy.Lane = time.Now(), false
		h.mu.Unlock()
		h.pass(10 * time.Minute)
		if len(h.turns) != 1 {
			t.Errorf("an event that is forgotten wakes: %+v", h.turns[1:])
		}
	})
}

func TestFilesGoWithWhatIsFoundAlsoWithoutWords(t *testing.T) {
	beating(t, func(h *heart) {
		h.settings.Implied = false
		h.work = func(context.Context, Turn) (Result, error) {
			return Result{Outcome: Alert, Media: []chat.Attachment{{Name: "chart.png", Data: []byte("x")}}}, nil
		}
		h.deaf = errors.New("the outbox is closed")
		h.pass(31 * time.Minute)
		h.deaf = nil
		h.reboot()
		h.pass(time.Minute)
		if len(h.order) != 1 || h.order[0] != "" || len(h.media) != 1 || h.media[0].Name != "chart.png" {
			t.Errorf("said %q with %+v", h.order, h.media)
		}
		h.settings.Show.Alerts = false
		h.pass(time.Hour)
		if len(h.media) != 1 {
			t.Errorf("%+v", h.media)
		}
	})
}

func TestWhatCouldNotBeSaidIsNotLostToTheNextAlert(t *testing.T) {
	beating(t, func(h *heart) {
		h.settings.Implied = false
		h.work = func(_ context.Context, turn Turn) (Result, error) { return Result{Outcome: Alert, Text: turn.ID}, nil }
		h.deaf = errors.New("the outbox is closed")
		h.pass(31 * time.Minute)
		h.deaf = nil
		h.pass(30 * time.Minute)
		if strings.Join(h.order, " ") != "heartbeat:main:1 heartbeat:main:2" {
			t.Errorf("said %q", h.order)
		}
	})
}
