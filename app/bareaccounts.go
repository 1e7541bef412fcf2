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
)

// bareAccount is an account outside of a bot: it sends and asks, but does not receive.
type bareAccount struct {
	channel, id string
	adapter     channels.Adapter
	err         error
}

// bareAccounts makes the configured accounts without a bot around them, in a fixed order.
func bareAccounts(o Options, cfg *config.Config) []bareAccount {
	var list []bareAccount
	add := func(channel, id string, x channels.Adapter, err error) {
		list = append(list, bareAccount{channel, id, x, err})
	}
	for _, id := range slices.Sorted(maps.Keys(cfg.SlackAccounts())) {
		x, err := slack.New(cfg.SlackAccounts()[id], slack.Deps{Account: accountName(id), Menus: noMenus{}, Log: quiet(), Transport: o.Slack, Dial: o.Dial})
		add(slack.Channel, id, x, err)
	}
	for _, id := range slices.Sorted(maps.Keys(cfg.DiscordAccounts())) {
		x, err := discord.New(cfg.DiscordAccounts()[id], discord.Deps{Account: accountName(id), Log: quiet(), Transport: o.Discord, Dial: o.Dial})
		add(discord.Channel, id, x, err)
	}
	for _, id := range slices.Sorted(maps.Keys(cfg.TelegramAccounts())) {
		x, err := telegram.New(cfg.TelegramAccounts()[id], telegram.Deps{Account: accountName(id), Offsets: noOffsets{}, Log: quiet(), Transport: o.Telegram})
		add(telegram.Channel, id, x, err)
	}
	return list
}

// close frees connections.
func (b bareAccount) close() {
	if c, ok := b.adapter.(interface{ Close() }); ok && b.err == nil {
		c.Close()
	}
}

// noMenus is for an account that offers no buttons.
type noMenus struct{}

// Put implements channels.Menus.
func (noMenus) Put(context.Context, channels.Menu) (string, error) { return "", channels.ErrExpired }

// Get implements channels.Menus.
func (noMenus) Get(context.Context, string) (channels.Menu, error) {
	return channels.Menu{}, channels.ErrExpired
}

// noOffsets is for an account that receives nothing.
type noOffsets struct{}

// Load implements telegram.Offsets.
func (noOffsets) Load(context.Context) (int64, error) { return 0, nil }

// Save implements telegram.Offsets.
func (noOffsets) Save(context.Context, int64) error { return nil }
