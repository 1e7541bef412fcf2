package telegram

import (
	"context"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"understudy/channels"
	"understudy/chat"
)

// generalTopic is the topic of a forum whose messages carry no topic id.
const generalTopic = "1"

// receive passes a message on, unless there is nothing in it for the bot.
func (in *intake) receive(ctx context.Context, updateID int64, m *message, edited bool) error {
	if in.migrated(ctx, m) {
		return nil
	}
	got, ok := in.inbound(updateID, m, edited)
	if !ok {
		return nil
	}
	key, text := got.Address.Conversation+":"+got.ID, m.Text+"\x00"+m.Caption
	if edited && in.texts.same(key, text) {
		return nil
	}
	if err := in.accept(ctx, got); err != nil {
		return err // it comes again, and must not look unchanged then
	}
	in.texts.put(key, text)
	if !edited {
		in.pastes.note(&got)
	}
	return nil
}

// migrated tells that a group became a supergroup, which has another id. Both chats say so, and
// either message may be the one that arrives.
func (in *intake) migrated(ctx context.Context, m *message) bool {
	if m.MigrateTo == 0 && m.MigrateFrom == 0 {
		return false
	}
	from, ok := in.address(m)
	from.Thread = "" // a plain group has no topics
	to := id64(m.MigrateTo)
	if m.MigrateTo == 0 {
		from.Conversation, to = id64(m.MigrateFrom), id64(m.Chat.ID)
	}
	if !ok || !in.moved.add(from.Conversation) {
		return true
	}
	in.log.Info("group became a supergroup", "chat_id", from.Conversation, "new_chat_id", to)
	if in.deps.Moved != nil {
		in.deps.Moved(ctx, from, to)
	}
	return true
}

// inbound normalises a message. It reports false for the bot's own messages, for service messages,
// for commands addressed to another bot and for chats that are no conversations.
func (in *intake) inbound(updateID int64, m *message, edited bool) (chat.Inbound, bool) {
	address, ok := in.address(m)
	if !ok || m.From != nil && m.From.ID == in.self.ID && m.SenderChat == nil {
		return chat.Inbound{}, false
	}
	sender, ok := author(m)
	if !ok {
		return chat.Inbound{}, false
	}
	text, entities := m.Text, m.Entities
	if text == "" {
		text, entities = m.Caption, m.CaptionEntities
	}
	a := in.addressing(text, entities)
	if a.otherBot {
		return chat.Inbound{}, false
	}
	got := chat.Inbound{
		ID:             strconv.Itoa(m.ID),
		EventKey:       in.eventKey(updateID),
		Address:        address,
		Sender:         sender,
		Text:           a.text,
		Attachments:    attachments(m),
		Mentioned:      a.mentioned,
		MentionsOthers: a.others && !a.mentioned,
		Album:          m.Album,
		At:             time.Now().UTC(),
		Edited:         edited,
		Title:          title(m),
	}
	if m.Date > 0 {
		got.At = in.skew.Here(time.Unix(m.Date, 0)).UTC()
		got.CatchUp = !edited && time.Since(got.At) > channels.LeastGap // Telegram kept it meanwhile
	}
	if got.Album == "" && !edited {
		got.Album = in.pastes.album(&got)
	}
	// The ids of private chats are those of the users, so a message key needs the bot as well.
	key := "tg:" + id64(in.self.ID) + ":" + id64(m.Chat.ID) + ":" + got.ID
	if edited {
		key += ":" + id64(m.EditDate)
	}
	got.AltKeys = []string{key}
	if got.Text == "" && m.Sticker != nil {
		got.Text = m.Sticker.Emoji
	}
	in.refer(&got, m)
	if got.Text == "" && len(got.Attachments) == 0 && !got.Mentioned {
		return chat.Inbound{}, false
	}
	return got, true
}

// address returns where a message was written.
func (in *intake) address(m *message) (chat.Address, bool) {
	a := chat.Address{Channel: Channel, Account: in.deps.Account, Conversation: id64(m.Chat.ID)}
	switch m.Chat.Type {
	case "private":
		a.Kind = chat.Direct
		if m.IsTopic && m.Thread != 0 && in.self.HasTopics {
			a.Thread = strconv.Itoa(m.Thread)
		}
	case "group", "supergroup":
		a.Kind = chat.Group
		switch { // a thread id that is no topic is only a chain of replies
		case m.IsTopic && m.Thread != 0:
			a.Thread = strconv.Itoa(m.Thread)
		case m.Chat.Forum:
			a.Thread = generalTopic
		}
	default:
		return chat.Address{}, false
	}
	return a, true
}

// author returns who wrote a message. A message in the name of a chat has the id of that chat:
// who it was is not known.
func author(m *message) (chat.Sender, bool) {
	switch {
	case m.SenderChat != nil && m.SenderChat.ID != 0:
		return chat.Sender{ID: id64(m.SenderChat.ID), Name: m.SenderChat.Title, Anonymous: true}, true
	case m.SenderChat == nil && m.From != nil && m.From.ID != 0:
		return chat.Sender{ID: id64(m.From.ID), Name: fullName(m.From), Bot: m.From.IsBot}, true
	default:
		return chat.Sender{}, false
	}
}

// title is what people call the group, with the topic behind it where the message that opened the topic
// comes along.
func title(m *message) string {
	if m.IsTopic && m.ReplyTo != nil && m.ReplyTo.Topic != nil && m.Chat.Title != "" && m.ReplyTo.Topic.Name != "" {
		return m.Chat.Title + " / " + m.ReplyTo.Topic.Name
	}
	return m.Chat.Title
}

// refer adds the message that is answered. In a topic every message points at the one that opened
// the topic; that is no answer.
func (in *intake) refer(got *chat.Inbound, m *message) {
	r := m.ReplyTo
	if r == nil || r.ID == 0 || m.IsTopic && r.ID == m.Thread {
		return
	}
	got.ReplyTo = strconv.Itoa(r.ID)
	got.Quote = r.Text + r.Caption // a message has at most one of them
	got.QuoteFrom, _ = author(r)
	got.QuoteFrom.Self = r.SenderChat == nil && r.From != nil && r.From.ID == in.self.ID
	if m.Quote != nil && m.Quote.Text != "" {
		got.Quote = m.Quote.Text
	}
	if *in.cfg.ImplicitMentions.ReplyToBot && r.From != nil && r.From.ID == in.self.ID {
		got.Mentioned = true
	}
}

// addressing is what the entities of a text say about whom it is for.
type addressing struct {
	text      string // without the leading mention, commands without @bot
	mentioned bool
	others    bool // somebody else is named
	otherBot  bool // a command for another bot
}

// addressing reads the entities of a text. Their offsets count UTF-16 units and come from outside.
func (in *intake) addressing(text string, entities []tgbotapi.MessageEntity) addressing {
	a := addressing{text: strings.TrimSpace(text)}
	if len(entities) == 0 {
		return a
	}
	units := utf16.Encode([]rune(text))
	for _, e := range entities {
		if e.Offset < 0 || e.Length <= 0 || e.Offset > len(units) || e.Length > len(units)-e.Offset {
			continue
		}
		part := string(utf16.Decode(units[e.Offset : e.Offset+e.Length]))
		before := string(utf16.Decode(units[:e.Offset]))
		after := string(utf16.Decode(units[e.Offset+e.Length:]))
		leading := strings.TrimSpace(before) == ""
		switch e.Type {
		case "mention", "text_mention":
			if !in.names(e, part) {
				a.others = true
				continue
			}
			a.mentioned = true
			if leading {
				a.text = strings.TrimSpace(strings.TrimLeft(after, ",:"))
			}
		case "bot_command":
			name, bot, addressed := strings.Cut(part, "@")
			switch {
			case !addressed:
			case !strings.EqualFold(bot, in.self.Username):
				a.otherBot = a.otherBot || leading
			default:
				a.mentioned = true
				if leading {
					a.text = strings.TrimSpace(name + after)
				}
			}
		}
	}
	return a
}

// names reports whether a mention means this bot.
func (in *intake) names(e tgbotapi.MessageEntity, part string) bool {
	if e.Type == "text_mention" {
		return e.User != nil && e.User.ID == in.self.ID
	}
	return in.self.Username != "" && strings.EqualFold(part, "@"+in.self.Username)
}
