package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"understudy/channels"
	"understudy/chat"
	"understudy/internal/clock"
	"understudy/internal/sqlite"
)

// ErrNoChannel tells that an address names a channel account that is not registered.
var ErrNoChannel = errors.New("no such channel account")

// ErrEmpty tells that there is nothing to say: neither text nor media.
var ErrEmpty = errors.New("nothing to say")

// ErrFinished tells that a turn has its answer, or was cancelled, already.
var ErrFinished = errors.New("the turn is finished")

// Settings are what configuration says about one channel account (spec/chat.md §2.1).
type Settings struct {
	ReplyTo   Mode // `replyToMode`
	Previews  bool // `streaming.mode: partial`; needs a channel whose messages can be edited
	Typing    bool // `typingMode` other than never; needs a channel that can show it
	TextLimit int  // `textChunkLimit`, UTF-16 units; 0 = the channel's own limit, which always binds
	Newline   bool // `streaming.chunkMode: newline`
}

// Metrics counts what left. Its labels come from closed sets.
type Metrics interface {
	// Sent counts a thing that was delivered completely.
	Sent(channel string, c chat.Class)
	// Failed counts a durable thing that was given up or whose arrival is unknown.
	Failed(channel string, c chat.Class, code string)
	// NoticeFailed counts a notice that did not go out.
	NoticeFailed(channel string)
}

// Deps is what a Service needs. DB and Log are required.
type Deps struct {
	DB      *sqlite.DB // state/bot.sqlite
	Clock   clock.Clock
	Log     *slog.Logger
	Metrics Metrics // nil = nothing is counted
	// Unknown is told of a durable thing whose arrival cannot be known and that is not repeated;
	// restarted tells that it was found at the start. It must be quick and may be called twice for
	// the same thing after a crash. nil = nobody.
	Unknown func(ctx context.Context, o chat.Outbound, restarted bool)
	// Moved is told that a conversation has a new id. It must be quick. nil = nobody.
	Moved func(ctx context.Context, from chat.Address, conversation string)
}

// Service delivers. It is safe for concurrent use.
type Service struct {
	store *outbox
	clock clock.Clock
	log   *slog.Logger
	deps  Deps
	began time.Time

	mu       sync.Mutex
	accounts map[accountKey]*account
	lines    map[string]*line
	turns    map[string]*Turn
	moved    map[accountKey]map[string]string
	waiting  []func(context.Context) // goroutines that Run is to start
	wake     chan struct{}           // closed when waiting has become non-empty
	active   int                     // goroutines started by Run
	idle     chan struct{}           // closed when active has become 0 after the stop
	stopped  bool
	sweepAt  int // number of lines at which idle ones are forgotten
}

// New returns a Service over the tables of deps.DB, which it brings up to date.
func New(ctx context.Context, deps Deps) (*Service, error) {
	store, err := openOutbox(ctx, deps.DB)
	if err != nil {
		return nil, err
	}
	return &Service{
		store: store, clock: deps.Clock, log: deps.Log, deps: deps, began: deps.Clock.Now(),
		accounts: map[accountKey]*account{}, lines: map[string]*line{}, turns: map[string]*Turn{},
		moved: map[accountKey]map[string]string{},
		wake:  make(chan struct{}), idle: make(chan struct{}), sweepAt: leastSweep,
	}, nil
}

// Register adds an adapter, or replaces the one of the same channel account.
func (s *Service) Register(a channels.Adapter, set Settings) error {
	if err := set.ReplyTo.Validate(); err != nil {
		return err
	}
	acct := newAccount(a, set)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accounts[acct.key()] = acct
	return nil
}

// Run delivers until ctx ends. Then a platform call that has begun may end within the grace time,
// nothing new begins, and Run returns nil once every goroutine of the Service has ended; what was
// not sent stays in the outbox. Run may be called once.
func (s *Service) Run(ctx context.Context) error {
	for {
		s.mu.Lock()
		todo := s.waiting
		s.waiting, s.wake = nil, make(chan struct{})
		s.active += len(todo)
		wake := s.wake
		s.mu.Unlock()
		for _, f := range todo {
			s.clock.Go(func() {
				defer s.ended()
				f(ctx)
			})
		}
		if s.clock.Await(ctx, wake) != nil {
			break
		}
	}
	s.mu.Lock()
	s.stopped = true
	if s.active == 0 {
		close(s.idle)
	}
	s.mu.Unlock()
	return s.clock.Await(context.WithoutCancel(ctx), s.idle)
}

// ended counts a goroutine of Run out.
func (s *Service) ended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active--; s.active == 0 && s.stopped {
		close(s.idle)
	}
}

// spawn has Run start f; s.mu is held. f must end soon after its context does.
func (s *Service) spawn(f func(context.Context)) {
	if s.stopped {
		return
	}
	if s.waiting = append(s.waiting, f); len(s.waiting) == 1 {
		close(s.wake)
	}
}

// Send says something outside a turn. A durable class is in the outbox when Send returns and is
// said once, also when Send is called again with the same TurnID and Seq; a notice is best effort.
// It returns ErrNoChannel or ErrEmpty for what can never be said.
func (s *Service) Send(ctx context.Context, o chat.Outbound) error {
	if _, ok := s.account(o.To); !ok {
		return fmt.Errorf("sending to %s/%s: %w", o.To.Channel, o.To.Account, ErrNoChannel)
	}
	if !o.Class.Durable() {
		return s.notify(nil, o)
	}
	_, err := s.submit(ctx, o)
	return err
}

// submit stores a durable thing and queues it; it reports whether it was new.
func (s *Service) submit(ctx context.Context, o chat.Outbound) (bool, error) {
	a, ok := s.account(o.To)
	if !ok {
		return false, fmt.Errorf("sending to %s/%s: %w", o.To.Channel, o.To.Account, ErrNoChannel)
	}
	idem := uuid.NewString()
	if o.TurnID != "" {
		idem = fmt.Sprintf("%s/%d", o.TurnID, o.Seq)
	}
	parts := a.parts(o)
	if len(parts) == 0 {
		return false, ErrEmpty
	}
	id, err := s.store.add(ctx, idem, o, parts, s.clock.Now())
	if err != nil {
		return false, fmt.Errorf("storing what is to be said: %w", err)
	}
	if id == 0 {
		return false, nil
	}
	s.pushRow(o.To, id)
	return true, nil
}

// account returns the registered account of an address.
func (s *Service) account(to chat.Address) (*account, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.accounts[accountKey{to.Channel, to.Account}]
	return a, ok
}

// Prune forgets what was delivered or given up longer ago than keep.
func (s *Service) Prune(ctx context.Context, keep time.Duration) error {
	return s.store.prune(ctx, s.clock.Now().Add(-keep))
}
