package slack

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// User is a person.
type User struct{ ID, Name string }

// Channel is a place to talk. Kind is "im", "mpim", "channel" or "group" (a private channel); With is
// the person of an im.
type Channel struct {
	ID, Kind, Name, With string
	NotMember, Archived  bool
}

// Message is a message as its readers see it.
type Message struct {
	TS, Thread, Channel string
	User                string // who wrote it
	ByBot               bool   // sent by the app under test
	Text                string // visible text
	Markdown            bool   // the text came as Markdown
	Blocks              []Block
	OnlyFor             string // ephemeral: the only person who sees it
	Files               []string
	Streaming           bool
	Streamed            bool
	Recipient           string // of a stream
	Unfurl              bool
	Versions            []string // earlier texts, oldest first
	Deleted             bool
	At                  time.Time

	reactions map[string][]string // emoji → who
	subtype   string
	bot       string
	event     func(map[string]any)
	response  string // the response URL it came through
}

// isRoot reports whether a message is not a reply.
func (m *Message) isRoot() bool { return m.Thread == "" || m.Thread == m.TS }

type channel struct {
	Channel
	messages []*Message
}

func (c *channel) find(ts string) *Message {
	i := slices.IndexFunc(c.messages, func(m *Message) bool { return m.TS == ts })
	if i < 0 {
		return nil
	}
	return c.messages[i]
}

// replies counts the replies to a message, and returns the timestamp of the last one.
func (c *channel) replies(root *Message) (n int, latest string) {
	for _, m := range c.messages {
		if m.Thread == root.TS && m != root && !m.Deleted && m.OnlyFor == "" {
			n, latest = n+1, m.TS
		}
	}
	return n, latest
}

// AddChannel makes a channel known before anybody speaks in it. Without it, a D… is an im and a C…
// a public channel.
func (s *Server) AddChannel(c Channel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channel(c.ID).Channel = c
}

// SetUser gives a user a name.
func (s *Server) SetUser(u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[u.ID] = u
}

// channel returns a channel, which is made known; the lock is held.
func (s *Server) channel(id string) *channel {
	c := s.channels[id]
	if c == nil {
		c = &channel{Channel: Channel{ID: id, Kind: "channel", Name: "c-" + id}}
		if id != "" && id[0] == 'D' {
			c.Kind, c.Name = "im", "directmessage"
		}
		s.channels[id] = c
	}
	return c
}

// user returns a user; the lock is held.
func (s *Server) user(id string) User {
	if id == s.cfg.BotUser {
		return User{ID: id, Name: s.cfg.BotName}
	}
	if u, ok := s.users[id]; ok {
		return u
	}
	return User{ID: id, Name: "user " + id}
}

// Messages returns the whole transcript of a channel, deleted and ephemeral messages included.
func (s *Server) Messages(channel string) []Message {
	return s.transcript(channel, func(*Message) bool { return true })
}

// Sent returns what the bot said in a channel and did not delete.
func (s *Server) Sent(channel string) []Message {
	return s.transcript(channel, func(m *Message) bool { return m.ByBot && !m.Deleted })
}

func (s *Server) transcript(id string, want func(*Message) bool) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[id]
	if c == nil {
		return nil
	}
	var out []Message
	for _, m := range c.messages {
		if want(m) {
			one := *m
			one.Versions, one.Files = slices.Clone(m.Versions), slices.Clone(m.Files)
			out = append(out, one)
		}
	}
	return out
}

// Reactions returns the emoji the bot put on a message, sorted.
func (s *Server) Reactions(channel, ts string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.lookup(channel, ts)
	if m == nil {
		return nil
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(m.reactions)) {
		if slices.Contains(m.reactions[name], s.cfg.BotUser) {
			out = append(out, name)
		}
	}
	return out
}

// Status returns what the bot shows to be doing in a thread, "" = nothing.
func (s *Server) Status(channel, thread string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.statuses[channel+" "+thread]
}

func (s *Server) lookup(channel, ts string) *Message {
	c := s.channels[channel]
	if c == nil {
		return nil
	}
	return c.find(ts)
}

// wire is the message as the API describes it; the lock is held.
func (s *Server) wire(c *channel, m *Message) map[string]any {
	out := map[string]any{
		"type": "message", "user": m.User, "text": m.Text, "ts": m.TS, "team": s.cfg.Team,
		"client_msg_id": fmt.Sprintf("00000000-0000-4000-8000-%012d", len(c.messages)),
	}
	if m.ByBot {
		out["user"], out["bot_id"], out["app_id"] = s.cfg.BotUser, s.cfg.Bot, s.cfg.App
		out["text"] = escape(m.Text)
	}
	if m.bot != "" {
		out["bot_id"] = m.bot
		delete(out, "client_msg_id")
	}
	if m.subtype != "" {
		out["subtype"] = m.subtype
	}
	if m.Thread != "" {
		out["thread_ts"] = m.Thread
		if root := c.find(m.Thread); root != nil && root != m {
			out["parent_user_id"] = root.User
		}
	}
	if replies, latest := c.replies(m); replies > 0 {
		out["thread_ts"], out["reply_count"], out["latest_reply"] = m.TS, replies, latest
	}
	if len(m.Files) > 0 {
		var list []any
		for _, id := range m.Files {
			list = append(list, s.files[id].wire())
		}
		out["files"] = list
	}
	if len(m.Versions) > 0 {
		out["edited"] = map[string]any{"user": m.User, "ts": s.stamp()}
	}
	if len(m.Blocks) > 0 {
		out["blocks"] = m.Blocks
	}
	if m.event != nil {
		m.event(out)
	}
	return out
}
