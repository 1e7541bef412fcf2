package inbound

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"understudy/channels"
	"understudy/chat"
	"understudy/inbound/internal/inbounddb"
	"understudy/internal/sqlite"
)

// ErrNotRecovered tells that Accept was called before Recover: what an earlier process left comes
// first.
var ErrNotRecovered = errors.New("the journal is not recovered yet")

// Answer is what is known of the answer to an interrupted turn.
type Answer uint8

// The answers.
const (
	AnswerNone    Answer = iota // nothing was said
	AnswerSent                  // it was said, or will be
	AnswerUnknown               // it was perhaps said
)

// Deps is what a Pipeline needs. All but IsCommand and Status are required.
type Deps struct {
	DB  *sqlite.DB // state/bot.sqlite
	Log *slog.Logger
	// Handler may be a Withdrawer too.
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
	settings  atomic.Pointer[settings]
	recent    *recent
	pace      *pace
	loops     *loops
	gaps      *gaps
	alone     *leftAlone
	unstored  atomic.Pointer[unstored]
	moves     *moves
	collect   *collector
	recovered atomic.Bool
	closed    atomic.Bool
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
		log: deps.Log, deps: deps, recent: newRecent(), pace: newPace(), loops: newLoops(), gaps: newGaps(),
		alone: newLeftAlone(deps.Log),
	}
	if p.moves, err = readMoves(ctx, q); err != nil {
		return nil, err
	}
	p.collect = newCollector(deps.Log, p.hand)
	return p, p.Reload(cfg)
}

// Reload replaces the rules; a wrong Config changes nothing.
func (p *Pipeline) Reload(cfg Config) error {
	s, err := cfg.compile()
	if err != nil {
		return err
	}
	p.settings.Store(s)
	return nil
}

// Close ends the waiting of messages for what belongs to them. From now on what is accepted stays in
// the journal for the next start, like what still waits. Call it when the adapters have ended, before
// the turns are.
func (p *Pipeline) Close() {
	p.closed.Store(true)
	p.collect.close()
	p.alone.close()
}

// Pairing returns the pairings, for the commands that manage them.
func (p *Pipeline) Pairing() *Pairing { return p.pairing }

// Status implements channels.Sink.
func (p *Pipeline) Status(s channels.Status) {
	if p.deps.Status != nil {
		p.deps.Status(s)
	}
}

// Authorised reports whether a message of this kind would be let in. It looks things up and changes
// nothing: for suggestions while a person still types.
func (p *Pipeline) Authorised(ctx context.Context, m chat.Inbound) bool {
	s, err := p.standing(ctx, m)
	return err == nil && p.rules(m.Address).Decide(m, s).Verdict == Admit
}

// Owner reports whether the sender of a message may use the owner's commands; false also when the store
// cannot be read. It changes nothing.
func (p *Pipeline) Owner(ctx context.Context, m chat.Inbound) bool {
	s, err := p.standing(ctx, m)
	return err == nil && isOwner(m, s)
}

// hand gives a group of messages to the Handler, as it is now.
func (p *Pipeline) hand(ctx context.Context, lead int64) error {
	rows, err := p.journal.q.Group(ctx, lead, inbounddb.Received)
	if err != nil || len(rows) == 0 {
		return err // all of them were deleted
	}
	m, err := p.message(ctx, rows)
	if errors.Is(err, errUnreadable) {
		return p.unreadable(ctx, lead, err)
	}
	if err == nil {
		p.give(ctx, m)
	}
	return err
}

// unreadable ends a message that is damaged.
func (p *Pipeline) unreadable(ctx context.Context, seq int64, why error) error {
	p.log.Error("journal row cannot be read", "seq", seq, "error", why)
	return p.journal.fail(ctx, seq, "unreadable")
}

// give passes a message to the Handler, unless the Pipeline is closed: then it stays in the journal.
func (p *Pipeline) give(ctx context.Context, m Message) {
	if !p.closed.Load() {
		p.deps.Handler.Handle(context.WithoutCancel(ctx), m)
	}
}

func (p *Pipeline) isCommand(text string) bool {
	return p.deps.IsCommand != nil && p.deps.IsCommand(text)
}

// rules returns the rules of an account, nil = none.
func (p *Pipeline) rules(to chat.Address) *Rules { return p.settings.Load().rulesOf(to) }

// standing looks up what the store knows of a sender and of where the message was written. Local
// senders and bots are in no list.
func (p *Pipeline) standing(ctx context.Context, m chat.Inbound) (Standing, error) {
	former := p.moves.former(m.Address)
	if m.Sender.Local || m.Sender.Bot || m.Sender.ID == "" {
		return Standing{Former: former}, nil
	}
	stored, err := p.journal.q.Standing(ctx, placeOf(m.Address), m.Sender.ID, time.Now().Add(-participatesFor).UnixMilli())
	if err != nil {
		return Standing{}, fmt.Errorf("looking up a sender: %w", err)
	}
	return Standing{
		Owner: stored.Owner || p.settings.Load().owner(m), Approved: stored.Approved, Participates: stored.Participates, Former: former,
	}, nil
}

func isOwner(m chat.Inbound, s Standing) bool { return m.Sender.Local || s.Owner }
