package inbound

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"understudy/chat"
)

// TestRecover: what becomes, after a restart, of one message in each state (spec/chat.md §7.8).
func TestRecover(t *testing.T) {
	cases := []struct {
		name        string
		turns       int // begun before the crash
		answer      Answer
		away        time.Duration
		handled     bool
		interrupted bool
		apologies   int
		state       string
	}{
		{"received", 0, AnswerNone, time.Minute, true, false, 0, "received"},
		{"received, long ago", 0, AnswerNone, 2 * time.Hour, false, false, 1, "failed"},
		{"interrupted", 1, AnswerNone, time.Minute, true, true, 0, "dispatched"},
		{"interrupted, long ago", 1, AnswerNone, 2 * time.Hour, false, false, 1, "failed"},
		{"answered", 1, AnswerSent, time.Minute, false, false, 0, "done"},
		{"answered, long ago", 1, AnswerSent, 2 * time.Hour, false, false, 0, "done"},
		{"perhaps answered", 1, AnswerUnknown, time.Minute, false, false, 1, "failed"},
		{"continued three times", 4, AnswerNone, time.Minute, false, false, 1, "dead"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(w *world) {
				w.accept(message(1, "hello"))
				seq := w.handled[0].Seq
				for range c.turns {
					w.dispatch(seq)
				}
				w.answers[TurnID(seq)] = c.answer
				w.pass(c.away)
				w.boot()
				if got := len(w.handled) == 1; got != c.handled {
					t.Fatalf("handled %q", w.texts())
				}
				if c.handled {
					if m := w.handled[0]; m.Interrupted != c.interrupted || m.Attempts != c.turns || m.In.Text != "hello" {
						t.Errorf("handled %+v", m)
					}
				}
				if got := w.state(seq); got != c.state {
					t.Errorf("state %s, want %s", got, c.state)
				}
				w.boot() // and once more
				if len(w.order) != c.apologies {
					t.Fatalf("said %+v", w.order)
				}
				if c.apologies == 1 {
					o := w.order[0]
					if o.Class != chat.Error || o.Markdown != Apology || o.ReplyTo != "1" || o.To != message(1, "").Address || o.TurnID != TurnID(seq) {
						t.Errorf("apology %+v", o)
					}
				}
			})
		})
	}
}

// TestRecoverCountsFromTheWriting: a message that a platform had held back is as old as its author knows
// it, and one that the operator gives another try is new.
func TestRecoverCountsFromTheWriting(t *testing.T) {
	bubble(t, func(w *world) {
		held := message(1, "hello")
		held.At = time.Now().Add(-50 * time.Minute)
		w.accept(held)
		w.accept(message(2, "hi"))
		w.pass(15 * time.Minute)
		w.boot()
		if got := fmt.Sprint(w.texts()); got != "[hi]" || len(w.order) != 1 || w.order[0].ReplyTo != "1" {
			t.Fatalf("handled %s, said %+v", got, w.order)
		}
		if _, err := w.db.Writer().ExecContext(w.t.Context(), "UPDATE inbound SET state = 'dead' WHERE id = 1"); err != nil {
			t.Fatal(err)
		}
		if _, err := w.p.Resubmit(w.t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		w.boot()
		if got := fmt.Sprint(w.texts()); got != "[hi hello]" {
			t.Errorf("handled %s", got)
		}
	})
}

// TestCrashLoop: a message that ends the process each time is given up after three continuations.
func TestCrashLoop(t *testing.T) {
	bubble(t, func(w *world) {
		w.accept(message(1, "poison"))
		turns := 0
		for range 10 {
			for _, m := range w.handled {
				w.dispatch(m.Seq)
				turns++
			}
			w.boot()
		}
		if turns != 1+maxContinuations || len(w.order) != 1 || w.state(1) != "dead" {
			t.Errorf("%d turns, said %+v, state %s", turns, w.order, w.state(1))
		}
	})
}

// TestRecoverKeepsOrder: what waited is handled in order, and a finished message does not hold up
// the ones behind it.
func TestRecoverKeepsOrder(t *testing.T) {
	bubble(t, func(w *world) {
		for n := range 5 {
			w.accept(message(n, fmt.Sprint(n)))
		}
		w.dispatch(w.handled[0].Seq)
		w.answers[TurnID(w.handled[0].Seq)] = AnswerSent
		w.done(w.handled[2].Seq)
		w.boot()
		if got := fmt.Sprint(w.texts()); got != "[1 3 4]" {
			t.Errorf("handled %s", got)
		}
	})
}

// TestRecoverAsksAgain: who was shut out in between gets nothing.
func TestRecoverAsksAgain(t *testing.T) {
	bubble(t, func(w *world) {
		w.accept(message(1, "hello"))
		w.cfg.Access = nil
		w.boot()
		if len(w.handled)+len(w.order) != 0 || w.state(1) != "failed" {
			t.Errorf("handled %q, said %+v, state %s", w.texts(), w.order, w.state(1))
		}
	})
}

// TestUncertain: the apology for an answer that delivery is not sure of is said once, whoever finds
// out first, and for answers of the journal only.
func TestUncertain(t *testing.T) {
	bubble(t, func(w *world) {
		w.accept(message(1, "hello"))
		seq := w.handled[0].Seq
		w.dispatch(seq)
		w.answers[TurnID(seq)] = AnswerUnknown
		answer := chat.Outbound{To: message(1, "").Address, ReplyTo: "1", TurnID: TurnID(seq), Class: chat.Assistant}
		w.p.Uncertain(w.t.Context(), answer)
		w.p.Uncertain(w.t.Context(), answer)
		w.boot()
		if len(w.order) != 1 || w.order[0].Markdown != Apology || w.state(seq) != "failed" {
			t.Errorf("said %+v, state %s", w.order, w.state(seq))
		}
		w.p.Uncertain(w.t.Context(), w.order[0])
		w.p.Uncertain(w.t.Context(), chat.Outbound{TurnID: "cron-7", Class: chat.Cron})
		w.p.Uncertain(w.t.Context(), chat.Outbound{TurnID: "in-x"})
		if len(w.order) != 1 {
			t.Errorf("said %+v", w.order)
		}
	})
}

// TestUnreadableRow: damage in one row does not keep the bot from starting.
func TestUnreadableRow(t *testing.T) {
	bubble(t, func(w *world) {
		w.accept(message(1, "lost"))
		w.accept(message(2, "hello"))
		if _, err := w.db.Writer().ExecContext(w.t.Context(), "UPDATE inbound SET payload_json = '{' WHERE id = 1"); err != nil {
			t.Fatal(err)
		}
		w.boot()
		if len(w.handled) != 1 || w.handled[0].In.Text != "hello" || w.state(1) != "failed" {
			t.Errorf("handled %q, state %s", w.texts(), w.state(1))
		}
	})
}

// TestFailed: a failure is final, bounded, and changes nothing that has ended.
func TestFailed(t *testing.T) {
	bubble(t, func(w *world) {
		w.accept(message(1, "hello"))
		w.accept(message(2, "hello"))
		ctx, cancel := context.WithCancel(w.t.Context())
		cancel() // a turn that was stopped still tells how it ended
		if err := w.p.Failed(ctx, 1, errors.New(string(make([]byte, 10_000)))); err != nil {
			t.Fatal(err)
		}
		if err := w.p.Done(ctx, 2); err != nil {
			t.Fatal(err)
		}
		if err := w.p.Failed(ctx, 2, errors.New("late")); err != nil {
			t.Fatal(err)
		}
		if w.state(1) != "failed" || w.state(2) != "done" || w.count("SELECT max(length(error)) FROM inbound") > maxReason {
			t.Errorf("states %s, %s", w.state(1), w.state(2))
		}
	})
}

func TestTurnID(t *testing.T) {
	if seq, ok := turnSeq(TurnID(42)); !ok || seq != 42 {
		t.Errorf("%d, %v", seq, ok)
	}
	for _, id := range []string{"", "in-", "in-x", "42", "cron-42"} {
		if _, ok := turnSeq(id); ok {
			t.Errorf("%q is a turn of the journal", id)
		}
	}
}
