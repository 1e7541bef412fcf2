package slack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"understudy/channels"
)

// Channel is the name of this channel in addresses.
const Channel = "slack"

// Deps are what a Bot needs from outside.
type Deps struct {
	Account string         // name of the account in addresses; "" = default
	Log     *slog.Logger   // nil = discard
	Seen    channels.Seen  // nil = nothing is caught up after a gap
	Menus   channels.Menus // keeps what buttons stand for
	// Mrkdwn renders Markdown as Slack's mrkdwn, for text that Slack refuses as Markdown. nil = then the
	// caller is told so, and sends it plain.
	Mrkdwn func(markdown string) string
	Roots  Notes // keeps which threads belong to the assistant view; nil = until the end
	// Transport makes the HTTP transport. nil = the network, through Config.Proxy or the proxy of the
	// environment.
	Transport func() http.RoundTripper
	// Dial makes the connection of Socket Mode. nil = the network, in the same way.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Bot is one account. It implements channels.Adapter, Editor, Typer, Quieter, Reactor, Streamer,
// Fetcher, Historian, Prober, Webhook and Looker. Send and its kin work before and while Run runs.
type Bot struct {
	cfg     Config
	deps    Deps
	log     *slog.Logger
	api     *api
	running atomic.Bool

	self    atomic.Pointer[identity]
	inbox   atomic.Pointer[inbox] // set while Run runs
	answers chan private
	refused chan error // a token was refused for good while something was sent

	roots  *roots
	names  *names
	vias   *vias
	kinds  *recent[string] // channel_type, by conversation
	places *recent[string] // direct conversations, by user
	stored *recent[bool]   // messages that the sink has, by key; true = as mentions
	asking chan struct{}   // places for events that wait for what a conversation is

	lookedAt channels.Looks
	skew     channels.Skew
}

var (
	_ channels.Adapter  = (*Bot)(nil)
	_ channels.Editor   = (*Bot)(nil)
	_ channels.Quieter  = (*Bot)(nil)
	_ channels.Typer    = (*Bot)(nil)
	_ channels.Reactor  = (*Bot)(nil)
	_ channels.Streamer = (*Bot)(nil)
	_ channels.Fetcher  = (*Bot)(nil)
	_ channels.Prober   = (*Bot)(nil)
	_ channels.Webhook  = (*Bot)(nil)
	_ channels.Looker   = (*Bot)(nil)
)

// ErrRunning is returned by Run while another Run of the same Bot has not ended: Slack would deal the
// events out between the two.
var ErrRunning = errors.New("slack: this account is already running")

// New makes an account from a config. It does not connect.
func New(cfg Config, deps Deps) (*Bot, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("slack: %w", err)
	}
	if deps.Menus == nil {
		return nil, errors.New("slack: a place for menus is needed")
	}
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	if deps.Transport == nil {
		deps.Transport = func() http.RoundTripper { return network(cfg.Proxy) }
	}
	b := &Bot{
		cfg:     cfg,
		deps:    deps,
		log:     deps.Log.With("channel", Channel, "account", deps.Account),
		api:     newAPI(cfg, deps.Transport()),
		answers: make(chan private, mostAnswers),
		refused: make(chan error, 1),
		roots:   &roots{notes: deps.Roots},
		names:   newNames(),
		vias:    newVias(),
		kinds:   newRecent[string](mostRemembered),
		places:  newRecent[string](mostRemembered),
		asking:  make(chan struct{}, mostAsking),
		stored:  newRecent[bool](mostRemembered),
	}
	b.api.heard = func(h http.Header) { b.skew.Learn(h, b.log) }
	return b, nil
}

// Close frees connections. It is called after Run has ended and no call is under way.
func (b *Bot) Close() { b.api.closeIdle() }

// Pace of the platform (spec/chat.md §2.4, §2.7).
const (
	editInterval   = 1200 * time.Millisecond
	streamInterval = 800 * time.Millisecond
	messageEvery   = time.Second
	messageBurst   = 3
)

// Traits implements channels.Adapter.
func (b *Bot) Traits() channels.Traits {
	return channels.Traits{
		Channel:        Channel,
		Account:        b.deps.Account,
		Markup:         channels.SlackMarkdown,
		TextLimit:      b.cfg.TextChunkLimit,
		VisibleLimit:   longestMarkdown,
		Edits:          true,
		EditInterval:   editInterval,
		OpensThreads:   true,
		Pace:           channels.Pace{Every: messageEvery, Burst: messageBurst},
		StreamInterval: streamInterval,
	}
}

// Run implements channels.Adapter.
func (b *Bot) Run(ctx context.Context, sink channels.Sink) error {
	if !b.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer b.running.Store(false)
	select {
	case <-b.refused: // of before; if it still holds, connecting tells
	default:
	}
	ctx, cancel := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	tasks.Go(func() { b.answerPrivately(ctx) })
	tasks.Go(func() { b.learnNames(ctx) })
	defer tasks.Wait()
	defer cancel()
	defer b.api.closeIdle()

	s := &supervisor{Bot: b, sink: sink, tasks: &tasks}
	s.report(channels.Connecting, "")
	in, err := s.identify(ctx)
	if err == nil {
		defer b.inbox.Store(nil)
		if b.cfg.Mode == modeHTTP {
			err = s.listen(ctx, in)
		} else {
			b.inbox.Store(in)
			err = s.keepConnected(ctx)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	s.report(channels.Stopped, err.Error())
	return err
}
