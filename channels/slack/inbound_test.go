package slack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/channels"
	"understudy/chat"

	emulator "understudy/internal/emulate/slack"
)

func TestThreadsAreNamedByTheirRoot(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		root := r.srv.UserSays(general, ann, "root")
		if in := r.sink.Next(r.T); in.Address != room {
			r.Errorf("root at %+v", in.Address)
		}
		want := room
		want.Thread = root
		r.srv.UserSays(general, bob, "<@"+botID+"> hi", emulator.InThread(root))
		in := r.sink.Next(r.T)
		if in.Address != want || !in.Mentioned {
			r.Errorf("reply at %+v", in)
		}
		r.send(in.Address, "answer")
		if call := r.srv.Calls("chat.postMessage")[0]; call.Params["thread_ts"] != root || call.Params["channel"] != general {
			r.Errorf("answered with %v", call.Params)
		}
		r.srv.UserSays(general, ann, "<@"+botID+"> to all", emulator.InThread(root), emulator.Subtype("thread_broadcast"))
		if in := r.sink.Next(r.T); in.Address != want {
			r.Errorf("broadcast at %+v", in.Address)
		}
		r.srv.UserSays(dm, ann, "one")
		top := r.sink.Next(r.T)
		r.srv.UserSays(dm, ann, "two", emulator.InThread(top.ID))
		want = direct
		want.Thread = top.ID
		if in := r.sink.Next(r.T); in.Address != want {
			r.Errorf("direct reply at %+v", in.Address)
		}
	})
}

func TestAssistantThreadsAreAnsweredOnTheirRoot(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		root := r.srv.UserOpensAssistant(dm, ann)
		r.srv.UserSays(dm, ann, "hello", emulator.InThread(root))
		in := r.sink.Next(r.T)
		if in.Address.Thread != root || in.Address.Kind != chat.Direct || !in.Address.Separate || in.Text != "hello" {
			r.Errorf("got %+v", in)
		}
		r.send(in.Address, "hi")
		if m := r.last(dm); m.Thread != root {
			r.Errorf("answered at %+v", m)
		}
	})
}

// notebook is a Notes in memory.
type notebook struct{ text string }

func (n *notebook) Load(context.Context) (string, error)      { return n.text, nil }
func (n *notebook) Save(_ context.Context, text string) error { n.text = text; return nil }

func TestAssistantThreadsAreKnownAfterARestart(t *testing.T) {
	kept, root := &notebook{}, ""
	inBubble(t, setup{bot: func(_ *Config, d *Deps) { d.Roots = kept }}, func(r *rig) {
		root = r.srv.UserOpensAssistant(dm, ann)
		r.srv.UserSays(dm, ann, "hello", emulator.InThread(root))
		r.sink.Next(r.T)
	})
	again := &roots{notes: kept}
	if known, err := again.has(t.Context(), dm, root); !known || err != nil {
		t.Errorf("%v, %v; kept %q", known, err, kept.text)
	}
	for i := range 2 * mostRoots {
		if err := again.add(t.Context(), dm, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if known, _ := again.has(t.Context(), dm, root); known || len(again.list) != mostRoots {
		t.Errorf("%d roots are remembered", len(again.list))
	}
}

func TestKindsOfConversations(t *testing.T) {
	inBubble(t, setup{bot: func(c *Config, _ *Deps) { c.DM.GroupEnabled = true }}, func(r *rig) {
		r.srv.AddChannel(emulator.Channel{ID: "C0PRIVATE", Kind: "group", Name: "private"})
		for place, want := range map[string]chat.Kind{dm: chat.Direct, trio: chat.Group, general: chat.Room, "C0PRIVATE": chat.Room} {
			r.srv.UserSays(place, ann, "hi")
			if in := r.sink.Next(r.T); in.Address.Kind != want || in.Address.Conversation != place || in.Space != "T0TEAM001" {
				r.Errorf("%s: %+v", place, in)
			}
		}
	})
}

func TestOnlyMentionsArriveWithoutTheScopeForMessages(t *testing.T) {
	inBubble(t, setup{server: emulator.Config{MentionsOnly: true}}, func(r *rig) {
		r.srv.UserSays(general, ann, "not for you")
		ts := r.srv.UserSays(general, ann, "<@"+botID+"> for you")
		in := r.sink.Next(r.T)
		if in.Text != "for you" || !in.Mentioned || in.Address != room || in.AltKeys[0] != "slack:T0TEAM001:"+general+":"+ts {
			r.Errorf("got %+v", in)
		}
		r.none()
	})
}

func TestRepliesInTheBotsThreadsAreForIt(t *testing.T) {
	say := func(r *rig) chat.Inbound {
		root := r.send(room, "good morning")
		r.srv.UserSays(general, ann, "and to you", emulator.InThread(root))
		return r.sink.Next(r.T)
	}
	inBubble(t, setup{}, func(r *rig) {
		if in := say(r); !in.Mentioned {
			r.Errorf("got %+v", in)
		}
		root := r.srv.UserSays(general, bob, "my thread")
		r.sink.Next(r.T)
		r.srv.UserSays(general, ann, "to bob", emulator.InThread(root))
		if in := r.sink.Next(r.T); in.Mentioned {
			r.Errorf("got %+v", in)
		}
	})
	no := false
	inBubble(t, setup{bot: func(c *Config, _ *Deps) { c.ImplicitMentions.ReplyToBot = &no }}, func(r *rig) {
		if in := say(r); in.Mentioned {
			r.Errorf("got %+v", in)
		}
	})
}

func TestKnowsWhoIsNamed(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		for text, want := range map[string]string{
			"hello": "", "<@" + bob + "> hello": "others", "<@" + botID + "> tell <@" + bob + ">": "bot",
		} {
			r.srv.UserSays(general, ann, text)
			in := r.sink.Next(r.T)
			if in.Mentioned != (want == "bot") || in.MentionsOthers != (want == "others") {
				r.Errorf("%q: %+v", text, in)
			}
		}
	})
}

// TestNamesAreLearntBehindTheMessage: nobody waits for a name, and nobody is asked for twice.
func TestNamesAreLearntBehindTheMessage(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		r.srv.UserSays(general, ann, "ask <@"+bob+">")
		if in := r.sink.Next(r.T); in.Sender.Name != "" || in.Text != "ask @"+bob {
			r.Errorf("got %+v", in)
		}
		settle(5 * time.Second)
		r.srv.UserSays(general, ann, "ask <@"+bob+"> again")
		if in := r.sink.Next(r.T); in.Sender.Name != "Ann Lee" || in.Text != "ask @Bob again" {
			r.Errorf("got %+v", in)
		}
		settle(time.Hour)
		if n := len(r.srv.Calls("users.info")); n != 2 {
			r.Errorf("%d look-ups", n)
		}
	})
}

func TestManyStrangersCostFewLookUps(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		r.srv.Inject(emulator.Fault{Method: "users.info", RetryAfter: 30 * time.Second, Times: 3})
		var text strings.Builder
		for i := range 200 {
			text.WriteString("<@U0STRANGER" + string(rune('A'+i%26)) + string(rune('A'+i/26)) + "> ")
		}
		r.srv.UserSays(general, ann, text.String())
		r.sink.Next(r.T)
		settle(time.Minute)
		if n := len(r.srv.Calls("users.info")); n > 4 {
			r.Errorf("%d look-ups in a minute of rate limits", n)
		}
		settle(time.Hour)
		if n := len(r.srv.Calls("users.info")); n > mostNamed+4 {
			r.Errorf("%d look-ups", n)
		}
	})
}

func TestSubtypes(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		for _, subtype := range []string{"channel_join", "channel_topic", "pinned_item", "message_replied", "bot_add", "reminder_add"} {
			r.srv.UserSays(general, ann, "note", emulator.Subtype(subtype))
		}
		r.none()
		for _, subtype := range []string{"me_message", "file_share", "thread_broadcast"} {
			r.srv.UserSays(general, ann, "text", emulator.Subtype(subtype))
			if in := r.sink.Next(r.T); in.Text != "text" || in.Sender.Bot {
				r.Errorf("%s: %+v", subtype, in)
			}
		}
		r.srv.UserSays(general, "", "I am a bot", emulator.Subtype("bot_message"), emulator.AsBot("B0OTHER01"))
		if in := r.sink.Next(r.T); !in.Sender.Bot || in.Sender.ID != "B0OTHER01" {
			r.Errorf("got %+v", in.Sender)
		}
		r.srv.UserSays(general, "U0OTHER01", "I am one too", emulator.AsBot("B0OTHER01"))
		if in := r.sink.Next(r.T); !in.Sender.Bot || in.Sender.ID != "U0OTHER01" {
			r.Errorf("got %+v", in.Sender)
		}
		r.srv.UserSays(general, botID, "me")
		r.srv.UserSays(general, "", "me", emulator.Subtype("bot_message"), emulator.AsBot("B0BOT0001"))
		r.srv.UserSays(general, ann, "  ")
		r.srv.UserReacts(general, ann, r.srv.UserSaidUnheard(general, bob, "x"), "eyes")
		r.none()
	})
}

func TestOwnEditsAndDeletionsAreNoEvents(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		id := r.send(room, "one")
		if err := r.bot.Edit(r.Context(), room, id, channels.Piece{Text: "two"}); err != nil {
			r.Fatal(err)
		}
		if err := r.bot.Delete(r.Context(), room, id); err != nil {
			r.Fatal(err)
		}
		settle(10 * time.Minute)
		r.none()
	})
}

func TestEditsAndDeletions(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		ts := r.srv.UserSays(general, ann, "teh")
		r.sink.Next(r.T)
		r.srv.UserEdits(general, ts, "teh") // a link preview came
		r.none()
		r.srv.UserEdits(general, ts, "the")
		first := r.sink.Next(r.T)
		r.srv.UserEdits(general, ts, "them")
		second := r.sink.Next(r.T)
		if !first.Edited || first.ID != ts || first.Text != "the" || first.EventKey == second.EventKey || first.AltKeys[0] == second.AltKeys[0] {
			r.Errorf("got %+v and %+v", first, second)
		}
		r.srv.UserDeletes(general, ts)
		gone := r.sink.Next(r.T)
		if !gone.Deleted || gone.Edited || gone.ID != ts || gone.Sender.ID != ann || gone.Text != "" {
			r.Errorf("got %+v", gone)
		}
		root := r.srv.UserSays(general, ann, "root")
		r.sink.Next(r.T)
		r.srv.PushRaw("events_api", `{"type":"event_callback","team_id":"T0TEAM001","event_id":"EvTomb","event":{"type":"message","subtype":"message_changed","channel":"`+general+
			`","channel_type":"channel","ts":"1.2","message":{"subtype":"tombstone","user":"USLACKBOT","text":"This message was deleted.","ts":"`+root+`","thread_ts":"`+root+
			`"},"previous_message":{"user":"`+ann+`","text":"root","ts":"`+root+`","thread_ts":"`+root+`"}}}`)
		if in := r.sink.Next(r.T); !in.Deleted || in.ID != root || in.Sender.ID != ann {
			r.Errorf("got %+v", in)
		}
	})
}

func TestForwardedMessagesAreQuoted(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		r.srv.UserSays(dm, ann, "what does he mean?", emulator.With(func(e map[string]any) {
			e["attachments"] = []any{
				map[string]any{"title": "a link preview", "text": "not this"},
				map[string]any{"is_share": true, "author_id": bob, "author_name": "Bob", "text": "it is <https://example.com|here> &amp; there"},
			}
		}))
		if in := r.sink.Next(r.T); in.Quote != "it is here (https://example.com) & there" || in.Text != "what does he mean?" || in.QuoteFrom != (chat.Sender{ID: bob, Name: "Bob"}) {
			r.Errorf("got %+v", in)
		}
	})
}

func TestFiles(t *testing.T) {
	inBubble(t, setup{bot: func(c *Config, _ *Deps) { c.MediaMaxMB = 1 }}, func(r *rig) {
		share := func(f emulator.File) chat.Attachment {
			r.Helper()
			r.srv.UserSays(dm, ann, "look", emulator.WithFile(f))
			in := r.sink.Next(r.T)
			if len(in.Attachments) != 1 {
				r.Fatalf("got %+v", in)
			}
			return in.Attachments[0]
		}
		fetch := func(a chat.Attachment) (string, error) {
			data, err := r.bot.Fetch(r.Context(), a, 1<<30)
			return string(data), err
		}
		a := share(emulator.File{Name: "a.txt", MIME: "text/plain", Data: []byte("text")})
		if got, err := fetch(a); got != "text" || err != nil || a.Voice || a.Name != "a.txt" || a.MediaType != "text/plain" || a.Size != 4 {
			r.Errorf("%+v: %q, %v", a, got, err)
		}
		a = share(emulator.File{Name: "audio_message.m4a", MIME: "audio/mp4", Subtype: "slack_audio", Data: []byte("voice")})
		if got, err := fetch(a); got != "voice" || err != nil || !a.Voice {
			r.Errorf("%+v: %q, %v", a, got, err)
		}
		for _, clip := range []emulator.File{
			{Name: "clip.mp4", MIME: "video/mp4", Subtype: "slack_audio"},
			{Name: "audio_message.mp4", MIME: "video/mp4"},
			{Name: "audio_message.m4a", Subtype: "slack_audio"},
			{Name: "memo.m4a", MIME: "audio/mp4"},
		} {
			clip.Data = []byte("voice")
			if a := share(clip); !a.Voice || a.MediaType != "audio/mp4" {
				r.Errorf("%+v becomes %+v", clip, a)
			}
		}
		for _, film := range []emulator.File{
			{Name: "film.mp4", MIME: "video/mp4"}, {Name: "audio_message.mp4", MIME: "video/mp4", Subtype: "slack_video"}, {Name: "audio_message.txt", MIME: "text/plain"},
		} {
			film.Data = []byte("film")
			if a := share(film); a.Voice || a.MediaType != film.MIME {
				r.Errorf("%+v becomes %+v", film, a)
			}
		}
		a = share(emulator.File{Name: "b.txt", MIME: "text/plain", Data: []byte("from elsewhere"), NoURL: true})
		if got, err := fetch(a); got != "from elsewhere" || err != nil || a.Size != 0 {
			r.Errorf("%+v: %q, %v", a, got, err)
		}
		a = share(emulator.File{Name: "page.html", MIME: "text/html", Data: []byte("<html>mine</html>")})
		if got, err := fetch(a); got != "<html>mine</html>" || err != nil {
			r.Errorf("%+v: %q, %v", a, got, err)
		}
		a.MediaType = "image/png"
		if _, err := fetch(a); !errors.Is(err, ErrNoAccess) {
			r.Errorf("a page in place of a picture: %v", err)
		}
		if _, err := fetch(share(emulator.File{Name: "c.txt", MIME: "text/plain", Data: []byte("x"), Unreadable: true})); !errors.Is(err, ErrNoAccess) {
			r.Errorf("a sign-in page: %v", err)
		}
		large := share(emulator.File{Name: "d.txt", MIME: "text/plain", Data: make([]byte, 1<<20+1)})
		if _, err := fetch(large); !errors.Is(err, channels.ErrTooLarge) {
			r.Errorf("a large file: %v", err)
		}
		large.Size = 0
		if _, err := fetch(large); !errors.Is(err, channels.ErrTooLarge) {
			r.Errorf("a large file of unknown size: %v", err)
		}
		calls := len(r.srv.Calls("download"))
		evil := share(emulator.File{Name: "e.txt", MIME: "text/plain", Data: []byte("x"), Elsewhere: "https://evil.test/files/F1/e.txt"})
		if _, err := fetch(evil); err == nil || strings.Contains(err.Error(), "evil") || len(r.srv.Calls("download")) != calls {
			r.Errorf("a file of another host: %v", err)
		}
		if _, err := fetch(chat.Attachment{Ref: "F0NOWHERE"}); err == nil {
			r.Error("a file that is not there is fetched")
		}
	})
}

func TestEightFilesAreEnough(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		var files []emulator.Say
		for range 12 {
			files = append(files, emulator.WithFile(emulator.File{Name: "a", MIME: "text/plain", Data: []byte("x")}))
		}
		r.srv.UserSays(dm, ann, "", files...)
		if in := r.sink.Next(r.T); len(in.Attachments) != mostFiles {
			r.Errorf("%d files", len(in.Attachments))
		}
	})
}

func TestOrderIsKeptUnderLoad(t *testing.T) {
	for name, change := range modes {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{bot: change}, func(r *rig) {
				for i := range 150 { // more than the library's queue
					r.srv.UserSays(dm, ann, strings.Repeat("x", i+1))
				}
				for i := range 150 {
					if in := r.sink.Next(r.T); len(in.Text) != i+1 {
						r.Fatalf("message %d has length %d", i, len(in.Text))
					}
				}
				synctest.Wait()
				if r.srv.Pending() != 0 {
					r.Errorf("%d not acknowledged", r.srv.Pending())
				}
			})
		})
	}
}
