package heartbeat

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"understudy/chat"
	"understudy/internal/clock"
)

// Times of heartbeats.
const (
	busyRetry = time.Minute // after which a busy session is looked at again
	startRest = time.Minute // before one that was missed while nobody was there
)

// alarmAfter failures in a row the owner is told, once until one goes well again.
const alarmAfter = 3

// ErrRunning tells that a heartbeat of the agent is under way.
var ErrRunning = errors.New("a heartbeat is under way")

// ErrNoAgent tells that there is no such agent.
var ErrNoAgent = errors.New("there is no such agent")

// Agent is an agent with the settings of its heartbeat.
type Agent struct {
	ID       string
	Settings Settings
}

// Load is what goes on beside a heartbeat.
type Load struct {
	Lane  bool // a turn runs or waits in the session that it would run in
	Agent bool // some turn of the agent runs, or scheduled work does
}

// PulseDeps are what a Pulse works with. All but Metrics are required.
type PulseDeps struct {
	Store  *Store
	Agents func() []Agent
	// Enabled reports whether scheduled work happens at all.
	Enabled func() bool
	// Route returns where an agent's alerts go; ok is false when nobody can be reached.
	Route func(ctx context.Context, agent string, s Settings) (to chat.Address, ok bool)
	Load  func(agent string, s Settings) Load
	// Resting reports whether the model that a heartbeat asks first is known not to answer now.
	Resting func(ctx context.Context, agent string, s Settings) bool
	// Spent reports whether the budget for background work is used up.
	Spent func(ctx context.Context) bool
	// Renewed returns when the session that events are for began anew last; zero = never. What was to be
	// noticed before that is forgotten (spec/chat.md §1.3).
	Renewed func(ctx context.Context, agent string) (time.Time, error)
	// Turn runs one heartbeat and returns soon after ctx ends. Its error is a fault of ours.
	Turn func(ctx context.Context, t Turn) (Result, error)
	// Say puts what was found into safe hands, once for each key.
	Say func(ctx context.Context, l Letter) error
	// Tell tells the owner something, once for each key.
	Tell    func(ctx context.Context, key, text string) error
	Clock   clock.Clock
	Log     *slog.Logger
	Metrics Metrics // nil = nothing is counted
}

// Metrics counts heartbeats. Its labels come from closed sets.
type Metrics interface {
	Beat(o Outcome, why Why)
}

// Pulse is the heartbeats of all agents. It is a chore of the scheduler: Due and Do. It is safe for
// concurrent use.
//
// There is at most one heartbeat of an agent at any time, and at most one that waits: a busy session
// makes it look again in a minute, and the next regular one takes its place.
type Pulse struct {
	deps PulseDeps
	wake func() // has the scheduler look anew

	mu     sync.Mutex
	beats  map[string]*beat // by agent
	off    map[string]bool  // switched at runtime
	busy   int
	idle   chan struct{}
	closed bool
}

// beat is when an agent's heart beats.
type beat struct {
	planned bool
	every   time.Duration
	next    time.Time // regular; zero = never
	retry   time.Time // after a busy one; zero = none
	event   bool      // one was asked for by an event
	running bool
}

// NewPulse returns the heartbeats; wake is called when Due may have moved to an earlier time.
func NewPulse(deps PulseDeps, wake func()) *Pulse {
	return &Pulse{deps: deps, wake: wake, beats: map[string]*beat{}, off: map[string]bool{}}
}

// Due implements cron.Chore.
func (p *Pulse) Due() time.Time {
	agents := p.deps.Agents()
	now := p.deps.Clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	var first time.Time
	for _, a := range agents {
		b := p.beats[a.ID]
		if !b.fits(a) {
			return now // it has to be planned
		}
		if at := b.due(now); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// fits reports whether the plan is the one of the settings.
func (b *beat) fits(a Agent) bool { return b != nil && b.planned && b.every == a.Settings.Every }

// beat returns the plan of an agent; p.mu is held.
func (p *Pulse) beat(agent string) *beat {
	b := p.beats[agent]
	if b == nil {
		b = &beat{}
		p.beats[agent] = b
	}
	return b
}

// due returns when the heart beats next; p.mu is held.
func (b *beat) due(now time.Time) time.Time {
	switch {
	case b.running:
		return time.Time{}
	case !b.retry.IsZero() && (b.next.IsZero() || b.retry.Before(b.next)):
		return b.retry
	case b.event:
		return now
	}
	return b.next
}

// Do implements cron.Chore: it begins what is due and does not wait for it. Close does.
func (p *Pulse) Do(ctx context.Context) {
	now := p.deps.Clock.Now()
	for _, a := range p.deps.Agents() {
		p.plan(ctx, a, now)
		p.mu.Lock()
		b := p.beats[a.ID]
		at := b.due(now)
		due := !at.IsZero() && !at.After(now)
		trigger := bySchedule
		if due {
			if b.event && (b.next.IsZero() || b.next.After(now)) {
				trigger = byEvent
			}
			b.advance(now)
		}
		next := b.next
		p.mu.Unlock()
		if due {
			p.store(ctx, a.ID, func(r *Record) { r.Next = next })
			p.spawn(a, func() { p.tick(ctx, a, trigger) })
		}
	}
}

// advance moves the regular heartbeat behind now; p.mu is held.
func (b *beat) advance(now time.Time) {
	b.retry = time.Time{}
	if b.every <= 0 || b.next.After(now) {
		return
	}
	missed := now.Sub(b.next) / b.every
	b.next = b.next.Add((missed + 1) * b.every)
}

// plan settles when an agent's heart beats, if that is not known or was configured anew. A restart moves
// nothing: what was missed comes soon, once.
func (p *Pulse) plan(ctx context.Context, a Agent, now time.Time) {
	p.mu.Lock()
	known := p.beat(a.ID).fits(a)
	first := !p.beat(a.ID).planned
	p.mu.Unlock()
	if known {
		return
	}
	every, next := a.Settings.Every, time.Time{}
	if every > 0 {
		next = now.Add(every)
	}
	if first {
		r, err := p.deps.Store.Load(ctx, a.ID)
		if err != nil {
			p.deps.Log.WarnContext(ctx, "heartbeat_not_read", "agent", a.ID, "error", err.Error())
		}
		p.resume(ctx, a.ID, r)
		switch {
		case every <= 0, r.Next.IsZero(), r.Next.After(next):
		case r.Next.Before(now.Add(startRest)):
			next = now.Add(min(startRest, every))
		default:
			next = r.Next
		}
	}
	p.mu.Lock()
	b := p.beat(a.ID)
	b.planned, b.every, b.next, b.retry = true, every, next, time.Time{}
	p.mu.Unlock()
	p.store(ctx, a.ID, func(r *Record) { r.Next = next })
}

// resume says what was found before and could not be said then.
func (p *Pulse) resume(ctx context.Context, agent string, r Record) {
	if r.Letter == nil {
		return
	}
	if err := p.say(ctx, agent, *r.Letter); err != nil {
		p.deps.Log.WarnContext(ctx, "heartbeat_not_said", "agent", agent, "error", err.Error())
	}
}

// spawn runs f for an agent in a goroutine whose end Close waits for, unless one runs already.
func (p *Pulse) spawn(a Agent, f func()) bool {
	p.mu.Lock()
	b := p.beat(a.ID)
	if b.running || p.closed {
		p.mu.Unlock()
		return false
	}
	b.running = true
	p.busy++
	p.mu.Unlock()
	p.deps.Clock.Go(func() {
		defer func() {
			p.mu.Lock()
			b.running = false
			if p.busy--; p.busy == 0 && p.idle != nil {
				close(p.idle)
				p.idle = nil
			}
			p.mu.Unlock()
			p.wake()
		}()
		f()
	})
	return true
}

// Close begins nothing any more and waits until nothing runs, or ctx ends; then it returns its cause.
func (p *Pulse) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	if p.busy == 0 {
		p.mu.Unlock()
		return nil
	}
	if p.idle == nil {
		p.idle = make(chan struct{})
	}
	idle := p.idle
	p.mu.Unlock()
	return p.deps.Clock.Await(ctx, idle)
}

// Notice keeps an event for an agent's next heartbeat, and with now begins one as soon as the session is
// free, also where heartbeats are off.
func (p *Pulse) Notice(ctx context.Context, agent string, e Event, now bool) error {
	e.At = p.deps.Clock.Now()
	if err := p.deps.Store.AddEvent(ctx, agent, e); err != nil || !now {
		return err
	}
	p.mu.Lock()
	p.beat(agent).event = true
	p.mu.Unlock()
	p.wake()
	return nil
}

// Now runs a heartbeat beside the schedule and returns what came of it. It is skipped like any other, but
// for the hours, work elsewhere and the least time between two (spec/chat.md §6.2).
func (p *Pulse) Now(ctx context.Context, agent string) (Report, error) {
	a, ok := p.agent(agent)
	if !ok {
		return Report{}, ErrNoAgent
	}
	var r Report
	done := make(chan struct{})
	if !p.spawn(a, func() {
		defer close(done)
		r = p.tick(context.WithoutCancel(ctx), a, byHand)
	}) {
		return Report{}, ErrRunning
	}
	err := p.deps.Clock.Await(ctx, done)
	if err != nil {
		return Report{}, err // it goes on
	}
	return r, nil
}

// Switch turns the regular heartbeats of an agent on or off until the process ends.
func (p *Pulse) Switch(agent string, on bool) error {
	if _, ok := p.agent(agent); !ok {
		return ErrNoAgent
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.off[agent] = !on
	return nil
}

// Status is how an agent's heartbeats stand.
type Status struct {
	On    bool
	Every time.Duration // 0 = not configured
	Next  time.Time     // zero = none is planned
	// Beating tells that one is under way.
	Beating bool
	Record
}

// State returns how an agent's heartbeats stand.
func (p *Pulse) State(ctx context.Context, agent string) (Status, error) {
	a, ok := p.agent(agent)
	if !ok {
		return Status{}, ErrNoAgent
	}
	r, err := p.deps.Store.Load(ctx, agent)
	if err != nil {
		return Status{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	st := Status{Every: a.Settings.Every, On: a.Settings.Every > 0 && !p.off[agent] && p.deps.Enabled(), Record: r}
	b := p.beat(agent)
	st.Beating = b.running
	switch {
	case !st.On:
	case b.running:
		st.Next = b.next
	default:
		st.Next = b.due(p.deps.Clock.Now())
	}
	return st, nil
}

func (p *Pulse) agent(id string) (Agent, bool) {
	for _, a := range p.deps.Agents() {
		if a.ID == id {
			return a, true
		}
	}
	return Agent{}, false
}
