package delivery

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/channels"
	"understudy/chat"
)

// The steps of a delivery at which a process may die (spec/chat.md §2.10).
const (
	beforeClaim   = iota // the answer is in the outbox, nothing more
	afterClaim           // the call was about to be made
	afterCall            // the platform did it, its answer never came
	beforeReceipt        // the answer came, and was not written down
	steps
)

var stepNames = [steps]string{"before the claim", "after the claim", "after the call", "before the receipt"}

// TestCrashAtEveryStep kills the process at every step of an answer of one message, on channels that
// drop doubles and on others, with a preview, with a native stream, and with neither. Where a double
// is possible and the step does not tell, nothing is repeated and somebody is told; everywhere else
// the answer stands once, alone and complete.
func TestCrashAtEveryStep(t *testing.T) {
	for s := range showings {
		for _, idempotent := range []bool{false, true} {
			for step := range steps {
				t.Run(fmt.Sprintf("showing %d, doubles dropped %v, %s", s, idempotent, stepNames[step]), func(t *testing.T) {
					crashAt(t, s, idempotent, step)
				})
			}
		}
	}
}

func crashAt(t *testing.T, s showing, idempotent bool, step int) {
	copied := filepath.Join(t.TempDir(), "copy.sqlite")
	set := nativeSet
	set.Previews, set.NativeStream = s != hidden, s == streamed
	visible := func() {}
	deps := func(d *Deps) { d.FirstVisible = func(string, time.Duration) { visible() } }
	bubbleWith(t, set, deps, func(f *platform) {
		native(f)
		f.traits.Idempotent = idempotent
	}, func(w *world) {
		turn := w.s.Begin(home, question, "in-1")
		turn.Stream("The capital")
		w.pass(4 * time.Second)
		w.dieAt(turn, s, step, copied, &visible)
		// A new message cannot be told from one that never came; an edit can be made again.
		lost := s == hidden && !idempotent && step != beforeClaim
		want := []string{"The capital is Paris."}
		if lost && step == afterClaim {
			want = nil
		}
		if got := w.f.texts(); !slices.Equal(got, want) || len(w.f.stillGrow()) > 0 {
			t.Errorf("said %q, want %q; still growing: %q", got, want, w.f.stillGrow())
		}
		state := AnswerSent
		if lost {
			state = AnswerUnknown
		}
		if got, err := w.s.AnswerState(w.t.Context(), "in-1"); err != nil || got != state {
			t.Errorf("answer %v, %v, want %v", got, err, state)
		}
		if told := len(w.unknown) == 1; told != lost {
			t.Errorf("told of %d unknown answers", len(w.unknown))
		}
	})
}

// dieAt finishes a turn, kills the process at a step of that, and starts another.
func (w *world) dieAt(turn *Turn, s showing, step int, path string, visible *func()) {
	var left []said // what stands on the platform at the moment of death
	keys := map[string]string{}
	die := func() {
		if left != nil {
			return
		}
		w.crash(path)
		left = append([]said{}, w.f.all()...)
		for k, v := range w.f.keys {
			keys[k] = v
		}
	}
	w.f.onSend = func(channels.Piece) (bool, error) { w.atStep(step, die); return true, nil }
	w.f.onEdit = func(string, channels.Piece) error { w.atStep(step, die); return nil }
	w.f.onStream = func(call string) (bool, error) {
		if call == "append" || call == "stop" {
			w.atStep(step, die)
		}
		return true, nil
	}
	if step == beforeReceipt { // the answer counts as visible when its receipt is there, not yet stored
		turn.mu.Lock()
		turn.seen = false
		turn.mu.Unlock()
		*visible = die
	}
	if step == beforeClaim {
		w.halt()
		if s == streamed {
			w.f.said[0].Growing = true // the process died: nobody stopped it
		}
		w.finish(turn, answer("The capital is Paris."))
		die()
		w.boot()
	} else {
		w.finish(turn, answer("The capital is Paris."))
		w.pass(time.Minute)
	}
	if left == nil {
		w.t.Fatal("the step was not reached")
	}
	w.f.mu.Lock()
	w.f.onStream = nil
	w.f.mu.Unlock()
	w.halt()
	w.f.said, w.f.keys = left, keys
	w.close()
	w.f.onSend, w.f.onEdit, w.unknown = nil, nil, nil
	w.open(path)
	w.boot()
	w.pass(time.Minute)
}

// atStep dies now, or once the call has had its effect.
func (w *world) atStep(step int, die func()) {
	switch step {
	case afterClaim:
		die()
	case afterCall:
		w.f.then = die
	}
}

// TestMigratesTheFirstSchema: an outbox of the first release, with a row and a preview in it, is gone
// on with.
func TestMigratesTheFirstSchema(t *testing.T) {
	bubble(t, Settings{Previews: true}, nil, func(w *world) {
		w.halt()
		for _, q := range []string{
			"DROP TABLE outbox", "DROP TABLE previews", "DROP TABLE goose_outbox",
		} {
			if _, err := w.db.Writer().ExecContext(w.t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
		w.migrateFirst()
		body := `{"out":{"to":{"channel":"fake","conversation":"c1","kind":"direct"},"class":"assistant","markdown":"Paris.","turnId":"in-1"},"parts":[{"text":"Paris.","plain":"Paris.","source":"Paris."}]}`
		for _, q := range []string{
			"INSERT INTO outbox (idem_key, turn_id, seq, kind, channel, account, dest_key, body_json, created_at) VALUES ('in-1/0', 'in-1', 0, 'assistant', 'fake', '', '" + destKey(home) + "', '" + body + "', 0)",
			`INSERT INTO previews (turn_id, dest_json, message_id, at) VALUES ('in-1', '{"channel":"fake","conversation":"c1","kind":"direct"}', '1', 0)`,
		} {
			if _, err := w.db.Writer().ExecContext(w.t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
		w.f.said = []said{{ID: "1", Text: "Par"}}
		w.boot()
		w.pass(0)
		if d := cmp.Diff([]string{"Paris."}, w.f.texts()); d != "" || w.f.count("edit 1") != 1 {
			t.Error(d, w.f.calls)
		}
	})
}

// TestStalePreviewAfterKill: an answer that could not use its preview was begun as a new message; a
// process that dies then leaves the preview to the next.
func TestStalePreviewAfterKill(t *testing.T) {
	copied := filepath.Join(t.TempDir(), "copy.sqlite")
	bubble(t, Settings{Previews: true, ReplyTo: ModeFirst}, func(f *platform) {
		f.traits.TextLimit, f.traits.Pace = 30, channels.Pace{Every: time.Minute, Burst: 2}
		f.onEdit = func(string, channels.Piece) error { return refusal(channels.Refused) }
	}, func(w *world) {
		turn := w.s.Begin(home, question, "in-1")
		turn.Stream("one two")
		w.pass(4 * time.Second)
		w.finish(turn, answer("one two three four.\n\nfive six seven eight."))
		w.pass(time.Second) // the second part waits for the pace
		w.crash(copied)
		w.restart(copied)
		diff(t, w.f.all(), []said{
			{Text: "one two three four.", ReplyTo: "555", Class: chat.Assistant},
			{Text: "five six seven eight.", Class: chat.Assistant},
		})
	})
}

// TestChosenReferenceOverRestart: what the model chose is kept with the answer.
func TestChosenReferenceOverRestart(t *testing.T) {
	bubble(t, Settings{}, nil, func(w *world) {
		w.halt()
		w.make()
		w.finish(w.s.Begin(home, &chat.Inbound{ID: "555"}, "in-1"), answer("[[reply_to:77]]Paris."))
		w.boot()
		w.pass(0)
		diff(t, w.f.all(), []said{{Text: "Paris.", ReplyTo: "77", Class: chat.Assistant}})
	})
}

// TestChosenReferenceAfterPreview: the preview of a process that died may refer to something else than
// the model chose in the end.
func TestChosenReferenceAfterPreview(t *testing.T) {
	bubble(t, Settings{Previews: true, ReplyTo: ModeFirst}, nil, func(w *world) {
		turn := w.s.Begin(home, question, "in-1")
		turn.Stream("Par")
		w.pass(4 * time.Second)
		w.halt()
		w.finish(turn, answer("Paris. [[reply_to:77]]"))
		w.boot()
		w.pass(0)
		diff(t, w.f.all(), []said{{Text: "Paris.", ReplyTo: "77", Class: chat.Assistant}})
	})
}

// TestBatchedOverRestart: that the turn answered several messages is kept with the answer.
func TestBatchedOverRestart(t *testing.T) {
	bubble(t, Settings{ReplyTo: ModeBatched}, nil, func(w *world) {
		w.halt()
		w.make()
		w.finish(w.s.Begin(home, &chat.Inbound{ID: "555", Batched: true}, "in-1"), answer("Paris."))
		w.finish(w.s.Begin(home, &chat.Inbound{ID: "556"}, "in-2"), answer("Rome."))
		w.boot()
		w.pass(0)
		diff(t, w.f.all(), []said{{Text: "Paris.", ReplyTo: "555", Class: chat.Assistant}, {Text: "Rome.", Class: chat.Assistant}})
	})
}

// TestInventedReference: a message that the model made up is no reason to lose the answer.
func TestInventedReference(t *testing.T) {
	bubble(t, Settings{ReplyTo: ModeFirst}, func(f *platform) {
		f.onSend = func(p channels.Piece) (bool, error) {
			if p.ReplyTo == "77" {
				return false, refusal(channels.Refused)
			}
			return true, nil
		}
	}, func(w *world) {
		w.finish(w.s.Begin(home, question, "in-1"), answer("[[reply_to:77]]Paris."))
		w.pass(0)
		diff(t, w.f.all(), []said{{Text: "Paris.", ReplyTo: "555", Class: chat.Assistant}})
	})
}

// TestInteractionsAndPeopleTravel: through which interaction a thing goes, and for whom it is, stays
// with it over a restart, for every one of its messages.
func TestInteractionsAndPeopleTravel(t *testing.T) {
	bubble(t, Settings{}, func(f *platform) { f.traits.TextLimit = 30 }, func(w *world) {
		w.halt()
		w.make()
		o := chat.Outbound{To: home, Class: chat.Command, Markdown: "one two three four.\n\nfive six seven eight.", Via: "token", For: "ann"}
		if err := w.s.Send(context.Background(), o); err != nil {
			t.Fatal(err)
		}
		w.boot()
		w.pass(0)
		o.Class = chat.Notice
		if err := w.s.Send(context.Background(), o); err != nil {
			t.Fatal(err)
		}
		w.pass(0)
		for _, m := range w.f.all() {
			if m.Via != "token" || m.For != "ann" {
				t.Errorf("%+v", m)
			}
		}
		if n := len(w.f.all()); n != 4 {
			t.Errorf("%d messages", n)
		}
	})
}
