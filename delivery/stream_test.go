package delivery

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"understudy/channels"
	"understudy/chat"
)

// native is Slack as far as streams are concerned.
func native(f *platform) {
	f.traits.References, f.traits.OpensThreads, f.traits.Markup = false, true, channels.SlackMarkdown
	f.traits.StreamInterval = 800 * time.Millisecond
}

var nativeSet = Settings{Previews: true, NativeStream: true, ReplyTo: ModeFirst}

// stillGrow returns the streams that were not stopped.
func (f *platform) stillGrow() (out []string) {
	for _, m := range f.all() {
		if m.Growing {
			out = append(out, m.Text)
		}
	}
	return out
}

// TestStreamIsStopped: however a turn with a stream ends, the stream is stopped, and what is said in
// the end is said once.
func TestStreamIsStopped(t *testing.T) {
	broken := func(call string, err error) func(*platform) {
		return func(f *platform) {
			native(f)
			f.onStream = func(c string) (bool, error) {
				if c == call {
					return false, err
				}
				return true, nil
			}
		}
	}
	file := answer("The capital is Paris.")
	file.Media = []chat.Attachment{{Name: "map.png"}}
	for _, c := range []struct {
		name    string
		prepare func(*platform)
		end     func(w *world, turn *Turn)
		want    []string
	}{
		{"answer", native, func(w *world, turn *Turn) { w.finish(turn, answer("The capital is Paris.")) }, []string{"The capital is Paris."}},
		{"another answer", native, func(w *world, turn *Turn) { w.finish(turn, answer("Paris.")) }, []string{"Paris."}},
		{"file", native, func(w *world, turn *Turn) { w.finish(turn, file) }, []string{"The capital is Paris.", ""}},
		{"error", native, func(w *world, turn *Turn) { w.finish(turn, chat.Outbound{Class: chat.Error, Markdown: "sorry"}) }, []string{"sorry"}},
		{"cancel", native, func(_ *world, turn *Turn) { turn.Cancel() }, nil},
		{"restart, cancel", native, func(_ *world, turn *Turn) { turn.Restart(); turn.Cancel() }, nil},
		{"no more text", broken("append", refusal(channels.Refused)), func(w *world, turn *Turn) { w.finish(turn, answer("The capital is Paris.")) }, []string{"The capital is Paris."}},
		{"perhaps more text", broken("append", unsure()), func(w *world, turn *Turn) { w.finish(turn, answer("The capital is Paris.")) }, []string{"The capital is Paris."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, nativeSet, c.prepare, func(w *world) {
				turn := w.s.Begin(home, question, "t1")
				turn.Stream("The capital")
				w.pass(4 * time.Second)
				if n := len(w.f.stillGrow()); n != 1 {
					t.Fatalf("%d streams", n)
				}
				turn.Stream(" is")
				c.end(w, turn)
				w.pass(time.Hour)
				if d := cmp.Diff(c.want, w.f.texts()); d != "" {
					t.Error(d)
				}
				if left := w.f.stillGrow(); left != nil {
					t.Errorf("still growing: %q", left)
				}
				if len(w.s.streams) != 0 {
					t.Error("a stopped stream is remembered")
				}
			})
		})
	}
}

// TestStreamStoppedAtShutdown: the end of the process stops a stream, also of a turn that is given up
// only afterwards; the next process takes the half answer away.
func TestStreamStoppedAtShutdown(t *testing.T) {
	bubble(t, nativeSet, native, func(w *world) {
		turn := w.s.Begin(home, question, "in-1")
		turn.Stream("The capital")
		w.pass(4 * time.Second)
		w.halt()
		turn.Cancel()
		if left := w.f.stillGrow(); left != nil {
			t.Errorf("still growing: %q", left)
		}
		w.boot()
		w.pass(time.Minute)
		if got := w.f.texts(); len(got) != 0 {
			t.Errorf("left standing: %q", got)
		}
	})
}

// TestStreamHangsAtShutdown: a platform that does not answer holds up the end no longer than the
// grace time.
func TestStreamHangsAtShutdown(t *testing.T) {
	bubble(t, nativeSet, native, func(w *world) {
		w.s.Begin(home, question, "in-1").Stream("The capital")
		w.pass(4 * time.Second)
		w.f.onStream = func(string) (bool, error) { slowly(grace - time.Second); return true, nil }
		begin := time.Now()
		w.halt()
		if got := time.Since(begin); got > 2*grace {
			t.Errorf("the shutdown took %v", got)
		}
		w.f.onStream = nil
		w.boot()
	})
}

// TestStreamAfterKill: a process that is killed leaves a stream open; the next one stops it before it
// takes the half answer away.
func TestStreamAfterKill(t *testing.T) {
	copied := filepath.Join(t.TempDir(), "copy.sqlite")
	bubble(t, nativeSet, native, func(w *world) {
		w.s.Begin(home, question, "in-1").Stream("The capital")
		w.pass(4 * time.Second)
		w.crash(copied)
		before := w.f.all()
		w.halt()
		w.f.said = before // as the killed process left it
		w.restart(copied)
		if got := w.f.texts(); len(got) != 0 {
			t.Errorf("left standing: %q", got)
		}
	})
}

// TestStreamPerhapsStarted: what perhaps stands and cannot be reached is not replaced; the answer is
// still said.
func TestStreamPerhapsStarted(t *testing.T) {
	bubble(t, nativeSet, func(f *platform) {
		native(f)
		f.onStream = func(string) (bool, error) { return false, unsure() }
	}, func(w *world) {
		turn := w.s.Begin(home, question, "t1")
		turn.Stream("The capital")
		w.pass(4 * time.Second)
		if !turn.Committed() {
			t.Error("text was perhaps shown and counts as replaceable")
		}
		w.finish(turn, answer("The capital is Paris."))
		w.pass(0)
		if d := cmp.Diff([]string{"The capital is Paris."}, w.f.texts()); d != "" {
			t.Error(d)
		}
	})
}

// TestStreamPace: additions keep their distance, and each holds only what is new.
func TestStreamPace(t *testing.T) {
	bubble(t, nativeSet, native, func(w *world) {
		turn := w.s.Begin(home, question, "t1")
		var whole strings.Builder
		for range 100 {
			whole.WriteString("word ")
			turn.Stream("word ")
			w.pass(100 * time.Millisecond)
		}
		w.finish(turn, answer(whole.String()+"end"))
		w.pass(2 * time.Second)
		last := time.Time{}
		for i, call := range w.f.calls {
			if call == "append" && w.f.times[i].Sub(last) < 800*time.Millisecond {
				t.Errorf("two additions within %v", w.f.times[i].Sub(last))
			}
			if call != "stop" {
				last = w.f.times[i]
			}
		}
		if got := w.f.texts(); len(got) != 1 || got[0] != whole.String()+"end" {
			t.Errorf("said %q", got)
		}
		if n := w.f.count("edit 1"); n != 0 {
			t.Errorf("%d edits of a stream that went well", n)
		}
	})
}

// TestStreamOnlyWhereThePlatformStreams: elsewhere a message is posted and edited.
func TestStreamOnlyWhereThePlatformStreams(t *testing.T) {
	set := nativeSet
	set.ReplyTo = ModeOff
	bubble(t, set, native, func(w *world) {
		turn := w.s.Begin(home, question, "t1")
		turn.Stream("The capital")
		w.pass(4 * time.Second)
		w.finish(turn, answer("The capital is Paris."))
		w.pass(0)
		if slices.Contains(w.f.calls, "start") || w.f.count("edit 1") != 1 {
			t.Errorf("calls %q", w.f.calls)
		}
	})
}

// TestStreamMessageDeleted: somebody removed the message while it grew.
func TestStreamMessageDeleted(t *testing.T) {
	bubble(t, nativeSet, native, func(w *world) {
		turn := w.s.Begin(home, question, "t1")
		turn.Stream("The capital")
		w.pass(4 * time.Second)
		w.f.said = nil
		turn.Stream(" is")
		w.pass(4 * time.Second)
		w.finish(turn, answer("The capital is Paris."))
		w.pass(0)
		diff(t, w.f.all(), []said{{Text: "The capital is Paris.", ReplyTo: "555", Class: chat.Assistant}})
	})
}

// TestGrowable: in what models write, an addition never changes what was appended before, so that a
// stream is not given up without need, and at no moment somebody is called.
func TestGrowable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{
			"Paris", "**is", "big**", "_and_", "`code", "x`", "\n\n", "- ", "1. ", "> ", "# ", "@channel", "@Everyone", "<!here>", "<@U123>", "a<b",
			"[link](https://example.org)", "|a|b|\n|-|-|\n|1|2|", "you@example.org", "😀", "2*3*4", "a\r\nb\x00", "<!subteam^S1|x y>",
		}), 1, 15).Draw(t, "words")
		text := strings.Join(words, " ")
		shown := ""
		for i := range text {
			seen, _ := unfinished(text[:i])
			now := growable(seen)
			if !strings.HasPrefix(now, shown) {
				t.Fatalf("%q was appended, now it is %q", shown, now)
			}
			shown = now
			for _, call := range []string{"@channel", "@everyone", "<!", "<@", "\r", "\x00"} {
				if strings.Contains(strings.ToLower(shown), call) {
					t.Fatalf("somebody is called by %q", shown)
				}
			}
		}
	})
}

// TestGrownAnswersNeedNoEdit: what models usually write ends its stream without another call.
func TestGrownAnswersNeedNoEdit(t *testing.T) {
	a := &account{traits: channels.Traits{Markup: channels.SlackMarkdown}}
	for _, text := range []string{
		"Paris.", "Hello **world**, *dear* ~~all~~ `friends`.", "# Head\n\n- a\n- b\n  - c\n\n1. x\n2. y\n\n> quoted",
		"See:\n\n```go\nfunc a() {}\n```\n\nand [this](https://example.org).", "Dear @channel, <!here> and <@U1>.",
	} {
		if whole := a.grown(text); !strings.HasPrefix(whole, growable(text[:len(text)-1])) {
			t.Errorf("%q grows into %q", growable(text), whole)
		}
	}
}

// TestStreamSeam: a stream never goes on with another model's text, also when that begins in the same
// way; text that was taken back before anything was to be seen changes nothing.
func TestStreamSeam(t *testing.T) {
	bubble(t, nativeSet, native, func(w *world) {
		turn := w.s.Begin(home, question, "t1")
		turn.Stream("The")
		turn.Restart()
		turn.Stream("The capital")
		w.pass(4 * time.Second)
		turn.Stream(" is")
		w.pass(4 * time.Second)
		if w.f.count("append") != 1 || w.f.count("stop") != 0 {
			t.Errorf("calls %q", w.f.calls)
		}
		turn.Restart()
		turn.Stream("The capital is Paris")
		w.pass(4 * time.Second)
		if w.f.count("append") != 1 || w.f.count("stop") != 1 || w.f.count("edit 1") != 1 {
			t.Errorf("calls %q", w.f.calls)
		}
		turn.Cancel()
	})
}

// TestStreamTooLongAtOnce: a first text that is more than a message holds is shown as far as it fits.
func TestStreamTooLongAtOnce(t *testing.T) {
	bubble(t, nativeSet, func(f *platform) { native(f); f.traits.TextLimit = 30 }, func(w *world) {
		turn := w.s.Begin(home, question, "t1")
		turn.Stream("one two three four.\n\nfive six seven eight.")
		w.pass(4 * time.Second)
		if got := w.f.texts(); len(got) != 1 || !strings.HasSuffix(got[0], " …") || w.f.count("start") != 0 {
			t.Errorf("shown %q", got)
		}
		turn.Cancel()
	})
}

// TestStreamStopInsists: a stream that cannot be stopped at once is stopped later, and its message is
// edited only then.
func TestStreamStopInsists(t *testing.T) {
	bubble(t, nativeSet, func(f *platform) {
		native(f)
		n := 0
		f.onStream = func(call string) (bool, error) {
			if call != "stop" {
				return true, nil
			}
			if n++; n < 3 {
				return false, retryAfter(5 * time.Second)
			}
			return true, nil
		}
	}, func(w *world) {
		turn := w.s.Begin(home, question, "t1")
		turn.Stream("The capital")
		w.pass(4 * time.Second)
		w.finish(turn, answer("Paris."))
		w.pass(time.Minute)
		diff(t, w.f.all(), []said{{Text: "Paris.", ReplyTo: "555", Class: chat.Assistant}})
		if n := w.f.count("stop"); n != 3 {
			t.Errorf("%d stops", n)
		}
	})
}
