package app

import (
	"fmt"
	"strconv"
	"strings"

	"understudy/channels/discord"
	"understudy/channels/slack"
	"understudy/channels/telegram"
	"understudy/chat"
)

// parseTarget reads where something is to be said, as people write it (spec/chat.md §5.6): the
// conversation's id on its platform, perhaps with its kind in front (direct:, group: or channel:), and
// for Telegram perhaps with :topic:<id> behind.
func parseTarget(channel, account, to, thread string) (chat.Address, error) {
	a := chat.Address{Channel: channel, Account: account, Conversation: strings.TrimSpace(to), Thread: thread}
	if account == accountID("") {
		a.Account = ""
	}
	if kind, id, ok := strings.Cut(a.Conversation, ":"); ok {
		switch chat.Kind(kind) {
		case chat.Direct, chat.Group, chat.Room:
			a.Kind, a.Conversation = chat.Kind(kind), id
		}
	}
	if id, topic, ok := strings.Cut(a.Conversation, ":topic:"); ok && channel == telegram.Channel {
		if a.Thread != "" && a.Thread != topic {
			return a, fmt.Errorf("%q names a topic, and the thread is another one", to)
		}
		a.Conversation, a.Thread = id, topic
	}
	if a.Conversation == "" || strings.ContainsAny(a.Conversation+a.Thread, " \x00\n") {
		return a, fmt.Errorf("%q is not a conversation", to)
	}
	if a.Kind != "" {
		return a, nil
	}
	kind, err := kindOf(channel, a.Conversation)
	if err != nil {
		return a, err
	}
	a.Kind = kind
	return a, nil
}

// kindOf tells the kind of a conversation by its id, as far as ids tell.
func kindOf(channel, id string) (chat.Kind, error) {
	switch channel {
	case telegram.Channel:
		n, err := strconv.ParseInt(id, 10, 64)
		switch {
		case err != nil:
			return "", fmt.Errorf("%q is not a numeric chat id", id)
		case n < 0:
			return chat.Group, nil
		}
		return chat.Direct, nil
	case slack.Channel:
		switch id[0] {
		case 'C':
			return chat.Room, nil
		case 'D':
			return chat.Direct, nil
		case 'G':
			return chat.Group, nil
		}
		return "", fmt.Errorf("%q is not the id of a conversation: it begins with C, D or G", id)
	case discord.Channel:
		if _, err := strconv.ParseUint(id, 10, 64); err != nil {
			return "", fmt.Errorf("%q is not a numeric channel id", id)
		}
		return chat.Room, nil
	}
	return chat.Direct, nil
}
