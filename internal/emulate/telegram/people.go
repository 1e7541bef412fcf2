package telegram

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Say adds to what a user says.
type Say func(*Server, *chat, *Message)

// InTopic says it in a topic, which is made known.
func InTopic(topic int) Say {
	return func(_ *Server, c *chat, m *Message) {
		m.Thread = topic
		c.topics[topic] = true
	}
}

// InReplyChain gives the message a thread id that is no topic, as replies in plain groups have.
func InReplyChain(thread int) Say {
	return func(_ *Server, _ *chat, m *Message) { m.Thread = thread }
}

// ReplyingTo refers to an earlier message; quote is a part of its text or "".
func ReplyingTo(message int, quote string) Say {
	return func(_ *Server, _ *chat, m *Message) { m.ReplyTo, m.Quote = message, quote }
}

// WithFile attaches a file. kind is a field of the Bot API's Message: photo, voice, document,
// audio, video, video_note.
func WithFile(kind, name, mime string, data []byte) Say {
	return func(s *Server, _ *chat, m *Message) {
		m.Media = kind
		m.Data = data
		m.files = append(m.files, s.store(kind, name, mime, data))
	}
}

// InAlbum makes the message part of an album.
func InAlbum(id string) Say { return func(_ *Server, _ *chat, m *Message) { m.album = id } }

// AsChat lets a chat (a channel, an anonymous administrator) be the sender.
func AsChat(sender int64) Say {
	return func(_ *Server, _ *chat, m *Message) {
		m.sender = &Chat{ID: sender, Type: "channel", Title: "Anonymous"}
	}
}

// Mentioning adds a mention of a user who has no user name: the given part of the text.
func Mentioning(user int64, part string) Say {
	return func(s *Server, _ *chat, m *Message) {
		i := strings.Index(m.Text, part)
		if i < 0 {
			return
		}
		u := s.user(user)
		m.Entities = append(m.Entities, Entity{Type: "text_mention", Offset: units(m.Text[:i]), Length: units(part), User: &u})
	}
}

// UserSays lets a user write a message; user names and commands in it become entities. It returns
// the message id.
func (s *Server) UserSays(chatID, userID int64, text string, opts ...Say) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chat(chatID)
	m := &Message{From: userID, Text: text, Entities: detect(text)}
	for _, o := range opts {
		o(s, c, m)
	}
	c.add(m)
	s.push(chatID, "message", s.wire(c, m))
	return m.ID
}

var (
	mention = regexp.MustCompile(`@[A-Za-z0-9_]{4,32}`)
	command = regexp.MustCompile(`(?:^|\s)(/[A-Za-z0-9_]{1,64}(?:@[A-Za-z0-9_]{3,32})?)`)
)

func detect(text string) []Entity {
	var out []Entity
	for _, m := range command.FindAllStringSubmatchIndex(text, -1) {
		out = append(out, Entity{Type: "bot_command", Offset: units(text[:m[2]]), Length: units(text[m[2]:m[3]])})
	}
	for _, m := range mention.FindAllStringIndex(text, -1) {
		offset := units(text[:m[0]])
		if !slices.ContainsFunc(out, func(e Entity) bool { return e.Offset <= offset && offset < e.Offset+e.Length }) {
			out = append(out, Entity{Type: "mention", Offset: offset, Length: units(text[m[0]:m[1]])})
		}
	}
	slices.SortFunc(out, func(a, b Entity) int { return a.Offset - b.Offset })
	return out
}

// OpenTopic lets a user open a topic in a forum. It returns the topic's id, which is that of the service
// message about it.
func (s *Server) OpenTopic(chatID, userID int64, name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chat(chatID)
	m := c.add(&Message{From: userID, topic: name})
	m.Thread = m.ID
	c.topics[m.ID] = true
	s.push(chatID, "message", s.wire(c, m))
	return m.ID
}

// UserEdits changes what a user wrote. The same text again is what link previews cause.
func (s *Server) UserEdits(chatID int64, message int, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.lookup(chatID, message)
	if m == nil {
		return
	}
	m.Versions = append(m.Versions, m.Text)
	m.Text, m.Entities = text, detect(text)
	s.push(chatID, "edited_message", s.wire(s.chats[chatID], m))
}

// UserDeletes removes a message; bots are not told.
func (s *Server) UserDeletes(chatID int64, message int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.lookup(chatID, message); m != nil {
		m.Deleted = true
		s.touch()
	}
}

// Press presses a button below a message of the bot. It returns the id of the callback query, ""
// if there is no such button.
func (s *Server) Press(chatID, userID int64, message int, label string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, m := s.chats[chatID], s.lookup(chatID, message)
	if m == nil {
		return ""
	}
	i := slices.IndexFunc(m.Buttons, func(b Button) bool { return b.Text == label })
	if i < 0 {
		return ""
	}
	return s.callback(c, m, userID, m.Buttons[i].Data)
}

// PressData presses a button that is no longer there, or was made up.
func (s *Server) PressData(chatID, userID int64, message int, data string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.lookup(chatID, message)
	if m == nil {
		return ""
	}
	return s.callback(s.chats[chatID], m, userID, data)
}

func (s *Server) callback(c *chat, m *Message, userID int64, data string) string {
	s.serial++
	id := fmt.Sprintf("query%d", s.serial)
	s.callbacks[id] = &callback{user: userID}
	s.push(c.ID, "callback_query", map[string]any{"id": id, "from": s.user(userID), "message": s.wire(c, m), "chat_instance": "1", "data": data})
	return id
}

// callback is one press of a button.
type callback struct {
	user     int64
	answered bool
}

// Answered reports whether the bot answered a callback query.
func (s *Server) Answered(query string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.callbacks[query] != nil && s.callbacks[query].answered
}

// Toasts returns what a user was told as answers to presses, oldest first.
func (s *Server) Toasts(userID int64) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.toasts[userID])
}

// UserReacts puts an emoji on a message.
func (s *Server) UserReacts(chatID, userID int64, message int, emoji string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chat(chatID)
	s.push(chatID, "message_reaction", map[string]any{
		"chat": c.Chat, "message_id": message, "user": s.user(userID), "date": s.now().Unix(),
		"old_reaction": []any{}, "new_reaction": []any{map[string]string{"type": "emoji", "emoji": emoji}},
	})
}

// ThrowOut removes the bot from a group, or blocks it in a private chat, and tells it.
func (s *Server) ThrowOut(chatID, byUser int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chat(chatID)
	c.blocked = "bot was kicked from the " + c.Type + " chat"
	if c.Type == "private" {
		c.blocked = "bot was blocked by the user"
	}
	member := func(status string) any { return map[string]any{"user": s.user(s.botID), "status": status} }
	s.push(chatID, "my_chat_member", map[string]any{
		"chat": c.Chat, "from": s.user(byUser), "date": s.now().Unix(),
		"old_chat_member": member("member"), "new_chat_member": member("kicked"),
	})
}

// Block makes every send to a chat fail with 403; reason is for example "bot was blocked by the
// user". "" unblocks.
func (s *Server) Block(chatID int64, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chat(chatID).blocked = reason
}

// Migrate turns a group into a supergroup with a new id and tells the bot, in the old chat and in the
// new one.
func (s *Server) Migrate(from, to int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, group := s.chat(from), s.chat(to)
	note := s.wire(c, c.add(&Message{From: s.botID}))
	note["migrate_to_chat_id"] = to
	c.movedTo = to
	s.push(from, "message", note)
	s.announce(group, from)
}

// MigrateQuietly does the same, but the bot is told in the new chat only.
func (s *Server) MigrateQuietly(from, to int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chat(from).movedTo = to
	s.announce(s.chat(to), from)
}

func (s *Server) announce(group *chat, from int64) {
	note := s.wire(group, group.add(&Message{From: s.botID}))
	note["migrate_from_chat_id"] = from
	s.push(group.ID, "message", note)
}
