package cron

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"understudy/cron/schedule"
	"understudy/internal/clock"
	"understudy/llm"
)

// Times of the scheduler.
const (
	tickEvery = 30 * time.Second // spec/chat.md §5.3
	readyIn   = time.Minute      // after which runs start although a channel is still away
	asleep    = 3                // ticks without a look at the clock are a sleep, or a step of the clock
	lateness  = 10 * time.Minute // how late a slot may be run after such a gap
	leaseTime = 2 * time.Minute  // after which a run whose process is gone counts as interrupted
	cleanup   = 10 * time.Second // that a run gets to end after its time is over
)

// ErrStopped tells that the scheduler does not take work: it is not running, or shutting down.
var ErrStopped = errors.New("the scheduler is not running")

// errTimeout is the cause that ends the context of a run.
var errTimeout = errors.New("the run's time limit ended it")

// Deps is what a Scheduler needs. Store, Runner, Announcer, Owner and Log are required.
type Deps struct {
	Store     *Store
	Runner    Runner
	Announcer Announcer
	Owner     Owner
	Clock     clock.Clock
	Log       *slog.Logger
	// Ready is closed when the channels are connected; nothing runs before that, or a minute. nil = at once.
	Ready <-chan struct{}
	// Home is where people are; Reload changes it.
	Home Home
	// CheckModel tells why an agent may not use a model, or that there is none of that name; nil = all is
	// allowed.
	CheckModel func(agent, ref string) error
	// Alone tells that no other process runs tasks of this database: runs that are found at the start
	// are known to be dead. Otherwise that takes two minutes.
	Alone bool
	// NewID makes ids of jobs; nil = ten random characters.
	NewID func() string
	// Metrics counts runs; nil = nothing is counted.
	Metrics Metrics
	// Chores are begun by the same look at the clock.
	Chores []Chore
}

// Metrics counts runs. Its labels come from closed sets.
type Metrics interface {
	Ran(status Status, reason Reason)
}

// Scheduler runs jobs when they are due. It is safe for concurrent use.
type Scheduler struct {
	deps  Deps
	store *Store
	clock clock.Clock
	log   *slog.Logger
	cfg   atomic.Pointer[setup]
	zones zoneCache
	waker waker
	pace  time.Duration // between two ticks
	// chores is changed by nobody once the scheduler is made.
	chores []*chore

	begun chan struct{} // closed when Run has begun

	mu       sync.Mutex
	up       bool // Run is there
	stopped  bool // nothing starts any more
	ready    bool
	began    bool // the waker was started
	since    time.Time
	seen     time.Time // the last look at the clock
	ticked   time.Time
	pruned   time.Time
	wake     chan struct{}       // closed when there is something to look at
	rang     bool                // a job may be due
	dirty    map[string]bool     // jobs whose next run may have changed
	queue    []*errand           // in order of arrival
	queued   map[string]bool     // jobs that are in it
	live     map[string]*errand  // claimed runs of this process, by id
	lagging  map[string]int      // runs that did not end in time, by job
	sending  map[string]struct{} // letters that are under way
	active   int                 // runs in the lane
	busy     int                 // goroutines whose end Run waits for
	idle     chan struct{}       // closed when busy falls to 0
	disabled bool                // by configuration, at the last look
}

// errand is a job on its way through the lane.
type errand struct {
	job     string
	slot    time.Time // NextRunAt at which it became due; zero for a run by hand
	trigger Trigger
	claimed bool
	task    Task                    // once claimed
	cancel  context.CancelCauseFunc // once it runs
	dropped error                   // why it is not to run after all
}

// New returns a scheduler; Run makes it work.
func New(cfg Config, deps Deps) (*Scheduler, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if deps.NewID == nil {
		deps.NewID = newID
	}
	s := &Scheduler{
		deps: deps, store: deps.Store, clock: deps.Clock, log: deps.Log, pace: tickEvery, wake: make(chan struct{}), begun: make(chan struct{}),
		dirty: map[string]bool{}, queued: map[string]bool{}, live: map[string]*errand{}, lagging: map[string]int{}, sending: map[string]struct{}{},
	}
	s.waker = newWaker(deps.Clock, deps.Log, s.ring)
	for _, c := range deps.Chores {
		s.chores = append(s.chores, &chore{Chore: c})
	}
	if err := s.configure(cfg, deps.Home); err != nil {
		return nil, err
	}
	return s, nil
}

// Reload puts another configuration in place. One that is not valid changes nothing. With another zone the
// jobs that have none of their own are reckoned anew.
func (s *Scheduler) Reload(cfg Config, home Home) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	if err := s.configure(cfg, home); err != nil {
		return err
	}
	s.mu.Lock()
	s.ticked = time.Time{} // a tick finds what is to be reckoned anew
	s.mu.Unlock()
	s.ring()
	return nil
}

func (s *Scheduler) config() Config { return s.cfg.Load().Config }

func (s *Scheduler) now() time.Time { return s.clock.Now() }

// Store returns where the jobs are.
func (s *Scheduler) Store() *Store { return s.store }

// Active returns how many runs are under way or wait for a place in the lane.
func (s *Scheduler) Active() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active + len(s.queue)
}

// Begun is closed when Run has begun: from then on tasks can be run by hand.
func (s *Scheduler) Begun() <-chan struct{} { return s.begun }

// Run works until ctx ends, once in the life of a Scheduler. Runs that are under way are then cancelled with ctx's cause, get ten
// seconds to end, and are recorded as interrupted; call Drain first to let them finish.
func (s *Scheduler) Run(ctx context.Context) error {
	s.start(ctx)
	defer s.waker.stop()
	for ctx.Err() == nil {
		wake, next := s.look(ctx)
		timer, cancel := s.clock.WithTimeout(ctx, next, nil)
		_ = s.clock.Await(timer, wake)
		cancel()
	}
	s.abandon(ctx)
	return s.rest(context.WithoutCancel(ctx))
}

// start begins the scheduler's life.
func (s *Scheduler) start(ctx context.Context) {
	s.mu.Lock()
	now := s.now()
	s.up, s.since, s.seen, s.ready = true, now, now, s.deps.Ready == nil
	waits := !s.ready
	s.mu.Unlock()
	close(s.begun)
	if !waits {
		return
	}
	s.spawn(func() {
		limit, cancel := s.clock.WithTimeout(ctx, readyIn, nil)
		defer cancel()
		if err := s.clock.Await(limit, s.deps.Ready); err != nil && ctx.Err() == nil {
			s.log.Warn("tasks start although not all channels are connected")
		}
		s.mu.Lock()
		s.ready = true
		s.mu.Unlock()
		s.ring()
	})
}

// look does what is to be done now, and returns the channel that is closed when there is more, and when
// to look again in any case.
func (s *Scheduler) look(ctx context.Context) (wake <-chan struct{}, next time.Duration) {
	s.mu.Lock()
	now := s.now()
	wake = s.wake
	tick := s.observe(now)
	s.mu.Unlock()
	if tick {
		s.tick(ctx, now)
	} else {
		s.refresh(ctx, now)
		s.scan(ctx, now)
	}
	s.dispatch(ctx)
	s.post(ctx)
	return wake, s.housekeep(ctx, now)
}

// observe notes the time and reports whether a tick is due. After a gap, what was due in it was
// missed, but for the last minutes: those slots are run a little late. s.mu is held.
func (s *Scheduler) observe(now time.Time) (tick bool) {
	off := !*s.config().Enabled
	switch {
	case s.disabled && !off:
		s.since = now
	case now.Sub(s.seen) > asleep*s.pace:
		s.since = later(s.since, now.Add(-lateness))
	case now.Before(s.since):
		s.since = now // the clock was set back: nothing is missed by that
	}
	s.disabled, s.seen = off, now
	if tick = s.ticked.IsZero() || now.Before(s.ticked) || now.Sub(s.ticked) >= s.pace; tick {
		s.ticked = now
	}
	return tick
}

// ring tells that a job may be due.
func (s *Scheduler) ring() {
	s.mu.Lock()
	s.rang = true
	s.mu.Unlock()
	s.nudge()
}

// nudge has the scheduler look.
func (s *Scheduler) nudge() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.wake)
	s.wake = make(chan struct{})
}

// touch tells that the next run of a job may have changed.
func (s *Scheduler) touch(id string) {
	s.mu.Lock()
	s.dirty[id] = true
	s.mu.Unlock()
	s.nudge()
}

// spawn runs f in a goroutine whose end Run and Drain wait for.
func (s *Scheduler) spawn(f func()) {
	s.mu.Lock()
	s.busy++
	s.mu.Unlock()
	s.clock.Go(func() {
		defer s.ended()
		f()
	})
}

func (s *Scheduler) ended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy--; s.busy == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

// rest waits until nothing is under way.
func (s *Scheduler) rest(ctx context.Context) error {
	s.mu.Lock()
	if s.busy == 0 {
		s.mu.Unlock()
		return nil
	}
	if s.idle == nil {
		s.idle = make(chan struct{})
	}
	idle := s.idle
	s.mu.Unlock()
	return s.clock.Await(ctx, idle)
}

// Drain stops new runs and waits for those under way, and for what they say, until ctx ends; then it
// returns its cause.
func (s *Scheduler) Drain(ctx context.Context) error {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.abandon(ctx)
	return s.rest(ctx)
}

// abandon empties the queue. Slots stay as they are; runs by hand, which hold a claim, are recorded as
// interrupted.
func (s *Scheduler) abandon(ctx context.Context) {
	s.mu.Lock()
	s.stopped = true
	queue := s.queue
	s.queue, s.queued = nil, map[string]bool{}
	for _, e := range queue {
		delete(s.live, e.task.RunID)
	}
	s.mu.Unlock()
	for _, e := range queue {
		if e.claimed {
			s.interrupt(ctx, e.task)
		}
	}
}

// stop cancels the run of a job, also one that has yet to begin.
func (s *Scheduler) stop(job string, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.live {
		if e.job != job {
			continue
		}
		if e.dropped = cause; e.cancel != nil {
			e.cancel(cause)
		}
	}
}

// compile makes the schedule of a job.
func (s *Scheduler) compile(job Job) (schedule.Schedule, error) {
	return job.Schedule.Compile(s.cfg.Load().zone, s.zones.find)
}

// zoneCache remembers zones: loading one reads a file.
type zoneCache struct {
	mu    sync.Mutex
	zones map[string]*time.Location
}

// maxZones bounds the cache; the zone database has about 600 names.
const maxZones = 1000

func (c *zoneCache) find(name string) (*time.Location, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if z := c.zones[name]; z != nil {
		return z, nil
	}
	z, err := time.LoadLocation(name)
	if err != nil {
		return nil, err
	}
	if c.zones == nil || len(c.zones) >= maxZones {
		c.zones = map[string]*time.Location{}
	}
	c.zones[name] = z
	return z, nil
}

// causeOf says why a run's context ended.
func causeOf(ctx context.Context) Reason {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTimeout):
		return ReasonTimeout
	case errors.Is(cause, llm.ErrStopped):
		return ReasonStopped
	}
	return ReasonInterrupted
}
