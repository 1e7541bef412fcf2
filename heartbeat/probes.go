package heartbeat

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
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
	ClearAuto(ctx context.Context, key string, probed session.Override) (cleared bool, err error)
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

// Prober is the five-minute job.
type Prober struct{ deps Deps }

// New returns a Prober.
func New(deps Deps) *Prober { return &Prober{deps} }

// Run does the job every five minutes until ctx ends; the first time five minutes after the start.
func (p *Prober) Run(ctx context.Context) {
	for {
		off := time.Duration(rand.Int64N(int64(2*spread))) - spread
		if p.deps.Clock.Sleep(ctx, Every+off) != nil {
			return
		}
		p.Tick(ctx)
	}
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
		answered, asked, err := p.deps.Probe(ctx, w.agent, w.ref, len(w.overrides) == 0)
		switch {
		case err != nil:
			p.deps.Log.WarnContext(ctx, "probe_failed", "model", w.ref.String(), "error", err.Error())
			down[key] = true
		case answered:
			p.deps.Log.InfoContext(ctx, "probe_answered", "agent", w.agent, "model", w.ref.String(), "overrides", len(w.overrides))
			p.clear(ctx, w)
		case asked:
			down[key] = true
		}
	}
}

// origins lists what sessions wait for, in a fixed order. While nothing fell back it is empty and no
// request is made.
func (p *Prober) origins(ctx context.Context) ([]*waiting, error) {
	var list []*waiting
	find := func(agent string, ref llm.ModelRef) *waiting {
		for _, w := range list {
			if w.agent == agent && w.ref == ref {
				return w
			}
		}
		w := &waiting{origin: origin{agent, ref}}
		list = append(list, w)
		return w
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
	slices.SortFunc(list, func(a, b *waiting) int {
		return cmp.Or(cmp.Compare(a.agent, b.agent), cmp.Compare(a.ref.String(), b.ref.String()))
	})
	return list, nil
}

// clear removes the overrides that stood in for what answers again, unless they changed meanwhile.
func (p *Prober) clear(ctx context.Context, w *waiting) {
	for _, s := range w.overrides {
		if _, err := p.deps.Sessions.ClearAuto(ctx, s.Key, s.Override); err != nil {
			p.deps.Log.WarnContext(ctx, "override_not_cleared", "session", s.Key, "error", err.Error())
		}
	}
}
