package commands_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/commands"
	"understudy/internal/clock"
	"understudy/session"
)

// TestNewKeepsWhatAPersonChose: automatic overrides, pins and notices end with the conversation, a
// user's model does not.
func TestNewKeepsWhatAPersonChose(t *testing.T) {
	user := session.Override{Model: mustRef("gamma/g1"), Source: session.SourceUser}
	for _, x := range []struct {
		name   string
		before func(*session.Session)
		reply  string
		want   session.Override
	}{
		{"nothing chosen", func(*session.Session) {}, "🆕 New session. Model: alpha/a1.", session.Override{}},
		{"automatic", fallenBack, "🆕 New session. Model: alpha/a1.", session.Override{}},
		{
			"the user's", func(s *session.Session) { s.Select(mustRef("gamma/g1"), "", true) },
			"🆕 New session. Model: gamma/g1. You chose it earlier; /model default clears it.", user,
		},
		{
			"the user's with a profile", func(s *session.Session) { s.Select(mustRef("gamma/g1"), "gamma:p2", false) },
			"🆕 New session. Model: gamma/g1. You chose it earlier; /model default clears it. The profile is no longer locked.", user,
		},
		{
			"a profile of the default", func(s *session.Session) { s.SelectDefault("alpha:p1", false) },
			"🆕 New session. Model: alpha/a1. The profile is no longer locked.",
			session.Override{},
		},
	} {
		for _, command := range []string{"/new", "/reset"} {
			t.Run(command+" "+x.name, func(t *testing.T) {
				w, c := newWorld(t), direct()
				w.set(c, func(s *session.Session) { s.Think, s.UsageMode, s.TokensContext = "high", "full", 99 })
				before := w.set(c, x.before)
				w.clock.Advance(noon.Add(time.Minute))
				w.says(c, command, x.reply)
				want := session.Session{
					Key: c.Key, ID: "s2", AgentID: "main", Address: c.To, StartedAt: noon.Add(time.Minute), UpdatedAt: noon.Add(time.Minute),
					Override: x.want, Think: "high", UsageMode: "full",
				}
				got := w.row(c)
				if diff := cmp.Diff(want, got, cmp.Transformer("ms", time.Time.UnixMilli)); diff != "" {
					t.Errorf("row (-want +got):\n%s", diff)
				}
				if got.ID == before.ID {
					t.Error("the transcript goes on")
				}
				w.says(c, "/model default", "🧠 Using the configured default: alpha/a1.")
				w.says(c, command, "🆕 New session. Model: alpha/a1.")
			})
		}
	}
}

func TestNewWithAnArgument(t *testing.T) {
	for _, x := range []struct{ args, reply, follow, model string }{
		{"gee", "🆕 New session on gamma/g1.", "", "gamma/g1"},
		{"gamma/g1", "🆕 New session on gamma/g1.", "", "gamma/g1"},
		{"gee@p2", "🆕 New session on gamma/g1 using profile gamma:p2.", "", "gamma/g1"},
		{"default", "🆕 New session on alpha/a1.", "", ""},
		{"hello", "🆕 New session. Model: beta/b1. You chose it earlier; /model default clears it.", "hello", "beta/b1"},
		{"2", "🆕 New session. Model: beta/b1. You chose it earlier; /model default clears it.", "2", "beta/b1"},
		{"and/or", "🆕 New session. Model: beta/b1. You chose it earlier; /model default clears it.", "and/or", "beta/b1"},
		{"write@me", "🆕 New session. Model: beta/b1. You chose it earlier; /model default clears it.", "write@me", "beta/b1"},
		{"gee whiz", "🆕 New session. Model: beta/b1. You chose it earlier; /model default clears it.", "gee whiz", "beta/b1"},
		{"one\ntwo", "🆕 New session. Model: beta/b1. You chose it earlier; /model default clears it.", "one\ntwo", "beta/b1"},
	} {
		t.Run(x.args, func(t *testing.T) {
			w, c := newWorld(t), direct()
			w.set(c, func(s *session.Session) { s.Select(mustRef("beta/b1"), "", false) })
			reply := w.run(c, "/new "+x.args)
			if reply.Text != x.reply || reply.Follow != x.follow {
				t.Errorf("%q, then %q", reply.Text, reply.Follow)
			}
			if s := w.row(c); s.ID != "s2" || s.Override.Model.String() != x.model {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestNewRefusesWithoutEndingTheConversation(t *testing.T) {
	for args, reply := range map[string]string{
		"delta/d1":     "Model override \"delta/d1\" is not allowed by agents.defaults.modelPolicy.allow.\n/models lists what is.",
		"gee@nobody":   "I don't know the profile `gamma:nobody`.",
		"gee@alpha:p1": "The profile belongs to another provider.",
	} {
		t.Run(args, func(t *testing.T) {
			w, c := newWorld(t), direct()
			before := w.set(c, fallenBack)
			w.clock.Advance(noon.Add(time.Minute))
			w.says(c, "/new "+args, reply)
			if diff := cmp.Diff(before, w.row(c)); diff != "" {
				t.Errorf("a refusal changed the row:\n%s", diff)
			}
		})
	}
}

// TestThreadsInherit: a thread takes the choice of its conversation until it makes its own, which may
// be the configured default.
func TestThreadsInherit(t *testing.T) {
	w, room, thread := newWorld(t), group(), topic()
	selected := func(c commands.Call, want string) {
		t.Helper()
		if text := w.run(c, "/status").Text; !strings.Contains(text, "🧠 Model: "+want) {
			t.Errorf("want %s:\n%s", want, text)
		}
	}
	w.row(room)
	selected(thread, "alpha/a1 (default)")
	w.run(room, "/model gee@p2")
	selected(thread, "gamma/g1 (pinned by you)")
	if s := w.row(thread); s.Override != (session.Override{}) || s.Pin != (session.Pin{}) {
		t.Errorf("looking wrote the choice into the thread: %+v", s)
	}
	w.says(thread, "/new", "🆕 New session. Model: gamma/g1. It is that of the conversation this thread belongs to; /model default clears it here.")

	w.run(thread, "/model beta/b1")
	selected(thread, "beta/b1 (pinned by you)")
	selected(room, "gamma/g1 (pinned by you)")

	w.says(thread, "/model default", "🧠 Using the configured default: alpha/a1.")
	selected(thread, "alpha/a1 (default)")
	if text := w.run(thread, "/status").Text; !strings.Contains(text, "🎭 Fallbacks: beta/b1") || strings.Contains(text, "📌") {
		t.Errorf("the default of a thread is strict: %s", text)
	}
	w.says(thread, "/new", "🆕 New session. Model: alpha/a1.")
	selected(thread, "alpha/a1 (default)")
	selected(room, "gamma/g1 (pinned by you)")

	w.run(room, "/model default")
	w.set(room, fallenBack)
	other := topic()
	other.Key, other.To.Thread = room.Key+":topic:4", "4"
	selected(other, "alpha/a1 (default)") // what the system did to the room is no choice
}

func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		real := session.NewLanes(session.LaneConfig{}, clock.Clock{}, nil)
		w := newWorld(t, func(d *commands.Deps) { d.Lanes = real })
		mine, owner := group(), group()
		owner.Owner, owner.In.Sender.ID = true, "7"
		var mu sync.Mutex
		var ended []string
		end := func(name string) {
			mu.Lock()
			defer mu.Unlock()
			ended = append(ended, name)
		}
		submit := func(who, name string) {
			err := real.Submit(mine.Key, session.Task{
				Owner: who, Run: func(ctx context.Context) { <-ctx.Done(); end(name) },
				Dropped: func(error) { end(name + " dropped") },
			})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		check := func(c commands.Call, reply string, want ...string) {
			t.Helper()
			ended = nil
			w.says(c, "/stop", reply)
			synctest.Wait()
			slices.Sort(ended) // what is dropped and what runs end side by side
			if diff := cmp.Diff(want, ended); diff != "" {
				t.Errorf("ended (-want +got):\n%s", diff)
			}
		}
		check(mine, "Nothing is running.")
		submit("9", "theirs")
		check(mine, "Somebody else's answer is running; only they or the bot owner can stop it.")
		submit("8", "mine 1")
		submit("9", "theirs 2")
		check(mine, "⏹ Stopped.", "mine 1 dropped")
		submit("8", "mine 2")
		check(owner, "⏹ Stopped.", "mine 2 dropped", "theirs", "theirs 2 dropped")
		submit("8", "mine 3")
		submit("8", "mine 4")
		check(mine, "⏹ Stopped.", "mine 3", "mine 4 dropped")
		nobody := mine
		nobody.In.Sender.ID = ""
		submit("9", "theirs 3")
		check(nobody, "I cannot tell which messages are yours; the bot owner can stop the answer.")
		check(owner, "⏹ Stopped.", "theirs 3")
	})
}

func TestThink(t *testing.T) {
	w, c := newWorld(t), direct()
	for _, x := range []struct{ text, reply, level string }{
		{"/think", "Thinking level: the model's default. Levels: off, minimal, low, medium, high, xhigh.", ""},
		{"/think: high", "Thinking level set to high.", "high"},
		{"/t", "Thinking level: high. Levels: off, minimal, low, medium, high, xhigh, default.", "high"},
		{"/thinking XHIGH", "Thinking level set to xhigh.", "xhigh"},
		{"/think hardest", "I don't know the level \"hardest\". Levels: off, minimal, low, medium, high, xhigh, default.", "xhigh"},
		{"/think hard low", "I don't know the level \"hard low\". Levels: off, minimal, low, medium, high, xhigh, default.", "xhigh"},
		{"/think off", "Thinking disabled.", "off"},
		{"/new", "🆕 New session. Model: alpha/a1.", "off"},
		{"/think default", "Thinking level set to the model's default.", ""},
	} {
		w.says(c, x.text, x.reply)
		if got := w.row(c).Think; got != x.level {
			t.Errorf("%s: level %q", x.text, got)
		}
	}
	long := w.run(c, "/think "+strings.Repeat("é", 500)).Text
	if len([]rune(long)) > 250 {
		t.Errorf("a long word comes back in full: %s", long)
	}
}

func TestCompact(t *testing.T) {
	w, c := newWorld(t), direct()
	w.says(c, "/compact the\nbudget", "🧹 Compacted: 900 → 200 tokens (compactions: 1).")
	none := newWorld(t, func(d *commands.Deps) {
		d.Compact = func(_ context.Context, _ commands.Call, focus string) (int, int, error) {
			return len(focus), len(focus), nil
		}
	})
	none.says(c, "/compact", "Nothing to compact.")
	none.says(c, "/compact x", "Nothing to compact.")
	broken := newWorld(t, func(d *commands.Deps) {
		d.Compact = func(context.Context, commands.Call, string) (int, int, error) { return 0, 0, errors.New("overloaded") }
	})
	broken.says(c, "/compact", "🧹 The conversation could not be shortened; nothing was lost. Please try again later.")
}

func TestWhoami(t *testing.T) {
	w := newWorld(t)
	w.says(direct(), "/whoami", "channel: telegram\naccount: `bot`\nsender id: `7`\nchat id: `7`\nsession: `agent:main:telegram:direct:7`\nowner: yes")
	w.says(topic(), "/id", "channel: telegram\naccount: `bot`\nsender id: `8`\nchat id: `-100`\nthread id: `3`\nsession: `agent:main:telegram:group:-100:topic:3`\nowner: no")
}

func TestSim(t *testing.T) {
	w := newWorld(t, func(d *commands.Deps) {
		d.Sim = func(_ context.Context, _, args string) (string, error) {
			if args == "" {
				return "", errors.New("say what")
			}
			return "done: " + args, nil
		}
	})
	w.says(direct(), "/sim lead billing", "done: lead billing")
	w.says(direct(), "/sim", "say what")
	w.says(group(), "/sim lead billing", "Only the bot owner can use /sim.")
}

// TestFaultsOfOurs: what went wrong inside goes to the log, not to the chat.
func TestFaultsOfOurs(t *testing.T) {
	var log bytes.Buffer
	w := newWorld(t, func(d *commands.Deps) {
		d.Sessions = brokenSessions{d.Sessions}
		d.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	for _, text := range []string{"/status", "/model gee", "/model", "/models", "/new", "/new gee", "/reset", "/think high", "/why", "/failover", "/compact"} {
		name, _, _ := strings.Cut(text, " ")
		log.Reset()
		w.says(direct(), text, "⚠️ "+name+" did not work because of a fault on my side; the log says which.")
		if !strings.Contains(log.String(), "msg=command_failed command="+name[1:]) || !strings.Contains(log.String(), "disk full") {
			t.Errorf("%s: %s", text, log.String())
		}
	}
}

type brokenSessions struct{ commands.Sessions }

var errDisk = errors.New("disk full")

func (brokenSessions) Ensure(context.Context, session.Seed) (session.Session, bool, error) {
	return session.Session{}, false, errDisk
}

func (brokenSessions) Decisions(context.Context, string, int) ([]session.Decision, error) {
	return nil, errDisk
}

// TestPanickingCommandReplies: a fault in one command neither ends the bot nor leaves the sender
// without a reply.
func TestPanickingCommandReplies(t *testing.T) {
	w := newWorld(t, func(d *commands.Deps) {
		d.Sim = func(context.Context, string, string) (string, error) { panic("out of bounds") }
	})
	inv, ok := w.reg.Match("/sim lead")
	if !ok {
		t.Fatal("/sim is unknown")
	}
	if got := w.reg.Run(t.Context(), inv, commands.Call{Agent: "main", Owner: true}); !strings.Contains(got.Text, "/sim did not work") {
		t.Errorf("got %q", got.Text)
	}
}
