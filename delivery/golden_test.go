package delivery

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/channels"
	"understudy/chat"
)

// TestGolden plays the conversations of testdata/golden. Each file tells in its first lines what it
// shows, then what the turn does (script) and what the platform sees of it (happens), with the
// times and the messages' numbers. "⏎" stands for a line break.
//
// In the script, `account` says what channel and configuration there are, `asked` what the message
// is that the turn answers (its id is q), `wait` lets time pass; the other lines are the methods of
// the Turn.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no conversations", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, script, _ := strings.Cut(string(text), "\n-- script --\n")
			script, happens, _ := strings.Cut(script, "\n-- happens --\n")
			got := (&theatre{lines: strings.Split(script, "\n")}).play(t)
			if d := cmp.Diff(strings.Split(strings.TrimRight(happens, "\n"), "\n"), strings.Split(got, "\n")); d != "" {
				t.Errorf("-want +got:\n%s\nall that happened:\n%s", d, got)
			}
		})
	}
}

// theatre is where a script is played.
type theatre struct {
	lines []string
	set   Settings
	in    chat.Inbound
	speak bool
	f     func(*platform)
	w     *world
	turn  *Turn
}

// play returns what happened.
func (g *theatre) play(t *testing.T) string {
	g.in = chat.Inbound{ID: "q", Sender: chat.Sender{ID: "ann"}, Address: chat.Address{Channel: "fake", Conversation: "c", Kind: chat.Room}}
	g.f = func(*platform) {}
	for len(g.lines) > 0 {
		verb, rest, _ := strings.Cut(g.lines[0], " ")
		if verb != "account" && verb != "asked" {
			break
		}
		for _, word := range strings.Fields(rest) {
			g.word(t, word)
		}
		g.lines = g.lines[1:]
	}
	out := ""
	bubbleWith(t, g.set, g.deps, g.f, func(w *world) {
		g.w = w
		g.turn = w.s.Begin(g.in.Address, &g.in, "t")
		w.pass(0)
		for _, line := range g.lines {
			verb, rest, _ := strings.Cut(line, " ")
			g.act(verb, strings.ReplaceAll(rest, "⏎", "\n"))
		}
		w.pass(time.Hour)
		out = strings.ReplaceAll(strings.Join(w.f.tale, "\n"), "\n\n", "⏎⏎") + g.summary()
	})
	return out
}

// deps gives the Service a voice.
func (g *theatre) deps(d *Deps) {
	if !g.speak {
		return
	}
	d.Speak = func(_ context.Context, o chat.Outbound) (*chat.Attachment, error) {
		return &chat.Attachment{Name: fmt.Sprintf("[sound of %s: %s]", o.Class, o.Markdown), Voice: true}, nil
	}
}

// word is one setting.
func (g *theatre) word(t *testing.T, word string) {
	key, value, _ := strings.Cut(word, "=")
	with := func(change func(*platform)) {
		f := g.f
		g.f = func(p *platform) { f(p); change(p) }
	}
	switch key {
	case "slack":
		with(func(p *platform) {
			p.traits.References, p.traits.OpensThreads, p.traits.Markup = false, true, channels.SlackMarkdown
			p.traits.StreamInterval, p.traits.SilentNotices = 800*time.Millisecond, false
		})
	case "discord", "telegram": // as the fake is
	case "limit":
		with(func(p *platform) { _, _ = fmt.Sscan(value, &p.traits.TextLimit) })
	case "refuses":
		with(func(p *platform) {
			p.onSend = func(x channels.Piece) (bool, error) {
				if x.Class.String() == value {
					return false, &channels.SendError{Verdict: channels.Gone, Code: "forbidden"}
				}
				return true, nil
			}
		})
	case "loses": // the calls of streams that fail, and do nothing
		with(func(p *platform) {
			p.onStream = func(call string) (bool, error) {
				if call == value {
					return false, retryAfter(0)
				}
				return true, nil
			}
		})
	case "reply":
		g.set.ReplyTo = Mode(value)
	case "previews":
		g.set.Previews = true
	case "progress":
		g.set.Previews, g.set.Progress = true, true
	case "native":
		g.set.NativeStream = true
	case "typing":
		g.set.Typing = TypingInstant
	case "spoken":
		g.speak = true
	case "ack":
		g.set.AckReaction = value
	case "status":
		e := strings.Split(value, ",")
		g.set.StatusReactions = StatusReactions{Queued: e[0], Working: e[1], Done: e[2], Failed: e[3]}
	case "mention":
		g.in.Mentioned = true
	case "direct":
		g.in.Address.Kind = chat.Direct
	case "thread":
		g.in.Address.Thread = value
	case "via":
		g.in.Via = value
	default:
		t.Fatalf("unknown word %q", word)
	}
}

// act is one line of the script.
func (g *theatre) act(verb, text string) {
	o := chat.Outbound{Markdown: text}
	switch verb {
	case "working":
		g.turn.Working()
	case "stream":
		g.turn.Stream(text)
	case "doing":
		g.turn.Doing(text)
	case "restart":
		g.turn.Restart()
	case "notice":
		g.turn.Notify(o)
	case "answer":
		o.Class = chat.Assistant
		g.w.finish(g.turn, o)
	case "error":
		o.Class = chat.Error
		g.w.finish(g.turn, o)
	case "command", "cron": // beside the turn
		_ = o.Class.UnmarshalText([]byte(verb))
		o.To, o.ReplyTo = g.in.Address, g.in.ID
		if err := g.w.s.Send(g.w.t.Context(), o); err != nil {
			g.w.t.Error(err)
		}
	case "cancel":
		g.turn.Cancel()
	case "wait":
		d, err := time.ParseDuration(text)
		if err != nil {
			g.w.t.Fatal(err)
		}
		g.w.pass(d)
	default:
		g.w.t.Fatalf("unknown verb %q", verb)
	}
	g.w.pass(0)
}

// summary says who has the slot, and what was counted.
func (g *theatre) summary() string {
	out := "\nslot open"
	if g.turn.slot.Consumed() {
		out = "\nslot of #" + g.turn.slot.Owner()
	}
	if n := g.w.metrics.noticeFailed; n > 0 {
		out += fmt.Sprintf("\nnotice_failed_total %d", n)
	}
	return out
}
