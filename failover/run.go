package failover

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"understudy/failover/policy"
	"understudy/llm"
)

// maxRestarts is how often a live switch may restart a turn (spec §8.7).
const maxRestarts = 2

// Runner runs turns. It is safe for concurrent use.
type Runner struct {
	deps     Deps
	cache    skipCache
	known    sync.Map // agent → policy.Snapshot, the last that could be read
	sleepers sleepers
	underway underway
}

// New returns a Runner.
func New(deps Deps) *Runner { return &Runner{deps: deps} }

// Plan is what a turn wants: a selection turned into a chain.
type Plan struct {
	Ref
	Selected llm.ModelRef   // what the selection says
	Chain    []llm.ModelRef // policy.Chain of the selection
	Strict   bool           // policy.Strict of the selection
	Pin      policy.Pin
	Images   bool      // the turn carries images
	Tokens   int       // estimated size of the prompt
	Deadline time.Time // of the turn; zero = none
	Quiet    bool      // heartbeats: no "still retrying" notice (spec §9)
}

// same reports whether both plans ask for the same: to choose again what is chosen already changes
// nothing. Automatic pins are no choice.
func (p Plan) same(o Plan) bool {
	pinned := p.Pin.User || o.Pin.User
	return p.Selected == o.Selected && p.Strict == o.Strict && slices.Equal(p.Chain, o.Chain) &&
		(!pinned || p.Pin == o.Pin)
}

// Run is one turn's way through its chain. Ask and Working are called from one goroutine.
type Run struct {
	runner   *Runner
	host     Host
	key      string // of the session
	plan     Plan
	settings *Settings
	store    Store // nil when it cannot be used
	state    policy.RunState
	lostPin  llm.ProfileID
	yielded  bool
	claimed  time.Time // when the probe throttle was taken for the attempt that follows
	restarts int
	compacts int
	pass     int
	agreed   map[llm.ModelRef]bool // candidates that may stand in, whatever they cost

	mu       sync.Mutex // guards the fields below, which the notice timer reads
	trail    []Record
	over     bool
	told     bool
	begun    time.Time
	wanted   llm.ModelRef // plan.Selected
	asked    Record       // the attempt under way
	paused   time.Time    // until when the run waits
	overload interface{ Stop() bool }
}

// Begin starts a turn's run. Finish must be called when the turn is over.
func (r *Runner) Begin(ctx context.Context, p Plan, h Host) *Run {
	now := r.deps.Clock.Now()
	run := &Run{runner: r, host: h, key: p.Session, plan: p, wanted: p.Selected, settings: r.deps.Settings(), pass: 1, begun: now}
	if s, err := r.deps.Store(p.Agent); err != nil {
		r.deps.Log.WarnContext(ctx, "auth_store_unavailable", "agent", p.Agent, "error", err.Error())
	} else {
		run.store = s
	}
	run.state.Started = now
	run.state.Chain = run.candidates(p)
	run.told = p.Quiet
	run.checkPin(ctx, now)
	if !p.Quiet {
		run.overload = r.deps.Clock.AfterFunc(policy.NoticeAfter, run.maybeStillRetrying)
	}
	r.underway.begin(run)
	return run
}

// Working tells that a tool starts to run: from now on no other candidate and no other profile may
// take over (spec §8.1).
func (run *Run) Working() { run.state.Work = true }

// Finish ends the run: nothing is sent on its behalf any more.
func (run *Run) Finish() {
	run.mu.Lock()
	run.over = true
	run.mu.Unlock()
	run.runner.underway.end(run)
	if run.overload != nil {
		run.overload.Stop()
	}
}

// Trail returns every attempt and skip of the turn so far, in order.
func (run *Run) Trail() []Record {
	run.mu.Lock()
	defer run.mu.Unlock()
	return append([]Record(nil), run.trail...)
}

// Plan returns the plan in force: a live switch may have replaced the one the run began with.
func (run *Run) Plan() Plan { return run.plan }

// LostPin returns the profile that the user had pinned and that no longer exists; the run goes on
// without it (spec §3).
func (run *Run) LostPin() llm.ProfileID { return run.lostPin }

// PinYielded reports whether an automatic pin gave way when the turn began, because its profile was
// blocked or gone: the pin moves to who answers instead (spec §5.3).
func (run *Run) PinYielded() bool { return run.yielded }

// checkPin compares the plan's pin with what is stored now.
func (run *Run) checkPin(ctx context.Context, now time.Time) {
	pin := run.plan.Pin
	if pin.Profile == "" {
		return
	}
	run.refresh(ctx, now)
	_, virtual, ok := run.runner.deps.Models().Virtual(pin.Profile.Provider())
	_, listed := run.settings.key(pin.Profile)
	exists := listed || ok && virtual.Profile == pin.Profile
	if !exists && run.store != nil {
		snap, err := run.store.Snapshot(ctx)
		exists = err != nil || slices.ContainsFunc(snap.Profiles, func(x policy.Profile) bool { return x.ID == pin.Profile })
	}
	if !exists {
		run.plan.Pin = policy.Pin{}
		if pin.User {
			run.lostPin = pin.Profile
		} else {
			run.yielded = true
		}
		return
	}
	_, run.yielded = run.state.Health.Block(pin.Profile, run.plan.Selected.Model, now)
}

// candidates builds the chain with what never changes during the turn.
func (run *Run) candidates(p Plan) []policy.Candidate {
	models := run.runner.deps.Models()
	chain := make([]policy.Candidate, len(p.Chain))
	for i, ref := range p.Chain {
		c := policy.Candidate{Ref: ref}
		info := models.Info(ref)
		if _, err := models.Client(ref.Provider); err != nil {
			c.Unfit, c.UnfitWhy = llm.ReasonModelNotFound, policy.WhyUnknown
		} else if info.Known && p.Images && !info.Images {
			c.Unfit, c.UnfitWhy = llm.ReasonCapability, policy.WhyCapability
		} else if tooSmall(info, p.Tokens) && (i > 0 || fitsLater(p, models)) {
			c.Unfit, c.UnfitWhy = llm.ReasonCapability, policy.WhyCapability
		}
		chain[i] = c
	}
	return chain
}

// tooSmall reports whether a model is known to have too small a context window for a prompt.
func tooSmall(m ModelInfo, tokens int) bool {
	return m.Known && m.ContextWindow > 0 && tokens > m.ContextWindow
}

// fitsLater reports whether anybody behind the first candidate can take the plan's prompt. If nobody
// can, the first one is asked all the same, so that the user hears what is wrong: too long.
func fitsLater(p Plan, models Models) bool {
	return slices.ContainsFunc(p.Chain[1:], func(ref llm.ModelRef) bool {
		info := models.Info(ref)
		_, err := models.Client(ref.Provider)
		return err == nil && !tooSmall(info, p.Tokens) && !(info.Known && p.Images && !info.Images)
	})
}

// lastKnown is the newest snapshot of an agent's store that could be read.
func (r *Runner) lastKnown(agent string) policy.Snapshot {
	s, _ := r.known.Load(agent)
	snap, _ := s.(policy.Snapshot)
	return snap
}

// refresh brings health, throttles and profile orders up to date.
func (run *Run) refresh(ctx context.Context, now time.Time) {
	var snap policy.Snapshot
	if run.store != nil {
		s, err := run.store.Snapshot(ctx)
		if err == nil {
			snap = s
			run.runner.known.Store(run.plan.Agent, s)
		} else {
			// A file that is locked for a moment must not look like a bot without credentials or windows.
			run.log(ctx).WarnContext(ctx, "auth_store_unavailable", "error", err.Error())
			snap = run.runner.lastKnown(run.plan.Agent)
		}
	}
	models := run.runner.deps.Models()
	run.state.Health, run.state.LastProbe = snap.Health, snap.LastProbe
	for i := run.state.From; i < len(run.state.Chain); i++ {
		c := &run.state.Chain[i]
		order := policy.Order(run.pool(snap, models, c.Ref.Provider), snap.Health, c.Ref.Model, now)
		c.Profiles = order.Profiles
		if run.plan.Pin.Profile.Provider() == c.Ref.Provider {
			c.Profiles, _ = run.plan.Pin.Apply(order.Profiles, snap.Health, c.Ref.Model, now)
		}
		c.AuthCached = run.settings.SkipTTL > 0 && run.runner.cache.has(run.plan.Session, c.Ref, now)
	}
}

// pool gathers everything known about a provider's credentials.
func (run *Run) pool(snap policy.Snapshot, models Models, provider string) policy.Pool {
	p := policy.Pool{
		Provider:   provider,
		Declared:   run.settings.Declared[provider],
		Override:   snap.Orders[provider],
		Configured: run.settings.Order[provider],
	}
	for _, x := range snap.Profiles {
		if x.ID.Provider() == provider {
			p.Stored = append(p.Stored, x)
		}
	}
	if v, _, ok := models.Virtual(provider); ok {
		p.Virtual = &v
	}
	for _, c := range run.settings.Keys[provider] {
		p.More = append(p.More, policy.Profile{ID: c.Profile, Kind: c.Kind, HasSecret: true})
	}
	if pin := run.plan.Pin; pin.User && pin.Profile.Provider() == provider && !p.Closed() {
		p.Override = []llm.ProfileID{pin.Profile} // the user named it, whatever the order leaves out
	}
	return p
}

// Ask gets the answer to one model request from the first candidate that gives one. req needs no
// model; it is set for every attempt. The error is a *AttemptError, a *FallbackSummaryError or
// ErrSwitchedTooOften wrapped in one of them.
func (run *Run) Ask(ctx context.Context, req llm.Request) (Answer, error) {
	if _, err := run.followSwitch(ctx); err != nil {
		return Answer{}, err
	}
	d := run.next(ctx)
	for {
		switch x := d.(type) {
		case policy.Try:
			if x.Throttled && !run.claim(ctx, x) {
				d = run.runnerNext(run.clock().Now())
				continue
			}
			if !run.affordable(ctx, x) {
				if _, err := run.followSwitch(ctx); err != nil {
					return Answer{}, err
				}
				d = run.next(ctx)
				continue
			}
			answer, failed, err := run.attempt(ctx, x, &req)
			if err != nil {
				return Answer{}, err
			}
			if failed == nil {
				run.stoodIn(ctx, x, answer)
				return answer, nil
			}
			if d, err = run.afterFailed(ctx, x, failed, &req); err != nil {
				return Answer{}, err
			}
		case policy.Skip:
			run.skip(ctx, x)
			next := run.runnerNext(run.clock().Now())
			run.logSkip(ctx, x, next)
			d = next
		case policy.Wait:
			if err := run.wait(ctx, x); err != nil {
				return Answer{}, err
			}
			if _, err := run.followSwitch(ctx); err != nil {
				return Answer{}, err
			}
			d = run.next(ctx)
		case policy.Stop, policy.Exhausted:
			return Answer{}, run.summary(ctx)
		}
	}
}

// afterFailed decides what follows a failed attempt: compaction, a live switch, or what policy says.
func (run *Run) afterFailed(ctx context.Context, x policy.Try, f *llm.Error, req *llm.Request) (policy.Decision, error) {
	if ctx.Err() != nil {
		d := policy.Stop{Reason: f.Reason}
		run.logFailed(ctx, x, f, d)
		return d, nil
	}
	if f.Reason == llm.ReasonContextOverflow && run.compacts == 0 && !run.state.Said {
		run.compacts++
		ref := run.state.Chain[x.Index].Ref
		if messages, ok := run.host.Compact(ctx, ref); ok {
			req.Messages = messages
			run.state.Record(policy.Step{Kind: policy.StepCompacted, Index: x.Index, Profile: x.Profile})
			return run.next(ctx), nil
		}
	}
	d := run.next(ctx)
	run.logFailed(ctx, x, f, d)
	if _, stop := d.(policy.Stop); stop {
		return d, nil
	}
	if changed, err := run.followSwitch(ctx); err != nil || !changed {
		return d, err
	}
	return run.next(ctx), nil
}

func (run *Run) next(ctx context.Context) policy.Decision {
	now := run.clock().Now()
	run.refresh(ctx, now)
	return run.runnerNext(now)
}

func (run *Run) runnerNext(now time.Time) policy.Decision {
	return run.settings.Rules.Next(&run.state, now)
}

// claim takes the provider's probe throttle; a refusal makes the next decision a skip.
func (run *Run) claim(ctx context.Context, x policy.Try) bool {
	provider, now := run.state.Chain[x.Index].Ref.Provider, run.clock().Now()
	run.claimed = now
	if run.store == nil {
		return true
	}
	ok, err := run.store.ClaimProbe(ctx, provider, now)
	if err != nil {
		run.log(ctx).WarnContext(ctx, "auth_profile_bookkeeping_dropped", "what", "probe_throttle", "error", err.Error())
		return true
	}
	if !ok {
		last := maps.Clone(run.state.LastProbe)
		if last == nil {
			last = make(map[string]time.Time, 1)
		}
		last[provider] = now
		run.state.LastProbe = last
	}
	return ok
}

// followSwitch takes a selection that the user made meanwhile (spec §8.7).
func (run *Run) followSwitch(ctx context.Context) (changed bool, err error) {
	if run.state.Work {
		return false, nil // it waits for the next turn
	}
	plan, ok := run.host.Switched(ctx)
	if !ok || plan.same(run.plan) {
		return false, nil
	}
	last := run.state.From - 1
	for _, x := range run.state.Log() {
		last = x.Index
	}
	plan.Images, plan.Tokens, plan.Deadline, plan.Quiet = run.plan.Images, run.plan.Tokens, run.plan.Deadline, run.plan.Quiet
	for i := last + 1; i < len(run.state.Chain); i++ {
		if run.state.Chain[i].Ref == plan.Selected {
			run.plan = plan
			run.state.JumpTo(i, plan.Strict)
			return true, nil
		}
	}
	if run.restarts++; run.restarts > maxRestarts {
		run.plan = plan
		return true, run.failed(ctx, ErrSwitchedTooOften)
	}
	run.plan = plan
	run.pass++
	run.state.Restart(run.candidates(plan))
	return true, nil
}

// pause sleeps for d. A pause is a safe point: when the user chooses another model, it ends and the
// choice is taken.
func (run *Run) pause(ctx context.Context, d time.Duration) (changed bool, err error) {
	until := run.clock().Now().Add(d)
	for {
		nap, rise := run.runner.sleepers.lie(ctx, run.plan.Session)
		if changed, err = run.followSwitch(ctx); changed || err != nil {
			rise()
			return changed, err
		}
		err := run.clock().Sleep(nap, until.Sub(run.clock().Now()))
		rise()
		if !errors.Is(err, errSwitched) {
			return false, nil
		}
	}
}

// wait pauses; it ends at once when the turn does.
func (run *Run) wait(ctx context.Context, x policy.Wait) error {
	run.log(ctx).InfoContext(ctx, "failover_wait", "why", string(x.Why), "seconds", x.For.Seconds())
	began := run.clock().Now()
	run.doing(Record{}, began.Add(x.For))
	changed, err := run.pause(ctx, x.For)
	run.doing(Record{}, time.Time{})
	if o := run.runner.deps.Observer; o != nil {
		o.Waited(run.plan.Ref, run.clock().Since(began), x.Why)
	}
	switch {
	case ctx.Err() != nil:
		return run.ended(ctx, context.Cause(ctx))
	case err != nil || changed:
		return err
	}
	if x.Pass {
		run.pass++
	}
	run.state.Record(policy.Step{Kind: policy.StepWaited, Why: x.Why, Pass: x.Pass})
	return nil
}

// ended makes the turn's error of a context that ended between attempts.
func (run *Run) ended(ctx context.Context, cause error) error {
	f := llm.Failure{Reason: llm.ReasonAborted}
	if errors.Is(cause, llm.ErrTurnTimeout) || errors.Is(cause, context.DeadlineExceeded) {
		f = llm.Failure{Reason: llm.ReasonTimeout, Detail: llm.DetailDeadline}
	}
	e := run.lastError(ctx)
	e.Failure, e.Reason, e.Detail, e.Err = f, f.Reason, f.Detail, cause
	return run.wrap(e)
}

// maybeStillRetrying sends the one status notice when everything so far was overloaded (spec §9).
func (run *Run) maybeStillRetrying() {
	run.mu.Lock()
	defer run.mu.Unlock()
	if run.over || run.told || len(run.trail) == 0 || run.clock().Since(run.begun) < policy.NoticeAfter {
		return
	}
	for _, r := range run.trail {
		if r.Reason != llm.ReasonOverloaded && r.Reason != llm.ReasonCapability {
			return
		}
	}
	run.told = true
	run.host.StillRetrying()
}
