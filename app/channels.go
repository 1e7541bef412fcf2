package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"understudy/channels"
	"understudy/channels/console"
	"understudy/channels/telegram"
	"understudy/channels/web"
	"understudy/chat"
	"understudy/config"
	"understudy/delivery"
	"understudy/inbound"
)

// account is one connected channel account.
type account struct {
	adapter channels.Adapter
	// platform tells that the account lives outside: readiness waits for it.
	platform bool
}

// channelNames lists the channels for metrics.
func channelNames() []string { return []string{web.Channel, console.Channel, telegram.Channel} }

// openChannels builds the adapters and registers them with delivery.
func (a *App) openChannels(ctx context.Context, cfg *config.Config) error {
	var err error
	if a.web, err = web.New(web.Config{}, web.Deps{History: history{a}, Log: a.log}); err != nil {
		return err
	}
	if err := a.register(a.web, false, delivery.Settings{Previews: true, Typing: true}); err != nil {
		return err
	}
	for _, name := range []string{"", console.AccountWhole} {
		c, err := console.New(name)
		if err != nil {
			return err
		}
		a.consoles = append(a.consoles, c)
		if err := a.register(c, false, delivery.Settings{Previews: name == "", Typing: name == ""}); err != nil {
			return err
		}
	}
	accounts := cfg.TelegramAccounts()
	for _, id := range slices.Sorted(maps.Keys(accounts)) {
		if err := a.openTelegram(ctx, id, accounts[id]); err != nil {
			return err
		}
	}
	return nil
}

func (a *App) openTelegram(ctx context.Context, id string, cfg telegram.Config) error {
	name := accountName(id)
	cursor, err := inbound.OpenCursor(ctx, a.db, telegram.Channel, name, "offset-"+cfg.BotID())
	if err != nil {
		return err
	}
	bot, err := telegram.New(cfg, telegram.Deps{Account: name, Offsets: cursor, Log: a.log, Moved: a.moved, Transport: a.opts.Telegram})
	if err != nil {
		return fmt.Errorf("channels.telegram.%s: %w", id, err)
	}
	return a.register(bot, true, telegramSettings(cfg))
}

func telegramSettings(c telegram.Config) delivery.Settings {
	return delivery.Settings{
		ReplyTo: delivery.Mode(c.ReplyToMode), Previews: c.Streaming.Mode == "partial", Typing: true,
		TextLimit: c.TextChunkLimit, Newline: c.Streaming.ChunkMode == "newline",
	}
}

// accountName is how an account is called in addresses: the default one has no name.
func accountName(id string) string {
	if id == config.DefaultAccount {
		return ""
	}
	return id
}

func (a *App) register(x channels.Adapter, platform bool, set delivery.Settings) error {
	a.accounts = append(a.accounts, account{x, platform})
	return a.delivery.Register(x, set)
}

// access gathers who may talk to the bot.
func (a *App) access(cfg *config.Config) inbound.Config {
	c := inbound.Config{Access: map[inbound.Account]inbound.Access{}, Owners: cfg.Commands.OwnerAllowFrom, MaxAge: cfg.Messages.CatchUp.MaxAge}
	for id, t := range cfg.TelegramAccounts() {
		x := inbound.Access{
			DMPolicy: t.DMPolicy, AllowFrom: t.AllowFrom, GroupPolicy: t.GroupPolicy, GroupAllowFrom: t.GroupAllowFrom, RequireMention: t.RequireMention,
		}
		if len(t.Groups) > 0 {
			x.Groups = map[string]inbound.Group{}
		}
		for group, g := range t.Groups {
			x.Groups[group] = inbound.Group{RequireMention: g.RequireMention, AllowFrom: g.AllowFrom}
		}
		c.Access[inbound.Account{Channel: telegram.Channel, Name: accountName(id)}] = x.WithDefaults()
	}
	return c
}

// fetch downloads an attachment of an authorised message through the adapter it came from.
func (a *App) fetch(ctx context.Context, in *chat.Inbound, x chat.Attachment) ([]byte, error) {
	const limit = 20 << 20
	for _, acc := range a.accounts {
		t := acc.adapter.Traits()
		if t.Channel != in.Address.Channel || t.Account != in.Address.Account {
			continue
		}
		if f, ok := acc.adapter.(channels.Fetcher); ok {
			return f.Fetch(ctx, x, limit)
		}
	}
	return nil, errors.New("this channel cannot load files")
}

// connections is the last known state of every channel account.
type connections struct {
	mu      sync.Mutex
	list    map[inbound.Account]channels.Status
	waiters map[inbound.Account]chan struct{} // closed once the account is connected
}

func (c *connections) set(s channels.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.list == nil {
		c.list = map[inbound.Account]channels.Status{}
	}
	k := inbound.Account{Channel: s.Channel, Name: s.Account}
	if s.Since.IsZero() {
		s.Since = time.Now()
	}
	if old, ok := c.list[k]; ok && old.State == s.State {
		s.Since = old.Since
	}
	c.list[k] = s
	if w := c.waiters[k]; w != nil && s.State == channels.Connected {
		close(w)
		delete(c.waiters, k)
	}
}

// wait returns a channel that is closed once the account is connected.
func (c *connections) wait(k inbound.Account) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.waiters[k]
	switch {
	case w != nil:
	case c.list[k].State == channels.Connected:
		w = make(chan struct{})
		close(w)
	default:
		w = make(chan struct{})
		if c.waiters == nil {
			c.waiters = map[inbound.Account]chan struct{}{}
		}
		c.waiters[k] = w
	}
	return w
}

// shown returns the states as people should see them, in a fixed order: the terminal is one channel,
// although it has an account of its own for input that is piped.
func (c *connections) shown() []channels.Status {
	return slices.DeleteFunc(c.all(), func(s channels.Status) bool {
		return s.Channel == console.Channel && s.Account == console.AccountWhole
	})
}

// all returns the states, in a fixed order.
func (c *connections) all() []channels.Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := slices.Collect(maps.Values(c.list))
	slices.SortFunc(out, func(a, b channels.Status) int {
		return strings.Compare(a.Channel+"\x00"+a.Account, b.Channel+"\x00"+b.Account)
	})
	return out
}
