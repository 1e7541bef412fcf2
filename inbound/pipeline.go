package inbound

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"understudy/channels"
	"understudy/chat"
	"understudy/internal/sqlite"
)

// ErrNotRecovered tells that Accept was called before Recover: what an earlier process left comes
// first.
var ErrNotRecovered = errors.New("the journal is not recovered yet")

// textTooFast answers the first message of a sender that is over the limit (spec/chat.md §8, S10).
const textTooFast = "⏳ That was more than 20 messages in a minute. I left out the ones that follow; please send them again a little later."

// Message is what a Handler gets: a message that is in the journal and is to be answered.
type Message struct {
	Seq      int64 // its number in the journal
	In       chat.Inbound
	Owner    bool // its sender may use the owner's commands
	Attempts int  // how many turns were begun for it before
	// Interrupted tells that an earlier process began to answer and said nothing of it.
	Interrupted bool
}

// Handler takes admitted messages: it queues a command or a turn and returns. The turn calls
// Dispatched when it begins and Done or Failed when it ends.
type Handler interface {
	// Handle must not wait for the turn. ctx is not cancelled when the adapter stops.
	Handle(ctx context.Context, m Message)
}

// Answer is what is known of the answer to an interrupted turn.
type Answer uint8

// The answers.
const (
	AnswerNone    Answer = iota // nothing was said
	AnswerSent                  // it was said, or will be
	AnswerUnknown               // it was perhaps said
)

// Account names a channel account; Name "" is the default one.
type Account struct{ Channel, Name string }

// Config says who is let in.
type Config struct {
	// Access of each channel account. An account that is missing admits local senders only.
	Access map[Account]Access
	// Owners are `commands.ownerAllowFrom`: "telegram:123". Wildcards never make an owner.
	Owners []string
	// MaxAge is `catchUp.maxAge`: an older message is not answered after a restart, but its sender
	// is told. 0 = one hour.
	MaxAge time.Duration
}

// DefaultMaxAge is the default of Config.MaxAge.
const DefaultMaxAge = time.Hour

// Validate reports every wrong value.
func (c Config) Validate() error {
	var errs []error
	for k, a := range c.Access {
		if err := a.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("channels.%s: %w", k.Channel, err))
		}
	}
	for _, o := range c.Owners {
		if channel, id, ok := strings.Cut(o, ":"); !ok || channel == "" || id == "" || strings.Contains(o, anyone) {
			errs = append(errs, fmt.Errorf(`commands.ownerAllowFrom: %q is not of the form channel:id`, o))
		}
	}
	if c.MaxAge < 0 {
		errs = append(errs, errors.New("catchUp.maxAge: is negative"))
	}
	return errors.Join(errs...)
}

// Deps is what a Pipeline needs. All but IsCommand and Status are required.
type Deps struct {
	DB      *sqlite.DB // state/bot.sqlite
	Log     *slog.Logger
	Handler Handler
	// Send says something outside a turn: once, also when it is called again with the same TurnID
	// and Seq.
	Send func(ctx context.Context, o chat.Outbound) error
	// Answer tells what is known of a turn's answer, for Recover.
	Answer func(ctx context.Context, turnID string) (Answer, error)
	// IsCommand reports whether a text is a command, which needs no mention. nil = never.
	IsCommand func(text string) bool
	// Status is told about connections. nil = nobody.
	Status func(channels.Status)
}

// Pipeline is the way in of all channels; it implements channels.Sink and is safe for concurrent
// use.
type Pipeline struct {
	journal   *journal
	pairing   *Pairing
	log       *slog.Logger
	deps      Deps
	config    atomic.Pointer[Config]
	recent    *recent
	pace      *pace
	recovered atomic.Bool
}

// New returns a Pipeline over the tables of deps.DB, which it brings up to date. Nothing is
// accepted before Recover has run.
func New(ctx context.Context, cfg Config, deps Deps) (*Pipeline, error) {
	q, err := openQueries(ctx, deps.DB)
	if err != nil {
		return nil, err
	}
	p := &Pipeline{
		journal: &journal{deps.DB, q}, pairing: &Pairing{deps.DB, q},
		log: deps.Log, deps: deps, recent: newRecent(), pace: newPace(),
	}
	return p, p.Reload(cfg)
}

// Reload replaces the rules; a wrong Config changes nothing.
func (p *Pipeline) Reload(cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	if cfg.MaxAge == 0 {
		cfg.MaxAge = DefaultMaxAge
	}
	p.config.Store(&cfg)
	return nil
}

// Pairing returns the pairings, for the commands that manage them.
func (p *Pipeline) Pairing() *Pairing { return p.pairing }

// Status implements channels.Sink.
func (p *Pipeline) Status(s channels.Status) {
	if p.deps.Status != nil {
		p.deps.Status(s)
	}
}

// Accept implements channels.Sink: it returns nil once the event is in the journal, or is known or
// refused. Of a refused event only the key is kept.
func (p *Pipeline) Accept(ctx context.Context, m chat.Inbound) error {
	if !p.recovered.Load() {
		return ErrNotRecovered
	}
	if m.EventKey == "" {
		p.log.Error("event without a key", "channel", m.Address.Channel)
		return nil
	}
	now := time.Now()
	if m.At.IsZero() || m.At.After(now) {
		m.At = now
	}
	if p.recent.seen(eventKeys(m), now) {
		return nil
	}
	msg, err := p.accept(ctx, capped(m), now)
	if err != nil {
		return fmt.Errorf("accepting an event of %s: %w", m.Address.Channel, err)
	}
	p.recent.add(eventKeys(m), now)
	if msg != nil {
		p.deps.Handler.Handle(context.WithoutCancel(ctx), *msg)
	}
	return nil
}

// accept decides and stores; it returns the message if it is new and to be answered.
func (p *Pipeline) accept(ctx context.Context, m chat.Inbound, now time.Time) (*Message, error) {
	s, err := p.standing(ctx, m)
	if err != nil {
		return nil, err
	}
	d := p.access(m.Address).Decide(m, s)
	switch {
	case d.Verdict == Pair && !m.Edited:
		return nil, p.offerPairing(ctx, m, now)
	case d.Verdict != Admit:
		p.log.Debug("message refused", "channel", m.Address.Channel, "reason", string(d.Reason), "conversation", m.Address.Conversation, "sender", m.Sender.ID)
		return nil, p.journal.remember(ctx, eventKeys(m), now)
	case m.Edited:
		return nil, p.journal.edit(ctx, m, now)
	case d.NeedsMention && !m.Mentioned && !p.isCommand(m.Text):
		return nil, p.journal.remember(ctx, eventKeys(m), now)
	case !m.Sender.Local && !p.withinPace(ctx, m):
		return nil, p.journal.remember(ctx, eventKeys(m), now)
	}
	seq, err := p.journal.add(ctx, m, now)
	if err != nil || seq == 0 {
		return nil, err
	}
	return &Message{Seq: seq, In: m, Owner: p.isOwner(m, s)}, nil
}

// eventKeys returns the keys by which an event is known. Those of a new version of a message may be
// the message's own, so only the key of its delivery counts.
func eventKeys(m chat.Inbound) []string {
	keys := []string{m.EventKey}
	if m.Edited {
		return keys
	}
	for _, k := range m.AltKeys {
		if k != "" && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	return keys
}

func (p *Pipeline) isCommand(text string) bool {
	return p.deps.IsCommand != nil && p.deps.IsCommand(text)
}

// access returns the rules of an account, nil = none.
func (p *Pipeline) access(to chat.Address) *Access {
	if a, ok := p.config.Load().Access[Account{to.Channel, to.Account}]; ok {
		return &a
	}
	return nil
}

// standing looks up what the store knows of a sender. Local senders and bots are in no list.
func (p *Pipeline) standing(ctx context.Context, m chat.Inbound) (Standing, error) {
	if m.Sender.Local || m.Sender.Bot || m.Sender.ID == "" {
		return Standing{}, nil
	}
	s := Standing{Owner: p.configuredOwner(m)}
	var err error
	if !s.Owner {
		if s.Owner, err = p.journal.q.Owner(ctx, m.Address.Channel, m.Sender.ID); err != nil {
			return s, err
		}
	}
	if m.Address.Kind == chat.Direct {
		s.Approved, err = p.journal.q.Allowed(ctx, m.Address.Channel, m.Address.Account, m.Sender.ID)
	}
	return s, err
}

func (p *Pipeline) isOwner(m chat.Inbound, s Standing) bool { return m.Sender.Local || s.Owner }

func (p *Pipeline) configuredOwner(m chat.Inbound) bool {
	for _, o := range p.config.Load().Owners {
		channel, id, _ := strings.Cut(o, ":")
		if strings.EqualFold(strings.TrimSpace(channel), m.Address.Channel) && sameID(id, m.Address.Channel, m.Sender.ID) {
			return true
		}
	}
	return false
}

// withinPace reports whether a sender may write more, and tells them once when they may not.
func (p *Pipeline) withinPace(ctx context.Context, m chat.Inbound) bool {
	sender := m.Address.Channel + "\x00" + m.Address.Account + "\x00" + m.Sender.ID
	ok, tell := p.pace.admit(sender, m.At)
	if tell {
		err := p.deps.Send(ctx, chat.Outbound{To: m.Address, Class: chat.Notice, Markdown: textTooFast})
		if err != nil {
			p.log.Warn("notice not sent", "channel", m.Address.Channel, "error", err)
		}
	}
	if !ok {
		p.log.Info("message refused", "channel", m.Address.Channel, "reason", "too_fast")
	}
	return ok
}

// offerPairing gives a stranger a code, at most one at a time.
func (p *Pipeline) offerPairing(ctx context.Context, m chat.Inbound, now time.Time) error {
	code, err := p.pairing.request(ctx, m, eventKeys(m), now)
	if err != nil || code == "" {
		return err
	}
	p.log.Info("pairing offered", "channel", m.Address.Channel, "sender", m.Sender.ID)
	err = p.deps.Send(ctx, chat.Outbound{To: m.Address, Class: chat.Command, Markdown: pairingText(m, code)})
	if err != nil {
		p.log.Warn("pairing code not sent", "channel", m.Address.Channel, "error", err)
		return p.pairing.withdraw(ctx, m)
	}
	return nil
}
