package discord

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/channels"

	emulator "understudy/internal/emulate/discord"
)

// What was said while the bot was away is passed on at the start, oldest first, and in the order of
// each conversation; what is too old, or too much, is not.
func TestCatchesUpAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(emulator.Config{})
		defer srv.Close()
		last := srv.UserSays(general, ann, "seen")
		inBranch := srv.UserSays(branch, ann, "seen too")
		srv.UserSays(general, ann, "too old")
		time.Sleep(40 * time.Minute)
		for i := range 130 {
			srv.UserSays(general, ann, fmt.Sprintf("%s %d", srv.Mention(), i))
		}
		srv.UserSays(branch, bob, "in the thread")
		seen := &journal{marks: []channels.Mark{{Address: inRoom, Space: guildID, LastID: last}, {Address: inThread, Space: guildID, LastID: inBranch}, {Address: direct}}}
		a := start(t, srv, func(c *Config, d *Deps) {
			d.Seen = seen
			c.CatchUp = channels.CatchUp{MaxAge: 30 * time.Minute, MaxMessages: 110}
		})
		for i := 20; i < 130; i++ {
			in := a.got.Next(t)
			if in.Text != fmt.Sprint(i) || !in.CatchUp || !in.Mentioned || in.Space != guildID || in.Address != inRoom {
				t.Fatalf("message %d: %+v", i, in)
			}
		}
		if in := a.got.Next(t); in.Text != "in the thread" || in.Address != inThread || !in.CatchUp {
			t.Errorf("got %+v", in)
		}
		srv.UserSays(general, ann, "live")
		if in := a.got.Next(t); in.Text != "live" || in.CatchUp {
			t.Errorf("got %+v", in)
		}
		_ = a.end(t)
	})
}

// In a busy channel it is the fresh messages that are found, not the first ones behind the mark.
func TestCatchesUpWithWhatIsFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(emulator.Config{})
		defer srv.Close()
		last := srv.UserSays(general, ann, "seen")
		for i := range pageSize*mostPages + 50 {
			srv.UserSays(general, ann, fmt.Sprint("old ", i))
		}
		pass(2 * time.Hour)
		for i := range 30 {
			srv.UserSays(general, ann, fmt.Sprint("fresh ", i))
		}
		a := start(t, srv, func(_ *Config, d *Deps) {
			d.Seen = &journal{marks: []channels.Mark{{Address: inRoom, Space: guildID, LastID: last}}}
		})
		for i := range 30 {
			if in := a.got.Next(t); in.Text != fmt.Sprint("fresh ", i) {
				t.Fatalf("message %d reads %q", i, in.Text)
			}
		}
		synctest.Wait()
		if n, calls := a.got.Pending(), len(srv.Calls("GET", "/channels/200/messages")); n != 0 || calls != 1 {
			t.Errorf("%d messages too many, %d calls", n, calls)
		}
		_ = a.end(t)
	})
}

// A new session is looked behind, a resumed one is not.
func TestCatchesUpAfterANewSession(t *testing.T) {
	seen := &journal{}
	running(t, emulator.Config{}, func(_ *Config, d *Deps) { d.Seen = seen }, func(t *testing.T, a *account) {
		id := a.srv.UserSays(general, ann, "one")
		a.got.Next(t)
		seen.put(channels.Mark{Address: inRoom, Space: guildID, LastID: id})
		a.srv.Cut()
		a.await(t, time.Minute, func() bool { return len(a.srv.Connects()) == 2 && a.srv.Online() })
		synctest.Wait()
		if seen.asked != 1 {
			t.Errorf("asked %d times before the new session", seen.asked)
		}
		a.srv.Forget()
		a.srv.Cut()
		synctest.Wait()
		a.srv.UserSays(general, ann, "two")
		if in := a.got.Next(t); in.Text != "two" || !in.CatchUp {
			t.Errorf("got %+v", in)
		}
		if seen.asked != 2 {
			t.Errorf("asked %d times", seen.asked)
		}
	})
}

// One conversation that cannot be read does not hide the others; a rate limit is waited for.
func TestCatchUpFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(emulator.Config{})
		defer srv.Close()
		srv.AddChannel(emulator.Channel{ID: "203", Guild: guildID, Type: emulator.TextChannel})
		last := srv.UserSays(general, ann, "seen")
		srv.UserSays(general, ann, "unseen")
		srv.UserSays("203", ann, "forbidden")
		srv.UserSays(dm, ann, "direct")
		srv.Deny("203", 403, codeNoAccess, "Missing Access")
		srv.Inject(emulator.Fault{Path: "/channels/200/messages", Status: 429, RetryAfter: 3 * time.Second})
		srv.Inject(emulator.Fault{Path: "/channels/400/messages", Status: 200, Body: `[{"id":"5","author":7},"x",null,{"id":"9000000000000","channel_id":"400","author":{"id":"1001"},"content":"ok","timestamp":"2000-01-01T00:00:00+00:00"},{"id":"10000000000000","channel_id":"400","author":{"id":"1001"},"content":"and later","timestamp":"2000-01-01T00:00:00+00:00"}]`})
		forbidden := inRoom
		forbidden.Conversation = "203"
		a := start(t, srv, func(_ *Config, d *Deps) {
			d.Seen = &journal{marks: []channels.Mark{{Address: forbidden, LastID: "1"}, {Address: inRoom, Space: guildID, LastID: last}, {Address: direct, LastID: "1"}}}
		})
		if in := a.got.Next(t); in.Text != "unseen" {
			t.Errorf("got %q", in.Text)
		}
		for _, want := range []string{"ok", "and later"} { // oldest first, in whatever order they come
			if in := a.got.Next(t); in.Text != want {
				t.Errorf("got %q, want %q", in.Text, want)
			}
		}
		if n := len(srv.Calls("GET", "/channels/203/messages")); n != 1 {
			t.Errorf("asked %d times where it is forbidden", n)
		}
		_ = a.end(t)
	})
}

func TestCatchUpWithoutMarks(t *testing.T) {
	seen := &journal{err: errors.New("database is locked")}
	running(t, emulator.Config{}, func(_ *Config, d *Deps) { d.Seen = seen }, func(t *testing.T, a *account) {
		a.srv.UserSays(general, ann, "live")
		if in := a.got.Next(t); in.Text != "live" {
			t.Errorf("got %+v", in)
		}
		if !strings.Contains(a.log.String(), "database is locked") {
			t.Error("nothing is told of it")
		}
	})
}
