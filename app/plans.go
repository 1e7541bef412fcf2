package app

import (
	"context"
	"maps"
	"slices"

	"understudy/channels"
	"understudy/channels/discord"
	"understudy/channels/slack"
	"understudy/channels/telegram"
	"understudy/config"
	"understudy/delivery"
	"understudy/inbound"
)

// plan is one account of a platform as the configuration wants it.
type plan struct {
	key       inbound.Account
	at        string // the key of its configuration
	access    inbound.Access
	settings  delivery.Settings
	fileLimit int64 // bytes
	// turns is how much of a direct conversation a model is shown, 0 = all; lookBack is how many messages
	// of a thread that was there before the bot it is shown once.
	turns, lookBack int
	inherit         bool // threads begin with what was said around them
	// connect is the part of its configuration that takes effect when it connects: a change restarts
	// the account. Everything else applies at once.
	connect any
	open    func(ctx context.Context) (channels.Adapter, error)
}

// plans lists the accounts of all platforms, in a fixed order.
func (a *App) plans(cfg *config.Config) []plan {
	p := planner{a: a, cfg: cfg, scope: delivery.Scope(cfg.Messages.AckReactionScope)}
	list := slices.Concat(
		plansOf(slack.Channel, cfg.SlackAccounts(), p.slack),
		plansOf(discord.Channel, cfg.DiscordAccounts(), p.discord),
		plansOf(telegram.Channel, cfg.TelegramAccounts(), p.telegram),
	)
	for i := range list {
		list[i].turns = cfg.Manners(list[i].key.Channel, list[i].key.Name).DMHistoryLimit
	}
	return list
}

// plansOf makes the plans of one platform.
func plansOf[T any](channel string, accounts map[string]T, f func(T, inbound.Account) plan) []plan {
	var list []plan
	for _, id := range slices.Sorted(maps.Keys(accounts)) {
		p := f(accounts[id], inbound.Account{Channel: channel, Name: accountName(id)})
		p.at = "channels." + channel
		if p.key.Name != "" {
			p.at += ".accounts." + p.key.Name
		}
		list = append(list, p)
	}
	return list
}

// planner makes plans of one configuration.
type planner struct {
	a     *App
	cfg   *config.Config
	scope delivery.Scope
}

// typing is from when on people see that the bot works.
func (p planner) typing(k inbound.Account) delivery.Typing {
	return delivery.Typing(p.cfg.Manners(k.Channel, k.Name).TypingMode)
}

// statusSigns are the reactions for what becomes of a message, for a channel that shows them.
func statusSigns(on bool, s delivery.StatusReactions) delivery.StatusReactions {
	if !on {
		return delivery.StatusReactions{}
	}
	return s
}

// The values of `streaming.mode` in which something is shown before the answer: its text, or what the turn does.
const (
	modePartial  = "partial"
	modeProgress = "progress"
)

// previews reports whether a streaming mode shows anything before the answer.
func previews(mode string) bool { return mode == modePartial || mode == modeProgress }
