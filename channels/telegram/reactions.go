package telegram

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"understudy/channels"
	"understudy/chat"
)

// fallbackReaction takes the place of an emoji that Telegram does not allow.
const fallbackReaction = "👀"

// reactionEmoji are all emoji that bots may react with, without variation selectors.
const reactionEmoji = "👍 👎 ❤ 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤‍🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 👻 👨‍💻 👀 🎃 🙈 😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷‍♂ 🤷 🤷‍♀ 😡"

// variationSelector asks for the coloured form of an emoji; Telegram's list is without it.
const variationSelector = "\ufe0f"

// plainEmoji is an emoji as Telegram's list has it.
func plainEmoji(emoji string) string {
	return strings.ReplaceAll(strings.TrimSpace(emoji), variationSelector, "")
}

// allowedReaction reports whether bots may react with an emoji.
func allowedReaction(emoji string) bool {
	emoji = plainEmoji(emoji)
	for known := range strings.FieldsSeq(reactionEmoji) {
		if known == emoji {
			return true
		}
	}
	return false
}

// errNotANumber is the cause when an id cannot be one of Telegram's.
var errNotANumber = errors.New("telegram: not a message id")

// React implements channels.Reactor. Telegram knows a fixed set of emoji; any other becomes 👀. A bot
// has one reaction to a message, so a new one takes the place of the former.
func (b *Bot) React(ctx context.Context, to chat.Address, id, emoji string) error {
	shown := plainEmoji(emoji)
	if !allowedReaction(shown) {
		shown = fallbackReaction
	}
	if err := b.setReaction(ctx, to, id, jsonText([]map[string]string{{"type": "emoji", "emoji": shown}})); err != nil {
		return err
	}
	b.reactions.put(to.Conversation+":"+id, emoji)
	return nil
}

// Unreact implements channels.Reactor. It leaves a reaction alone that has taken the place of emoji.
func (b *Bot) Unreact(ctx context.Context, to chat.Address, id, emoji string) error {
	key := to.Conversation + ":" + id
	if now, known := b.reactions.get(key); known && now != emoji {
		return nil
	}
	err := b.setReaction(ctx, to, id, "[]")
	var e *channels.SendError
	if errors.As(err, &e) && e.Verdict == channels.Missing {
		err = nil
	}
	if err == nil {
		b.reactions.put(key, "")
	}
	return err
}

func (b *Bot) setReaction(ctx context.Context, to chat.Address, id, list string) error {
	if _, err := strconv.Atoi(id); err != nil {
		return &channels.SendError{Verdict: channels.Missing, Code: "message_gone", Err: errNotANumber}
	}
	params := tgbotapi.Params{"chat_id": to.Conversation, "message_id": id, "reaction": list}
	if _, err := b.api.call(ctx, b.api.calls, "setMessageReaction", params); err != nil {
		return b.verdict(err, to, true)
	}
	return nil
}

const mostReactions = 1024

// shownReactions remembers which emoji was asked for last on recent messages.
type shownReactions struct {
	mu    sync.Mutex
	known map[string]string // message → emoji, "" = none
	order []string          // oldest first
}

func (r *shownReactions) put(key, emoji string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known = map[string]string{}
	}
	if _, known := r.known[key]; !known {
		if len(r.order) >= mostReactions {
			delete(r.known, r.order[0])
			r.order = r.order[1:]
		}
		r.order = append(r.order, key)
	}
	r.known[key] = emoji
}

func (r *shownReactions) get(key string) (emoji string, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	emoji, known = r.known[key]
	return emoji, known
}
