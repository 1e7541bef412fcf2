package discord

import (
	"encoding/json"
	"strings"
	"unicode"
)

// The types are our own: the library's lack fields, and fail on components they do not know. What is
// not decoded cannot be malformed.

// frame is one frame of the gateway.
type frame struct {
	Op   *int            `json:"op"`
	Data json.RawMessage `json:"d"`
	Seq  *int64          `json:"s"`
	Type string          `json:"t"`
}

type user struct {
	ID         string  `json:"id"`
	Username   string  `json:"username"`
	GlobalName string  `json:"global_name"`
	Bot        bool    `json:"bot"`
	Member     *member `json:"member"` // of mentioned users
}

type member struct {
	User  *user    `json:"user"`
	Nick  string   `json:"nick"`
	Roles []string `json:"roles"`
}

type message struct {
	ID          string   `json:"id"`
	Channel     string   `json:"channel_id"`
	Guild       string   `json:"guild_id"`
	Author      *user    `json:"author"`
	Member      *member  `json:"member"`
	Content     string   `json:"content"`
	Timestamp   string   `json:"timestamp"`
	Edited      string   `json:"edited_timestamp"`
	Type        int      `json:"type"`
	Flags       int      `json:"flags"`
	Webhook     string   `json:"webhook_id"`
	Mentions    []user   `json:"mentions"`
	Roles       []string `json:"mention_roles"`
	Attachments []file   `json:"attachments"`
	Reference   *struct {
		Type    int    `json:"type"`
		Message string `json:"message_id"`
		Channel string `json:"channel_id"`
	} `json:"message_reference"`
	Referenced *message `json:"referenced_message"`
	Forwarded  []struct {
		Message *message `json:"message"`
	} `json:"message_snapshots"`
}

type file struct {
	Name      string `json:"filename"`
	MediaType string `json:"content_type"`
	Size      int64  `json:"size"`
	URL       string `json:"url"`
}

// channel is a channel or thread.
type channel struct {
	ID     string `json:"id"`
	Parent string `json:"parent_id"`
	Name   string `json:"name"`
	Type   int    `json:"type"`
	Last   string `json:"last_message_id"` // of a moment: it is not told again when something is said
}

// Types of channels.
const (
	typeDirect        = 1
	typeGroupDirect   = 3
	typeNewsThread    = 10
	typePublicThread  = 11
	typePrivateThread = 12
	typeText          = 0
	typeNews          = 5
	typeForum         = 15
	typeMedia         = 16
)

func (c channel) thread() bool {
	return c.Type == typeNewsThread || c.Type == typePublicThread || c.Type == typePrivateThread
}

func (c channel) forum() bool { return c.Type == typeForum || c.Type == typeMedia }

type role struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Tags *struct {
		Bot string `json:"bot_id"`
	} `json:"tags"`
}

type guild struct {
	ID       string    `json:"id"`
	Roles    []role    `json:"roles"`
	Channels []channel `json:"channels"`
	Threads  []channel `json:"threads"`
}

type interaction struct {
	ID          string   `json:"id"`
	Application string   `json:"application_id"`
	Type        int      `json:"type"`
	Token       string   `json:"token"`
	Guild       string   `json:"guild_id"`
	ChannelID   string   `json:"channel_id"`
	Channel     *channel `json:"channel"`
	Member      *member  `json:"member"`
	User        *user    `json:"user"`
	Message     *message `json:"message"`
	Data        struct {
		Name     string   `json:"name"`
		CustomID string   `json:"custom_id"`
		Values   []string `json:"values"`
		Options  []option `json:"options"`
	} `json:"data"`
}

type option struct {
	Name    string          `json:"name"`
	Value   json.RawMessage `json:"value"`
	Focused bool            `json:"focused"`
	Options []option        `json:"options"`
}

// text is an option's value as a person would type it.
func (o option) text() string {
	var s string
	if json.Unmarshal(o.Value, &s) == nil {
		return s
	}
	return strings.Trim(string(o.Value), `"`)
}

// author is who made the interaction; nil if that is not said.
func (i *interaction) author() *user {
	if i.Member != nil && i.Member.User != nil {
		return i.Member.User
	}
	return i.User
}

const longestName = 80

// name is what a person calls themselves, as one short line.
func (u *user) name(m *member) string {
	if m == nil {
		m = u.Member
	}
	switch {
	case m != nil && m.Nick != "":
		return oneLine(m.Nick)
	case u.GlobalName != "":
		return oneLine(u.GlobalName)
	default:
		return oneLine(u.Username)
	}
}

// oneLine makes a name from outside harmless inside a text.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s)
	return clip(strings.TrimSpace(s), longestName)
}
