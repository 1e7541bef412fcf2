package discord

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/bwmarrin/discordgo"

	"understudy/channels"
	"understudy/chat"
)

// where is the channel or thread in which a message stands. The first message of a post has the id of
// its thread; the message that a thread was opened on has it too, but stands in the channel.
func (b *Bot) where(to chat.Address, id string) string {
	forum := b.isForum(to.Conversation)
	if thread, astray := b.detours.get(id); astray && thread == to.Thread {
		to.Thread = ""
	}
	switch {
	case forum && to.Thread == "":
		return id
	case !forum && to.Thread == id:
		return to.Conversation
	}
	return b.place(to)
}

// change is what replaces a message: its text and all that is below it.
func (b *Bot) change(text string, below []component) edited {
	c := edited{Content: &text, Components: below}
	if below == nil {
		c.Components = []component{}
	}
	if flags := b.flags(); flags != 0 {
		c.Flags = &flags
	}
	return c
}

// Edit implements channels.Editor.
func (b *Bot) Edit(ctx context.Context, to chat.Address, id string, p channels.Piece) error {
	p.To = to
	change := b.change(content(p), b.offer(ctx, p))
	place := b.where(to, id)
	_, err := b.api.call(ctx, request{what: "edit message", method: http.MethodPatch, url: discordgo.EndpointChannelMessage(place, id), route: "edit " + place, body: change})
	return failed(err, true)
}

// Delete implements channels.Editor.
func (b *Bot) Delete(ctx context.Context, to chat.Address, id string) error {
	place := b.where(to, id)
	_, err := b.api.call(ctx, request{what: "delete message", method: http.MethodDelete, url: discordgo.EndpointChannelMessage(place, id), route: "delete " + place})
	return failed(err, true)
}

// Typing implements channels.Typer.
func (b *Bot) Typing(ctx context.Context, to chat.Address) error {
	place := b.place(to)
	if b.isForum(place) {
		return nil // nobody could see it
	}
	_, err := b.api.call(ctx, request{what: "show typing", method: http.MethodPost, url: discordgo.EndpointChannelTyping(place), route: "type " + place})
	return failed(err, true)
}

// TypingTTL implements channels.Typer.
func (b *Bot) TypingTTL() time.Duration { return typingTTL }

// React implements channels.Reactor.
func (b *Bot) React(ctx context.Context, to chat.Address, id, emoji string) error {
	return b.reaction(ctx, http.MethodPut, to, id, emoji)
}

// Unreact implements channels.Reactor.
func (b *Bot) Unreact(ctx context.Context, to chat.Address, id, emoji string) error {
	err := b.reaction(ctx, http.MethodDelete, to, id, emoji)
	var e *channels.SendError
	if errors.As(err, &e) && e.Verdict == channels.Missing {
		return nil // a message that is gone has none
	}
	return err
}

// reaction changes a reaction.
func (b *Bot) reaction(ctx context.Context, method string, to chat.Address, id, emoji string) error {
	name := emojiPath(emoji)
	if name == "" || !isID(id) {
		return &channels.SendError{Verdict: channels.Refused, Code: "emoji", Err: errNoEmoji}
	}
	place := b.where(to, id)
	_, err := b.api.call(ctx, request{
		what: "react", method: method, url: discordgo.EndpointMessageReaction(place, id, url.PathEscape(name), "@me"), route: "react " + place,
	})
	return failed(err, true)
}

// emojiPath is an emoji as it stands in an address: itself, or name:id of a server's own, which people
// also write as <:name:id>; "" if it cannot be one.
func emojiPath(emoji string) string {
	emoji = strings.TrimSpace(emoji)
	if own, ok := strings.CutPrefix(emoji, "<"); ok {
		emoji = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(own, ">"), "a:"), ":")
	}
	if name, id, custom := strings.Cut(emoji, ":"); custom {
		if name == "" || !isID(id) || strings.ContainsFunc(name, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			return ""
		}
		return emoji
	}
	plain := func(r rune) bool {
		return r <= ' ' || r < 0x80 && r != '#' && r != '*' && !unicode.IsDigit(r) || unicode.IsLetter(r)
	}
	keycap := strings.ContainsFunc(emoji, func(r rune) bool { return r >= 0x80 })
	if len(emoji) > 64 || !keycap || strings.ContainsFunc(emoji, plain) {
		return ""
	}
	return emoji
}
