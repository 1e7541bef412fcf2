package telegram

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// User is a person or a bot.
type User struct {
	ID        int64  `json:"id"`
	IsBot     bool   `json:"is_bot"`
	FirstName string `json:"first_name"`
	Username  string `json:"username,omitempty"`
}

// Chat is a place to talk. A private chat has the id of its user.
type Chat struct {
	ID    int64  `json:"id"`
	Type  string `json:"type"` // private, group, supergroup, channel
	Title string `json:"title,omitempty"`
	Forum bool   `json:"is_forum,omitempty"`
	Muted bool   `json:"-"` // the bot may not write there
}

// Message is a message as its readers see it.
type Message struct {
	ID       int
	Chat     int64
	From     int64
	FromBot  bool // sent by the bot under test
	Thread   int
	Text     string // visible text or caption
	Entities []Entity
	Media    string // voice, photo, …; "" = text
	FileName string
	Data     []byte
	ReplyTo  int
	Quote    string
	Silent   bool
	Preview  bool // link previews are allowed
	Buttons  []Button
	Versions []string // earlier texts, oldest first
	Deleted  bool
	At       time.Time

	reactions []string
	album     string
	files     []media
	sender    *Chat  // anonymous
	topic     string // the name of the topic that it opened
	markup    string
}

// Button is a button below a message.
type Button struct {
	Text string `json:"text"`
	Data string `json:"callback_data"`
}

type chat struct {
	Chat
	lastID   int
	messages []*Message
	topics   map[int]bool
	actions  []string
	blocked  string // reason
	movedTo  int64
}

func (c *chat) find(id int) *Message {
	i, ok := slices.BinarySearchFunc(c.messages, id, func(m *Message, id int) int { return m.ID - id })
	if !ok {
		return nil
	}
	return c.messages[i]
}

func (c *chat) add(m *Message) *Message {
	c.lastID++
	m.ID, m.Chat, m.At = c.lastID, c.ID, time.Now()
	c.messages = append(c.messages, m)
	return m
}

// AddChat makes a chat known before anybody speaks in it. Without it, a positive id is a private
// chat and a negative one a supergroup.
func (s *Server) AddChat(c Chat, topics ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.chat(c.ID)
	known.Chat = c
	for _, t := range topics {
		known.topics[t] = true
	}
}

// SetUser gives a user a name.
func (s *Server) SetUser(u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[u.ID] = u
}

// chat returns a chat, which is made known; the lock is held.
func (s *Server) chat(id int64) *chat {
	c := s.chats[id]
	if c == nil {
		c = &chat{Chat: Chat{ID: id, Type: "private"}, topics: map[int]bool{}}
		if id < 0 {
			c.Type, c.Title = "supergroup", fmt.Sprintf("Group %d", -id)
		}
		s.chats[id] = c
	}
	return c
}

// user returns a user; the lock is held.
func (s *Server) user(id int64) User {
	if id == s.botID {
		return User{ID: id, IsBot: true, FirstName: "Understudy", Username: s.cfg.Username}
	}
	if u, ok := s.users[id]; ok {
		return u
	}
	return User{ID: id, FirstName: fmt.Sprintf("User %d", id)}
}

// Messages returns the whole transcript of a chat, deleted messages included.
func (s *Server) Messages(chatID int64) []Message {
	return s.transcript(chatID, func(*Message) bool { return true })
}

// Sent returns what the bot said in a chat and did not delete.
func (s *Server) Sent(chatID int64) []Message {
	return s.transcript(chatID, func(m *Message) bool { return m.FromBot && !m.Deleted })
}

func (s *Server) transcript(chatID int64, want func(*Message) bool) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chatID]
	if c == nil {
		return nil
	}
	var out []Message
	for _, m := range c.messages {
		if want(m) {
			one := *m
			one.Versions = slices.Clone(m.Versions)
			out = append(out, one)
		}
	}
	return out
}

// Actions returns the chat actions shown in a chat, such as "typing" or "typing@5" for topic 5.
func (s *Server) Actions(chatID int64) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.chats[chatID]; c != nil {
		return slices.Clone(c.actions)
	}
	return nil
}

// Reactions returns the emoji the bot put on a message.
func (s *Server) Reactions(chatID int64, message int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.lookup(chatID, message); m != nil {
		return slices.Clone(m.reactions)
	}
	return nil
}

// Commands returns the command menu of a scope, as "name: description" lines.
func (s *Server) Commands(scope string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.commands[scope])
}

// CommandScopes returns the scopes that have a menu, sorted.
func (s *Server) CommandScopes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.commands))
}

func (s *Server) lookup(chatID int64, message int) *Message {
	c := s.chats[chatID]
	if c == nil {
		return nil
	}
	return c.find(message)
}

// wire is the message as the API describes it; the lock is held.
func (s *Server) wire(c *chat, m *Message) map[string]any {
	out := map[string]any{"message_id": m.ID, "date": m.At.Add(s.cfg.Offset).Unix(), "chat": c.Chat}
	if m.sender != nil {
		out["sender_chat"] = m.sender
	} else {
		out["from"] = s.user(m.From)
	}
	if m.Thread != 0 {
		out["message_thread_id"] = m.Thread
		if c.Forum || c.Type == "private" {
			out["is_topic_message"] = true
		}
	}
	text, entities := "text", "entities"
	if m.Media != "" {
		text, entities = "caption", "caption_entities"
	}
	if m.Text != "" {
		out[text] = m.Text
	}
	if len(m.Entities) > 0 {
		out[entities] = m.Entities
	}
	for _, f := range m.files {
		out[f.kind] = f.wire()
	}
	if m.album != "" {
		out["media_group_id"] = m.album
	}
	if len(m.Versions) > 0 {
		out["edit_date"] = s.now().Unix()
	}
	if m.topic != "" {
		out["forum_topic_created"] = map[string]any{"name": m.topic, "icon_color": 7322096}
	}
	answered := m.ReplyTo
	if opening := c.find(m.Thread); answered == 0 && opening != nil && opening.topic != "" && opening.ID != m.ID {
		answered = m.Thread // in a topic everything answers what opened it
	}
	if r := c.find(answered); r != nil {
		inner := *r
		inner.ReplyTo = -1 // the API shows one level
		out["reply_to_message"] = s.wire(c, &inner)
		if m.Quote != "" {
			out["quote"] = map[string]any{"text": m.Quote, "position": max(0, strings.Index(r.Text, m.Quote))}
		}
	}
	return out
}
