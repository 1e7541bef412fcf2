package slack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"understudy/chat"
)

const (
	// placeLimit bounds asking what a conversation is: Slack delivers an event again that is not
	// acknowledged within three seconds.
	placeLimit = 2 * time.Second
	mostAsking = 16 // events that wait for the answer at a time
)

// errNoPlace tells that Slack's answer does not say what a conversation is.
var errNoPlace = errors.New("an answer that does not say what the conversation is")

// unplaced reports whether an event leaves open what its conversation is. A mention tells no
// channel_type, so that the first one from somewhere can be from a channel or from a conversation of a
// few people, where other rules hold.
func (b *Bot) unplaced(e event) bool {
	if e.Type != "app_mention" || e.Channel == "" || strings.HasPrefix(e.Channel, "D") || kindOf(e.ChannelType) != "" {
		return false
	}
	known, _ := b.kinds.get(e.Channel)
	return kindOf(known) == ""
}

// privateGroup is what Slack calls both a private channel and a conversation of a few people when a slash
// command is used there.
const privateGroup = "privategroup"

// unplacedSlash reports whether a slash command leaves open what its conversation is.
func (b *Bot) unplacedSlash(s slash) bool {
	if s.Channel == "" || s.ChannelName != privateGroup && s.ChannelName != "" || strings.HasPrefix(s.Channel, "D") {
		return false
	}
	known, _ := b.kinds.get(s.Channel)
	return kindOf(known) == ""
}

// mustAsk reports whether Slack has to be asked something before a payload can be taken.
func (b *Bot) mustAsk(kind string, payload []byte) bool {
	if kind == kindSlash {
		var s slash
		return decode(payload, &s) == nil && b.unplacedSlash(s)
	}
	if kind != kindEvents || !bytes.Contains(payload, []byte(`"app_mention"`)) {
		return false
	}
	var o outer
	var e event
	return decode(payload, &o) == nil && decode(o.Event, &e) == nil && b.unplaced(e)
}

// learnPlace asks what a conversation is and how it is called.
func (b *Bot) learnPlace(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, placeLimit)
	defer cancel()
	var got struct {
		Channel struct {
			Name    string `json:"name"`
			Direct  bool   `json:"is_im"`
			Several bool   `json:"is_mpim"`
			Public  bool   `json:"is_channel"`
			Group   bool   `json:"is_group"`
			Private bool   `json:"is_private"`
		} `json:"channel"`
	}
	if err := b.api.raw(ctx, "conversations.info", url.Values{"channel": {id}}, &got); err != nil {
		return err
	}
	switch c := got.Channel; {
	case c.Several:
		b.kinds.put(id, typeOf(chat.Group))
	case c.Direct:
		b.kinds.put(id, typeOf(chat.Direct))
	case c.Public, c.Group, c.Private:
		b.kinds.put(id, typeOf(chat.Room))
		b.names.put(id, c.Name)
	default:
		return fmt.Errorf("slack conversations.info: %w", errNoPlace)
	}
	return nil
}

// title is what people call a channel, "" = it is not known yet, or the place has no name of its own.
func (b *Bot) title(a chat.Address) string {
	if a.Kind != chat.Room {
		return ""
	}
	return b.names.get(a.Conversation)
}
