package telegram

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"understudy/chat"

	emulator "understudy/internal/emulate/telegram"
)

// A client cuts a long text; its pieces are known as one, and nothing else is taken for one.
func TestPastedTextIsOne(t *testing.T) {
	long := strings.Repeat("x", 4096)
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		albums := func(n int) (out []string) {
			t.Helper()
			for range n {
				out = append(out, a.got.Next(t).Album)
			}
			return out
		}
		later := func(d time.Duration) {
			timer := time.NewTimer(d)
			<-timer.C
		}
		first := a.srv.UserSays(group, ann, long)
		a.srv.UserSays(group, ann, long)
		a.srv.UserSays(group, ann, "/the end") // no command, but a line of the text
		a.srv.UserSays(group, ann, "something else")
		want := fmt.Sprintf("paste:%d:%d", ann, first)
		if got := albums(4); got[0] != want || got[1] != want || got[2] != want || got[3] != "" {
			t.Errorf("albums %q, want three times %q", got, want)
		}
		a.srv.UserSays(group, ann, long)
		later(3 * time.Second)
		a.srv.UserSays(group, ann, "much later")
		if got := albums(2); got[0] == "" || got[1] != "" {
			t.Errorf("what comes later: %q", got)
		}
		a.srv.UserSays(group, ann, long)
		a.srv.UserSays(group, 1002, "me too")
		a.srv.UserSays(group, ann, "not directly")
		if got := albums(3); got[0] == "" || got[1] != "" || got[2] != "" {
			t.Errorf("with somebody between: %q", got)
		}
		for place, follows := range map[int64]bool{group: false, ann: true} { // private chats share their ids
			a.srv.UserSays(place, ann, long)
			a.srv.UserSays(place, ann, "") // nothing that is passed on
			a.srv.UserSays(place, ann, "next but one")
			if got := albums(2); got[0] == "" || (got[1] == got[0]) != follows {
				t.Errorf("with a gap in the ids of %d: %q", place, got)
			}
		}
		a.srv.UserSays(group, ann, long)
		a.srv.UserSays(ann, ann, "elsewhere")
		if got := albums(2); got[0] == "" || got[1] != "" {
			t.Errorf("in another chat: %q", got)
		}
		a.srv.UserSays(ann, ann, strings.Repeat("ä", 3999))
		a.srv.UserSays(ann, ann, strings.Repeat("😀", 2000)) // units, not characters or bytes
		a.srv.UserSays(ann, ann, "rest")
		if got := albums(3); got[0] != "" || got[1] == "" || got[2] != got[1] {
			t.Errorf("around the limit: %q", got)
		}
	})
}

// The rest of a text that was not stored comes again and still belongs to it.
func TestPastedTextThatComesAgain(t *testing.T) {
	var p pastes
	m := func(id, text string) *chat.Inbound {
		return &chat.Inbound{ID: id, Text: text, Address: inGroup, Sender: chat.Sender{ID: "1"}}
	}
	one, two := m("7", strings.Repeat("x", cutText)), m("8", "rest")
	one.Album = p.album(one)
	p.note(one)
	for range 2 { // the first time the sink refused it
		two.Album = p.album(two)
		if two.Album == "" || two.Album != one.Album {
			t.Fatalf("%q and %q", one.Album, two.Album)
		}
	}
	p.note(two)
	if got := p.album(m("9", "next")); got != "" {
		t.Errorf("what follows the rest belongs to %q", got)
	}
	for i := range 3 * mostPastes {
		x := m("7", one.Text)
		x.Address.Conversation, x.Album = fmt.Sprint(i), one.Album
		if p.note(x); len(p.last) > mostPastes {
			t.Fatalf("%d places are remembered", len(p.last))
		}
	}
}
