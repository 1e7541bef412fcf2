package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"understudy/failover/policy"
	"understudy/llm"
)

// t0 is the time at which every test begins.
var t0 = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

func ref(s string) llm.ModelRef {
	r, err := llm.ParseRef(s)
	if err != nil {
		panic(err)
	}
	return r
}

func fail(r llm.Reason) *llm.Failure { return &llm.Failure{Reason: r} }

func serverError() *llm.Failure {
	return &llm.Failure{Reason: llm.ReasonTimeout, Detail: llm.DetailServerError, Status: 500}
}

// world is a turn in miniature: it does what the runner does, without I/O. answer says how an
// attempt ends (nil = success); the functions can be replaced by broken ones.
type world struct {
	rules     policy.Rules
	chain     []policy.Candidate
	order     map[string][]llm.ProfileID // by provider
	health    policy.Health
	lastProbe map[string]time.Time
	now       time.Time
	latency   time.Duration
	answer    func(c llm.ModelRef, p llm.ProfileID, now time.Time) *llm.Failure
	work      func(call int) bool // whether the attempt does observable work
	next      func(policy.Rules, *policy.RunState, time.Time) policy.Decision
	settle    func(policy.Rules, policy.Pair, policy.Attempt) policy.Pair

	trace []event
}

// event is what a run did, in order.
type event struct {
	at      time.Time
	kind    string // try, skip, wait
	ref     llm.ModelRef
	profile llm.ProfileID
	why     policy.Why
	reason  llm.Reason
	wait    time.Duration
	pass    int
	before  policy.Health // of a try
}

func newWorld(chain string, profiles ...string) *world {
	w := &world{
		rules: policy.DefaultRules(), health: policy.Health{}, lastProbe: map[string]time.Time{}, now: t0,
		order:  map[string][]llm.ProfileID{},
		next:   func(r policy.Rules, s *policy.RunState, now time.Time) policy.Decision { return r.Next(s, now) },
		settle: func(r policy.Rules, p policy.Pair, a policy.Attempt) policy.Pair { return r.Settle(p, a) },
		work:   func(int) bool { return false },
	}
	for _, s := range strings.Fields(chain) {
		w.chain = append(w.chain, policy.Candidate{Ref: ref(s)})
	}
	for _, p := range profiles {
		id := llm.ProfileID(p)
		w.order[id.Provider()] = append(w.order[id.Provider()], id)
	}
	for _, c := range w.chain {
		if w.order[c.Ref.Provider] == nil {
			w.order[c.Ref.Provider] = []llm.ProfileID{llm.ProfileID(c.Ref.Provider + ":p1")}
		}
	}
	return w
}

// turn runs one turn to its end and reports who answered; zero = nobody.
func (w *world) turn() llm.ModelRef {
	w.trace = nil
	state := &policy.RunState{Chain: slices.Clone(w.chain), Started: w.now}
	pass, calls := 1, 0
	for range 10_000 {
		w.refresh(state)
		switch d := w.next(w.rules, state, w.now).(type) {
		case policy.Try:
			c := state.Chain[d.Index]
			if d.Throttled {
				w.lastProbe[c.Ref.Provider] = w.now
			}
			e := event{at: w.now, kind: "try", ref: c.Ref, profile: d.Profile, why: d.Why, pass: pass, before: clone(w.health)}
			w.now = w.now.Add(w.latency)
			calls++
			f := w.answer(c.Ref, d.Profile, w.now)
			if w.work(calls) {
				state.Work = true
			}
			w.book(c.Ref, d.Profile, f)
			if f == nil {
				w.trace = append(w.trace, e)
				return c.Ref
			}
			e.reason = f.Reason
			w.trace = append(w.trace, e)
			state.Record(policy.Step{Kind: policy.StepFailed, Index: d.Index, Profile: d.Profile, Why: d.Why, Failure: *f})
		case policy.Skip:
			w.trace = append(w.trace, event{at: w.now, kind: "skip", ref: state.Chain[d.Index].Ref, reason: d.Reason, why: d.Why, pass: pass})
			state.Record(policy.Step{Kind: policy.StepSkipped, Index: d.Index, Why: d.Why, Failure: llm.Failure{Reason: d.Reason, Detail: d.Detail}})
		case policy.Wait:
			w.trace = append(w.trace, event{at: w.now, kind: "wait", wait: d.For, why: d.Why, pass: pass})
			w.now = w.now.Add(d.For)
			if d.Pass {
				pass++
			}
			state.Record(policy.Step{Kind: policy.StepWaited, Why: d.Why, Pass: d.Pass})
		case policy.Stop, policy.Exhausted:
			return llm.ModelRef{}
		}
	}
	panic("the turn does not end")
}

func (w *world) refresh(s *policy.RunState) {
	s.Health, s.LastProbe = w.health, w.lastProbe
	for i := range s.Chain {
		c := &s.Chain[i]
		var pool policy.Pool
		for _, id := range w.order[c.Ref.Provider] {
			pool.Stored = append(pool.Stored, policy.Profile{ID: id, Kind: llm.KindAPIKey, HasSecret: true})
		}
		pool.Configured = w.order[c.Ref.Provider]
		c.Profiles = policy.Order(pool, w.health, c.Ref.Model, w.now).Profiles
	}
}

func (w *world) book(c llm.ModelRef, p llm.ProfileID, f *llm.Failure) {
	all, one := policy.Key{Profile: p}, policy.Key{Profile: p, Model: c.Model}
	after := w.settle(w.rules, policy.Pair{All: w.health[all], Model: w.health[one]},
		policy.Attempt{Profile: p, Model: c.Model, Failure: f, At: w.now})
	w.health = clone(w.health)
	w.health[all], w.health[one] = after.All, after.Model
}

func clone(h policy.Health) policy.Health {
	c := make(policy.Health, len(h))
	for k, v := range h {
		c[k] = v
	}
	return c
}

// cool puts a window on a profile for a model ("" = all).
func (w *world) cool(profile, model string, reason llm.Reason, until time.Duration, stated bool) {
	k := policy.Key{Profile: llm.ProfileID(profile), Model: model}
	row := w.health[k]
	win := policy.Window{Since: t0.Add(-time.Minute), Until: t0.Add(until), Reason: reason, Stated: stated}
	if reason == llm.ReasonBilling || reason == llm.ReasonAuthPermanent {
		row.Disabled = win
	} else {
		row.Cooldown = win
	}
	row.LastFailureAt = win.Since
	row.FailureCounts = map[llm.Reason]int{reason: 1}
	w.health[k] = row
}

// story renders the trace for comparison: "a1@p1 rate_limit; skip b1 billing disabled; wait 2.5s".
func (w *world) story() string {
	var parts []string
	for _, e := range w.trace {
		switch e.kind {
		case "try":
			s := e.ref.Model + "@" + e.profile.Name()
			if e.why != policy.WhyFree && e.why != policy.WhyRotation {
				s += " [" + string(e.why) + "]"
			}
			if e.reason == "" {
				s += " ok"
			} else {
				s += " " + string(e.reason)
			}
			parts = append(parts, s)
		case "skip":
			parts = append(parts, fmt.Sprintf("skip %s %s %s", e.ref.Model, e.reason, e.why))
		case "wait":
			parts = append(parts, "wait "+e.wait.String())
		}
	}
	return strings.Join(parts, "; ")
}

// by answers per "model" or "model@profile"; anything else succeeds.
func by(m map[string]*llm.Failure) func(llm.ModelRef, llm.ProfileID, time.Time) *llm.Failure {
	return func(c llm.ModelRef, p llm.ProfileID, _ time.Time) *llm.Failure {
		if f, ok := m[c.Model+"@"+p.Name()]; ok {
			return f
		}
		return m[c.Model]
	}
}
