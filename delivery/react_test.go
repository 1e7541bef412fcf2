package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/channels"
	"understudy/chat"
)

// mention is a message of a room that names the bot.
func mention(id string) *chat.Inbound {
	return &chat.Inbound{ID: id, Address: chat.Address{Channel: "fake", Conversation: "c1", Kind: chat.Room}, Mentioned: true}
}

// reactions returns the reaction calls, in order.
func (f *platform) reactionCalls() (out []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.calls {
		var what, emoji string
		if n, _ := fmt.Sscan(c, &what, &emoji); n == 2 && (what == "react" || what == "unreact") {
			out = append(out, c)
		}
	}
	return out
}

func TestAckScope(t *testing.T) {
	direct := chat.Address{Channel: "fake", Conversation: "c1", Kind: chat.Direct}
	group := chat.Address{Channel: "fake", Conversation: "c1", Kind: chat.Group}
	messages := map[string]*chat.Inbound{
		"direct":           {ID: "1", Address: direct},
		"mention in group": {ID: "1", Address: group, Mentioned: true},
		"group":            {ID: "1", Address: group},
		"interaction":      {ID: "1", Address: direct, Via: "token", Mentioned: true},
		"none":             nil,
	}
	for scope, want := range map[Scope][]string{
		"":                 {"mention in group"},
		ScopeGroupMentions: {"mention in group"},
		ScopeDirect:        {"direct"},
		ScopeGroupAll:      {"group", "mention in group"},
		ScopeAll:           {"direct", "group", "mention in group"},
		ScopeOff:           nil,
		"everything":       nil,
	} {
		var got []string
		for name, m := range messages {
			if scope.holds(m) {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q: %s", scope, d)
		}
	}
}

func TestSettingsValidate(t *testing.T) {
	for _, s := range []Settings{
		{ReplyTo: "frist"}, {AckScope: "everything"}, {ReplyToByKind: map[chat.Kind]Mode{chat.Direct: "frist"}},
	} {
		if s.Validate() == nil {
			t.Errorf("%+v passed", s)
		}
	}
	if err := (Settings{ReplyToByKind: map[chat.Kind]Mode{chat.Direct: ModeOff}, AckScope: ScopeAll}).Validate(); err != nil {
		t.Error(err)
	}
}

// TestReactionsOfATurn: what a message shows at every end of its turn. The calls of earlier stages
// are left out when they were overtaken.
func TestReactionsOfATurn(t *testing.T) {
	all := Settings{StatusReactions: StatusReactions{"👀", "🤔", "✅", "❌"}, AckReaction: "👋"}
	ack := Settings{AckReaction: "👋"}
	for _, c := range []struct {
		name string
		set  Settings
		end  func(w *world, turn *Turn)
		want []string // in the end
	}{
		{"answer", all, func(w *world, turn *Turn) { w.finish(turn, answer("Paris.")) }, []string{"✅"}},
		{"error", all, func(w *world, turn *Turn) { w.finish(turn, chat.Outbound{Class: chat.Error, Markdown: "sorry"}) }, []string{"❌"}},
		{"silence", all, func(_ *world, turn *Turn) { turn.Cancel() }, nil},
		{"nothing but NO_REPLY", all, func(w *world, turn *Turn) { w.finish(turn, answer("[[reply_to_current]] no_reply")) }, nil},
		{"answer, ack only", ack, func(w *world, turn *Turn) { w.finish(turn, answer("Paris.")) }, nil},
		{"error, ack only", ack, func(w *world, turn *Turn) { w.finish(turn, chat.Outbound{Class: chat.Error, Markdown: "sorry"}) }, nil},
		{"a notice only", ack, func(_ *world, turn *Turn) { turn.Notify(fallback) }, []string{"👋"}},
		{"nobody to tell", all, func(w *world, turn *Turn) {
			w.f.onSend = func(channels.Piece) (bool, error) { return false, refusal(channels.Gone) }
			w.finish(turn, answer("Paris."))
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, c.set, nil, func(w *world) {
				m := mention("m1")
				turn := w.s.Begin(m.Address, m, "t1")
				w.pass(time.Second)
				turn.Working()
				turn.Stream("Par")
				w.pass(time.Second)
				c.end(w, turn)
				w.pass(time.Minute)
				if d := cmp.Diff(c.want, w.f.shows("m1")); d != "" && len(c.want)+len(w.f.shows("m1")) > 0 {
					t.Errorf("%s after %q", d, w.f.reactionCalls())
				}
				calls := len(w.f.reactionCalls())
				turn.Cancel()
				turn.Working()
				w.pass(time.Hour)
				if c.name != "a notice only" && len(w.f.reactionCalls()) != calls {
					t.Error("reactions after the turn")
				}
			})
		})
	}
}

// TestReactionsCoalesce: while a call is under way only the last wish is kept, and calls never overlap
// (the fake platform would panic).
func TestReactionsCoalesce(t *testing.T) {
	set := Settings{StatusReactions: StatusReactions{"👀", "🤔", "✅", "❌"}}
	bubble(t, set, nil, func(w *world) {
		w.f.onReact = func(string) error { slowly(3 * time.Second); return nil }
		m := mention("m1")
		turn := w.s.Begin(m.Address, m, "t1")
		w.pass(time.Second)
		turn.Working()
		w.finish(turn, answer("Paris."))
		w.pass(0)
		if got := w.f.texts(); len(got) != 1 {
			t.Error("the answer waits for a reaction")
		}
		w.pass(time.Minute)
		if d := cmp.Diff([]string{"react 👀", "unreact 👀", "react ✅"}, w.f.reactionCalls()); d != "" {
			t.Error(d)
		}
	})
}

// TestReactionFailures: what can be repeated is repeated, not for ever and not against the platform's
// wish; what is refused is not tried again. The turn is never harmed.
func TestReactionFailures(t *testing.T) {
	for _, c := range []struct {
		name  string
		errs  []error // of the calls, in order
		calls int
		shows []string
	}{
		{"works", nil, 2, nil},
		{"limited once", []error{retryAfter(7 * time.Second)}, 3, nil},
		{"away", repeat(retryAfter(0), 99), reactTries, nil},
		{"limited for long", []error{retryAfter(time.Hour)}, 1, nil},
		{"refused", []error{refusal(channels.Refused)}, 1, nil},
		{"removal limited", []error{nil, retryAfter(7 * time.Second)}, 3, nil},
		{"removal limited for long", []error{nil, retryAfter(time.Hour)}, 2, []string{"👋"}},
		{"removal refused", []error{nil, refusal(channels.Refused)}, 2, []string{"👋"}},
		{"perhaps done", []error{unsure(), unsure()}, 2, nil},
		{"not an error of the contract", []error{errors.New("odd")}, 2, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, Settings{AckReaction: "👋"}, nil, func(w *world) {
				n := 0
				w.f.onReact = func(string) error {
					if n++; n <= len(c.errs) {
						return c.errs[n-1]
					}
					return nil
				}
				m := mention("m1")
				turn := w.s.Begin(m.Address, m, "t1")
				w.pass(time.Minute)
				w.finish(turn, answer("Paris."))
				w.pass(2 * time.Hour)
				if got := len(w.f.reactionCalls()); got != c.calls || len(w.f.texts()) != 1 {
					t.Errorf("%d calls, want %d; said %q", got, c.calls, w.f.texts())
				}
				if d := cmp.Diff(c.shows, w.f.shows("m1")); d != "" && len(c.shows)+len(w.f.shows("m1")) > 0 {
					t.Error(d)
				}
			})
		})
	}
}

// TestReactionBudget: many messages at once get their reactions from a few goroutines, and answers do
// not wait for them.
func TestReactionBudget(t *testing.T) {
	bubble(t, Settings{AckReaction: "👋"}, nil, func(w *world) {
		w.f.onReact = func(string) error { slowly(5 * time.Second); return nil }
		for i := range 50 {
			m := mention(fmt.Sprint("m", i))
			m.Address.Conversation = fmt.Sprint("c", i)
			w.finish(w.s.Begin(m.Address, m, fmt.Sprint("t", i)), answer("Paris."))
		}
		w.pass(0)
		if said, calls := len(w.f.texts()), len(w.f.reactionCalls()); said != 50 || calls > reactWorkers {
			t.Errorf("%d answers, and %d reactions at a time", said, calls)
		}
		w.pass(10 * time.Minute)
		for i := range 50 {
			if got := w.f.shows(fmt.Sprint("m", i)); len(got) != 0 {
				t.Errorf("message %d still shows %q", i, got)
			}
		}
		if w.s.reacting != 0 {
			t.Error("goroutines without work")
		}
	})
}

// TestTypingReaction: it stands for the typing sign where there is none, or none in this place.
func TestTypingReaction(t *testing.T) {
	set := Settings{Typing: TypingInstant, TypingReaction: "⏳"}
	refused := func(f *platform) { f.onTyping = func(context.Context) error { return refusal(channels.Refused) } }
	for _, c := range []struct {
		name    string
		set     Settings
		prepare func(*platform)
		want    []string
	}{
		{"typing works", set, nil, nil},
		{"typing is refused", set, refused, []string{"react ⏳", "unreact ⏳"}},
		{"typing is refused, no other signs", Settings{Typing: TypingInstant, TypingReaction: "⏳", AckReaction: "👋", AckScope: ScopeOff}, refused, []string{"react ⏳", "unreact ⏳"}},
		{"no sign is wanted", Settings{TypingReaction: "⏳"}, refused, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, c.set, c.prepare, func(w *world) {
				m := mention("m1")
				m.Mentioned = c.set.AckScope == "" // what ackReactionScope says is about other reactions
				turn := w.s.Begin(m.Address, m, "t1")
				turn.Notify(fallback)
				w.pass(20 * time.Second)
				if got := len(w.f.shows("m1")); got != min(1, len(c.want)) {
					t.Errorf("%d reactions while it works", got)
				}
				w.finish(turn, answer("Paris."))
				w.pass(time.Minute)
				if d := cmp.Diff(c.want, w.f.reactionCalls()); d != "" && len(c.want)+len(w.f.reactionCalls()) > 0 {
					t.Error(d)
				}
			})
		})
	}
}
