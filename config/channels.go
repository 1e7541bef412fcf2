package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/goccy/go-yaml/ast"

	"understudy/channels/telegram"
	"understudy/internal/secret"
)

// DefaultAccount is the account that the keys of a channel block itself describe.
const DefaultAccount = "default"

// telegramTokenVar holds the token of the default account when the block has none.
const telegramTokenVar = "TELEGRAM_BOT_TOKEN"

// Channels is the `channels` section. A channel without a block is off (spec/chat.md §2.1).
type Channels struct {
	Telegram *Telegram `yaml:"telegram"`
}

// Telegram is the `channels.telegram` block: the default account, and further ones which start
// from its keys, except for the token.
type Telegram struct {
	telegram.Config `yaml:",inline"`
	Accounts        map[string]telegram.Config `yaml:"accounts"`
}

// decodeNode decodes the block's own keys first, because the accounts start from them.
func (t *Telegram) decodeNode(d *decoder, n ast.Node, path string) {
	var written struct {
		telegram.Config `yaml:",inline"`
		Accounts        map[string]deferred `yaml:"accounts"`
	}
	d.section(n, reflect.ValueOf(&written).Elem(), path)
	t.Config = written.Config
	if written.Accounts == nil {
		return
	}
	t.Accounts = make(map[string]telegram.Config, len(written.Accounts))
	for _, id := range slices.Sorted(maps.Keys(written.Accounts)) {
		account := t.Config
		account.BotToken = secret.String{}
		if node := written.Accounts[id].node; node != nil {
			d.value(node, reflect.ValueOf(&account).Elem(), join(join(path, "accounts"), id))
		}
		t.Accounts[id] = account
	}
}

// deferred keeps a part of the file to be decoded later.
type deferred struct{ node ast.Node }

func (r *deferred) decodeNode(_ *decoder, n ast.Node, _ string) { r.node = n }

// TelegramAccounts returns the accounts to run, by id: enabled, valid and with a token.
func (c *Config) TelegramAccounts() map[string]telegram.Config { return maps.Clone(c.telegram) }

// resolveTelegram completes and checks the accounts.
func (c *Config) resolveTelegram(d *decoder) {
	block := c.Channels.Telegram
	if block == nil {
		return
	}
	const at = "channels.telegram"
	c.telegram = map[string]telegram.Config{}
	if block.BotToken.IsZero() && !d.isUnavailable("telegram", "") {
		if v, ok := d.env(telegramTokenVar); ok {
			block.BotToken = d.keep(v)
		}
	}
	if len(block.Accounts) == 0 || !block.BotToken.IsZero() || d.isUnavailable("telegram", "") {
		c.addTelegram(d, DefaultAccount, block.Config, at, d.isUnavailable("telegram", ""))
	}
	for _, id := range slices.Sorted(maps.Keys(block.Accounts)) {
		if id == DefaultAccount {
			d.fail(join(at+".accounts", id), "this account is the block itself", "move its keys one level up")
			continue
		}
		if !validAgentID(id) {
			d.fail(join(at+".accounts", id), fmt.Sprintf("%s cannot be an account id", quote(id)), "lower-case letters, digits, - and _, at most 64")
			continue
		}
		c.addTelegram(d, id, block.Accounts[id], join(at+".accounts", id), d.isUnavailable("telegram", id))
	}
}

func (c *Config) addTelegram(d *decoder, id string, t telegram.Config, at string, unavailable bool) {
	t = t.WithDefaults()
	if t.Enabled != nil && !*t.Enabled {
		return
	}
	if unavailable { // the rest of the block is checked all the same
		t.BotToken = secret.New("1:unavailable")
	}
	d.component(at, t.Validate())
	for other, o := range c.telegram {
		if !unavailable && o.BotToken == t.BotToken {
			d.fail(at+".botToken", fmt.Sprintf("account %s uses this token already", quote(other)), "two pollers of one token take each other's messages")
		}
	}
	if !unavailable {
		c.telegram[id] = t
	}
}

func (d *decoder) isUnavailable(channel, account string) bool {
	return slices.ContainsFunc(d.unavailable, func(u Unavailable) bool { return u.Channel == channel && u.Account == account })
}
