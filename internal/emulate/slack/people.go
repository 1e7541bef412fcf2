package slack

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Say adds to what a user says.
type Say func(*Server, *channel, *Message)

// InThread says it in the thread of a message.
func InThread(root string) Say {
	return func(_ *Server, c *channel, m *Message) {
		m.Thread = root
		if r := c.find(root); r != nil {
			r.Thread = r.TS
		}
	}
}

// WithFile shares a file with it.
func WithFile(f File) Say {
	return func(s *Server, _ *channel, m *Message) {
		m.Files = append(m.Files, s.store(f).id)
		m.subtype = "file_share"
	}
}

// Subtype gives the message a subtype, such as me_message or channel_join.
func Subtype(name string) Say { return func(_ *Server, _ *channel, m *Message) { m.subtype = name } }

// AsBot lets another app be the sender.
func AsBot(bot string) Say { return func(_ *Server, _ *channel, m *Message) { m.bot = bot } }

// With changes the event as it goes out, for example to what no client can decode.
func With(change func(event map[string]any)) Say {
	return func(_ *Server, _ *channel, m *Message) { m.event = change }
}

// UserSays lets a user write a message; <@ID> in it mentions somebody. In a room, a mention of the
// bot is told twice, as a message and as an app_mention with the same timestamp. It returns the
// timestamp.
func (s *Server) UserSays(channelID, userID, text string, opts ...Say) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channel(channelID)
	m := s.heard(c, userID, text, opts)
	s.announce(c, m)
	if c.Kind != "im" && strings.Contains(text, "<@"+s.cfg.BotUser) && !c.NotMember {
		mention := s.wire(c, m)
		mention["type"], mention["channel"], mention["event_ts"] = "app_mention", c.ID, m.TS
		delete(mention, "subtype")
		s.event(mention)
	}
	return m.TS
}

// UserSaidUnheard lets a user write a message that the app is never told of.
func (s *Server) UserSaidUnheard(channelID, userID, text string, opts ...Say) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.touch()
	return s.heard(s.channel(channelID), userID, text, opts).TS
}

func (s *Server) heard(c *channel, userID, text string, opts []Say) *Message {
	m := &Message{TS: s.stamp(), Channel: c.ID, User: userID, Text: text, At: time.Now()}
	if c.Kind == "im" && c.With == "" {
		c.With = userID
	}
	for _, o := range opts {
		o(s, c, m)
	}
	c.messages = append(c.messages, m)
	return m
}

// TellAgain tells the app of a message once more, under a new event id.
func (s *Server) TellAgain(channelID, ts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.lookup(channelID, ts); m != nil {
		s.announce(s.channels[channelID], m)
	}
}

// UserOpensAssistant opens the assistant's pane and returns the root of its thread.
func (s *Server) UserOpensAssistant(channelID, userID string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channel(channelID)
	c.Kind, c.With = "im", userID
	root := &Message{TS: s.stamp(), Channel: c.ID, User: s.cfg.BotUser, ByBot: true, Text: "New Assistant Thread", subtype: "assistant_app_thread", At: time.Now()}
	root.Thread = root.TS
	c.messages = append(c.messages, root)
	s.event(map[string]any{
		"type": "assistant_thread_started", "event_ts": root.TS,
		"assistant_thread": map[string]any{"user_id": userID, "channel_id": c.ID, "thread_ts": root.TS, "context": map[string]any{}},
	})
	return root.TS
}

// UserEdits changes what a user wrote. The same text again is what link previews cause.
func (s *Server) UserEdits(channelID, ts, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.lookup(channelID, ts)
	if m == nil {
		return
	}
	before := m.Text
	m.Versions, m.Text = append(m.Versions, before), text
	s.announceChange(s.channels[channelID], m, before)
}

// UserDeletes removes a message.
func (s *Server) UserDeletes(channelID, ts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.lookup(channelID, ts); m != nil {
		m.Deleted = true
		s.announceDeletion(s.channels[channelID], m)
	}
}

// UserReacts puts an emoji on a message.
func (s *Server) UserReacts(channelID, userID, ts, emoji string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.lookup(channelID, ts)
	if m == nil {
		return
	}
	s.react(m, emoji, userID)
	s.event(map[string]any{
		"type": "reaction_added", "user": userID, "reaction": emoji, "item_user": m.User, "event_ts": s.stamp(),
		"item": map[string]any{"type": "message", "channel": channelID, "ts": ts},
	})
}

// Slash lets a user type a slash command with its text. It returns the envelope's id.
func (s *Server) Slash(channelID, userID, command, text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channel(channelID)
	name := c.Name
	switch c.Kind {
	case "im":
		name = "directmessage"
	case "group", "mpim":
		name = "privategroup"
	}
	return s.push(kindSlash, map[string]string{
		"token": "verification", "team_id": s.cfg.Team, "team_domain": "understudy", "channel_id": c.ID, "channel_name": name,
		"user_id": userID, "user_name": s.user(userID).Name, "command": command, "text": text, "api_app_id": s.cfg.App,
		"is_enterprise_install": "false", "response_url": s.newResponse(c.ID, userID, ""), "trigger_id": s.trigger(),
	})
}

func (s *Server) trigger() string { return fmt.Sprintf("%d.%d.0123456789abcdef", s.next(), 900) }

// Press presses the button of a message that has this label, or chooses this entry of its menu. It
// returns the envelope's id, "" if there is no such button.
func (s *Server) Press(channelID, userID, ts, label string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.lookup(channelID, ts)
	if m == nil || m.Deleted || m.OnlyFor != "" && m.OnlyFor != userID {
		return ""
	}
	for _, b := range m.Blocks {
		for _, e := range b.Elements {
			if e.Type == "button" && e.label() == label {
				return s.act(m, userID, map[string]any{"type": "button", "action_id": e.ActionID, "block_id": b.BlockID, "value": e.Value, "action_ts": s.stamp()})
			}
			i := slices.IndexFunc(e.options(), func(o Option) bool { return o.Text.Text == label })
			if i >= 0 {
				return s.act(m, userID, map[string]any{"type": e.Type, "action_id": e.ActionID, "block_id": b.BlockID, "selected_option": e.options()[i], "action_ts": s.stamp()})
			}
		}
	}
	return ""
}

// PressValue presses a button that is no longer there, or was made up.
func (s *Server) PressValue(channelID, userID, ts, value string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.lookup(channelID, ts)
	if m == nil {
		return ""
	}
	return s.act(m, userID, map[string]any{"type": "button", "action_id": "b0", "value": value, "action_ts": s.stamp()})
}

// act sends an interaction with a message; the lock is held.
func (s *Server) act(m *Message, userID string, action map[string]any) string {
	c := s.channels[m.Channel]
	container := map[string]any{"type": "message", "message_ts": m.TS, "channel_id": c.ID, "is_ephemeral": m.OnlyFor != ""}
	if m.Thread != "" {
		container["thread_ts"] = m.Thread
	}
	payload := map[string]any{
		"type": "block_actions", "token": "verification", "api_app_id": s.cfg.App, "trigger_id": s.trigger(),
		"team":    map[string]any{"id": s.cfg.Team, "domain": "understudy"},
		"user":    map[string]any{"id": userID, "username": s.user(userID).Name, "name": s.user(userID).Name, "team_id": s.cfg.Team},
		"channel": map[string]any{"id": c.ID, "name": c.Name}, "container": container, "actions": []any{action},
		"response_url": s.newResponse(c.ID, userID, m.TS),
	}
	if m.OnlyFor == "" {
		payload["message"] = s.wire(c, m)
	}
	return s.push(kindAction, payload)
}
