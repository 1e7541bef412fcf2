package app

import (
	"context"
	"errors"
	"time"

	"understudy/channels"
	"understudy/channels/console"
	"understudy/channels/discord"
	"understudy/channels/slack"
	"understudy/channels/telegram"
	"understudy/channels/web"
	"understudy/chat"
	"understudy/config"
	"understudy/delivery"
	"understudy/inbound"
	"understudy/reply"
)

// channelNames lists the channels for metrics.
func channelNames() []string {
	return []string{web.Channel, console.Channel, slack.Channel, discord.Channel, telegram.Channel}
}

// openChannels builds the adapters and registers them with delivery.
func (a *App) openChannels(ctx context.Context, cfg *config.Config) error {
	var err error
	if a.web, err = web.New(web.Config{}, web.Deps{History: &history{a: a}, Log: a.log}); err != nil {
		return err
	}
	if err := a.openLocal(a.web, delivery.Settings{Previews: true, Typing: delivery.TypingInstant}); err != nil {
		return err
	}
	for _, name := range []string{"", console.AccountWhole} {
		c, err := console.New(name)
		if err != nil {
			return err
		}
		a.consoles = append(a.consoles, c)
		var set delivery.Settings
		if name == "" {
			set = delivery.Settings{Previews: true, Typing: delivery.TypingInstant}
		}
		if err := a.openLocal(c, set); err != nil {
			return err
		}
	}
	for _, p := range a.plans(cfg) {
		a.open(ctx, p)
	}
	return nil
}

// openLocal adds a channel of this machine.
func (a *App) openLocal(x channels.Adapter, set delivery.Settings) error {
	t := x.Traits()
	a.roster.add(&account{key: inbound.Account{Channel: t.Channel, Name: t.Account}, adapter: x})
	return a.delivery.Register(x, set)
}

// accountName is how an account is called in addresses: the default one has no name.
func accountName(id string) string {
	if id == config.DefaultAccount {
		return ""
	}
	return id
}

// accountID is accountName the other way round.
func accountID(name string) string {
	if name == "" {
		return config.DefaultAccount
	}
	return name
}

// configuredAccess gathers who may talk to the bot.
func (a *App) configuredAccess(cfg *config.Config) inbound.Config {
	c := inbound.Config{
		Access: map[inbound.Account]inbound.Access{}, Owners: cfg.Commands.OwnerAllowFrom, MaxAge: cfg.Messages.CatchUp.MaxAge,
		Debounce: debounce(cfg.Messages.Inbound), Loops: cfg.Messages.BotLoopProtection.Loops(),
	}
	for _, p := range a.plans(cfg) {
		c.Access[p.key] = p.access.WithDefaults()
	}
	return c
}

// debounce is how long messages wait for more of the same sender. The page and the terminal show each
// message until it is answered, so theirs do not wait.
func debounce(m config.InboundMessages) inbound.Debounce {
	span := func(ms int) time.Duration { return time.Duration(ms) * time.Millisecond }
	d := inbound.Debounce{Window: span(m.DebounceMs), ByChannel: map[string]time.Duration{web.Channel: 0, console.Channel: 0}}
	for channel, ms := range m.ByChannel {
		d.ByChannel[channel] = span(ms)
	}
	return d
}

// largestFile bounds a file of a channel that says nothing about it, in bytes.
const largestFile = 20 << 20

// fetch downloads an attachment of an authorised message, of at most so many bytes, through the adapter it
// came from.
func (a *App) fetch(ctx context.Context, in *chat.Inbound, file chat.Attachment, most int64) ([]byte, error) {
	x, ok := a.roster.of(in.Address)
	if !ok {
		return nil, errors.New("the channel is gone")
	}
	f, ok := x.adapter.(channels.Fetcher)
	if !ok {
		return nil, errors.New("this channel cannot load files")
	}
	var limit int64 = largestFile
	if p := x.plan.Load(); p != nil && p.fileLimit > 0 {
		limit = p.fileLimit
	}
	data, err := f.Fetch(ctx, file, min(limit, most))
	if errors.Is(err, channels.ErrTooLarge) {
		err = errors.Join(reply.ErrFileTooLarge, err)
	}
	return data, err
}
