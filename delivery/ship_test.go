package delivery

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"understudy/channels"
	"understudy/chat"
)

// failing returns a hook that answers the nth send with the nth error; nil = it works.
func failing(errs ...error) func(channels.Piece) (bool, error) {
	n := 0
	return func(channels.Piece) (bool, error) {
		n++
		if n > len(errs) {
			return true, nil
		}
		return errs[n-1] == nil, errs[n-1]
	}
}

func refusal(v channels.Verdict) error {
	return &channels.SendError{Verdict: v, Code: "refused", Err: errors.New("no")}
}

// state returns the state of each row of the outbox.
func (w *world) state() []string {
	w.t.Helper()
	rows, err := w.db.Reader().QueryContext(w.t.Context(), "SELECT state FROM outbox ORDER BY id")
	if err != nil {
		w.t.Fatal(err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			w.t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

// TestSendFailures: what each verdict of a channel makes of an answer of one message.
func TestSendFailures(t *testing.T) {
	cases := []struct {
		name       string
		errs       []error
		idempotent bool
		texts      []string
		sends      int
		state      string
	}{
		{"works", nil, false, []string{"Paris."}, 1, "sent"},
		{"a retry", []error{retryAfter(0)}, false, []string{"Paris."}, 2, "sent"},
		{"the platform asks for 41 s", []error{retryAfter(41 * time.Second)}, false, []string{"Paris."}, 2, "sent"},
		{"away for minutes", repeat(retryAfter(0), 12), false, []string{"Paris."}, 13, "sent"},
		{"perhaps sent, not", []error{unsure()}, false, nil, 1, "unknown"},
		{"perhaps sent, where doubles are dropped", []error{unsure(), unsure()}, true, []string{"Paris."}, 3, "sent"},
		{"perhaps sent, and this one would stand there twice", []error{&channels.SendError{Verdict: channels.Unsure, Once: true}}, true, nil, 1, "unknown"},
		{"not an error of the contract", []error{errors.New("odd")}, false, nil, 1, "unknown"},
		{"refused", []error{refusal(channels.Refused)}, false, nil, 1, "failed"},
		{"nobody there", []error{refusal(channels.Gone)}, false, nil, 1, "failed"},
		{"markup rejected", []error{refusal(channels.Markups)}, false, []string{"Paris."}, 2, "sent"},
		{"markup rejected twice", repeat(refusal(channels.Markups), 2), false, nil, 2, "failed"},
		{"too long for ever", repeat(refusal(channels.TooLong), 9), false, nil, 3, "failed"},
		{"too long with its markup", repeat(refusal(channels.TooLong), 2), false, []string{"Par", "is."}, 4, "sent"},
		{"moved to nowhere", []error{refusal(channels.Moved)}, false, nil, 1, "failed"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, Settings{}, func(f *platform) {
				f.traits.Idempotent, f.onSend = c.idempotent, failing(c.errs...)
			}, func(w *world) {
				w.finish(w.s.Begin(home, question, "t1"), answer("Paris."))
				w.pass(time.Hour)
				if d := cmp.Diff(c.texts, w.f.texts()); d != "" {
					t.Error(d)
				}
				if got := w.f.count("send"); got != c.sends {
					t.Errorf("%d sends, want %d", got, c.sends)
				}
				if d := cmp.Diff([]string{c.state}, w.state()); d != "" {
					t.Error(d)
				}
				if told := len(w.unknown) == 1; told != (c.state == "unknown") {
					t.Errorf("told of %d unknown answers", len(w.unknown))
				}
				if ok := w.metrics.sent == 1; ok != (c.state == "sent") || w.metrics.sent+w.metrics.failed != 1 {
					t.Errorf("counted %+v", w.metrics)
				}
			})
		})
	}
}

func repeat(err error, n int) []error {
	out := make([]error, n)
	for i := range out {
		out[i] = err
	}
	return out
}

// TestUnsureIsSaidOnce: a message that arrived although the connection was cut is not said again
// , and the rest of the answer follows.
func TestUnsureIsSaidOnce(t *testing.T) {
	n := 0
	bubble(t, Settings{}, func(f *platform) {
		f.traits.TextLimit = 30
		f.onSend = func(channels.Piece) (bool, error) {
			if n++; n == 1 {
				return true, unsure()
			}
			return true, nil
		}
	}, func(w *world) {
		w.finish(w.s.Begin(home, question, "t1"), answer("one two three four.\n\nfive six seven eight."))
		w.pass(time.Hour)
		if d := cmp.Diff([]string{"one two three four.", "five six seven eight."}, w.f.texts()); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff([]string{"unknown"}, w.state()); d != "" || len(w.unknown) != 1 || w.unknown[0].TurnID != "t1" {
			t.Errorf("%s told of %+v", d, w.unknown)
		}
	})
}

// TestRetryWaits: attempts keep the distance the platform asked for, or a growing one of our own.
func TestRetryWaits(t *testing.T) {
	bubble(t, Settings{}, func(f *platform) {
		f.onSend = failing(retryAfter(0), retryAfter(7*time.Second), retryAfter(0), retryAfter(0))
	}, func(w *world) {
		begin := time.Now()
		w.finish(w.s.Begin(home, question, "t1"), answer("Paris."))
		w.pass(time.Hour)
		var got []time.Duration
		for _, at := range w.f.times {
			got = append(got, at.Sub(begin))
		}
		ms := time.Millisecond
		want := []time.Duration{0, 400 * ms, 7400 * ms, 37400 * ms, 40600 * ms}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	})
}

// TestPlatformAway: a durable thing is given up in the end, and what waits behind it goes out.
func TestPlatformAway(t *testing.T) {
	away := true
	bubble(t, Settings{}, func(f *platform) {
		f.onSend = func(channels.Piece) (bool, error) {
			if away {
				return false, retryAfter(0)
			}
			return true, nil
		}
	}, func(w *world) {
		w.finish(w.s.Begin(home, question, "t1"), answer("first"))
		w.pass(20 * time.Minute)
		away = false
		w.finish(w.s.Begin(home, question, "t2"), answer("second"))
		w.pass(0)
		if d := cmp.Diff([]string{"failed", "sent"}, w.state()); d != "" {
			t.Error(d)
		}
	})
}

func TestTooLongIsHalvedOnce(t *testing.T) {
	bubble(t, Settings{}, func(f *platform) {
		f.onSend = func(p channels.Piece) (bool, error) {
			if len(p.Text) > 30 {
				return false, refusal(channels.TooLong)
			}
			return true, nil
		}
	}, func(w *world) {
		w.finish(w.s.Begin(home, question, "t1"), answer("one two three.\n\nfive six seven."))
		w.pass(0)
		got := w.f.texts()
		if len(got) < 2 || strings.Join(got, " ") != "one two three. five six seven." {
			t.Errorf("said %q", got)
		}
	})
}

// TestPlainHasNoMarkup: a rejected dialect is replaced by the text without markup, and by nothing
// that shows it.
func TestPlainHasNoMarkup(t *testing.T) {
	bubble(t, Settings{}, func(f *platform) {
		f.traits.Markup = channels.TelegramHTML
		f.onSend = func(p channels.Piece) (bool, error) {
			if p.Text != "" {
				return false, refusal(channels.Markups)
			}
			return true, nil
		}
	}, func(w *world) {
		w.finish(w.s.Begin(home, question, "t1"), answer("Sure! **Step 1** - a < b."))
		w.pass(0)
		if d := cmp.Diff([]string{"Sure! Step 1 - a < b."}, w.f.texts()); d != "" {
			t.Error(d)
		}
	})
}

// TestMoved: a conversation with a new id gets this and every later message there.
func TestMoved(t *testing.T) {
	bubble(t, Settings{}, func(f *platform) {
		f.onSend = func(p channels.Piece) (bool, error) {
			if p.To.Conversation == "c1" {
				return false, &channels.SendError{Verdict: channels.Moved, MovedTo: "c2", Code: "moved"}
			}
			return true, nil
		}
	}, func(w *world) {
		var moved []string
		w.s.deps.Moved = func(_ context.Context, from chat.Address, to string) { moved = append(moved, from.Conversation+">"+to) }
		w.finish(w.s.Begin(home, question, "t1"), answer("first"))
		w.finish(w.s.Begin(home, question, "t2"), answer("second"))
		w.pass(0)
		for _, m := range w.f.all() {
			if m.Conversation != "c2" {
				t.Errorf("%q went to %s", m.Text, m.Conversation)
			}
		}
		if d := cmp.Diff([]string{"c1>c2"}, moved); d != "" || w.f.count("send") != 3 {
			t.Error(d, w.f.count("send"))
		}
	})
}

// TestFinalEditFails: when the preview cannot become the answer, the answer is said and the
// preview goes.
func TestFinalEditFails(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want int // edits of the final text
	}{
		{"limited for long", retryAfter(41 * time.Second), 3},
		{"perhaps done", unsure(), 3},
		{"refused", refusal(channels.Refused), 1},
		{"too long", refusal(channels.TooLong), 3}, // whole, cut, and without its markup
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, Settings{Previews: true, ReplyTo: ModeFirst}, func(f *platform) {
				f.onEdit = func(string, channels.Piece) error { return c.err }
			}, func(w *world) {
				turn := w.s.Begin(home, question, "t1")
				turn.Stream("Par")
				w.pass(4 * time.Second)
				w.finish(turn, answer("Paris is the capital."))
				w.pass(time.Hour)
				all := w.f.all()
				if got := strings.Join(w.f.texts(), " "); got != "Paris is the capital." || all[0].ReplyTo != "555" {
					t.Errorf("said %+v", all)
				}
				if got := w.f.count("edit 1"); got != c.want {
					t.Errorf("%d edits, want %d", got, c.want)
				}
			})
		})
	}
}

// TestPreviewDeleted: somebody removed the preview; the answer is a new message.
func TestPreviewDeleted(t *testing.T) {
	bubble(t, Settings{Previews: true, ReplyTo: ModeFirst}, nil, func(w *world) {
		turn := w.s.Begin(home, question, "t1")
		turn.Stream("Par")
		w.pass(4 * time.Second)
		w.f.said = nil
		w.finish(turn, answer("Paris."))
		w.pass(0)
		diff(t, w.f.all(), []said{{Text: "Paris.", ReplyTo: "555", Class: chat.Assistant}})
	})
}

// TestPreviewDeletedWhileShown: a preview that is gone at the next edit is forgotten, and the answer
// becomes the turn's first message.
func TestPreviewDeletedWhileShown(t *testing.T) {
	bubble(t, Settings{Previews: true, ReplyTo: ModeFirst}, nil, func(w *world) {
		turn := w.s.Begin(home, question, "t1")
		turn.Stream("Par")
		w.pass(4 * time.Second)
		w.f.said = nil
		turn.Stream("is.")
		w.pass(4 * time.Second)
		if id, _, err := w.s.store.previewOf(w.t.Context(), "t1"); id != "" || err != nil {
			t.Errorf("the preview %q is remembered, %v", id, err)
		}
		w.finish(turn, answer("Paris."))
		w.pass(0)
		diff(t, w.f.all(), []said{{Text: "Paris.", ReplyTo: "555", Class: chat.Assistant}})
		if owner := turn.slot.Owner(); owner != w.f.all()[0].ID || !turn.slot.Consumed() {
			t.Errorf("the slot belongs to %q", owner)
		}
	})
}

func TestFiles(t *testing.T) {
	bubble(t, Settings{}, func(f *platform) {
		f.onSend = func(p channels.Piece) (bool, error) {
			if len(p.Media) > 0 && p.Media[0].Name == "big.bin" {
				return false, refusal(channels.TooLong)
			}
			return true, nil
		}
	}, func(w *world) {
		o := answer("Here you are.")
		o.Media = []chat.Attachment{{Name: "a.png", Data: []byte{1}}, {Name: "big.bin", Data: []byte{2}}, {Name: "b.png"}}
		w.finish(w.s.Begin(home, question, "t1"), o)
		w.pass(0)
		diff(t, w.f.all(), []said{
			{Text: "Here you are.", Class: chat.Assistant},
			{File: "a.png", Class: chat.Assistant},
			{Text: "📎 big.bin could not be sent here.", Class: chat.Assistant},
			{File: "b.png", Class: chat.Assistant},
		})
	})
}

// TestPaceAndOrder: one destination keeps its pace and its order, another does not wait for it.
func TestPaceAndOrder(t *testing.T) {
	bubble(t, Settings{}, func(f *platform) {
		f.traits.Pace = channels.Pace{Every: time.Second, Burst: 2}
	}, func(w *world) {
		other := home
		other.Conversation = "c2"
		for _, text := range []string{"1", "2", "3", "4"} {
			if err := w.s.Send(w.t.Context(), chat.Outbound{To: home, Class: chat.Command, Markdown: text}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.s.Send(w.t.Context(), chat.Outbound{To: other, Class: chat.Cron, Markdown: "other"}); err != nil {
			t.Fatal(err)
		}
		w.pass(0)
		if got := len(w.f.texts()); got != 3 {
			t.Errorf("%d messages at once, want two here and one elsewhere", got)
		}
		w.pass(2 * time.Second)
		var here []string
		for _, m := range w.f.all() {
			if m.Conversation == "c1" {
				here = append(here, m.Text)
			}
		}
		if d := cmp.Diff([]string{"1", "2", "3", "4"}, here); d != "" {
			t.Error(d)
		}
	})
}

// TestGlobalPace: the account's rate holds over all destinations.
func TestGlobalPace(t *testing.T) {
	bubble(t, Settings{}, func(f *platform) { f.traits.Global = 5 }, func(w *world) {
		for i := range 15 {
			to := home
			to.Conversation = strings.Repeat("c", i+1)
			if err := w.s.Send(w.t.Context(), chat.Outbound{To: to, Class: chat.Command, Markdown: "x"}); err != nil {
				t.Fatal(err)
			}
		}
		w.pass(0)
		atOnce := len(w.f.texts())
		w.pass(2 * time.Second)
		if all := len(w.f.texts()); atOnce != 5 || all != 15 {
			t.Errorf("%d at once and %d within two seconds, want 5 and 15", atOnce, all)
		}
	})
}

// TestOverflow: more than the queue holds is neither lost nor reordered; notices beyond it are
// dropped and counted.
func TestOverflow(t *testing.T) {
	bubble(t, Settings{}, func(f *platform) {
		f.traits.Pace = channels.Pace{Every: 100 * time.Millisecond, Burst: 1}
	}, func(w *world) {
		const n = 3*queueLimit + 5
		var want []string
		for i := range n {
			text := strings.Repeat("x", i+1)
			want = append(want, text)
			if err := w.s.Send(w.t.Context(), chat.Outbound{To: home, Class: chat.Command, Markdown: text}); err != nil {
				t.Fatal(err)
			}
			if i == 1 {
				w.pass(0) // the first is said, the second waits for the pace: the queue is empty
			}
		}
		for range 3 {
			if err := w.s.Send(w.t.Context(), chat.Outbound{To: home, Class: chat.Notice, Markdown: "notice"}); err != nil {
				t.Fatal(err)
			}
		}
		w.pass(time.Minute)
		if d := cmp.Diff(want, w.f.texts()); d != "" {
			t.Error(d)
		}
		if w.metrics.noticeFailed != 3 {
			t.Errorf("%d notices counted as failed", w.metrics.noticeFailed)
		}
	})
}

// TestRefillOverlooksNothing: a row that is left to the backlog while the outbox is being read keeps
// the backlog alive.
func TestRefillOverlooksNothing(t *testing.T) {
	bubble(t, Settings{}, nil, func(w *world) {
		l := &line{key: destKey(home), backlog: true, added: 1}
		w.s.refill(w.t.Context(), l, 0)
		if !l.backlog {
			t.Error("a row was overlooked")
		}
		w.s.refill(w.t.Context(), l, 1)
		if l.backlog {
			t.Error("the backlog never ends")
		}
	})
}

// TestOutboxUnreadable: while the database cannot be read nothing is lost and nothing overtakes.
func TestOutboxUnreadable(t *testing.T) {
	bubble(t, Settings{Typing: TypingInstant}, nil, func(w *world) {
		rename := func(from, to string) {
			if _, err := w.db.Writer().ExecContext(context.Background(), "ALTER TABLE "+from+" RENAME TO "+to); err != nil {
				t.Error(err)
			}
		}
		queued := make(chan struct{})
		w.f.onSend = func(p channels.Piece) (bool, error) {
			if p.Text == "one" {
				<-queued
				rename("outbox", "elsewhere")
			}
			return true, nil
		}
		turn := w.s.Begin(home, question, "t1")
		for i, text := range []string{"one", "two"} {
			if err := w.s.Send(w.t.Context(), chat.Outbound{To: home, Class: chat.Command, Markdown: text, TurnID: "c", Seq: i}); err != nil {
				t.Fatal(err)
			}
		}
		w.finish(turn, answer("three"))
		close(queued)
		w.pass(2 * roundPause)
		rename("elsewhere", "outbox")
		w.pass(2 * roundPause)
		if d := cmp.Diff([]string{"one", "two", "three"}, w.f.texts()); d != "" {
			t.Error(d)
		}
		shown := w.f.count("typing")
		w.pass(time.Minute)
		if w.f.count("typing") != shown {
			t.Error("the typing sign goes on behind the answer")
		}
	})
}

func TestSendRefuses(t *testing.T) {
	bubble(t, Settings{}, nil, func(w *world) {
		for _, c := range []chat.Class{chat.Command, chat.Notice} {
			if err := w.s.Send(w.t.Context(), chat.Outbound{To: chat.Address{Channel: "x"}, Class: c, Markdown: "x"}); !errors.Is(err, ErrNoChannel) {
				t.Errorf("%s: %v", c, err)
			}
			if err := w.s.Send(w.t.Context(), chat.Outbound{To: home, Class: c, Markdown: " \n"}); !errors.Is(err, ErrEmpty) {
				t.Errorf("%s: %v", c, err)
			}
		}
		o := chat.Outbound{To: home, Class: chat.Error, Markdown: "sorry", TurnID: "t", Seq: 9}
		for range 2 {
			if err := w.s.Send(w.t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		w.pass(0)
		if d := cmp.Diff([]string{"sorry"}, w.f.texts()); d != "" {
			t.Error(d)
		}
		if err := w.s.Register(w.f, Settings{ReplyTo: "frist"}); err == nil {
			t.Error("a wrong mode was registered")
		}
	})
}

// TestBackoff: the wait grows to 30 s, never falls, and never undercuts what the platform asks for.
func TestBackoff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 1000).Draw(t, "n")
		asked := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "asked"))
		got := backoff(n, asked)
		if got < asked || got < firstWait || got > max(asked, longestOwn) || backoff(n+1, asked) < got {
			t.Fatalf("backoff(%d, %v) = %v", n, asked, got)
		}
	})
}

// TestPieceKey: the key fits every platform and differs from part to part.
func TestPieceKey(t *testing.T) {
	p := &parcel{idem: "in-42/0"}
	a, b := p.key(0), p.key(1)
	if a == b || len(a) > 25 || a != p.key(0) {
		t.Errorf("keys %q, %q", a, b)
	}
}
