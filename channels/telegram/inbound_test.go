package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"understudy/chat"
	"understudy/internal/secret"

	emulator "understudy/internal/emulate/telegram"
)

type jsonRaw = json.RawMessage

func newToken() secret.String { return secret.New("110:abc") }

func TestInbound(t *testing.T) {
	running(t, emulator.Config{TopicsInDMs: true}, nil, func(t *testing.T, a *account) {
		bot := a.srv.BotID()
		name := "@" + a.srv.Username()
		topicStart := a.srv.UserSays(forum, bot, "topic made") // of the bot: never passed on
		tests := []struct {
			name string
			chat int64
			text string
			opts []emulator.Say
			want chat.Inbound
		}{
			{"direct", ann, " hi ", nil, chat.Inbound{Address: direct, Text: "hi"}},
			{
				"own topic of a private chat", ann, "hi",
				[]emulator.Say{emulator.InTopic(116834)},
				chat.Inbound{Address: chat.Address{Channel: Channel, Conversation: "1001", Thread: "116834", Kind: chat.Direct}, Text: "hi"},
			},
			{"mention in any case", group, "@Understudy_BOT: hi", nil, chat.Inbound{Address: inGroup, Text: "hi", Mentioned: true}},
			{"mention behind wide characters", group, "😀😀 ask " + name + " now", nil, chat.Inbound{Address: inGroup, Text: "😀😀 ask " + name + " now", Mentioned: true}},
			{"mention alone", group, name, nil, chat.Inbound{Address: inGroup, Mentioned: true}},
			{"mention of somebody else", group, "@understudy_bot2 hi", nil, chat.Inbound{Address: inGroup, Text: "@understudy_bot2 hi", MentionsOthers: true}},
			{"mention by id", group, "Understudy, hi", []emulator.Say{emulator.Mentioning(bot, "Understudy")}, chat.Inbound{Address: inGroup, Text: "hi", Mentioned: true}},
			{"other person by id", group, "Bob hi", []emulator.Say{emulator.Mentioning(77, "Bob")}, chat.Inbound{Address: inGroup, Text: "Bob hi", MentionsOthers: true}},
			{"both are named", group, name + " ask @bobby_tables", nil, chat.Inbound{Address: inGroup, Text: "ask @bobby_tables", Mentioned: true}},
			{
				"mention in a caption", group, name + " what is this?",
				[]emulator.Say{emulator.WithFile("photo", "", "", []byte("jpg"))},
				chat.Inbound{Address: inGroup, Text: "what is this?", Mentioned: true, Attachments: []chat.Attachment{{Name: "photo.jpg", MediaType: "image/jpeg", Size: 3}}},
			},
			{
				"video note", ann, "",
				[]emulator.Say{emulator.WithFile("video_note", "", "", []byte("mp4!!"))},
				chat.Inbound{Address: direct, Attachments: []chat.Attachment{{Name: "video.mp4", MediaType: "video/mp4", Size: 5, Voice: true}}},
			},
			{"command", group, "/status", nil, chat.Inbound{Address: inGroup, Text: "/status"}},
			{"command for this bot", group, "/model" + name + " gpt", nil, chat.Inbound{Address: inGroup, Text: "/model gpt", Mentioned: true}},
			{"mention, then command", group, name + " /status", nil, chat.Inbound{Address: inGroup, Text: "/status", Mentioned: true}},
			{"thread id of a plain group is a reply chain", group, "hi", []emulator.Say{emulator.InReplyChain(3)}, chat.Inbound{Address: inGroup, Text: "hi"}},
			{"topic", forum, "hi", []emulator.Say{emulator.InTopic(topic)}, chat.Inbound{Address: inTopic, Text: "hi"}},
			{"general topic", forum, "hi", nil, chat.Inbound{Address: general, Text: "hi"}},
			{
				"in a topic everything answers its start", forum, "hi",
				[]emulator.Say{emulator.InTopic(topicStart), emulator.ReplyingTo(topicStart, "")},
				chat.Inbound{Address: chat.Address{Channel: Channel, Conversation: "-1001", Thread: "1", Kind: chat.Group}, Text: "hi"},
			},
			{
				"photo with caption", ann, "what is this?",
				[]emulator.Say{emulator.WithFile("photo", "", "", []byte("jpg"))},
				chat.Inbound{Address: direct, Text: "what is this?", Attachments: []chat.Attachment{{Name: "photo.jpg", MediaType: "image/jpeg", Size: 3}}},
			},
			{
				"voice", ann, "",
				[]emulator.Say{emulator.WithFile("voice", "", "audio/ogg", []byte("ogg!"))},
				chat.Inbound{Address: direct, Attachments: []chat.Attachment{{Name: "voice.ogg", MediaType: "audio/ogg", Size: 4, Voice: true}}},
			},
			{
				"document", ann, "",
				[]emulator.Say{emulator.WithFile("document", "a.pdf", "application/pdf", []byte("pdf"))},
				chat.Inbound{Address: direct, Attachments: []chat.Attachment{{Name: "a.pdf", MediaType: "application/pdf", Size: 3}}},
			},
		}
		for _, tt := range tests {
			a.srv.UserSays(tt.chat, ann, tt.text, tt.opts...)
			got := a.got.Next(t)
			tt.want.Sender = chat.Sender{ID: "1001", Name: "User 1001"}
			tt.want.Title = map[int64]string{group: "Plain", forum: "Forum"}[tt.chat]
			ignore := []cmp.Option{
				cmpopts.IgnoreFields(chat.Inbound{}, "ID", "EventKey", "AltKeys", "At"),
				cmpopts.IgnoreFields(chat.Attachment{}, "Ref"), cmpopts.EquateEmpty(),
			}
			if tt.name == "in a topic everything answers its start" {
				got.Address.Thread = "1" // the topic's id is whatever message opened it
			}
			if diff := cmp.Diff(tt.want, got, ignore...); diff != "" {
				t.Errorf("%s: %s", tt.name, diff)
			}
		}
		synctest.Wait()
		if n := a.got.Pending(); n != 0 {
			t.Errorf("%d more messages", n)
		}
	})
}

func TestInboundLeavesOut(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		a.srv.UserSays(group, ann, "/status@other_bot")
		a.srv.UserSays(group, a.srv.BotID(), "my own words")
		a.srv.UserSays(group, ann, "") // a service message
		a.srv.AddChat(emulator.Chat{ID: -3001, Type: "channel"})
		a.srv.UserSays(-3001, ann, "news")
		a.srv.UserSays(ann, ann, "end")
		if in := a.got.Next(t); in.Text != "end" {
			t.Errorf("got %+v", in)
		}
	})
}

// Who writes in the name of a chat is not known, which is said: the id is that of the chat.
func TestAnonymousSender(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		a.srv.UserSays(group, 1087968824, "as admin", emulator.AsChat(group))
		if in := a.got.Next(t); in.Sender.ID != "-2001" || in.Sender.Bot || !in.Sender.Anonymous {
			t.Errorf("sender %+v", in.Sender)
		}
	})
}

func TestEdits(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		id := a.srv.UserSays(ann, ann, "teh text")
		first := a.got.Next(t)
		a.srv.UserEdits(ann, id, "teh text") // a link preview appeared
		a.srv.UserEdits(ann, id, "the text")
		in := a.got.Next(t)
		if !in.Edited || in.Text != "the text" || in.ID != first.ID {
			t.Errorf("got %+v", in)
		}
		if in.EventKey == first.EventKey || in.AltKeys[0] == first.AltKeys[0] {
			t.Errorf("an edit has the key of its message: %v %v", in.EventKey, in.AltKeys)
		}
	})
}

func TestQuote(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		id := a.srv.UserSays(group, 1002, "a long statement")
		a.got.Next(t)
		a.srv.UserSays(group, ann, "really?", emulator.ReplyingTo(id, "long"))
		if in := a.got.Next(t); in.Quote != "long" || in.Mentioned || in.QuoteFrom != (chat.Sender{ID: "1002", Name: "User 1002"}) {
			t.Errorf("quote %q of %+v, mentioned %v", in.Quote, in.QuoteFrom, in.Mentioned)
		}
	})
}

// The model is told where something was said, with the topic as far as Telegram tells its name.
func TestTopicsHaveNames(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		plans := a.srv.OpenTopic(forum, ann, "Plans")
		a.srv.UserSays(forum, ann, "hi", emulator.InTopic(plans))
		in := a.got.Next(t)
		if in.Title != "Forum / Plans" || in.ReplyTo != "" || in.Quote != "" {
			t.Errorf("got %+v", in)
		}
		id, _ := strconv.Atoi(in.ID)
		a.srv.UserSays(forum, ann, "and", emulator.InTopic(plans), emulator.ReplyingTo(id, ""))
		if in := a.got.Next(t); in.Title != "Forum" || in.Quote != "hi" {
			t.Errorf("got %+v", in)
		}
	})
}

func TestMigrationIsNoMessage(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		a.srv.Migrate(-500, -1001500)
		a.srv.UserSays(-1001500, ann, "new home")
		if in := a.got.Next(t); in.Address.Conversation != "-1001500" {
			t.Errorf("got %+v", in)
		}
	})
}

func TestMigrationIsTold(t *testing.T) {
	var told []string
	running(t, emulator.Config{}, func(_ *emulator.Server, _ *Config, d *Deps) {
		d.Moved = func(_ context.Context, from chat.Address, to string) {
			told = append(told, from.Conversation+" "+string(from.Kind)+" "+to)
		}
	}, func(t *testing.T, a *account) {
		a.srv.Migrate(-500, -1001500)
		a.srv.UserSays(-1001500, ann, "new home")
		a.got.Next(t)
		a.srv.MigrateQuietly(-600, -1001600) // the old chat says nothing
		a.srv.UserSays(-1001600, ann, "new home")
		a.got.Next(t)
		if diff := cmp.Diff([]string{"-500 group -1001500", "-600 group -1001600"}, told); diff != "" {
			t.Error(diff)
		}
	})
}

// TestEditNotStored: an edit that could not be stored is delivered again, not taken for a link
// preview.
func TestEditNotStored(t *testing.T) {
	b, err := New(Config{BotToken: newToken()}, Deps{Offsets: &memory{}})
	if err != nil {
		t.Fatal(err)
	}
	fail := errors.New("disk full")
	var got []string
	sink := sinkFunc(func(m chat.Inbound) error {
		if fail != nil {
			return fail
		}
		got = append(got, m.Text)
		return nil
	})
	p := &intake{Bot: b, sink: sink, self: identity{ID: 110}}
	m := &message{ID: 7, Text: "the text", From: &tgbotapi.User{ID: 41}, Chat: place{ID: 41, Type: "private"}}
	if err := p.receive(t.Context(), 1, m, true); !errors.Is(err, fail) {
		t.Fatal(err)
	}
	fail = nil
	for range 2 { // the second time nothing has changed
		if err := p.receive(t.Context(), 1, m, true); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"the text"}, got); diff != "" {
		t.Error(diff)
	}
}

// Every picture of an album is a message of its own; the caption belongs to the first.
func TestAlbum(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		for _, caption := range []string{"holidays", ""} {
			a.srv.UserSays(ann, ann, caption, emulator.InAlbum("7"), emulator.WithFile("photo", "", "", []byte("jpg")))
			in := a.got.Next(t)
			if in.Text != caption || len(in.Attachments) != 1 || in.Album != "7" {
				t.Errorf("got %+v", in)
			}
		}
	})
}

// The same message under another update id is recognised by its second key.
func TestRedeliveredMessage(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		a.srv.SetUser(emulator.User{ID: ann, FirstName: "Ann"})
		id := a.srv.UserSays(ann, ann, "hello")
		first := a.got.Next(t)
		a.srv.Redeliver(ann, id)
		second := a.got.Next(t)
		if first.EventKey == second.EventKey {
			t.Errorf("two updates have the key %q", first.EventKey)
		}
		if diff := cmp.Diff(first, second, cmpopts.IgnoreFields(chat.Inbound{}, "EventKey")); diff != "" {
			t.Error(diff)
		}
		if first.Sender.Name != "Ann" {
			t.Errorf("sender %+v", first.Sender)
		}
	})
}
