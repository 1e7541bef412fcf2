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

// Metrics counts what left, and for where. Of an address only the channel and the account are fit for a
// label; the others come from closed sets.
type Metrics interface {
	// Sent counts a thing that was delivered completely.
	Sent(to chat.Address, c chat.Class)
	// Failed counts a durable thing that was given up or whose arrival is unknown.
	Failed(to chat.Address, c chat.Class, code string)
	// NoticeFailed counts a notice that did not go out.
	NoticeFailed(to chat.Address)
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
	// Broken is told that nothing can be said in a conversation (the bot was blocked or thrown out,
	// the place is gone): once for all of its threads, until something arrives there again. It must be
	// quick; a notice that it sends there is not answered by another call. nil = nobody.
	Broken func(ctx context.Context, to chat.Address, code string)
	// Speak makes the sound of an answer; nil without an error = it is not to be heard. It is asked
	// only for classes that Speakable reports, once the text is final and before anything of it is
	// sent, at most once per answer unless the process ends meanwhile. It may take a while (the
	// destination waits for it, no longer than speakTimeout) and ends with its context. When it
	// fails, the answer is text only. nil = nothing is spoken.
	Speak func(ctx context.Context, o chat.Outbound) (*chat.Attachment, error)
	// RateLimited is told that a platform wants a pause after a call of a kind: send, edit, delete,
	// typing, react or stream. nil = nobody.
	RateLimited func(channel, method string)
	// FirstVisible is told how long after Begin the first of a turn's answer was to be seen. Notices
	// and errors are no answer. nil = nobody.
	FirstVisible func(channel string, after time.Duration)
}

// Service delivers. It is safe for concurrent use.
type Service struct {
	store *outbox
	clock clock.Clock
	log   *slog.Logger
	deps  Deps
	began time.Time

	mu            sync.Mutex
	accounts      map[accountKey]*account
	lines         map[string]*line
	turns         map[string]*Turn
	moved         map[accountKey]map[string]string
	broken        map[place]*breakage
	streams       map[string]growing // by turn: native streams that are not stopped
	conversations map[place]*conversation
	marks         []*mark                 // messages whose reactions are to be changed
	reacting      int                     // goroutines that do it
	waiting       []func(context.Context) // goroutines that Run is to start
	wake          chan struct{}           // closed when waiting has become non-empty
	active        int                     // goroutines started by Run
	idle          chan struct{}           // closed when active has become 0 after the stop
	stopped       bool
	sweepAt       int // number of lines at which idle ones are forgotten
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
		moved: map[accountKey]map[string]string{}, broken: map[place]*breakage{}, streams: map[string]growing{},
		conversations: map[place]*conversation{},
		wake:          make(chan struct{}), idle: make(chan struct{}), sweepAt: leastSweep,
	}, nil
}

// Register adds an adapter, or replaces the one of the same channel account.
func (s *Service) Register(a channels.Adapter, set Settings) error {
	if err := set.Validate(); err != nil {
		return err
	}
	acct := newAccount(a, set)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accounts[acct.key()] = acct
	return nil
}

// Run delivers until ctx ends. Then a platform call that has begun may end within the grace time,
// nothing new begins but that native streams are stopped, and Run returns nil once every goroutine of the Service has ended; what was
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
	err := s.clock.Await(context.WithoutCancel(ctx), s.idle)
	s.stopStreams()
	return err
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
	o, x := composed(o)
	_, err := s.submit(ctx, o, x.about)
	return err
}

// submit stores a durable thing and queues it; it reports whether it was new.
func (s *Service) submit(ctx context.Context, o chat.Outbound, x about) (bool, error) {
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
	id, err := s.store.add(ctx, idem, o, parts, x, s.clock.Now())
	if err != nil {
		return false, fmt.Errorf("storing what is to be said: %w", err)
	}
	if id == 0 {
		return false, nil
	}
	s.pushRow(o.To, id)
	return true, nil
}

// Depth is how much waits to be said.
type Depth struct {
	Busy    int // destinations that are being worked off
	Queued  int // things in their queues
	Backlog int // destinations with more than that in the outbox
	Held    int // conversations whose platform wants no messages for a while
}

// Depth returns how much waits now.
func (s *Service) Depth() Depth {
	s.mu.Lock()
	defer s.mu.Unlock()
	var d Depth
	for _, l := range s.lines {
		d.Queued += len(l.queue)
		if l.busy {
			d.Busy++
		}
		if l.backlog {
			d.Backlog++
		}
	}
	now := s.clock.Now()
	for _, c := range s.conversations {
		if c.free[callSend].After(now) {
			d.Held++
		}
	}
	return d
}

// Waiting returns how many durable things an account has still to say.
func (s *Service) Waiting(ctx context.Context, channel, account string) (int, error) {
	n, err := s.store.q.Waiting(ctx, channel, account)
	if err != nil {
		return 0, fmt.Errorf("counting what waits: %w", err)
	}
	return n, nil
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
