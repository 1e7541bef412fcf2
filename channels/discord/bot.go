package discord

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"understudy/channels"
	"understudy/chat"
	"understudy/internal/guard"
)

// Channel is the name of this channel in addresses.
const Channel = "discord"

// Hash keeps the fingerprint of the registered command set over restarts: Discord allows only so
// many registrations a day.
type Hash interface {
	Load(ctx context.Context) (string, error) // "" = nothing stored
	Save(ctx context.Context, hash string) error
}

// Deps are what a Bot needs from outside. All but Account may be nil.
type Deps struct {
	Account string       // name of the account in addresses; "" = default
	Log     *slog.Logger // nil = discard
	// Seen tells what to look into after a gap; nil = nothing is caught up.
	Seen channels.Seen
	// Menus keeps what buttons stand for; nil = pieces are sent without their buttons.
	Menus channels.Menus
	// Hash belongs to one bot (Config.BotID); nil = commands are registered with every start.
	Hash Hash
	// Complete suggests values for options of commands, to those whom Authorised lets in; nil = no
	// suggestions, nobody.
	Complete   channels.Completer
	Authorised func(ctx context.Context, m chat.Inbound) bool
	// Transport makes the HTTP transport, and Dial the connections of the gateway. nil = the network,
	// through Config.Proxy or the proxy of the environment.
	Transport func() http.RoundTripper
	Dial      func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Bot is one account. It implements channels.Adapter, Editor, Typer, Reactor, Fetcher,
// CommandRegistrar, Prober and Looker. Send and its kin work before and while Run runs.
type Bot struct {
	cfg       Config
	deps      Deps
	log       *slog.Logger
	api       *api
	patterns  []*regexp.Regexp
	directory *directory
	vias      *vias
	planned   *planned
	detours   *detours
	posts     posts
	tries     tries
	menu      names
	hurried   chan struct{} // places for interactions that are watched

	self        atomic.Pointer[user]
	application atomic.Pointer[string]
	running     atomic.Bool
	lookedAt    channels.Looks
	skew        channels.Skew

	// What follows belongs to Run.
	recent  *recent
	gateway string      // the gateway's address
	starts  []time.Time // of the sessions of the last day
}

var (
	_ channels.Adapter          = (*Bot)(nil)
	_ channels.Editor           = (*Bot)(nil)
	_ channels.Typer            = (*Bot)(nil)
	_ channels.Reactor          = (*Bot)(nil)
	_ channels.Fetcher          = (*Bot)(nil)
	_ channels.CommandRegistrar = (*Bot)(nil)
	_ channels.Prober           = (*Bot)(nil)
	_ channels.Looker           = (*Bot)(nil)
)

// New makes an account from a validated config. It does not connect.
func New(cfg Config, deps Deps) (*Bot, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("discord: %w", err)
	}
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	if deps.Transport == nil {
		deps.Transport = func() http.RoundTripper { return network(cfg.Proxy) }
	}
	api, err := newAPI(cfg, deps.Transport())
	if err != nil {
		return nil, fmt.Errorf("discord: %w", err)
	}
	b := &Bot{
		cfg:       cfg,
		deps:      deps,
		log:       deps.Log.With("channel", Channel, "account", deps.Account),
		api:       api,
		directory: newDirectory(),
		vias:      newVias(),
		planned:   newPlanned(),
		detours:   newDetours(),
		hurried:   make(chan struct{}, mostHurried),
		recent:    newRecent(),
	}
	api.heard = func(h http.Header) { b.skew.Learn(h, b.log) }
	for _, p := range cfg.MentionPatterns {
		re, err := mentionPattern(p)
		if err != nil {
			return nil, fmt.Errorf("discord: %w", err)
		}
		b.patterns = append(b.patterns, re)
	}
	return b, nil
}

// ownHost reports whether a host is the platform's: files of people come from there, so its name must
// lead to the open internet (spec/chat.md §8, S9).
func ownHost(host string) bool {
	return host == "discord.com" || strings.HasSuffix(host, ".discordapp.com") || strings.HasSuffix(host, ".discordapp.net")
}

// network is the transport to the real server. It speaks HTTP/1.1 only: one dead HTTP/2 connection
// would hold up all calls at once.
func network(proxy string) http.RoundTripper {
	t := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		TLSHandshakeTimeout:   10 * time.Second,
		IdleConnTimeout:       90 * time.Second,
		MaxIdleConnsPerHost:   16,
		ExpectContinueTimeout: time.Second,
		Protocols:             new(http.Protocols),
		DialContext:           guard.Dialer{Guards: ownHost}.DialContext,
	}
	t.Protocols.SetHTTP1(true)
	if u, err := url.Parse(proxy); proxy != "" && err == nil {
		t.Proxy = http.ProxyURL(u)
	}
	return t
}

// Close frees connections. It is called after Run has ended and no call is under way.
func (b *Bot) Close() { b.api.closeIdle() }

// Pace of the platform (spec/chat.md §2.4).
const (
	editInterval = 1300 * time.Millisecond
	messageEvery = time.Second
	messageBurst = 5
	perSecond    = 45 // Discord's own limit is 50
)

// Traits implements channels.Adapter.
func (b *Bot) Traits() channels.Traits {
	return channels.Traits{
		Channel:       Channel,
		Account:       b.deps.Account,
		Markup:        channels.DiscordMD,
		TextLimit:     b.cfg.TextChunkLimit,
		LineLimit:     b.cfg.MaxLinesPerMessage,
		Edits:         true,
		EditInterval:  editInterval,
		References:    true,
		Idempotent:    true,
		SilentNotices: true,
		Pace:          channels.Pace{Every: messageEvery, Burst: messageBurst},
		ThreadsApart:  true, // a thread is a channel, with limits of its own
		Global:        perSecond,
	}
}
