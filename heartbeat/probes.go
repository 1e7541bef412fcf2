package heartbeat

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"understudy/internal/clock"
	"understudy/llm"
	"understudy/session"
)

// Every is the interval of the job; it cannot be configured (spec/failover.md §12).
const Every = 5 * time.Minute

// spread is how far a run may be off, so that bots that were started together do not ask together.
const spread = 15 * time.Second

// maxSessions bounds how many sessions one run looks at, the most recently used first.
const maxSessions = 10_000

// Sessions is what the job needs of the session store.
type Sessions interface {
	List(ctx context.Context, f session.Filter) ([]session.Session, error)
	// ClearAutos removes the automatic overrides that are still what they were, in one transaction.
	ClearAutos(ctx context.Context, probed []session.Session) (cleared int, err error)
}

// Deps are what a Prober works with.
type Deps struct {
	Sessions Sessions
	// Probe asks a model whether it is back. With onlyCooling it leaves a model alone that nothing
	// keeps from serving. answered reports whether the model answered, asked whether it was asked.
	Probe func(ctx context.Context, agent string, ref llm.ModelRef, onlyCooling bool) (answered, asked bool, err error)
	Clock clock.Clock
	Log   *slog.Logger
}

// Prober is the five-minute job, a chore of the scheduler: Due and Do. It is safe for concurrent use.
type Prober struct {
	deps Deps

	mu    sync.Mutex
	next  time.Time
	state map[origin]bool // whether it answered last, for the log: only changes are worth a line
}

// New returns a Prober whose first run is five minutes from now.
func New(deps Deps) *Prober {
	p := &Prober{deps: deps, state: map[origin]bool{}}
	p.plan()
	return p
}

func (p *Prober) plan() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = p.deps.Clock.Now().Add(Every + time.Duration(rand.Int64N(int64(2*spread))) - spread)
}

// Due implements cron.Chore.
func (p *Prober) Due() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.next
}

// Do implements cron.Chore.
func (p *Prober) Do(ctx context.Context) {
	p.plan()
	p.Tick(ctx)
}

// origin is a model that sessions wait for.
type origin struct {
	agent string
	ref   llm.ModelRef
}

// waiting is who waits for an origin.
type waiting struct {
	origin
	overrides []session.Session // with a legacy automatic override of it
}

// Tick does the job once: one probe per distinct origin, however many sessions wait for it. After a
// failure nothing more of that provider is asked in this run.
func (p *Prober) Tick(ctx context.Context) {
	list, err := p.origins(ctx)
	if err != nil {
		p.deps.Log.WarnContext(ctx, "probes_skipped", "error", err.Error())
		return
	}
	down := map[string]bool{}
	for _, w := range list {
		key := w.agent + "\x00" + w.ref.Provider
		if ctx.Err() != nil || down[key] {
			continue
		}
		answered, asked, err := p.ask(ctx, w, len(w.overrides) == 0)
		down[key] = err != nil || asked && !answered
	}
}

// Ask asks one model now, and does what follows from its answer. A model that nothing keeps from serving
// and that nobody waits for is left alone: asked is false then, and where it was asked a moment ago.
func (p *Prober) Ask(ctx context.Context, agent string, ref llm.ModelRef) (answered, asked bool, err error) {
	list, err := p.origins(ctx)
	if err != nil {
		return false, false, err
	}
	w := &waiting{origin: origin{agent, ref}}
	if i := slices.IndexFunc(list, func(x *waiting) bool { return x.origin == w.origin }); i >= 0 {
		w = list[i]
	}
	return p.ask(ctx, w, len(w.overrides) == 0)
}

// ask asks a model and clears what stood in for it if it answers.
func (p *Prober) ask(ctx context.Context, w *waiting, onlyCooling bool) (answered, asked bool, err error) {
	answered, asked, err = p.deps.Probe(ctx, w.agent, w.ref, onlyCooling)
	switch {
	case err != nil:
		p.deps.Log.WarnContext(ctx, "probe_failed", "model", w.ref.String(), "error", err.Error())
	case answered:
		p.clear(ctx, w)
	}
	if (asked || answered) && p.changed(w.origin, answered) {
		p.deps.Log.InfoContext(ctx, "probe", "agent", w.agent, "model", w.ref.String(), "answered", answered, "overrides", len(w.overrides))
	}
	return answered, asked, err
}

// changed takes in whether a model answered and reports whether that is news.
func (p *Prober) changed(o origin, answered bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was, known := p.state[o]
	if len(p.state) > maxSessions {
		p.state = map[origin]bool{}
	}
	p.state[o] = answered
	return !known || was != answered
}

// origins lists what sessions wait for, in a fixed order. While nothing fell back it is empty and no
// request is made.
func (p *Prober) origins(ctx context.Context) ([]*waiting, error) {
	index := map[origin]*waiting{}
	find := func(agent string, ref llm.ModelRef) *waiting {
		o := origin{agent, ref}
		if index[o] == nil {
			index[o] = &waiting{origin: o}
		}
		return index[o]
	}
	auto, err := p.deps.Sessions.List(ctx, session.Filter{AutoOnly: true, Limit: maxSessions})
	if err != nil {
		return nil, err
	}
	for _, s := range auto {
		if !s.Override.Origin.IsZero() {
			w := find(s.AgentID, s.Override.Origin)
			w.overrides = append(w.overrides, s)
		}
	}
	fallen, err := p.deps.Sessions.List(ctx, session.Filter{FallenBack: true, Limit: maxSessions})
	if err != nil {
		return nil, err
	}
	for _, s := range fallen {
		if !s.Notice.Selected.IsZero() {
			find(s.AgentID, s.Notice.Selected)
		}
	}
	list := make([]*waiting, 0, len(index))
	for _, w := range index {
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b *waiting) int {
		return cmp.Or(cmp.Compare(a.agent, b.agent), cmp.Compare(a.ref.String(), b.ref.String()))
	})
	return list, nil
}

// clear removes the overrides that stood in for what answers again, all or none, and none that changed
// meanwhile.
func (p *Prober) clear(ctx context.Context, w *waiting) {
	if len(w.overrides) == 0 {
		return
	}
	if _, err := p.deps.Sessions.ClearAutos(ctx, w.overrides); err != nil {
		p.deps.Log.WarnContext(ctx, "overrides_not_cleared", "model", w.ref.String(), "error", err.Error())
	}
}
