package delivery

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"understudy/channels"
	"understudy/chat"
)

const noticeText = "↪️ Model Fallback: openai/gpt-5.5 (selected anthropic/claude-opus-4-8; rate limit)"

var fallback = chat.Outbound{Markdown: noticeText}

func diff(t *testing.T, got, want []said) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(said{}, "ID", "Conversation", "Silent")); d != "" {
		t.Errorf("what was said (-want +got):\n%s", d)
	}
}

// TestA1 (spec/chat.md §2.3): Slack, top-level mention, `first`, a fallback: the notice goes into
// the thread and leaves the slot to the answer, all of whose messages stay in the thread.
func TestA1(t *testing.T) {
	slack := func(f *platform) {
		f.traits.References, f.traits.OpensThreads, f.traits.TextLimit = false, true, 30
		f.traits.Edits = false
	}
	bubble(t, Settings{ReplyTo: ModeFirst}, slack, func(w *world) {
		turn := w.s.Begin(home, question, "t1")
		turn.Notify(chat.Outbound{Markdown: "fallback"})
		w.finish(turn, answer("one two three four.\n\nfive six seven eight."))
		w.pass(0)
		diff(t, w.f.all(), []said{
			{Text: "fallback", ReplyTo: "555", Class: chat.Notice},
			{Text: "one two three four.", ReplyTo: "555", Class: chat.Assistant},
			{Text: "five six seven eight.", ReplyTo: "555", Class: chat.Assistant},
		})
		if turn.slot.Owner() != "2" {
			t.Errorf("the slot belongs to %q, want the first message of the answer", turn.slot.Owner())
		}
	})
}

// TestA2: Discord, `first`, a fallback: the reference is on the first message of the answer only.
func TestA2(t *testing.T) {
	bubble(t, Settings{ReplyTo: ModeFirst}, func(f *platform) { f.traits.TextLimit = 30 }, func(w *world) {
		turn := w.s.Begin(home, question, "t1")
		turn.Notify(chat.Outbound{Markdown: "fallback"})
		w.finish(turn, answer("one two three four.\n\nfive six seven eight."))
		w.pass(0)
		diff(t, w.f.all(), []said{
			{Text: "fallback", Class: chat.Notice},
			{Text: "one two three four.", ReplyTo: "555", Class: chat.Assistant},
			{Text: "five six seven eight.", Class: chat.Assistant},
		})
	})
}

// TestA3: Telegram, `first`, a fallback while a preview is visible: the preview becomes the answer,
// the notice is another message without a reference, and silent.
func TestA3(t *testing.T) {
	bubble(t, Settings{ReplyTo: ModeFirst, Previews: true}, nil, func(w *world) {
		turn := w.s.Begin(home, question, "t1")
		turn.Stream("The capital is Par")
		w.pass(4 * time.Second)
		diff(t, w.f.all(), []said{{Text: "The capital is Par", ReplyTo: "555", Class: chat.Assistant}})
		turn.Restart()
		turn.Notify(fallback)
		w.pass(2 * time.Second)
		diff(t, w.f.all(), []said{
			{Text: "…", ReplyTo: "555", Class: chat.Assistant},
			{Text: noticeText, Class: chat.Notice},
		})
		w.finish(turn, answer("Paris."))
		w.pass(0)
		diff(t, w.f.all(), []said{
			{Text: "Paris.", ReplyTo: "555", Class: chat.Assistant},
			{Text: noticeText, Class: chat.Notice},
		})
		if !w.f.all()[1].Silent {
			t.Error("the notice made a sound")
		}
	})
}

// TestA4: a notice, then the model says NO_REPLY: the turn is silent but for the notice.
func TestA4(t *testing.T) {
	bubble(t, Settings{ReplyTo: ModeFirst, Previews: true}, nil, func(w *world) {
		turn := w.s.Begin(home, question, "t1")
		turn.Notify(fallback)
		turn.Stream("NO_RE")
		w.pass(5 * time.Second)
		turn.Stream("PLY")
		w.pass(5 * time.Second)
		turn.Cancel()
		w.pass(time.Minute)
		diff(t, w.f.all(), []said{{Text: noticeText, Class: chat.Notice}})
		if turn.Committed() || turn.slot.Consumed() {
			t.Error("a silent turn counts as answered")
		}
	})
}

// TestA7: a notice that the platform refuses changes nothing for the answer.
func TestA7(t *testing.T) {
	refuse := func(f *platform) {
		f.onSend = func(p channels.Piece) (bool, error) {
			if p.Class == chat.Notice {
				return false, &channels.SendError{Verdict: channels.Gone, Code: "forbidden", Err: errors.New("403")}
			}
			return true, nil
		}
	}
	bubble(t, Settings{ReplyTo: ModeFirst}, refuse, func(w *world) {
		turn := w.s.Begin(home, question, "t1")
		turn.Notify(fallback)
		w.finish(turn, answer("Paris."))
		w.pass(0)
		diff(t, w.f.all(), []said{{Text: "Paris.", ReplyTo: "555", Class: chat.Assistant}})
		if w.metrics.noticeFailed != 1 || w.metrics.sent != 1 {
			t.Errorf("counted %+v", w.metrics)
		}
	})
}

// TestNoticeRetriedBehindAnswer: a notice has one more try, and the answer does not wait for it.
func TestNoticeRetriedBehindAnswer(t *testing.T) {
	tries := 0
	once := func(f *platform) {
		f.onSend = func(p channels.Piece) (bool, error) {
			if p.Class != chat.Notice {
				return true, nil
			}
			tries++
			if tries == 1 {
				return false, retryAfter(0)
			}
			return true, nil
		}
	}
	bubble(t, Settings{}, once, func(w *world) {
		turn := w.s.Begin(home, question, "t1")
		turn.Notify(fallback)
		w.finish(turn, answer("Paris."))
		w.pass(10 * time.Second)
		if d := cmp.Diff([]string{"Paris.", noticeText}, w.f.texts()); d != "" {
			t.Error(d)
		}
	})
}

// TestNoticeOldNews: a notice that waits for its second try is dropped when a newer one has gone to
// the same place: said afterwards, it would contradict that one.
func TestNoticeOldNews(t *testing.T) {
	first := true
	bubble(t, Settings{}, func(f *platform) {
		f.onSend = func(p channels.Piece) (bool, error) {
			if p.Class == chat.Notice && first {
				first = false
				return false, retryAfter(7 * time.Second)
			}
			return true, nil
		}
	}, func(w *world) {
		turn := w.s.Begin(home, question, "t1")
		turn.Notify(fallback)
		w.finish(turn, answer("Paris."))
		turn = w.s.Begin(home, question, "t2")
		turn.Notify(chat.Outbound{Markdown: "cleared"})
		w.finish(turn, answer("Rome."))
		w.pass(time.Minute)
		if d := cmp.Diff([]string{"Paris.", "cleared", "Rome."}, w.f.texts()); d != "" {
			t.Error(d)
		}
		if w.metrics.noticeFailed != 1 {
			t.Errorf("counted %+v", w.metrics)
		}
	})
}

// TestProgressEndsWithItsTurn: a sign of work whose second try comes after the answer is not said.
func TestProgressEndsWithItsTurn(t *testing.T) {
	first := true
	bubble(t, Settings{}, func(f *platform) {
		f.onSend = func(p channels.Piece) (bool, error) {
			if p.Class == chat.Notice && first {
				first = false
				return false, retryAfter(7 * time.Second)
			}
			return true, nil
		}
	}, func(w *world) {
		turn := w.s.Begin(home, question, "t1")
		turn.Notify(chat.Outbound{Class: chat.Progress, Markdown: "still trying"})
		w.finish(turn, answer("Paris."))
		w.pass(time.Minute)
		if d := cmp.Diff([]string{"Paris."}, w.f.texts()); d != "" {
			t.Error(d)
		}
	})
}

func TestNoticeGivenUp(t *testing.T) {
	for _, after := range []time.Duration{0, time.Minute} {
		bubble(t, Settings{}, func(f *platform) {
			f.onSend = func(channels.Piece) (bool, error) { return false, retryAfter(after) }
		}, func(w *world) {
			turn := w.s.Begin(home, question, "t1")
			turn.Notify(fallback)
			turn.Cancel()
			w.pass(time.Minute)
			if n := w.f.count("send"); n > 2 || w.metrics.noticeFailed != 1 {
				t.Errorf("%d sends, counted %+v", n, w.metrics)
			}
		})
	}
}

// TestNoticeBudget: a notice for which the pace leaves no time steps behind the answer.
func TestNoticeBudget(t *testing.T) {
	slow := func(f *platform) { f.traits.Pace = channels.Pace{Every: time.Minute, Burst: 2} }
	bubble(t, Settings{Previews: true}, slow, func(w *world) {
		turn := w.s.Begin(home, question, "t1")
		turn.Stream("Par")
		w.pass(3 * time.Second)
		turn.Notify(chat.Outbound{Markdown: "first"})
		turn.Notify(chat.Outbound{Markdown: "second"})
		w.finish(turn, answer("Paris."))
		w.pass(6 * time.Second)
		if d := cmp.Diff([]string{"Paris.", "first"}, w.f.texts()); d != "" {
			t.Error(d)
		}
	})
}

// TestPreviewStart: a preview starts after 200 characters or 1.2 s, whichever is later, and at the
// latest after 3 s.
func TestPreviewStart(t *testing.T) {
	cases := []struct {
		name  string
		chunk string        // one every 100 ms
		start time.Duration // from the first
	}{
		{"much text", strings.Repeat("x", 500), 1200 * time.Millisecond},
		{"200 characters after 2 s", strings.Repeat("x", 10), 1900 * time.Millisecond},
		{"hardly any text", "x", 3 * time.Second},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, Settings{Previews: true}, func(f *platform) { f.traits.TextLimit = 0 }, func(w *world) {
				turn := w.s.Begin(home, question, "t1")
				begin := time.Now()
				for range 40 {
					turn.Stream(c.chunk)
					w.pass(100 * time.Millisecond)
				}
				if got := w.f.times[0].Sub(begin); got != c.start {
					t.Errorf("preview after %v, want %v", got, c.start)
				}
				turn.Cancel()
			})
		})
	}
}

// TestPreviewQuick: where edits cost nothing (a web page), a preview does not wait.
func TestPreviewQuick(t *testing.T) {
	bubble(t, Settings{Previews: true}, func(f *platform) { f.traits.EditInterval = 0 }, func(w *world) {
		turn := w.s.Begin(home, question, "t1")
		turn.Stream("P")
		w.pass(0)
		if d := cmp.Diff([]string{"P"}, w.f.texts()); d != "" {
			t.Error(d)
		}
		turn.Cancel()
	})
}

// TestPreviewPace: edits keep the channel's distance and show the newest text only.
func TestPreviewPace(t *testing.T) {
	bubble(t, Settings{Previews: true}, nil, func(w *world) {
		turn := w.s.Begin(home, question, "t1")
		for i := range 100 {
			turn.Stream(fmt.Sprintf("%03d ", i))
			w.pass(100 * time.Millisecond)
		}
		w.pass(2 * time.Second)
		times := w.f.times
		if len(times) < 6 || len(times) > 8 {
			t.Errorf("%d calls in 10 s", len(times))
		}
		for i := 1; i < len(times); i++ {
			if gap := times[i].Sub(times[i-1]); gap < 1200*time.Millisecond {
				t.Errorf("edit %d came %v after the one before", i, gap)
			}
		}
		if last := w.f.texts()[0]; !strings.HasSuffix(strings.TrimSpace(last), "099") {
			t.Errorf("the preview ends with %q", last)
		}
		w.pass(time.Minute)
		if len(w.f.times) != len(times) {
			t.Error("edits without news")
		}
		turn.Cancel()
		w.pass(0)
		if got := w.f.texts(); len(got) != 0 {
			t.Errorf("a cancelled turn left %q", got)
		}
	})
}

// TestPreviewRateLimited: a rate limit doubles the distance for this turn, and the final text is
// there at the end, once.
func TestPreviewRateLimited(t *testing.T) {
	limited := 0
	bubble(t, Settings{Previews: true}, func(f *platform) {
		f.onEdit = func(string, channels.Piece) error {
			if limited++; limited <= 2 {
				return retryAfter(10 * time.Second)
			}
			return nil
		}
	}, func(w *world) {
		turn := w.s.Begin(home, question, "t1")
		for range 40 {
			turn.Stream("more ")
			w.pass(time.Second)
		}
		for i := 1; i < len(w.f.times); i++ {
			if gap := w.f.times[i].Sub(w.f.times[i-1]); i >= 2 && i <= 3 && gap < 10*time.Second {
				t.Errorf("call %d came %v after a refusal that asked for 10 s", i, gap)
			} else if i > 3 && gap < 4800*time.Millisecond {
				t.Errorf("call %d came %v after the one before, the distance was doubled twice", i, gap)
			}
		}
		w.finish(turn, answer("the end"))
		w.pass(0)
		diff(t, w.f.all(), []said{{Text: "the end", Class: chat.Assistant}})
	})
}

// TestRestart: the half answer of a failed candidate goes, whether or not the next one speaks.
func TestRestart(t *testing.T) {
	bubble(t, Settings{Previews: true}, nil, func(w *world) {
		turn := w.s.Begin(home, question, "t1")
		turn.Stream("half an ans")
		turn.Restart()
		w.pass(10 * time.Second)
		if got := w.f.texts(); len(got) != 0 {
			t.Errorf("taken back before it was visible, yet %q", got)
		}
		turn.Stream("another half")
		w.pass(4 * time.Second)
		turn.Restart()
		turn.Restart()
		w.pass(time.Minute)
		if d := cmp.Diff([]string{"…"}, w.f.texts()); d != "" {
			t.Error(d)
		}
		if n := w.f.count("edit 1"); n != 1 {
			t.Errorf("%d edits for one restart", n)
		}
		turn.Stream("whole")
		w.pass(4 * time.Second)
		if d := cmp.Diff([]string{"whole"}, w.f.texts()); d != "" {
			t.Error(d)
		}
		if turn.Committed() {
			t.Error("a preview can be replaced")
		}
		turn.Cancel()
	})
}

// TestCommitted: a preview that was perhaps shown cannot be replaced; the answer is still said.
func TestCommitted(t *testing.T) {
	for _, stored := range []bool{true, false} {
		first := true
		bubble(t, Settings{Previews: true}, func(f *platform) {
			f.onSend = func(channels.Piece) (bool, error) {
				if first {
					first = false
					return stored, unsure()
				}
				return true, nil
			}
		}, func(w *world) {
			turn := w.s.Begin(home, question, "t1")
			turn.Stream("The capital is")
			w.pass(10 * time.Second)
			if !turn.Committed() {
				t.Error("text was perhaps shown and counts as replaceable")
			}
			turn.Stream(" Paris.")
			w.pass(10 * time.Second)
			w.finish(turn, answer("The capital is Paris."))
			w.pass(0)
			got := w.f.texts()
			if got[len(got)-1] != "The capital is Paris." || w.f.count("send") != 2 {
				t.Errorf("said %q", got)
			}
		})
	}
}

// TestErrorReplacesPreview: an error is a message of its own in the answer's place; the preview
// goes, and the error gets the reference.
func TestErrorReplacesPreview(t *testing.T) {
	bubble(t, Settings{ReplyTo: ModeFirst, Previews: true}, nil, func(w *world) {
		turn := w.s.Begin(home, question, "t1")
		turn.Stream("The capital is Par")
		w.pass(4 * time.Second)
		w.finish(turn, chat.Outbound{Class: chat.Error, Markdown: "No model answered."})
		w.pass(0)
		diff(t, w.f.all(), []said{{Text: "No model answered.", ReplyTo: "555", Class: chat.Error}})
		if w.f.all()[0].ID == "1" {
			t.Error("the preview was edited into an error")
		}
	})
}

// TestLongAnswer: the preview becomes the first message, the rest follows.
func TestLongAnswer(t *testing.T) {
	bubble(t, Settings{ReplyTo: ModeFirst, Previews: true}, func(f *platform) { f.traits.TextLimit = 30 }, func(w *world) {
		turn := w.s.Begin(home, question, "t1")
		turn.Stream("one two three four.\n\nfive six seven eight.\n\nnine ten.")
		w.pass(4 * time.Second)
		if got := w.f.texts(); len(got) != 1 || !strings.HasSuffix(got[0], " …") {
			t.Errorf("preview %q", got)
		}
		turn.Notify(chat.Outbound{Markdown: "notice"})
		w.finish(turn, answer("one two three four.\n\nfive six seven eight.\n\nnine ten."))
		turn.Notify(chat.Outbound{Markdown: "late"})
		w.pass(0)
		diff(t, w.f.all(), []said{
			{Text: "one two three four.", ReplyTo: "555", Class: chat.Assistant},
			{Text: "notice", Class: chat.Notice},
			{Text: "five six seven eight.", Class: chat.Assistant},
			{Text: "nine ten.", Class: chat.Assistant},
			{Text: "late", Class: chat.Notice},
		})
	})
}

func TestFinishOnce(t *testing.T) {
	bubble(t, Settings{}, nil, func(w *world) {
		turn := w.s.Begin(home, question, "t1")
		if err := turn.Finish(w.t.Context(), answer(" \n")); !errors.Is(err, ErrEmpty) {
			t.Errorf("an empty answer: %v", err)
		}
		if err := turn.Finish(w.t.Context(), chat.Outbound{Class: chat.Notice, Markdown: "x"}); err == nil {
			t.Error("a notice finished a turn")
		}
		w.finish(turn, answer("Paris."))
		if err := turn.Finish(w.t.Context(), answer("Lyon.")); !errors.Is(err, ErrFinished) {
			t.Errorf("a second answer: %v", err)
		}
		turn.Cancel()
		if !turn.Committed() {
			t.Error("finished and not committed")
		}
		again := w.s.Begin(home, question, "t1")
		w.finish(again, answer("Marseille."))
		w.pass(0)
		if d := cmp.Diff([]string{"Paris."}, w.f.texts()); d != "" {
			t.Error(d)
		}
		lost := w.s.Begin(chat.Address{Channel: "gone"}, question, "t2")
		lost.Stream("x")
		lost.Notify(fallback)
		if err := lost.Finish(w.t.Context(), answer("x")); !errors.Is(err, ErrNoChannel) {
			t.Errorf("an unknown channel: %v", err)
		}
		lost.Cancel()
	})
}

// TestTyping: the sign is repeated before it fades, and ends with the answer.
func TestTyping(t *testing.T) {
	bubble(t, Settings{Typing: TypingInstant}, nil, func(w *world) {
		turn := w.s.Begin(home, question, "t1")
		turn.Notify(fallback)
		w.pass(10 * time.Second)
		if n := w.f.count("typing"); n != 3 {
			t.Errorf("%d signs in 10 s, want one every 4 s", n)
		}
		w.finish(turn, answer("Paris."))
		w.pass(time.Minute)
		if n := w.f.count("typing"); n != 3 {
			t.Errorf("%d signs after the answer", n)
		}
	})
}

// TestScaffoldingHidden: thoughts that a model leaks are not shown while it writes.
func TestScaffoldingHidden(t *testing.T) {
	bubble(t, Settings{Previews: true}, nil, func(w *world) {
		turn := w.s.Begin(home, question, "t1")
		turn.Stream("<think>I should say Paris")
		w.pass(5 * time.Second)
		turn.Stream("</think>\nParis.")
		w.pass(5 * time.Second)
		if got := w.f.texts(); len(got) != 1 || strings.TrimSpace(got[0]) != "Paris." {
			t.Errorf("preview %q", got)
		}
		turn.Cancel()
	})
}

// TestOthersOfTheTurn: something else said under the turn's id neither takes nor harms its preview.
func TestOthersOfTheTurn(t *testing.T) {
	bubble(t, Settings{ReplyTo: ModeFirst, Previews: true}, nil, func(w *world) {
		turn := w.s.Begin(home, question, "t1")
		turn.Stream("The capital is Par")
		w.pass(4 * time.Second)
		for seq, class := range []chat.Class{1: chat.Command, 2: chat.Error} {
			if class == 0 {
				continue
			}
			o := chat.Outbound{To: home, TurnID: "t1", Seq: seq, Class: class, Markdown: "aside"}
			if err := w.s.Send(w.t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		w.finish(turn, answer("Paris."))
		w.pass(0)
		diff(t, w.f.all(), []said{
			{Text: "Paris.", ReplyTo: "555", Class: chat.Assistant},
			{Text: "aside", Class: chat.Command},
			{Text: "aside", Class: chat.Error},
		})
	})
}
