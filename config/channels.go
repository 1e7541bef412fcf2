package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"understudy/channels/discord"
	"understudy/channels/slack"
	"understudy/channels/telegram"
	"understudy/inbound"
	"understudy/internal/secret"
	"understudy/tts"
)

// DefaultAccount is the account that the keys of a channel block itself describe.
const DefaultAccount = "default"

// Channels is the `channels` section. A channel without a block is off (spec/chat.md §2.1).
type Channels struct {
	Slack    *Block[slack.Config]    `yaml:"slack"`
	Discord  *Block[discord.Config]  `yaml:"discord"`
	Telegram *Block[telegram.Config] `yaml:"telegram"`
}

// Entry is one account of a platform: what its adapter takes, and what is alike on all platforms.
type Entry[T any] struct {
	Config  T `yaml:",inline"`
	Manners `yaml:",inline"`
	// TTS is what the account, or in a Block the whole channel, changes of the section `tts`.
	TTS tts.Config `yaml:"tts"`
}

// Block is the section of one platform: the keys of its default account, and further accounts which
// start from them, except for the secrets and for TTS, whose layers Config.Speech lays over each other.
type Block[T any] struct {
	Entry[T] `yaml:",inline"`
	Accounts map[string]Entry[T] `yaml:"accounts"`
}

// decodeNode decodes the block's own keys first, because the accounts start from them.
func (b *Block[T]) decodeNode(d *decoder, n ast.Node, path string) {
	var written struct {
		Entry[T] `yaml:",inline"`
		Accounts map[string]deferred `yaml:"accounts"`
	}
	d.section(n, reflect.ValueOf(&written).Elem(), path)
	b.Entry = written.Entry
	if written.Accounts == nil {
		return
	}
	b.Accounts = make(map[string]Entry[T], len(written.Accounts))
	for _, id := range slices.Sorted(maps.Keys(written.Accounts)) {
		account := b.Entry
		account.TTS = tts.Config{}
		for _, s := range secretsOf(&account) {
			*s = secret.String{}
		}
		if node := written.Accounts[id].node; node != nil {
			d.value(node, reflect.ValueOf(&account).Elem(), join(join(path, "accounts"), id))
		}
		b.Accounts[id] = account
	}
}

// deferred keeps a part of the file to be decoded later.
type deferred struct{ node ast.Node }

func (r *deferred) decodeNode(_ *decoder, n ast.Node, _ string) { r.node = n }

// secretsOf returns the secrets of an account by their keys.
func secretsOf[T any](account *T) map[string]*secret.String {
	v := reflect.ValueOf(account).Elem()
	out := map[string]*secret.String{}
	for _, f := range fieldsOf(v.Type()) {
		if s, ok := v.FieldByIndex(f.index).Addr().Interface().(*secret.String); ok {
			out[f.key] = s
		}
	}
	return out
}

// platformConfig is what the accounts of every platform have in common.
type platformConfig[T any] interface {
	WithDefaults() T
	Validate() error
}

// platform says what is particular about the accounts of one platform.
type platform[T platformConfig[T]] struct {
	name  string
	block *Block[T]
	// tokens are the keys that open the platform, with the environment variable that may hold the
	// default account's. No two accounts may share one.
	tokens map[string]string
	off    func(T) bool
	// shared are the keys that the accounts of all platforms have.
	shared func(*T) shared
	// access says who may talk to an account.
	access func(T) inbound.Access
	// webhook is the path that the platform calls, "" = none.
	webhook func(T) string
}

// accountsOf completes and checks the accounts of a platform and returns those to run, by id.
func accountsOf[T platformConfig[T]](c *Config, d *decoder, p platform[T], hooks webhooks) map[string]T {
	if p.block == nil {
		return nil
	}
	at := "channels." + p.name
	r := resolver[T]{c: c, d: d, p: p, hooks: hooks, run: map[string]T{}, owners: map[secret.String]string{}}
	off := d.isUnavailable(p.name, "")
	main := secretsOf(&p.block.Config)
	opened := off
	for _, key := range slices.Sorted(maps.Keys(p.tokens)) {
		if v, ok := d.env(p.tokens[key]); ok && main[key].IsZero() && !off {
			*main[key] = d.keep(v)
		}
		opened = opened || !main[key].IsZero()
	}
	if opened || len(p.block.Accounts) == 0 {
		r.add(DefaultAccount, p.block.Entry, at, off)
	}
	for _, id := range slices.Sorted(maps.Keys(p.block.Accounts)) {
		here := join(at+".accounts", id)
		switch {
		case id == DefaultAccount:
			d.fail(here, "this account is the block itself", "move its keys one level up")
		case !validAgentID(id):
			d.fail(here, fmt.Sprintf("%s cannot be an account id", quote(id)), "lower-case letters, digits, - and _, at most 64")
		default:
			r.add(id, p.block.Accounts[id], here, d.isUnavailable(p.name, id))
		}
	}
	return r.run
}

// resolver gathers the accounts of one platform.
type resolver[T platformConfig[T]] struct {
	c      *Config
	d      *decoder
	p      platform[T]
	hooks  webhooks
	run    map[string]T
	owners map[secret.String]string // by token
}

// add checks one account. One whose secret cannot be resolved does not run; the rest of it is checked
// all the same.
func (r *resolver[T]) add(id string, entry Entry[T], at string, unavailable bool) {
	account := entry.Config
	patterns := *r.p.shared(&account).patterns != nil
	r.c.inherit(r.p.shared(&account))
	r.c.expandAll(r.d, reflect.ValueOf(&account).Elem(), r.p.name, at)
	triggers := *r.p.shared(&account).groupAllowFrom
	account = account.WithDefaults()
	if r.p.off(account) {
		return
	}
	err := account.Validate()
	// An adapter's default says the same as no list; only a list that was written binds where groups are open.
	*r.p.shared(&account).groupAllowFrom = triggers
	secrets := secretsOf(&account)
	if unavailable {
		err = without(err, secrets)
	}
	r.d.component(at, err)
	r.d.checkOpen(at, r.p.shared(&account))
	r.d.checkAccess(at, r.p.access(account), patterns)
	r.c.setManners(r.d, r.p.name, id, at, entry.Manners)
	r.c.setSpeech(r.p.name, id, r.p.block.TTS, entry.TTS)
	if unavailable {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(r.p.tokens)) {
		token := secret.New(strings.TrimPrefix(secrets[key].Reveal(), "Bot ")) // Discord's, pasted with what stands before it
		if token.IsZero() {
			continue
		}
		if other, twice := r.owners[token]; twice {
			r.d.fail(at+"."+key, fmt.Sprintf("account %s uses this token already", quote(other)), "two connections of one token take each other's messages")
			continue
		}
		r.owners[token] = id
	}
	if path := r.p.webhook(account); path != "" {
		r.hooks.claim(r.d, path, at)
	}
	r.run[id] = account
}

// without leaves out what is wrong with secrets that could not be resolved: that was reported already.
func without(err error, secrets map[string]*secret.String) error {
	var kept []error
	for _, e := range flatten(err) {
		key, _, _ := strings.Cut(e.Error(), ": ")
		if _, about := secrets[key]; !about {
			kept = append(kept, e)
		}
	}
	return errors.Join(kept...)
}

func (d *decoder) isUnavailable(channel, account string) bool {
	return slices.ContainsFunc(d.unavailable, func(u Unavailable) bool { return u.Channel == channel && u.Account == account })
}
