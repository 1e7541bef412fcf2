package cron

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"understudy/chat"
)

// ErrDestination tells that a destination makes no sense.
var ErrDestination = errors.New("not a destination")

// Destination reads where results are to go (spec/chat.md §5.6):
//
//	slack     channel:C0123  user:U0123
//	discord   channel:123    user:123
//	telegram  <chat>         <chat>:topic:<id>
//	web, console             the id of a conversation
//
// The channel may stand in front of the rest ("slack:channel:C0123"), but must be the same as an
// explicit one. thread is the Slack or Discord thread, or the Telegram topic. It does not ask the
// platform whether the place exists. For user: the conversation of the address is "user:" and the id,
// which the adapter resolves.
func Destination(channel, to, thread, account string) (chat.Address, error) {
	channel, to = strings.ToLower(strings.TrimSpace(channel)), strings.TrimSpace(to)
	if name, rest, ok := strings.Cut(to, ":"); ok && knownChannel(strings.ToLower(name)) {
		if channel != "" && channel != strings.ToLower(name) {
			return chat.Address{}, fmt.Errorf("%w: %q is not on %s", ErrDestination, to, channel)
		}
		channel, to = strings.ToLower(name), rest
	}
	a := chat.Address{Channel: channel, Account: account, Thread: strings.TrimSpace(thread)}
	bad := func(want string) (chat.Address, error) {
		return chat.Address{}, fmt.Errorf("%w: %q; for %s write %s", ErrDestination, to, channel, want)
	}
	switch {
	case channel == "":
		return a, fmt.Errorf("%w: the channel is missing; there are slack, discord, telegram and web", ErrDestination)
	case to == "":
		return a, fmt.Errorf("%w: it is not said where on %s", ErrDestination, channel)
	case to == "last":
		return a, fmt.Errorf("%w: \"last\" would send the result to whoever wrote last; name the place", ErrDestination)
	case len(to) > 200 || len(a.Thread) > 200 || strings.ContainsFunc(to+a.Thread+account, func(r rune) bool { return r <= ' ' }):
		return bad("an id without blanks")
	case channel == "slack":
		return slack(a, to, bad)
	case channel == "discord":
		return discord(a, to, bad)
	case channel == "telegram":
		return telegram(a, to, bad)
	case knownChannel(channel):
		a.Conversation, a.Kind = to, chat.Direct
		return a, nil
	}
	return a, fmt.Errorf("%w: there is no channel %q; there are slack, discord, telegram and web", ErrDestination, channel)
}

func knownChannel(name string) bool {
	switch name {
	case "slack", "discord", "telegram", "web", "console":
		return true
	}
	return false
}

type refusal func(want string) (chat.Address, error)

func slack(a chat.Address, to string, bad refusal) (chat.Address, error) {
	const want = "channel:C0123… or user:U0123…"
	kind, id, _ := strings.Cut(to, ":")
	switch {
	case kind == "channel" && regexp.MustCompile(`^[CGD][A-Z0-9]{2,30}$`).MatchString(id):
		a.Conversation = id
		a.Kind = map[byte]chat.Kind{'C': chat.Room, 'G': chat.Group, 'D': chat.Direct}[id[0]]
	case kind == "user" && regexp.MustCompile(`^[UW][A-Z0-9]{2,30}$`).MatchString(id):
		a.Conversation, a.Kind = to, chat.Direct
	default:
		return bad(want)
	}
	if a.Thread != "" && !regexp.MustCompile(`^\d{1,12}\.\d{1,9}$`).MatchString(a.Thread) {
		return chat.Address{}, fmt.Errorf("%w: %q is not the timestamp of a Slack thread, such as 1700000000.000100", ErrDestination, a.Thread)
	}
	return a, nil
}

func discord(a chat.Address, to string, bad refusal) (chat.Address, error) {
	const want = "channel:<number> or user:<number>"
	kind, id, _ := strings.Cut(to, ":")
	if !snowflake(id) || a.Thread != "" && !snowflake(a.Thread) {
		return bad(want)
	}
	switch kind {
	case "channel":
		a.Conversation, a.Kind = id, chat.Room
	case "user":
		a.Conversation, a.Kind = to, chat.Direct
	default:
		return bad(want)
	}
	return a, nil
}

func snowflake(s string) bool {
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil && s[0] != '+'
}

func telegram(a chat.Address, to string, bad refusal) (chat.Address, error) {
	const want = "<chat id> or <chat id>:topic:<id>"
	id, topic, hasTopic := strings.Cut(to, ":topic:")
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n == 0 || id[0] == '+' {
		return bad(want)
	}
	if hasTopic {
		if a.Thread != "" && a.Thread != topic {
			return bad(want + ", and the topic only once")
		}
		a.Thread = topic
	}
	if a.Thread != "" || hasTopic {
		if t, err := strconv.ParseInt(a.Thread, 10, 32); err != nil || t <= 0 {
			return bad(want)
		}
	}
	a.Conversation, a.Kind = id, chat.Direct
	if n < 0 {
		a.Kind = chat.Group
	}
	return a, nil
}

// maxWebhook bounds the URL of a webhook, in bytes.
const maxWebhook = 2000

// checkWebhook checks what can be known of a webhook without the network. Where its host leads is
// checked whenever something is posted.
func checkWebhook(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return errors.New("is not a URL") // what is wrong would repeat the URL, which may hold a secret
	case len(text) > maxWebhook:
		return fmt.Errorf("must have at most %d bytes", maxWebhook)
	case u.Scheme != "https":
		return errors.New("must begin with https://")
	case u.User != nil:
		return errors.New("must not hold a password; the token of cron.webhookToken is sent along")
	case u.Fragment != "":
		return errors.New("must not have a fragment (#…)")
	}
	return nil
}
