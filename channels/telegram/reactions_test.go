package telegram

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"understudy/channels"

	emulator "understudy/internal/emulate/telegram"
)

func TestReactions(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		id := a.srv.UserSays(ann, ann, "hello")
		a.got.Next(t)
		shows := func(want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, a.srv.Reactions(ann, id)); diff != "" {
				t.Error(diff)
			}
		}
		react := func(emoji string) {
			t.Helper()
			if err := a.React(t.Context(), direct, fmt.Sprint(id), emoji); err != nil {
				t.Error(err)
			}
		}
		unreact := func(emoji string) {
			t.Helper()
			if err := a.Unreact(t.Context(), direct, fmt.Sprint(id), emoji); err != nil {
				t.Error(err)
			}
		}
		react("✍️") // with the selector that keyboards add
		shows("✍")
		react("⏳") // not allowed
		shows("👀")
		react("👌")
		unreact("⏳") // has been replaced already
		shows("👌")
		unreact("👌")
		shows()
		unreact("👌")
		if n := len(a.srv.Calls("setMessageReaction")); n != 4 {
			t.Errorf("%d calls", n)
		}
		if err := a.Unreact(t.Context(), direct, "77777", "👌"); err != nil {
			t.Errorf("a message that is gone: %v", err)
		}
		checkVerdict(t, a.React(t.Context(), direct, "abc", "👌"), channels.Missing, "message_gone")
		a.srv.Inject(emulator.Fault{Method: "setMessageReaction", Status: 400, Description: "Bad Request: REACTION_INVALID"})
		checkVerdict(t, a.React(t.Context(), direct, fmt.Sprint(id), "👌"), channels.Refused, "reaction")
	})
}

// After a restart nobody knows what is shown: it is taken away.
func TestUnreactOfAnEarlierProcess(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		id := a.srv.UserSays(ann, ann, "hello")
		a.got.Next(t)
		if err := a.React(t.Context(), direct, fmt.Sprint(id), "👀"); err != nil {
			t.Fatal(err)
		}
		later := newBot(t, a.srv, nil)
		defer later.Close()
		if err := later.Unreact(t.Context(), direct, fmt.Sprint(id), "👀"); err != nil {
			t.Fatal(err)
		}
		if got := a.srv.Reactions(ann, id); len(got) != 0 {
			t.Errorf("reactions %q", got)
		}
	})
}

func TestAllowedReactions(t *testing.T) {
	for emoji, want := range map[string]bool{"👀": true, "❤️": true, "❤": true, "👨‍💻": true, "🤷‍♀️": true, "⏳": false, "": false, " ": false, "👀👀": false, "eyes": false} {
		if got := allowedReaction(emoji); got != want {
			t.Errorf("%q: %v", emoji, got)
		}
	}
	if n := len(strings.Fields(reactionEmoji)); n != 73 {
		t.Errorf("%d emoji", n)
	}
}

func TestShownReactionsAreBounded(t *testing.T) {
	var r shownReactions
	for i := range 2 * mostReactions {
		r.put(fmt.Sprint(i), "👀")
		r.put(fmt.Sprint(i), "")
	}
	if len(r.known) != mostReactions || len(r.order) != mostReactions {
		t.Errorf("%d and %d are kept", len(r.known), len(r.order))
	}
}

// Reactions of people and changes of membership are no messages.
func TestQuietUpdates(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		id := a.srv.UserSays(group, ann, "hello")
		a.got.Next(t)
		a.srv.UserReacts(group, ann, id, "👍")
		a.srv.ThrowOut(group, ann)
		synctest.Wait()
		if n := a.got.Pending(); n != 0 || a.srv.Unconfirmed() != 0 {
			t.Errorf("%d messages, %d unconfirmed", n, a.srv.Unconfirmed())
		}
		if !strings.Contains(a.log.String(), "the bot was blocked or removed") || !strings.Contains(a.log.String(), "chat_id=-2001") {
			t.Errorf("log:\n%s", a.log)
		}
		_, err := a.Send(t.Context(), piece(inGroup, "hi"))
		checkVerdict(t, err, channels.Gone, "forbidden")
	})
}
