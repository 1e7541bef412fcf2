package delivery

import (
	"context"
	"slices"
	"testing"
	"time"

	"understudy/channels"
	"understudy/chat"
)

// TestTypingEnds: however a turn ends, no sign comes behind its end, and before that there is at most
// one in four seconds. The sign is taken back once, also when it fails.
func TestTypingEnds(t *testing.T) {
	ends := map[string]func(w *world, turn *Turn){
		"answer":      func(w *world, turn *Turn) { w.finish(turn, answer("Paris.")) },
		"error":       func(w *world, turn *Turn) { w.finish(turn, chat.Outbound{Class: chat.Error, Markdown: "sorry"}) },
		"silence":     func(_ *world, turn *Turn) { turn.Cancel() },
		"lost answer": func(w *world, turn *Turn) { w.f.onSend = noneThere; w.finish(turn, answer("Paris.")) },
	}
	ways := map[string]struct {
		typing func(context.Context) error
		quiet  int
	}{
		"works":         {nil, 1},
		"server errors": {func(context.Context) error { return retryAfter(0) }, 1},
		"limited":       {func(context.Context) error { return retryAfter(18053 * time.Second) }, 1},
		"refused":       {func(context.Context) error { return refusal(channels.Refused) }, 0},
		"hangs":         {func(ctx context.Context) error { <-ctx.Done(); return unsure() }, 1},
		"deaf":          {func(context.Context) error { slowly(3 * time.Second); return nil }, 1},
	}
	for end, finish := range ends {
		for way, x := range ways {
			t.Run(end+", "+way, func(t *testing.T) {
				bubble(t, Settings{Typing: TypingInstant}, func(f *platform) { f.onTyping = x.typing }, func(w *world) {
					turn := w.s.Begin(home, question, "t1")
					w.pass(20 * time.Second)
					turn.Restart()
					turn.Notify(fallback)
					w.pass(21 * time.Second)
					finish(w, turn)
					ended := time.Now()
					w.pass(time.Second)
					said := len(w.f.texts())
					w.pass(time.Hour)
					if len(w.f.texts()) != said {
						t.Error("the answer waited for more than a second")
					}
					w.checkTyping(ended, x.quiet)
				})
			})
		}
	}
}

func noneThere(channels.Piece) (bool, error) { return false, refusal(channels.Gone) }

// checkTyping checks the typing calls of a turn that ended at a time.
func (w *world) checkTyping(ended time.Time, quiet int) {
	w.t.Helper()
	var last time.Time
	for i, c := range w.f.calls {
		if c != "typing" {
			continue
		}
		if w.f.times[i].After(ended) {
			w.t.Errorf("a sign %v behind the end", w.f.times[i].Sub(ended))
		}
		if gap := w.f.times[i].Sub(last); gap < 4*time.Second {
			w.t.Errorf("two signs within %v", gap)
		}
		last = w.f.times[i]
	}
	if n := w.f.count("quiet"); n != quiet {
		w.t.Errorf("taken back %d times, want %d", n, quiet)
	}
}

// TestTypingIsTakenBackBeforeTheAnswer: what people see last is the answer.
func TestTypingIsTakenBackBeforeTheAnswer(t *testing.T) {
	bubble(t, Settings{Typing: TypingInstant}, nil, func(w *world) {
		turn := w.s.Begin(home, question, "t1")
		w.pass(time.Second)
		w.finish(turn, answer("Paris."))
		w.pass(0)
		if got := w.f.calls; !slices.Equal(got, []string{"typing", "quiet", "send"}) {
			t.Errorf("calls %q", got)
		}
	})
}

// TestTypingModes: from when on the sign is shown.
func TestTypingModes(t *testing.T) {
	for mode, want := range map[Typing][4]int{ // signs after: arrival, work, blanks, words
		"":             {0, 0, 0, 0},
		TypingNever:    {0, 0, 0, 0},
		TypingInstant:  {1, 2, 3, 4},
		TypingThinking: {0, 1, 2, 3},
		TypingMessage:  {0, 0, 0, 1},
	} {
		t.Run(string(mode), func(t *testing.T) {
			bubble(t, Settings{Typing: mode}, nil, func(w *world) {
				turn := w.s.Begin(home, question, "t1")
				for i, step := range []func(){func() {}, turn.Working, func() { turn.Stream(" ") }, func() { turn.Stream("Paris.") }} {
					step()
					w.pass(3900 * time.Millisecond)
					if n := w.f.count("typing"); n != want[i] {
						t.Errorf("step %d: %d signs, want %d", i, n, want[i])
					}
				}
				w.finish(turn, answer("Paris."))
				w.pass(time.Minute)
				if n := w.f.count("typing"); n != want[3] {
					t.Errorf("%d signs in the end", n)
				}
			})
		})
	}
	if err := (Settings{Typing: "always"}).Validate(); err == nil {
		t.Error("an unknown mode is valid")
	}
}

// TestNoTypingBehindTheAnswer: a sign that would begin with the first words does not begin when the
// answer is there already.
func TestNoTypingBehindTheAnswer(t *testing.T) {
	bubble(t, Settings{Typing: TypingMessage}, nil, func(w *world) {
		turn := w.s.Begin(home, question, "t1")
		w.finish(turn, answer("Paris."))
		turn.Working()
		turn.Stream("Paris.")
		w.pass(time.Minute)
		if n := w.f.count("typing"); n != 0 {
			t.Errorf("%d signs", n)
		}
	})
}
