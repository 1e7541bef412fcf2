package discord

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Say adds to what a user says.
type Say func(*Server, *Message)

// ReplyingTo refers to an earlier message of the same channel.
func ReplyingTo(message string) Say {
	return func(_ *Server, m *Message) { m.Type, m.ReplyTo = 19, message }
}

// Pinging makes a reply notify the author it answers, as clients do by default.
func Pinging() Say {
	return func(s *Server, m *Message) {
		if old := s.find(m.Channel, m.ReplyTo); old != nil && !slices.Contains(m.names, old.Author) {
			m.names = append(m.names, old.Author)
		}
	}
}

// WithFile attaches a file.
func WithFile(name, mediaType string, data []byte) Say {
	return func(_ *Server, m *Message) { m.Files = append(m.Files, File{Name: name, Type: mediaType, Data: data}) }
}

// AsVoice makes the message a voice message.
func AsVoice() Say { return func(_ *Server, m *Message) { m.Flags |= VoiceMessage } }

// AsBot makes the author another bot.
func AsBot() Say { return func(_ *Server, m *Message) { m.bot = true } }

// AsWebhook makes the author a webhook.
func AsWebhook() Say {
	return func(_ *Server, m *Message) { m.webhook = m.Author }
}

// OfType gives the message a type, such as 7 for "joined the server".
func OfType(t int) Say { return func(_ *Server, m *Message) { m.Type = t } }

// WithField sets a field of the event as it stands.
func WithField(name string, value any) Say {
	return func(_ *Server, m *Message) {
		if m.raw == nil {
			m.raw = map[string]any{}
		}
		m.raw[name] = value
	}
}

// WithID gives the message an id.
func WithID(id string) Say { return func(_ *Server, m *Message) { m.ID = id } }

var (
	userMention = regexp.MustCompile(`<@!?(\d+)>`)
	roleMention = regexp.MustCompile(`<@&(\d+)>`)
)

// parse finds the mentions in a text.
func (s *Server) parse(m *Message) {
	m.names, m.roles = nil, nil
	for _, x := range userMention.FindAllStringSubmatch(m.Content, -1) {
		if !slices.Contains(m.names, x[1]) {
			m.names = append(m.names, x[1])
		}
	}
	for _, x := range roleMention.FindAllStringSubmatch(m.Content, -1) {
		if !slices.Contains(m.roles, x[1]) {
			m.roles = append(m.roles, x[1])
		}
	}
}

// UserSays lets a user write a message. It returns the message id.
func (s *Server) UserSays(channel, user, text string, opts ...Say) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &Message{Channel: channel, Author: user, Content: text}
	s.parse(m)
	for _, o := range opts {
		o(s, m)
	}
	s.add(m)
	return m.ID
}

// Post opens a post of a user in a forum and returns its id.
func (s *Server) Post(forum, user, title, text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := s.channels[forum]
	t := &Channel{ID: s.newID(), Guild: to.Guild, Parent: forum, Name: title, Type: PublicThread, owner: user}
	s.addChannel(t)
	m := &Message{ID: t.ID, Channel: t.ID, Author: user, Content: text}
	s.parse(m)
	s.add(m)
	return t.ID
}

// UserEdits changes what a user wrote.
func (s *Server) UserEdits(channel, message, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.find(channel, message)
	if m == nil {
		return
	}
	m.Versions = append(m.Versions, m.Content)
	m.Content, m.EditedAt = text, time.Now()
	s.parse(m)
	s.dispatch("MESSAGE_UPDATE", s.messageWire(m, true))
}

// Unfurl sends the update that follows when the server has looked at a link: nothing of the text
// changes.
func (s *Server) Unfurl(channel, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.find(channel, message); m != nil {
		s.dispatch("MESSAGE_UPDATE", s.messageWire(m, true))
	}
}

// UserDeletes removes a message.
func (s *Server) UserDeletes(channel, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.find(channel, message); m != nil {
		m.Deleted = true
		s.dispatch("MESSAGE_DELETE", s.deletionWire(m))
	}
}

// UserReacts puts an emoji of a user on a message.
func (s *Server) UserReacts(channel, user, message, emoji string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.find(channel, message); m != nil {
		data := s.deletionWire(m)
		data["message_id"], data["user_id"], data["emoji"] = m.ID, user, map[string]any{"id": nil, "name": emoji}
		delete(data, "id")
		s.dispatch("MESSAGE_REACTION_ADD", data)
	}
}

// Press presses a button below a message, or chooses an option of a selection, by its label. It
// returns the id of the interaction, "" if there is no such thing.
func (s *Server) Press(channel, user, message, label string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.find(channel, message)
	if m == nil {
		return ""
	}
	for _, row := range m.Components {
		for _, c := range row.Components {
			if c.Type == ButtonType && c.Label == label && !c.Disabled {
				return s.interact(m, user, map[string]any{"component_type": ButtonType, "custom_id": c.CustomID})
			}
			for _, o := range c.Options {
				if o.Label == label {
					return s.interact(m, user, map[string]any{"component_type": SelectType, "custom_id": c.CustomID, "values": []string{o.Value}})
				}
			}
		}
	}
	return ""
}

// PressData uses a component that is no longer there, or was made up.
func (s *Server) PressData(channel, user, message, customID string, values ...string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.find(channel, message)
	if m == nil {
		return ""
	}
	data := map[string]any{"component_type": ButtonType, "custom_id": customID}
	if len(values) > 0 {
		data["component_type"], data["values"] = SelectType, values
	}
	return s.interact(m, user, data)
}

func (s *Server) interact(m *Message, user string, data map[string]any) string {
	i := &Interaction{Kind: ComponentInteraction, Channel: m.Channel, User: user, Message: m.ID}
	shown := s.messageWire(m, false)
	if m.Ephemeral {
		shown["flags"] = m.Flags | EphemeralFlag
	}
	return s.start(i, data, map[string]any{"message": shown})
}

// Argument is a value for an option of a command.
type Argument struct {
	Name    string
	Value   any
	Focused bool // being typed: asks for suggestions
}

// RunCommand lets a user run a command and returns the id of the interaction.
func (s *Server) RunCommand(channel, user, name string, args ...Argument) string {
	return s.command(CommandInteraction, channel, user, name, args)
}

// Complete lets a user type into an option of a command.
func (s *Server) Complete(channel, user, name string, args ...Argument) string {
	return s.command(CompleteInteraction, channel, user, name, args)
}

func (s *Server) command(kind int, channel, user, name string, args []Argument) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	options := []any{}
	for _, a := range args {
		o := map[string]any{"name": a.Name, "type": 3, "value": a.Value}
		if a.Focused {
			o["focused"] = true
		}
		options = append(options, o)
	}
	i := &Interaction{Kind: kind, Channel: channel, User: user}
	return s.start(i, map[string]any{"id": "1", "name": name, "type": 1, "options": options}, nil)
}

// start tells the bot about an interaction.
func (s *Server) start(i *Interaction, data, more map[string]any) string {
	s.serial++
	i.ID, i.Token, i.At = s.newID(), "interaction-token-"+strconv.Itoa(s.serial), time.Now()
	s.waiting[i.ID] = i
	event := map[string]any{
		"id": i.ID, "application_id": ApplicationID, "type": i.Kind, "token": i.Token, "version": 1, "channel_id": i.Channel, "data": data, "locale": "en-US",
	}
	u := s.user(i.User)
	c := s.channels[i.Channel]
	if c != nil {
		event["channel"] = s.channelWire(c)
	}
	if c != nil && c.Guild != "" {
		member := s.memberWire(c.Guild, i.User)
		member["user"] = u
		event["guild_id"], event["member"] = c.Guild, member
	} else {
		event["user"] = u
	}
	for k, v := range more {
		event[k] = v
	}
	s.dispatch("INTERACTION_CREATE", event)
	return i.ID
}

// Labels returns the labels of the buttons and options below a message, row by row.
func (m Message) Labels() []string {
	var out []string
	for _, row := range m.Components {
		for _, c := range row.Components {
			if c.Type == ButtonType {
				out = append(out, c.Label)
			}
			for _, o := range c.Options {
				out = append(out, strings.TrimSpace(c.Placeholder+" "+o.Label))
			}
		}
	}
	return out
}
