package slack

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"understudy/chat"
)

// The kinds of envelopes of Socket Mode; requests over HTTP are of the same kinds.
const (
	kindEvents      = "events_api"
	kindSlash       = "slash_commands"
	kindInteractive = "interactive"
)

// outer is the part of an Events API payload that is used. The types are our own: what is not decoded
// cannot be malformed.
type outer struct {
	Type      string          `json:"type"`
	Team      string          `json:"team_id"`
	EventID   string          `json:"event_id"`
	Challenge string          `json:"challenge"`
	Event     json.RawMessage `json:"event"`
}

// event is a message or a mention, and what history gives for one.
type event struct {
	Type        string          `json:"type"`
	Subtype     string          `json:"subtype"`
	Channel     string          `json:"channel"`
	ChannelType string          `json:"channel_type"`
	User        string          `json:"user"`
	Bot         string          `json:"bot_id"`
	Username    string          `json:"username"`
	Text        string          `json:"text"`
	TS          string          `json:"ts"`
	Thread      string          `json:"thread_ts"`
	Parent      string          `json:"parent_user_id"`
	Replies     int             `json:"reply_count"` // of the root of a thread, in histories
	Files       json.RawMessage `json:"files"`
	Attachments json.RawMessage `json:"attachments"`
	Edited      struct {
		TS string `json:"ts"`
	} `json:"edited"`
	Deleted  string `json:"deleted_ts"`
	Message  *event `json:"message"`
	Previous *event `json:"previous_message"`
	// Assistant is the thread of an assistant_thread_started event.
	Assistant struct {
		Channel string `json:"channel_id"`
		Thread  string `json:"thread_ts"`
	} `json:"assistant_thread"`
}

// file is a shared file.
type file struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Title    string `json:"title"`
	MIME     string `json:"mimetype"`
	Size     int64  `json:"size"`
	Subtype  string `json:"subtype"`
	Mode     string `json:"mode"`
	Download string `json:"url_private_download"`
	Private  string `json:"url_private"`
	Access   string `json:"file_access"`
}

// files decodes what can be decoded of a list of files.
func (e *event) files() []file { return each[file](e.Files) }

// shared is a message that was forwarded with this one.
type shared struct {
	Text       string `json:"text"`
	Fallback   string `json:"fallback"`
	Share      bool   `json:"is_share"`
	Unfurled   bool   `json:"is_msg_unfurl"`
	Author     string `json:"author_id"`
	AuthorName string `json:"author_name"`
	Bot        string `json:"bot_id"`
}

// decode decodes JSON as far as it can: a field of an unexpected type stays empty, and costs nothing
// else.
func decode(raw []byte, into any) error {
	err := json.Unmarshal(raw, into)
	var odd *json.UnmarshalTypeError
	if errors.As(err, &odd) && len(raw) > 0 && raw[0] == '{' {
		return nil
	}
	return err
}

// each decodes the elements of a list one by one and leaves out those that cannot be decoded.
func each[T any](raw json.RawMessage) []T {
	var list []json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &list) != nil {
		return nil
	}
	var out []T
	for _, r := range list {
		var one T
		if decode(r, &one) == nil {
			out = append(out, one)
		}
	}
	return out
}

// slash is a slash command. Over HTTP it is a form with the same names.
type slash struct {
	Team        string `json:"team_id"`
	Channel     string `json:"channel_id"`
	ChannelName string `json:"channel_name"`
	User        string `json:"user_id"`
	UserName    string `json:"user_name"`
	Command     string `json:"command"`
	Text        string `json:"text"`
	ResponseURL string `json:"response_url"`
	Trigger     string `json:"trigger_id"`
}

// interaction is a pressed button or a chosen entry.
type interaction struct {
	Type    string `json:"type"`
	Trigger string `json:"trigger_id"`
	Team    struct {
		ID string `json:"id"`
	} `json:"team"`
	User struct {
		ID       string `json:"id"`
		Username string `json:"username"`
		Name     string `json:"name"`
	} `json:"user"`
	Channel struct {
		ID string `json:"id"`
	} `json:"channel"`
	Container struct {
		Message   string `json:"message_ts"`
		Channel   string `json:"channel_id"`
		Ephemeral bool   `json:"is_ephemeral"`
	} `json:"container"`
	ResponseURL string `json:"response_url"`
	Actions     []struct {
		Value    string `json:"value"`
		Selected struct {
			Value string `json:"value"`
		} `json:"selected_option"`
	} `json:"actions"`
}

// identity is the app in its workspace.
type identity struct {
	user, bot, name string
	team, app       string
}

// kindOf returns the kind of a conversation by what Slack calls it, "" = not known.
func kindOf(channelType string) chat.Kind {
	switch channelType {
	case "im":
		return chat.Direct
	case "mpim":
		return chat.Group
	case "channel", "group":
		return chat.Room
	}
	return ""
}

// typeOf is what Slack calls a kind of conversation.
func typeOf(k chat.Kind) string {
	switch k {
	case chat.Direct:
		return "im"
	case chat.Group:
		return "mpim"
	}
	return "channel"
}

// moment is the time in a message's timestamp, zero if there is none.
func moment(ts string) time.Time {
	sec, frac, _ := strings.Cut(ts, ".")
	n, err := strconv.ParseInt(sec, 10, 64)
	if err != nil || n < 0 || n > 1<<40 {
		return time.Time{}
	}
	micro, err := strconv.ParseInt((frac + "000000")[:6], 10, 64)
	if err != nil || micro < 0 {
		micro = 0
	}
	return time.Unix(n, micro*int64(time.Microsecond)).UTC()
}

// stamp is the timestamp of a moment.
func stamp(t time.Time) string {
	return strconv.FormatInt(t.Unix(), 10) + "." + strconv.FormatInt(int64(t.Nanosecond()/1000)+1_000_000, 10)[1:]
}
