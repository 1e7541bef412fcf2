package telegram

import (
	"context"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"understudy/chat"
)

// generalTopic is the topic of a forum whose messages carry no topic id.
const generalTopic = "1"

// receive passes a message on, unless there is nothing in it for the bot.
func (p *poller) receive(ctx context.Context, updateID int64, m *message, edited bool) error {
	if m.MigrateTo != 0 {
		p.log.Info("group became a supergroup", "chat_id", m.Chat.ID, "new_chat_id", m.MigrateTo)
		if from, ok := p.address(m); ok && p.deps.Moved != nil {
			p.deps.Moved(ctx, from, id64(m.MigrateTo))
		}
		return nil
	}
	in, ok := p.inbound(updateID, m, edited)
	if !ok {
		return nil
	}
	key, text := in.Address.Conversation+":"+in.ID, m.Text+"\x00"+m.Caption
	if edited && p.texts.same(key, text) {
		return nil
	}
	if err := p.sink.Accept(ctx, in); err != nil {
		return err // it comes again, and must not look unchanged then
	}
	p.texts.put(key, text)
	return nil
}

// inbound normalises a message. It reports false for the bot's own messages, for service messages,
// for commands addressed to another bot and for chats that are no conversations.
func (p *poller) inbound(updateID int64, m *message, edited bool) (chat.Inbound, bool) {
	address, ok := p.address(m)
	if !ok || m.From != nil && m.From.ID == p.self.ID && m.SenderChat == nil {
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
	a := p.addressing(text, entities)
	if a.otherBot {
		return chat.Inbound{}, false
	}
	in := chat.Inbound{
		ID:          strconv.Itoa(m.ID),
		EventKey:    "tg:" + id64(p.self.ID) + ":" + id64(updateID),
		Address:     address,
		Sender:      sender,
		Text:        a.text,
		Attachments: attachments(m),
		Mentioned:   a.mentioned,
		At:          time.Unix(m.Date, 0).UTC(),
		Edited:      edited,
	}
	// The ids of private chats are those of the users, so a message key needs the bot as well.
	key := "tg:" + id64(p.self.ID) + ":" + id64(m.Chat.ID) + ":" + in.ID
	if edited {
		key += ":" + id64(m.EditDate)
	}
	in.AltKeys = []string{key}
	if in.Text == "" && m.Sticker != nil {
		in.Text = m.Sticker.Emoji
	}
	p.refer(&in, m)
	if in.Text == "" && len(in.Attachments) == 0 && !in.Mentioned {
		return chat.Inbound{}, false
	}
	return in, true
}

// address returns where a message was written.
func (p *poller) address(m *message) (chat.Address, bool) {
	a := chat.Address{Channel: Channel, Account: p.deps.Account, Conversation: id64(m.Chat.ID)}
	switch m.Chat.Type {
	case "private":
		a.Kind = chat.Direct
		if m.IsTopic && m.Thread != 0 && p.self.HasTopics {
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
	case m.SenderChat != nil:
		return chat.Sender{ID: id64(m.SenderChat.ID), Name: m.SenderChat.Title}, true
	case m.From != nil:
		return chat.Sender{ID: id64(m.From.ID), Name: fullName(m.From), Bot: m.From.IsBot}, true
	default:
		return chat.Sender{}, false
	}
}

// refer adds the message that is answered. In a topic every message points at the one that opened
// the topic; that is no answer.
func (p *poller) refer(in *chat.Inbound, m *message) {
	r := m.ReplyTo
	if r == nil || m.IsTopic && r.ID == m.Thread {
		return
	}
	in.ReplyTo = strconv.Itoa(r.ID)
	in.Quote = r.Text + r.Caption // a message has at most one of them
	if m.Quote != nil && m.Quote.Text != "" {
		in.Quote = m.Quote.Text
	}
	if *p.cfg.ImplicitMentions.ReplyToBot && r.From != nil && r.From.ID == p.self.ID {
		in.Mentioned = true
	}
}

// addressing is what the entities of a text say about whom it is for.
type addressing struct {
	text      string // without the leading mention, commands without @bot
	mentioned bool
	otherBot  bool // a command for another bot
}

// addressing reads the entities of a text. Their offsets count UTF-16 units and come from outside.
func (p *poller) addressing(text string, entities []tgbotapi.MessageEntity) addressing {
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
			if !p.names(e, part) {
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
			case !strings.EqualFold(bot, p.self.Username):
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
func (p *poller) names(e tgbotapi.MessageEntity, part string) bool {
	if e.Type == "text_mention" {
		return e.User != nil && e.User.ID == p.self.ID
	}
	return p.self.Username != "" && strings.EqualFold(part, "@"+p.self.Username)
}
