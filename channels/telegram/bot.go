package telegram

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"understudy/channels"
	"understudy/chat"
	"understudy/internal/guard"
)

// Channel is the name of this channel in addresses.
const Channel = "telegram"

// Offsets keeps how far an account's updates are stored. It belongs to one bot id (Config.BotID):
// the offset of another bot would make this one deaf.
type Offsets interface {
	Load(ctx context.Context) (int64, error) // 0 = nothing stored
	Save(ctx context.Context, offset int64) error
}

// Deps are what a Bot needs from outside.
type Deps struct {
	Account string // name of the account in addresses; "" = default
	Offsets Offsets
	Menus   channels.Menus // nil = in memory: buttons work until the process ends
	Tokens  *Tokens        // shared by all accounts of the process; nil = this is the only one
	Log     *slog.Logger   // nil = discard
	// Moved is told that a conversation has a new id, before its first message under that id comes.
	// It must be quick. nil = nobody.
	Moved func(ctx context.Context, from chat.Address, conversation string)
	// Bad notes, in the journal, an update that cannot be read; its error means that the update must come
	// again. nil = it stands in the log alone.
	Bad func(ctx context.Context, eventKey, reason string) error
	// Transport makes the HTTP transport; it is called again when connections seem dead. nil = the
	// network, through Config.Proxy or the proxy of the environment.
	Transport func() http.RoundTripper
}

// Bot is one account. It implements channels.Adapter, Editor, Typer, Recorder, Reactor, Fetcher,
// CommandRegistrar, Webhook and Prober. Send and its kin work before and while Run runs.
type Bot struct {
	cfg       Config
	deps      Deps
	log       *slog.Logger
	api       *api
	menus     channels.Menus
	texts     *texts
	presses   chan press
	reactions shownReactions
	running   atomic.Bool
	hook      hook
	skew      channels.Skew
	// threadless are private chats whose topics the server refused (a regression of some servers),
	// voiceless those that take no voice notes. moved are groups that became supergroups.
	threadless, voiceless, moved *idSet
}

var (
	_ channels.Adapter          = (*Bot)(nil)
	_ channels.Editor           = (*Bot)(nil)
	_ channels.Typer            = (*Bot)(nil)
	_ channels.Recorder         = (*Bot)(nil)
	_ channels.Fetcher          = (*Bot)(nil)
	_ channels.CommandRegistrar = (*Bot)(nil)
	_ channels.Reactor          = (*Bot)(nil)
	_ channels.Webhook          = (*Bot)(nil)
	_ channels.Prober           = (*Bot)(nil)
)

// ErrRunning is returned by Run while another Run of the same Bot has not ended: two polls of one
// token would end each other.
var ErrRunning = errors.New("telegram: this account is already running")

// New makes an account from a validated config. It does not connect.
func New(cfg Config, deps Deps) (*Bot, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("telegram: %w", err)
	}
	if deps.Offsets == nil {
		return nil, errors.New("telegram: a place for the offset is needed")
	}
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	if deps.Transport == nil {
		deps.Transport = func() http.RoundTripper { return network(cfg.Proxy) }
	}
	menus := deps.Menus
	if menus == nil {
		menus = newMemoryMenus()
	}
	b := &Bot{
		cfg:        cfg,
		deps:       deps,
		log:        deps.Log.With("channel", Channel, "account", deps.Account),
		api:        newAPI(cfg, deps.Transport),
		menus:      menus,
		texts:      newTexts(),
		presses:    make(chan press, mostPresses),
		hook:       newHook(),
		threadless: newIDSet(),
		voiceless:  newIDSet(),
		moved:      newIDSet(),
	}
	b.api.heard = func(h http.Header) { b.skew.Learn(h, b.log) }
	return b, nil
}

// ownHost reports whether a host is the platform's: files of people come from there, so its name must
// lead to the open internet (spec/chat.md §8, S9).
func ownHost(host string) bool {
	return host == "api.telegram.org"
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

// Pace of the platform (spec/chat.md §2.4, §9.3 T8).
const (
	editInterval      = 1200 * time.Millisecond
	groupEditInterval = 3500 * time.Millisecond
	messageEvery      = time.Second
	groupMessageEvery = time.Minute / 20
	messageBurst      = 3
	perSecond         = 25
)

// mostEntities is how many formatted stretches a message has at most. Telegram takes a hundred, shows the
// rest without its format, and makes several of some that hold others.
const mostEntities = 90

// Traits implements channels.Adapter.
func (b *Bot) Traits() channels.Traits {
	return channels.Traits{
		Channel:           Channel,
		Account:           b.deps.Account,
		Markup:            channels.TelegramHTML,
		TextLimit:         b.cfg.TextChunkLimit,
		VisibleLimit:      longestText,
		SpanLimit:         mostEntities,
		Edits:             true,
		EditInterval:      editInterval,
		GroupEditInterval: groupEditInterval,
		References:        true,
		SilentNotices:     true,
		VoiceCaption:      longestCaption,
		Pace:              channels.Pace{Every: messageEvery, Burst: messageBurst},
		GroupPace:         channels.Pace{Every: groupMessageEvery, Burst: messageBurst},
		Global:            perSecond,
	}
}
