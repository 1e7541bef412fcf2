package discord

import (
	"strings"
	"testing"
	"time"

	"understudy/channels"
	"understudy/chat"

	emulator "understudy/internal/emulate/discord"
)

// An archived thread is opened again where the bot may do that; else the answer goes to the channel. A
// thread that is gone ends it, and its channel goes on.
func TestThreadsThatAreClosed(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg   emulator.Config
		close func(*emulator.Server)
		code  string // "" = it arrives
		calls int
	}{
		"archived":             {emulator.Config{}, func(s *emulator.Server) { s.Archive(branch, false) }, "", 1},
		"locked, and may open": {emulator.Config{ManagesThreads: true}, func(s *emulator.Server) { s.Archive(branch, true) }, "", 2},
		"removed":              {emulator.Config{}, func(s *emulator.Server) { s.RemoveChannel(branch) }, "channel_gone", 1},
	} {
		t.Run(name, func(t *testing.T) {
			running(t, tt.cfg, nil, func(t *testing.T, a *account) {
				tt.close(a.srv)
				_, err := a.Send(t.Context(), say(inThread, "answer"))
				v, code := verdictOf(err)
				if code != tt.code || (code != "" && v != channels.Gone) {
					t.Errorf("verdict %d %q: %v", v, code, err)
				}
				if n := len(a.srv.Calls("POST", "/300/messages")); n != tt.calls {
					t.Errorf("tried %d times", n)
				}
				if n := len(a.srv.Sent(branch)); (n == 1) != (tt.code == "") {
					t.Errorf("%d answers", n)
				}
				if _, err := a.Send(t.Context(), say(inRoom, "the channel goes on")); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// What is for a closed thread is said in its channel, with a link to the thread, and changed there.
func TestClosedThreadIsAnsweredInItsChannel(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		question := a.srv.UserSays(branch, ann, "question")
		a.srv.Archive(branch, true)
		p := say(inThread, "answer")
		p.ReplyTo, p.Key = question, "k1"
		var got channels.Receipt
		for range 2 { // sent again under its key, it changes nothing
			var err error
			if got, err = a.Send(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		sent := a.srv.Sent(general)
		if len(sent) != 1 || sent[0].Content != "<#300>\nanswer" || sent[0].ReplyTo != "" || len(sent[0].Pinged) != 0 {
			t.Errorf("said %+v", sent)
		}
		if err := a.Edit(t.Context(), inThread, got.IDs[0], say(inThread, "changed")); err != nil || a.srv.Sent(general)[0].Content != "changed" {
			t.Errorf("edited to %q: %v", a.srv.Sent(general)[0].Content, err)
		}
		long := say(inThread, strings.Repeat("x", longestText))
		long.Key = "k2"
		if _, err := a.Send(t.Context(), long); err != nil {
			t.Fatal(err)
		}
		if sent := a.srv.Sent(general); len(sent) != 3 || sent[1].Content != "<#300>" || sent[2].Content != long.Text {
			t.Errorf("%d messages", len(sent))
		}
		a.srv.Inject(emulator.Fault{Path: "/channels/300", Status: 502, Body: "<html>", After: 1})
		if v, _ := verdictOf(second(a.Send(t.Context(), p))); v != channels.Retry {
			t.Errorf("verdict %d though it may be opened later", v)
		}
		a.srv.Archive(branch, false)
		if _, err := a.Send(t.Context(), say(inThread, "open again")); err != nil || len(a.srv.Sent(branch)) != 1 {
			t.Errorf("an open thread is not used: %v", err)
		}
	})
}

// An answer from a private thread is not shown to the whole channel.
func TestClosedPrivateThreadStaysPrivate(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		a.srv.AddChannel(emulator.Channel{ID: "301", Guild: guildID, Parent: general, Name: "secret", Type: emulator.PrivateThread})
		a.srv.Archive("301", true)
		to := inRoom
		to.Thread = "301"
		if v, code := verdictOf(second(a.Send(t.Context(), say(to, "answer")))); v != channels.Gone || code != "thread_archived" {
			t.Errorf("verdict %d %q", v, code)
		}
		if n := len(a.srv.Sent(general)); n != 0 {
			t.Errorf("%d messages in the channel", n)
		}
	})
}

// Where the channel is a forum, the answer is a post of its own.
func TestClosedPostIsAnsweredInAnother(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		post := a.srv.Post(forum, ann, "Help", "question")
		to := a.got.Next(t).Address
		a.srv.Archive(post, true)
		got, err := a.Send(t.Context(), say(to, "Do this."))
		if err != nil {
			t.Fatal(err)
		}
		if c := a.srv.ChannelState(got.IDs[0]); c.Parent != forum || c.Name != "Do this." {
			t.Errorf("post %+v", c)
		}
		if err := a.Edit(t.Context(), to, got.IDs[0], say(to, "Do that.")); err != nil {
			t.Error(err)
		}
	})
}

// A forum takes posts only; the parts of one answer make one post.
func TestForumPosts(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		p := say(inForum, "## **Report**\nAll is well.")
		p.Class, p.ReplyTo = chat.Cron, "12345"
		first, err := a.Send(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		p.Text = "And more."
		if _, err := a.Send(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		post := first.IDs[0]
		if c := a.srv.ChannelState(post); c.Name != "Report" || c.Parent != forum {
			t.Errorf("post %+v", c)
		}
		if m := a.srv.Sent(post); len(m) != 2 || m[1].Content != "And more." {
			t.Errorf("said %+v", m)
		}
		if err := a.Edit(t.Context(), inForum, post, say(inForum, "changed")); err != nil {
			t.Error(err)
		}
		pass(time.Minute)
		if _, err := a.Send(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if n := len(a.srv.Calls("POST", "/202/threads")); n != 2 {
			t.Errorf("%d posts", n)
		}
		a.srv.Hide(emulator.Channel{ID: "209", Guild: guildID, Name: "pictures", Type: emulator.Media})
		p.To.Conversation = "209"
		if _, err := a.Send(t.Context(), p); err != nil {
			t.Errorf("a forum that was not known: %v", err)
		}
	})
}

// A post that was perhaps opened is looked for before it is opened again: also among others of the same name
// and text, which are older.
func TestForumPostsAreOpenedOnce(t *testing.T) {
	for name, fault := range map[string]emulator.Fault{"receipt lost": {DropAfter: true}, "request lost": {Drop: true}} {
		t.Run(name, func(t *testing.T) {
			running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
				p := say(inForum, "Report\nAll is well.")
				p.Class, p.Key = chat.Cron, "yesterday"
				if _, err := a.Send(t.Context(), p); err != nil {
					t.Fatal(err)
				}
				pass(24 * time.Hour)
				p.Key = "today"
				fault.Method, fault.Path = "POST", "/threads"
				a.srv.Inject(fault)
				if v, _ := verdictOf(second(a.Send(t.Context(), p))); v != channels.Unsure {
					t.Errorf("verdict %d", v)
				}
				a.srv.Inject(emulator.Fault{Method: "GET", Path: "/threads/active", Status: 500})
				if v, _ := verdictOf(second(a.Send(t.Context(), p))); v != channels.Retry {
					t.Errorf("verdict %d while it is not known", v)
				}
				got, err := a.Send(t.Context(), p)
				if err != nil {
					t.Fatal(err)
				}
				if c := a.srv.ChannelState(got.IDs[0]); c.Name != "Report" || len(a.srv.Posts(forum)) != 2 {
					t.Errorf("the receipt names %+v of %d posts", c, len(a.srv.Posts(forum)))
				}
			})
		})
	}
}

func autoThreads(c *Config, _ *Deps) {
	yes := true
	c.Guilds = map[string]Guild{guildID: {Channels: map[string]Place{general: {AutoThread: &yes}, "*": {}}}}
}

// A question gets a thread of its own, which is opened with the answer.
func TestAutoThread(t *testing.T) {
	running(t, emulator.Config{}, autoThreads, func(t *testing.T, a *account) {
		a.srv.UserSays(general, ann, "just talking")
		if in := a.got.Next(t); in.Address != inRoom {
			t.Errorf("got %+v", in.Address)
		}
		a.srv.UserSays(news, ann, a.srv.Mention()+" elsewhere")
		if in := a.got.Next(t); in.Address.Thread != "" {
			t.Errorf("got %+v", in.Address)
		}
		id := a.srv.UserSays(general, ann, a.srv.Mention()+" what\nis it?")
		in := a.got.Next(t)
		want := inRoom
		want.Thread = id
		if in.Address != want {
			t.Errorf("got %+v", in.Address)
		}
		if err := a.Typing(t.Context(), in.Address); err != nil {
			t.Error(err)
		}
		if err := a.React(t.Context(), in.Address, id, "👀"); err != nil {
			t.Error(err)
		}
		if c := a.srv.ChannelState(id); c.ID != "" || len(a.srv.Typing(general)) != 1 {
			t.Errorf("opened too early, or typing is not seen: %+v", c)
		}
		p := say(in.Address, "It is this.")
		p.ReplyTo = id
		got, err := a.Send(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if c := a.srv.ChannelState(id); c.Name != "what" || c.Parent != general {
			t.Errorf("thread %+v", c)
		}
		sent := a.srv.Sent(id)
		if len(sent) != 1 || sent[0].ReplyTo != "" || sent[0].ID != got.IDs[0] {
			t.Errorf("sent %+v", sent)
		}
		if c := a.srv.Calls("POST", "/"+id+"/messages"); strings.Contains(string(c[0].Body), "message_reference") {
			t.Errorf("refers to a message of another channel: %s", c[0].Body)
		}
		if err := a.Edit(t.Context(), in.Address, got.IDs[0], say(in.Address, "changed")); err != nil {
			t.Error(err)
		}
		if err := a.Unreact(t.Context(), in.Address, id, "👀"); err != nil {
			t.Error(err)
		}
		if m := a.srv.Messages(general); len(m[1].Reactions) != 0 {
			t.Errorf("reactions %q", m[1].Reactions)
		}
		a.srv.UserSays(id, ann, "thanks")
		if in := a.got.Next(t); in.Address != want {
			t.Errorf("got %+v", in.Address)
		}
		a.srv.UserEdits(general, id, a.srv.Mention()+" what was it?")
		if in := a.got.Next(t); in.Address != want || !in.Edited {
			t.Errorf("the edit has the address %+v", in.Address)
		}
	})
}

// The thread is found where somebody else opened it, opened after a restart, and done without where
// it must not be.
func TestAutoThreadObstacles(t *testing.T) {
	ask := func(t *testing.T, a *account) chat.Address {
		a.srv.UserSays(general, ann, a.srv.Mention()+" question")
		return a.got.Next(t).Address
	}
	t.Run("exists", func(t *testing.T) {
		running(t, emulator.Config{}, autoThreads, func(t *testing.T, a *account) {
			to := ask(t, a)
			a.srv.Hide(emulator.Channel{ID: to.Thread, Guild: guildID, Parent: general, Name: "mine", Type: emulator.PublicThread})
			if _, err := a.Send(t.Context(), say(to, "answer")); err != nil || len(a.srv.Sent(to.Thread)) != 1 {
				t.Errorf("%v", err)
			}
		})
	})
	t.Run("after a restart", func(t *testing.T) {
		running(t, emulator.Config{}, autoThreads, func(t *testing.T, a *account) {
			to := ask(t, a)
			a.planned.opened(to.Thread) // what a new process does not know
			if _, err := a.Send(t.Context(), say(to, "answer")); err != nil || len(a.srv.Sent(to.Thread)) != 1 {
				t.Errorf("%v", err)
			}
			if c := a.srv.ChannelState(to.Thread); c.Name != "question" {
				t.Errorf("thread %+v", c)
			}
		})
	})
	t.Run("forbidden", func(t *testing.T) {
		running(t, emulator.Config{}, autoThreads, func(t *testing.T, a *account) {
			to := ask(t, a)
			a.srv.Inject(emulator.Fault{Path: "/threads", Times: -1, Status: 403, Code: codeNoPermission})
			for range 2 {
				if _, err := a.Send(t.Context(), say(to, "answer")); err != nil {
					t.Error(err)
				}
			}
			if n, calls := len(a.srv.Sent(general)), len(a.srv.Calls("POST", "/threads")); n != 2 || calls != 1 {
				t.Errorf("%d answers in the channel, %d attempts", n, calls)
			}
		})
	})
	t.Run("not now", func(t *testing.T) {
		running(t, emulator.Config{}, autoThreads, func(t *testing.T, a *account) {
			to := ask(t, a)
			a.srv.Inject(emulator.Fault{Path: "/threads", Status: 502, Body: "<html>"})
			if v, _ := verdictOf(second(a.Send(t.Context(), say(to, "answer")))); v != channels.Retry {
				t.Errorf("verdict %d", v)
			}
			if _, err := a.Send(t.Context(), say(to, "answer")); err != nil || len(a.srv.Sent(to.Thread)) != 1 {
				t.Errorf("%v", err)
			}
		})
	})
}

func TestTitles(t *testing.T) {
	for text, want := range map[string]string{
		"# Report\nx": "Report", "\n\n- item": "item", "": "Conversation", "***": "Conversation", strings.Repeat("ä", 200): strings.Repeat("ä", 79) + "…", "a\tb": "a b",
	} {
		if got := title(text, longestThreadName); got != want {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}
