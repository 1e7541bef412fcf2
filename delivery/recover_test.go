package delivery

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/channels"
	"understudy/chat"
)

// crash makes a copy of the database as it is now, as a process that is killed would leave it.
func (w *world) crash(path string) {
	w.t.Helper()
	if _, err := w.db.Writer().ExecContext(w.t.Context(), "VACUUM INTO ?", path); err != nil {
		w.t.Error(err)
	}
}

// restart stops what runs and starts a new process over the copy.
func (w *world) restart(path string) {
	w.t.Helper()
	w.halt()
	w.close()
	w.f.onSend, w.f.onEdit = nil, nil
	w.unknown = nil
	w.open(path)
	w.boot()
	w.pass(time.Minute)
}

// after returns the messages of which the crash was the last thing the old process knew.
func (w *world) after(n int) {
	w.f.mu.Lock()
	defer w.f.mu.Unlock()
	w.f.said = w.f.said[:n]
}

const threeParts = "one two three four.\n\nfive six seven eight.\n\nnine ten."

// TestCrashPoints: the process is killed around the nth platform call of an answer of three
// messages; what is said in the end is said once (spec/chat.md §2.10).
func TestCrashPoints(t *testing.T) {
	cases := []struct {
		name       string
		at         int  // the call
		before     bool // the platform did not get it
		idempotent bool
		want       []string
		unknown    int
		answer     Answer
	}{
		{"first, not sent", 1, true, false, nil, 1, AnswerUnknown},
		{"first, sent", 1, false, false, []string{"one two three four."}, 1, AnswerUnknown},
		{"first, not sent, doubles dropped", 1, true, true, []string{"one two three four.", "five six seven eight.", "nine ten."}, 0, AnswerSent},
		{"first, sent, doubles dropped", 1, false, true, []string{"one two three four.", "five six seven eight.", "nine ten."}, 0, AnswerSent},
		{"second, sent, doubles dropped", 2, false, true, []string{"one two three four.", "five six seven eight.", "nine ten."}, 0, AnswerSent},
		{"third, sent", 3, false, false, []string{"one two three four.", "five six seven eight.", "nine ten."}, 1, AnswerUnknown},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			copied := filepath.Join(t.TempDir(), "copy.sqlite")
			bubble(t, Settings{}, func(f *platform) { f.traits.TextLimit, f.traits.Idempotent = 30, c.idempotent }, func(w *world) {
				n := 0
				w.f.onSend = func(channels.Piece) (bool, error) {
					if n++; n == c.at {
						w.crash(copied)
					}
					return true, nil
				}
				w.finish(w.s.Begin(home, question, "in-1"), answer(threeParts))
				w.pass(0)
				keep := c.at
				if c.before {
					keep--
				}
				w.after(keep)
				for k, id := range w.f.keys {
					if id > fmt.Sprint(keep) {
						delete(w.f.keys, k)
					}
				}
				w.restart(copied)
				if d := cmp.Diff(c.want, w.f.texts()); d != "" {
					t.Error(d)
				}
				if len(w.unknown) != c.unknown {
					t.Errorf("told of %d unknown answers, want %d", len(w.unknown), c.unknown)
				}
				if got, err := w.s.AnswerState(w.t.Context(), "in-1"); err != nil || got != c.answer {
					t.Errorf("state %v, %v, want %v", got, err, c.answer)
				}
			})
		})
	}
}

// TestCrashWhenUnsure: killed when the connection was cut and nothing was concluded from it yet.
func TestCrashWhenUnsure(t *testing.T) {
	copied := filepath.Join(t.TempDir(), "copy.sqlite")
	bubble(t, Settings{}, nil, func(w *world) {
		w.f.onSend = func(channels.Piece) (bool, error) { return true, unsure() }
		w.s.deps.Unknown = func(context.Context, chat.Outbound, bool) { w.crash(copied) }
		w.finish(w.s.Begin(home, question, "in-1"), answer("Paris."))
		w.pass(0)
		w.restart(copied)
		if d := cmp.Diff([]string{"Paris."}, w.f.texts()); d != "" || len(w.unknown) != 1 {
			t.Errorf("%s told of %+v", d, w.unknown)
		}
	})
}

// TestCrashWhileAnInteractionIsAnswered: the reply would be another message in the next process, so what was
// perhaps sent is not said again, wherever it is.
func TestCrashWhileAnInteractionIsAnswered(t *testing.T) {
	copied := filepath.Join(t.TempDir(), "copy.sqlite")
	bubble(t, Settings{}, func(f *platform) { f.traits.Idempotent = true }, func(w *world) {
		w.f.onSend = func(channels.Piece) (bool, error) { w.crash(copied); return true, nil }
		reply := chat.Outbound{To: home, Class: chat.Command, Markdown: "done", Via: "i1"}
		if err := w.s.Send(w.t.Context(), reply); err != nil {
			t.Fatal(err)
		}
		w.pass(0)
		w.restart(copied)
		if d := cmp.Diff([]string{"done"}, w.f.texts()); d != "" || len(w.unknown) != 1 {
			t.Errorf("%s told of %+v", d, w.unknown)
		}
	})
}

// TestCrashBetweenParts: what is done is not said again, the rest follows.
func TestCrashBetweenParts(t *testing.T) {
	copied := filepath.Join(t.TempDir(), "copy.sqlite")
	pace := channels.Pace{Every: time.Minute, Burst: 2}
	bubble(t, Settings{ReplyTo: ModeFirst}, func(f *platform) { f.traits.TextLimit, f.traits.Pace = 30, pace }, func(w *world) {
		w.finish(w.s.Begin(home, question, "in-1"), answer(threeParts))
		w.pass(time.Second) // the third waits for the pace
		w.crash(copied)
		if got, err := w.s.AnswerState(w.t.Context(), "in-1"); err != nil || got != AnswerSent {
			t.Errorf("state %v, %v", got, err)
		}
		w.restart(copied)
		diff(t, w.f.all(), []said{
			{Text: "one two three four.", ReplyTo: "555", Class: chat.Assistant},
			{Text: "five six seven eight.", Class: chat.Assistant},
			{Text: "nine ten.", Class: chat.Assistant},
		})
	})
}

// TestCrashBeforeSending: an answer that was only stored is said after the restart.
func TestCrashBeforeSending(t *testing.T) {
	bubble(t, Settings{}, nil, func(w *world) {
		w.halt()
		w.make()
		w.finish(w.s.Begin(home, question, "in-1"), answer("Paris."))
		if err := w.s.Send(w.t.Context(), chat.Outbound{To: home, Class: chat.Notice, Markdown: "notice"}); err != nil {
			t.Fatal(err)
		}
		w.boot()
		w.pass(0)
		if d := cmp.Diff([]string{"Paris."}, w.f.texts()); d != "" {
			t.Error(d)
		}
	})
}

// TestCrashWithPreview: a preview of an interrupted turn goes; one whose answer is stored, or was
// just being edited into it, becomes that answer.
func TestCrashWithPreview(t *testing.T) {
	cases := []struct {
		name   string
		finish bool
		inEdit bool
		want   []said
		answer Answer
	}{
		{"interrupted", false, false, nil, AnswerNone},
		{"answer stored", true, false, []said{{Text: "Paris.", ReplyTo: "555", Class: chat.Assistant}}, AnswerSent},
		{"in the final edit", true, true, []said{{Text: "Paris.", ReplyTo: "555", Class: chat.Assistant}}, AnswerSent},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			copied := filepath.Join(t.TempDir(), "copy.sqlite")
			bubble(t, Settings{Previews: true, ReplyTo: ModeFirst}, nil, func(w *world) {
				turn := w.s.Begin(home, question, "in-1")
				turn.Stream("half an ans")
				w.pass(4 * time.Second)
				switch {
				case c.inEdit:
					w.f.onEdit = func(string, channels.Piece) error { w.crash(copied); return nil }
					w.finish(turn, answer("Paris."))
					w.pass(0)
				case c.finish:
					w.halt()
					w.finish(turn, answer("Paris."))
					w.crash(copied)
				default:
					w.crash(copied)
				}
				w.restart(copied)
				diff(t, w.f.all(), c.want)
				if got, err := w.s.AnswerState(w.t.Context(), "in-1"); err != nil || got != c.answer {
					t.Errorf("state %v, %v, want %v", got, err, c.answer)
				}
				if len(w.f.said) > 0 && w.f.said[0].ID != "1" {
					t.Error("the preview did not become the answer")
				}
			})
		})
	}
}

// TestCrashWithStatusDraft: what an interrupted turn did goes, and never becomes the answer.
func TestCrashWithStatusDraft(t *testing.T) {
	for _, finish := range []bool{false, true} {
		copied := filepath.Join(t.TempDir(), "copy.sqlite")
		bubble(t, Settings{Previews: true, Progress: true, ReplyTo: ModeFirst}, nil, func(w *world) {
			turn := w.s.Begin(home, question, "in-1")
			turn.Doing("🛠 weather")
			w.pass(4 * time.Second)
			diff(t, w.f.all(), []said{{Text: "🛠 weather", Class: chat.Progress}})
			var want []said
			if finish {
				w.halt()
				w.finish(turn, answer("Paris."))
				want = []said{{Text: "Paris.", ReplyTo: "555", Class: chat.Assistant}}
			}
			w.crash(copied)
			w.restart(copied)
			diff(t, w.f.all(), want)
		})
	}
}

// TestShutdown: a call that has begun may end within the grace time; nothing new begins, and what
// was not sent is sent by the next process.
func TestShutdown(t *testing.T) {
	bubble(t, Settings{Typing: TypingInstant}, func(f *platform) { f.traits.TextLimit = 30 }, func(w *world) {
		slow := true
		w.f.onSend = func(channels.Piece) (bool, error) {
			if slow {
				w.pass(3 * time.Second)
			}
			return true, nil
		}
		w.s.Begin(home, question, "in-2") // a turn that never ends
		w.finish(w.s.Begin(home, question, "in-1"), answer(threeParts))
		w.pass(time.Second)
		slow = false
		w.halt()
		if d := cmp.Diff([]string{"one two three four."}, w.f.texts()); d != "" {
			t.Error(d)
		}
		w.s.Begin(home, question, "in-3").Notify(fallback)
		w.boot()
		w.pass(0)
		if d := cmp.Diff([]string{"one two three four.", "five six seven eight.", "nine ten."}, w.f.texts()); d != "" {
			t.Error(d)
		}
	})
}

// TestShutdownCutsHangingCall: a call that hangs is given up after the grace time.
func TestShutdownCutsHangingCall(t *testing.T) {
	bubble(t, Settings{}, nil, func(w *world) {
		w.f.hang = true
		w.finish(w.s.Begin(home, question, "in-1"), answer("Paris."))
		w.pass(time.Second)
		begin := time.Now()
		w.halt()
		if got := time.Since(begin); got != grace {
			t.Errorf("the shutdown took %v, want %v", got, grace)
		}
		if d := cmp.Diff([]string{"unknown"}, w.state()); d != "" {
			t.Error(d)
		}
		w.f.hang = false
		w.boot()
	})
}

func TestRecoverUnknownChannel(t *testing.T) {
	bubble(t, Settings{}, nil, func(w *world) {
		w.halt()
		w.make()
		w.finish(w.s.Begin(home, question, "in-1"), answer("Paris."))
		w.f.traits.Account = "other"
		w.boot()
		w.pass(time.Minute)
		w.halt()
		if got := w.f.texts(); len(got) != 0 {
			t.Errorf("said %q to another account", got)
		}
		w.f.traits.Account = ""
		w.boot()
		w.pass(0)
		if d := cmp.Diff([]string{"Paris."}, w.f.texts()); d != "" {
			t.Error(d)
		}
	})
}

// TestNothingKept: what was said is not kept in the outbox, and old rows go.
func TestNothingKept(t *testing.T) {
	bubble(t, Settings{}, nil, func(w *world) {
		w.finish(w.s.Begin(home, question, "in-1"), answer("Paris."))
		w.pass(0)
		row, err := w.s.store.q.Get(w.t.Context(), 1)
		if err != nil || row.Body != "" || row.Receipts != `[{"ids":["1"]}]` {
			t.Errorf("row %+v, %v", row, err)
		}
		w.pass(8 * 24 * time.Hour)
		if err := w.s.Prune(w.t.Context(), 7*24*time.Hour); err != nil {
			t.Fatal(err)
		}
		if got := w.state(); len(got) != 0 {
			t.Errorf("rows left: %v", got)
		}
	})
}

// TestUnreadableRow: a row that cannot be read does not hold up the others.
func TestUnreadableRow(t *testing.T) {
	bubble(t, Settings{}, nil, func(w *world) {
		w.halt()
		w.make()
		w.finish(w.s.Begin(home, question, "in-1"), answer("lost"))
		w.finish(w.s.Begin(home, question, "in-2"), answer("Paris."))
		if _, err := w.db.Writer().ExecContext(context.Background(), "UPDATE outbox SET body_json = '{' WHERE id = 1"); err != nil {
			t.Fatal(err)
		}
		w.boot()
		w.pass(0)
		if d := cmp.Diff([]string{"Paris."}, w.f.texts()); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff([]string{"failed", "sent"}, w.state()); d != "" {
			t.Error(d)
		}
	})
}
