package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/channels"
	"understudy/chat"
)

func at(conversation, thread string, k chat.Kind) chat.Address {
	return chat.Address{Channel: "fake", Conversation: conversation, Thread: thread, Kind: k}
}

// say sends texts to a place.
func (w *world) say(to chat.Address, texts ...string) {
	w.t.Helper()
	for _, text := range texts {
		if err := w.s.Send(w.t.Context(), chat.Outbound{To: to, Class: chat.Command, Markdown: text}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestThreadsShareThePace: platforms limit a conversation, not its threads.
func TestThreadsShareThePace(t *testing.T) {
	bubble(t, Settings{}, func(f *platform) { f.traits.Pace = channels.Pace{Every: time.Second, Burst: 2} }, func(w *world) {
		for i := range 4 {
			w.say(at("c1", fmt.Sprint("th", i), chat.Room), "x", "y")
		}
		w.say(at("c2", "", chat.Room), "elsewhere")
		w.pass(0)
		if n := len(w.f.texts()); n != 3 {
			t.Errorf("%d messages at once, want two here and one elsewhere", n)
		}
		w.pass(6 * time.Second)
		if n := len(w.f.texts()); n != 9 {
			t.Errorf("%d messages after six seconds, want all nine", n)
		}
	})
}

// TestThreadsApart: where each thread is a place of its own, one that is busy does not slow the others.
func TestThreadsApart(t *testing.T) {
	traits := func(f *platform) {
		f.traits.Pace, f.traits.ThreadsApart = channels.Pace{Every: time.Second, Burst: 2}, true
	}
	bubble(t, Settings{}, traits, func(w *world) {
		for i := range 4 {
			w.say(at("c1", fmt.Sprint("th", i), chat.Room), "x", "y")
		}
		w.say(at("c1", "th0", chat.Room), "z")
		w.pass(0)
		if n := len(w.f.texts()); n != 8 {
			t.Errorf("%d messages at once, want two in each thread", n)
		}
		w.pass(time.Second)
		if n := len(w.f.texts()); n != 9 {
			t.Errorf("%d messages after a second, want all nine", n)
		}
	})
}

// TestGroupPace: a conversation of several people has its own pace, for messages and for edits.
func TestGroupPace(t *testing.T) {
	traits := func(f *platform) {
		f.traits.Pace = channels.Pace{Every: time.Second, Burst: 1}
		f.traits.GroupPace = channels.Pace{Every: 3 * time.Second, Burst: 1}
		f.traits.GroupEditInterval = 3500 * time.Millisecond
	}
	for k, want := range map[chat.Kind]struct{ messages, edits int }{
		chat.Direct: {11, 14}, chat.Group: {4, 4}, chat.Room: {4, 4},
	} {
		bubble(t, Settings{Previews: true}, traits, func(w *world) {
			w.say(at("c1", "", k), strings.Split(strings.Repeat("x ", 30), " ")[:30]...)
			w.pass(10 * time.Second)
			if n := len(w.f.texts()); n != want.messages {
				t.Errorf("%s: %d messages in 10 s, want %d", k, n, want.messages)
			}
			w.pass(time.Hour)
			turn := w.s.Begin(at("c2", "", k), question, "t1")
			for range 200 {
				turn.Stream("word ")
				w.pass(100 * time.Millisecond)
			}
			edits := 0
			for _, c := range w.f.calls {
				if strings.HasPrefix(c, "edit") {
					edits++
				}
			}
			if edits != want.edits {
				t.Errorf("%s: %d edits in 20 s, want %d", k, edits, want.edits)
			}
			turn.Cancel()
		})
	}
}

// lockedText is a log that is read while it is written.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestHugePause: a platform that wants a pause of five hours in one conversation holds up no other;
// there nothing is sent meanwhile, the operator can read of it, and what outlasts the time it is held
// is given up.
func TestHugePause(t *testing.T) {
	const pause = 18053 * time.Second
	var log lockedText
	var limited []string
	deps := func(d *Deps) {
		d.Log = slog.New(slog.NewTextHandler(&log, nil))
		d.RateLimited = func(channel, method string) { limited = append(limited, channel+" "+method) }
	}
	var since time.Time
	bubbleWith(t, Settings{}, deps, func(f *platform) {
		f.onSend = func(p channels.Piece) (bool, error) {
			if p.To.Conversation != "a" {
				return true, nil
			}
			if since.IsZero() {
				since = time.Now()
			}
			if left := pause - time.Since(since); left > 0 {
				return false, retryAfter(left)
			}
			return true, nil
		}
	}, func(w *world) {
		w.say(at("a", "", chat.Direct), "lost")
		w.pass(0)
		w.say(at("a", "th", chat.Direct), "another thread")
		w.say(at("b", "", chat.Direct), "b")
		w.pass(0)
		if d := cmp.Diff([]string{"b"}, w.f.texts()); d != "" {
			t.Error(d)
		}
		if !strings.Contains(log.String(), "delivery parked") || !strings.Contains(log.String(), "18053") {
			t.Errorf("the log says %q", log.String())
		}
		if d := w.s.Depth(); d.Busy != 2 || d.Held != 1 {
			t.Errorf("depth %+v", d)
		}
		w.pass(holdFor + time.Second)
		if d := cmp.Diff([]string{"failed", "failed", "sent"}, w.state()); d != "" {
			t.Error(d)
		}
		w.pass(pause)
		w.say(at("a", "", chat.Direct), "again")
		w.pass(0)
		if d := cmp.Diff([]string{"b", "again"}, w.f.texts()); d != "" {
			t.Error(d)
		}
		if n := w.f.count("send"); n != 3 || len(limited) != 1 || limited[0] != "fake send" {
			t.Errorf("%d calls, counted %q", n, limited)
		}
		if d := w.s.Depth(); d != (Depth{}) {
			t.Errorf("depth %+v", d)
		}
	})
}

// TestPauseIsKept: during a pause no call of its kind is made in the conversation, by whatever turn;
// the final text is there at the end, and other conversations go on.
func TestPauseIsKept(t *testing.T) {
	bubble(t, Settings{Previews: true}, func(f *platform) {
		f.traits.EditInterval = time.Second
		var mu sync.Mutex // the two turns are edited side by side
		edits := 0
		var began, free time.Time
		f.onEdit = func(id string, _ channels.Piece) error {
			mu.Lock()
			defer mu.Unlock()
			// An edit of the same instant was on its way when the other was refused.
			if now := time.Now(); now.After(began) && now.Before(free) {
				t.Errorf("an edit of %s during the pause", id)
			}
			if edits++; edits%10 == 0 {
				began, free = time.Now(), time.Now().Add(10*time.Second)
				return retryAfter(10 * time.Second)
			}
			return nil
		}
	}, func(w *world) {
		one := w.s.Begin(at("c1", "a", chat.Room), question, "t1")
		two := w.s.Begin(at("c1", "b", chat.Room), question, "t2")
		for range 90 {
			one.Stream("one ")
			two.Stream("two ")
			w.pass(time.Second)
		}
		w.finish(one, answer("the end"))
		w.finish(two, answer("the other end"))
		w.pass(time.Minute)
		if d := cmp.Diff([]string{"the end", "the other end"}, sorted(w.f.texts())); d != "" {
			t.Error(d)
		}
	})
}

// TestFinalEditPaused: while edits rest for long, the answer is said as a new message, once.
func TestFinalEditPaused(t *testing.T) {
	bubble(t, Settings{Previews: true, ReplyTo: ModeFirst}, func(f *platform) {
		f.onEdit = func(string, channels.Piece) error { return retryAfter(18053 * time.Second) }
	}, func(w *world) {
		turn := w.s.Begin(home, question, "t1")
		turn.Stream("Par")
		w.pass(4 * time.Second)
		w.finish(turn, answer("Paris."))
		w.pass(2 * time.Second)
		diff(t, w.f.all(), []said{{Text: "Paris.", ReplyTo: "555", Class: chat.Assistant}})
	})
}

// TestBroken: of a place where nobody can be reached its owner hears once, until something arrives
// there again; a notice counts too, and asking again from inside is no endless loop.
func TestBroken(t *testing.T) {
	var told []string
	var s *Service
	deps := func(d *Deps) {
		d.Broken = func(ctx context.Context, to chat.Address, code string) {
			told = append(told, to.Conversation+" "+code)
			if err := s.Send(ctx, chat.Outbound{To: to, Class: chat.Notice, Markdown: "broken"}); err != nil {
				t.Error(err)
			}
		}
	}
	gone := true
	bubbleWith(t, Settings{Previews: true}, deps, func(f *platform) {
		f.onSend = func(channels.Piece) (bool, error) {
			if gone {
				return false, &channels.SendError{Verdict: channels.Gone, Code: "forbidden"}
			}
			return true, nil
		}
	}, func(w *world) {
		s = w.s
		w.say(at("a", "", chat.Direct), "1", "2")
		w.say(at("a", "th", chat.Direct), "3")
		turn := w.s.Begin(at("b", "", chat.Direct), question, "t1")
		turn.Stream("Par")
		w.pass(5 * time.Second)
		w.finish(turn, answer("Paris."))
		w.pass(time.Minute)
		if d := cmp.Diff([]string{"a forbidden", "b forbidden"}, sorted(told)); d != "" {
			t.Error(d)
		}
		if n := w.f.count("send"); n != 7 { // three, a preview, an answer, and a notice for each conversation
			t.Errorf("%d sends: something was repeated", n)
		}
		gone = false
		w.say(at("a", "", chat.Direct), "4")
		w.pass(0)
		gone = true
		w.say(at("a", "", chat.Direct), "5")
		w.pass(0)
		if n := len(told); n != 3 {
			t.Errorf("told %d times", n)
		}
	})
}

// TestClosedThread: that one thread is closed is told once, however much is said elsewhere in the
// conversation, and again when it had been open in between.
func TestClosedThread(t *testing.T) {
	told, closed := 0, true
	bubbleWith(t, Settings{}, func(d *Deps) {
		d.Broken = func(context.Context, chat.Address, string) { told++ }
	}, func(f *platform) {
		f.onSend = func(p channels.Piece) (bool, error) {
			if closed && p.To.Thread == "th" {
				return false, &channels.SendError{Verdict: channels.Gone, Code: "topic_gone"}
			}
			return true, nil
		}
	}, func(w *world) {
		n := 0
		say := func(thread string, want int) {
			t.Helper()
			n++
			w.say(at("a", thread, chat.Group), fmt.Sprint(n))
			w.pass(time.Minute)
			if told != want {
				t.Fatalf("message %d: told %d times, want %d", n, told, want)
			}
		}
		for range 3 {
			say("", min(n, 1))
			say("th", 1)
			say("other", 1)
		}
		closed = false
		say("th", 1)
		closed = true
		say("th", 2)
	})
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

// TestBrokenIsBounded: however many places are broken, few are remembered.
func TestBrokenIsBounded(t *testing.T) {
	bubble(t, Settings{}, nil, func(w *world) {
		for i := range 3 * mostBroken {
			_ = w.s.reached(w.t.Context(), at(fmt.Sprint(i), "", chat.Direct), callSend, refusal(channels.Gone))
		}
		if n := len(w.s.broken); n > mostBroken {
			t.Errorf("%d remembered", n)
		}
	})
}

// TestConversationsAreForgotten: what is known of the pace of idle conversations does not pile up,
// and a pause is not forgotten.
func TestConversationsAreForgotten(t *testing.T) {
	bubble(t, Settings{}, func(f *platform) { f.traits.Pace = channels.Pace{Every: time.Second, Burst: 1} }, func(w *world) {
		_ = w.s.heard(at("held", "", chat.Direct), callSend, retryAfter(24*time.Hour))
		for i := range leastSweep - 1 {
			w.say(at(fmt.Sprint(i), "", chat.Direct), "x")
		}
		w.pass(2 * lineIdle)
		w.say(at("the last", "", chat.Direct), "x")
		w.say(at("the very last", "", chat.Direct), "x")
		w.pass(0)
		if n := len(w.s.conversations); n > 3 {
			t.Errorf("%d conversations remembered", n)
		}
		if w.s.held(at("held", "", chat.Direct), callSend) == 0 {
			t.Error("a pause was forgotten")
		}
	})
}

// TestFirstVisible: it is counted once per turn, when people see something of the answer.
func TestFirstVisible(t *testing.T) {
	for _, c := range []struct {
		name string
		set  Settings
		end  chat.Class
		want []time.Duration
	}{
		{"preview", Settings{Previews: true}, chat.Assistant, []time.Duration{3 * time.Second}},
		{"no preview", Settings{}, chat.Assistant, []time.Duration{10 * time.Second}},
		{"stream", nativeSet, chat.Assistant, []time.Duration{3 * time.Second}},
		{"error", Settings{}, chat.Error, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []time.Duration
			deps := func(d *Deps) { d.FirstVisible = func(_ string, after time.Duration) { got = append(got, after) } }
			bubbleWith(t, c.set, deps, nil, func(w *world) {
				turn := w.s.Begin(home, question, "t1")
				turn.Notify(fallback)
				turn.Stream("Par")
				w.pass(10 * time.Second)
				w.finish(turn, chat.Outbound{Class: c.end, Markdown: "Paris."})
				w.pass(time.Minute)
				if d := cmp.Diff(c.want, got); d != "" {
					t.Error(d)
				}
			})
		})
	}
}
