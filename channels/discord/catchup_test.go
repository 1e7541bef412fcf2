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

// In a busy channel it is the fresh messages that are found, not the first ones behind the mark. What is
// too old to be answered comes along as far as it stood on the way, for whoever wonders about it.
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
		for i := range 20 {
			if in := a.got.Next(t); in.Text != fmt.Sprint("old ", pageSize*mostPages+30+i) || time.Since(in.At) < 2*time.Hour {
				t.Fatalf("message %d reads %q, of %v", i, in.Text, in.At)
			}
		}
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

// rooms adds so many channels to the server, each with a message that was seen. It returns their marks.
func rooms(srv *emulator.Server, n int) []channels.Mark {
	var marks []channels.Mark
	for i := range n {
		id := fmt.Sprint(7000 + i)
		srv.AddChannel(emulator.Channel{ID: id, Guild: guildID, Name: "room", Type: emulator.TextChannel})
		a := inRoom
		a.Conversation = id
		marks = append(marks, channels.Mark{Address: a, Space: guildID, LastID: srv.UserSays(id, ann, "seen")})
	}
	return marks
}

// However many conversations there are, all in which something was said are looked into, and beyond the
// latest ones only those: the servers tell the last message of each channel.
func TestCatchesUpInEveryBusyConversation(t *testing.T) {
	const many = 220
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(emulator.Config{})
		defer srv.Close()
		marks := rooms(srv, many)
		a := start(t, srv, func(_ *Config, d *Deps) { d.Seen = &journal{marks: marks} })
		pass(time.Minute)
		if n := len(srv.Calls("GET", "/messages")); n != channels.MostConversations || a.got.Pending() != 0 {
			t.Errorf("%d histories were read where nothing was said, %d messages passed on", n, a.got.Pending())
		}
		srv.Away()
		var want []string
		for i := 30; i < many; i += 10 {
			text := fmt.Sprint("in room ", i)
			srv.UserSays(marks[i].Address.Conversation, ann, text)
			want = append(want, text)
		}
		srv.Back()
		pass(2 * time.Minute)
		for _, text := range want {
			if in := a.got.Next(t); in.Text != text || !in.CatchUp {
				t.Errorf("got %q, want %q", in.Text, text)
			}
		}
		look, ok := a.LastLook()
		if n := channels.MostConversations + len(want); !ok || look.Looked != n || look.Found != len(want) || look.Left != 0 {
			t.Errorf("the look was %+v, want %d conversations", look, n)
		}
		_ = a.end(t)
	})
}

// A thread that was opened in the gap is found, although the bot was never active there.
func TestCatchesUpInNewThreads(t *testing.T) {
	seen := &journal{}
	running(t, emulator.Config{}, func(_ *Config, d *Deps) { d.Seen = seen }, func(t *testing.T, a *account) {
		a.srv.UserSays(news, ann, "from before")
		a.got.Next(t)
		pass(time.Minute)
		seen.put(channels.Mark{Address: inRoom, Space: guildID, LastID: a.srv.UserSays(general, ann, "seen")})
		a.got.Next(t)
		a.srv.Away()
		a.srv.Hide(emulator.Channel{ID: "7100", Guild: guildID, Parent: general, Name: "new", Type: emulator.PublicThread})
		a.srv.UserSays("7100", ann, a.srv.Mention()+" help")
		a.srv.Back()
		pass(time.Minute)
		in := a.got.Next(t)
		if in.Text != "help" || !in.CatchUp || in.Address.Conversation != general || in.Address.Thread != "7100" || in.Space != guildID {
			t.Errorf("got %+v", in)
		}
		if n := len(a.srv.Calls("GET", "/channels/"+news+"/messages")); n != 0 {
			t.Errorf("%d looks where nothing is new", n)
		}
	})
}

// What is said live in a place waits until what was missed there is passed on; other places do not wait.
func TestLiveMessagesWaitForWhatWasMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(emulator.Config{})
		defer srv.Close()
		marks := rooms(srv, 20)
		slow, quick := marks[19].Address.Conversation, marks[0].Address.Conversation
		srv.UserSays(slow, ann, "missed")
		srv.Inject(emulator.Fault{Method: "GET", Path: "/channels/" + quick + "/messages", Delay: 10 * time.Second})
		a := start(t, srv, func(_ *Config, d *Deps) { d.Seen = &journal{marks: marks} })
		pass(time.Second)
		srv.UserSays(slow, ann, "live")
		for i, want := range []string{"missed", "live"} {
			if in := a.got.Next(t); in.Text != want || in.CatchUp != (i == 0) {
				t.Errorf("message %d is %+v, want %q", i, in, want)
			}
		}
		if n := len(srv.Calls("GET", "/channels/")); n > 3 {
			t.Errorf("%d calls came before a live message", n)
		}
		_ = a.end(t)
	})
}

// A server that is out of order does not hold up the look into the others for long; what is left is told.
func TestCatchesUpWithoutWaitingForASilentServer(t *testing.T) {
	const tooMany = 7
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(emulator.Config{})
		defer srv.Close()
		srv.AddGuild(emulator.Guild{ID: "501", Name: "Ruins", Unavailable: true})
		marks := []channels.Mark{{Address: direct, LastID: srv.UserSays(dm, ann, "seen")}}
		srv.UserSays(dm, ann, "missed")
		for i := range channels.MostConversations - 1 + mostUntold + tooMany {
			a := direct
			a.Conversation = fmt.Sprint(9000 + i)
			srv.Hide(emulator.Channel{ID: a.Conversation, Type: emulator.DirectChannel, Recipients: []string{bob}})
			marks = append(marks, channels.Mark{Address: a, LastID: "1"})
		}
		a := start(t, srv, func(_ *Config, d *Deps) { d.Seen = &journal{marks: marks} })
		pass(serversLimit - time.Second)
		if n := len(srv.Calls("GET", "/channels/")); n != 0 {
			t.Errorf("%d looks before the servers had their time", n)
		}
		if in := a.got.Next(t); in.Text != "missed" {
			t.Errorf("got %q", in.Text)
		}
		pass(time.Minute)
		look, _ := a.LastLook()
		if look.Looked != channels.MostConversations+mostUntold || look.Left != tooMany || look.Why == "" {
			t.Errorf("the look was %+v", look)
		}
		if strings.Count(a.log.String(), "not everything was caught up") != 1 {
			t.Errorf("what is left is not told once; log:\n%s", a.log)
		}
		_ = a.end(t)
	})
}

// How long ago something was said is told by Discord's clock: one of ours that is off, in whatever
// direction, hides nothing and makes nothing new.
func TestAWrongClockHidesNothingThatWasMissed(t *testing.T) {
	for _, offset := range []time.Duration{-2 * time.Hour, 26 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			srv := newServer(emulator.Config{Offset: offset})
			defer srv.Close()
			last := srv.UserSays(general, ann, "seen")
			srv.UserSays(general, ann, "long ago")
			pass(90 * time.Minute)
			srv.UserSays(general, ann, "lately")
			pass(10 * time.Minute)
			a := start(t, srv, func(_ *Config, d *Deps) {
				d.Seen = &journal{marks: []channels.Mark{{Address: inRoom, Space: guildID, LastID: last}}}
			})
			for _, want := range []struct {
				text string
				age  time.Duration
			}{{"long ago", 100 * time.Minute}, {"lately", 10 * time.Minute}} {
				if in := a.got.Next(t); in.Text != want.text || (time.Since(in.At)-want.age).Abs() > time.Minute {
					t.Errorf("%v ahead: got %q of %v ago, want %+v", -offset, in.Text, time.Since(in.At), want)
				}
			}
			_ = a.end(t)
		})
	}
}
