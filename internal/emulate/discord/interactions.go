package discord

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Kinds of interactions and of the first answers to them.
const (
	CommandInteraction   = 2
	ComponentInteraction = 3
	CompleteInteraction  = 4

	AnswerMessage  = 4
	AnswerLater    = 5
	UpdateLater    = 6
	UpdateMessage  = 7
	AnswerComplete = 8
)

const (
	answerWithin = 3 * time.Second
	tokenLife    = 15 * time.Minute
)

// Interaction is a command, a press or a request for suggestions of a person, and what the bot made
// of it.
type Interaction struct {
	ID, Token, Channel, User string
	Kind                     int
	Message                  string // the message whose component was used
	At                       time.Time
	// Answer is the kind of the bot's first answer, 0 = none yet; After is when it came.
	Answer    int
	After     time.Duration
	Ephemeral bool
	Original  string   // id of the first answer as a message
	Followups []string // ids of the further ones
	Choices   []Choice
}

// Choice is a suggested value.
type Choice struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
}

// Interaction returns what became of an interaction.
func (s *Server) Interaction(id string) Interaction {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.waiting[id]; i != nil {
		out := *i
		out.Followups = slices.Clone(i.Followups)
		return out
	}
	return Interaction{}
}

// Replies returns what the person who made an interaction reads as its answers, in order.
func (s *Server) Replies(id string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.waiting[id]
	if i == nil {
		return nil
	}
	var out []Message
	for _, m := range append([]string{i.Original}, i.Followups...) {
		if one := s.find(i.Channel, m); one != nil && one.Flags&Loading == 0 {
			out = append(out, one.copy())
		}
	}
	return out
}

// callback takes the first answer to an interaction.
func (s *Server) callback(c Call) any {
	i := s.waiting[c.parts[1]]
	if i == nil || i.Token != c.parts[2] || time.Since(i.At) > answerWithin {
		return refuse(http.StatusNotFound, 10062, "Unknown interaction")
	}
	if i.Answer != 0 {
		return refuse(http.StatusBadRequest, 40060, "Interaction has already been acknowledged.")
	}
	var b struct {
		Type int             `json:"type"`
		Data json.RawMessage `json:"data"`
	}
	if json.Unmarshal(c.Body, &b) != nil {
		return invalid("type", "BASE_TYPE_REQUIRED", "This field is required")
	}
	if len(b.Data) == 0 {
		b.Data = json.RawMessage("{}")
	}
	if r := s.answerWith(c, i, b.Type, b.Data); r != nil {
		return r
	}
	i.Answer, i.After = b.Type, time.Since(i.At)
	return none{}
}

func (s *Server) answerWith(c Call, i *Interaction, kind int, data json.RawMessage) *refusal {
	var d struct {
		Flags   int      `json:"flags"`
		Choices []Choice `json:"choices"`
	}
	if json.Unmarshal(data, &d) != nil {
		return invalid("data", "BASE_TYPE_BAD_TYPE", "unreadable")
	}
	wrong := invalid("type", "BASE_TYPE_CHOICES", "Value is not one of the allowed types.")
	component := i.Kind == ComponentInteraction
	switch {
	case (kind == AnswerComplete) != (i.Kind == CompleteInteraction):
		return wrong
	case kind == AnswerComplete:
		if len(d.Choices) > mostOptions {
			return invalid("data", "BASE_TYPE_BAD_LENGTH", "Must be between 0 and 25 in length.")
		}
		i.Choices = d.Choices
	case kind == AnswerMessage:
		_, m, r := s.compose(c, data, s.channels[i.Channel])
		if r != nil {
			return r
		}
		s.reply(i, m, d.Flags&EphemeralFlag != 0)
		i.Original = m.ID
	case kind == AnswerLater:
		m := &Message{Channel: i.Channel, Author: s.botID, FromBot: true, Flags: Loading}
		s.reply(i, m, d.Flags&EphemeralFlag != 0)
		i.Original = m.ID
	case kind == UpdateLater && component:
		i.Original = i.Message
	case kind == UpdateMessage && component:
		m := s.find(i.Channel, i.Message)
		if m == nil {
			return refuse(http.StatusNotFound, 10008, "Unknown Message")
		}
		if r := s.change(data, m); r != nil {
			return r
		}
		i.Original = i.Message
	default:
		return wrong
	}
	return nil
}

// reply puts an answer into the channel.
func (s *Server) reply(i *Interaction, m *Message, ephemeral bool) {
	i.Ephemeral = ephemeral
	m.Ephemeral, m.For = ephemeral, i.User
	if ephemeral {
		m.Flags |= EphemeralFlag
	}
	if m.Type == 0 && i.Kind == CommandInteraction {
		m.Type = 20
	}
	s.add(m)
}

// routeWebhook takes the further answers to an interaction.
func (s *Server) routeWebhook(c Call) any {
	var i *Interaction
	for _, one := range s.waiting {
		if one.Token == c.parts[2] {
			i = one
		}
	}
	switch {
	case i == nil || c.parts[1] != ApplicationID || i.Answer == 0:
		return refuse(http.StatusNotFound, 10015, "Unknown Webhook")
	case time.Since(i.At) > tokenLife:
		return refuse(http.StatusUnauthorized, 50027, "Invalid Webhook Token")
	case c.match("POST", "webhooks/*/*"):
		return s.followUp(c, i)
	case len(c.parts) != 5:
		return refuse(http.StatusNotFound, 0, "404: Not Found")
	}
	id := c.parts[4]
	if id == "@original" {
		id = i.Original
	}
	m := s.find(i.Channel, id)
	if m == nil {
		return refuse(http.StatusNotFound, 10008, "Unknown Message")
	}
	switch c.Method {
	case http.MethodPatch:
		m.Files = append(m.Files, c.Files...)
		if r := s.change(c.Body, m); r != nil {
			return r
		}
	case http.MethodDelete:
		m.Deleted = true
		return none{}
	}
	return s.messageWire(m, false)
}

func (s *Server) followUp(c Call, i *Interaction) any {
	var d struct {
		Flags int `json:"flags"`
	}
	_, m, r := s.compose(c, c.Body, s.channels[i.Channel])
	if r != nil || json.Unmarshal(c.Body, &d) != nil {
		return r
	}
	s.reply(i, m, d.Flags&EphemeralFlag != 0)
	i.Followups = append(i.Followups, m.ID)
	return s.messageWire(m, false)
}

var commandName = regexp.MustCompile(`^[-_\p{L}\p{N}]{1,32}$`)

// listCommands returns the commands of a scope as they were registered, the last first, each with an id.
func (s *Server) listCommands(scope string) any {
	list := []map[string]any{}
	if raw := s.commands[scope]; len(raw) > 0 && json.Unmarshal(raw, &list) != nil {
		return refuse(http.StatusInternalServerError, 0, "500: Internal Server Error")
	}
	for i, c := range list {
		c["id"], c["application_id"], c["version"], c["name_localizations"] = strconv.Itoa(9000+i), ApplicationID, "1", nil
	}
	slices.Reverse(list)
	return list
}

// setCommands replaces the commands of a scope.
func (s *Server) setCommands(c Call, scope string) any {
	var list []struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Type        int    `json:"type"`
		Options     []struct {
			Name        string   `json:"name"`
			Description string   `json:"description"`
			Required    bool     `json:"required"`
			Complete    bool     `json:"autocomplete"`
			Choices     []Choice `json:"choices"`
		} `json:"options"`
	}
	if json.Unmarshal(c.Body, &list) != nil || len(list) > 100 {
		return invalid("_errors", "BASE_TYPE_BAD_LENGTH", "Must be 100 or fewer in length.")
	}
	seen := map[string]bool{}
	for _, cmd := range list {
		if !commandName.MatchString(cmd.Name) || seen[cmd.Name] || cmd.Description == "" || len([]rune(cmd.Description)) > 100 || len(cmd.Options) > mostOptions {
			return invalid("name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid: "+cmd.Name)
		}
		seen[cmd.Name] = true
		optional := false
		for _, o := range cmd.Options {
			if !commandName.MatchString(o.Name) || o.Description == "" || len([]rune(o.Description)) > 100 || len(o.Choices) > mostOptions || o.Complete && len(o.Choices) > 0 {
				return invalid("options", "APPLICATION_COMMAND_INVALID_NAME", "Option is invalid: "+o.Name)
			}
			if o.Required && optional {
				return invalid("options", "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID", "Required options must be placed before non-required options")
			}
			optional = optional || !o.Required
		}
	}
	s.commands[scope] = c.Body
	return json.RawMessage(c.Body)
}
