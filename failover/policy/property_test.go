package policy_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"understudy/failover/policy"
	"understudy/llm"
)

var anyReason = []llm.Reason{
	llm.ReasonAuth, llm.ReasonAuthPermanent, llm.ReasonBilling, llm.ReasonRateLimit, llm.ReasonOverloaded, llm.ReasonTimeout,
	llm.ReasonFormat, llm.ReasonContextOverflow, llm.ReasonModelNotFound, llm.ReasonSessionExpired, llm.ReasonRefusal,
	llm.ReasonAborted, llm.ReasonEmptyResponse, llm.ReasonNoErrorDetails, llm.ReasonUnclassified, llm.ReasonInternal,
}

// drawWorld makes a random configuration, health and behaviour of providers.
func drawWorld(rt *rapid.T) *world {
	all := []string{"alpha/a1", "alpha/a2", "alpha/a3", "beta/b1", "beta/b2", "gamma/g1"}
	chain := rapid.Permutation(all).Draw(rt, "chain")[:rapid.IntRange(1, 5).Draw(rt, "length")]
	w := newWorld("")
	for _, s := range chain {
		w.chain = append(w.chain, policy.Candidate{Ref: ref(s)})
	}
	for _, p := range []string{"alpha", "beta", "gamma"} {
		for i := range rapid.IntRange(1, 4).Draw(rt, p+" profiles") {
			w.order[p] = append(w.order[p], llm.ProfileID(fmt.Sprintf("%s:p%d", p, i+1)))
		}
	}
	w.rules.RateLimitRotations = rapid.IntRange(0, 2).Draw(rt, "rateLimitedProfileRotations")
	w.rules.OverloadedRotations = rapid.IntRange(0, 2).Draw(rt, "overloadedProfileRotations")
	for range rapid.IntRange(0, 5).Draw(rt, "windows") {
		p := rapid.SampledFrom([]string{"alpha", "beta", "gamma"}).Draw(rt, "provider")
		profile := rapid.SampledFrom(w.order[p]).Draw(rt, "profile")
		model := rapid.SampledFrom([]string{"", "a1", "a2", "b1", "g1"}).Draw(rt, "model")
		reason := rapid.SampledFrom(anyReason[:6]).Draw(rt, "reason")
		until := time.Duration(rapid.IntRange(-60, 900).Draw(rt, "seconds")) * time.Second
		w.cool(string(profile), model, reason, until, rapid.Bool().Draw(rt, "stated"))
	}
	w.latency = time.Duration(rapid.IntRange(0, 3000).Draw(rt, "latency")) * time.Millisecond
	w.answer = func(llm.ModelRef, llm.ProfileID, time.Time) *llm.Failure {
		kinds := anyReason
		switch rapid.IntRange(0, 7).Draw(rt, "outcome") {
		case 0:
			return nil
		case 1, 2, 3, 4:
			kinds = anyReason[3:6] // what outages are made of
		}
		f := &llm.Failure{Reason: rapid.SampledFrom(kinds).Draw(rt, "failure"), NotSent: rapid.Bool().Draw(rt, "unsent")}
		switch rapid.IntRange(0, 3).Draw(rt, "statement") {
		case 0:
			f.RetryAfter = time.Duration(rapid.IntRange(1, 600).Draw(rt, "retry-after")) * time.Second
			f.Status = 429
		case 1:
			f.ResetAt = w.now.Add(time.Duration(rapid.IntRange(1, 7200).Draw(rt, "reset")) * time.Second)
		}
		if f.Reason == llm.ReasonTimeout {
			f.Detail = rapid.SampledFrom([]llm.Detail{llm.DetailServerError, llm.DetailNetwork, llm.DetailDeadline}).Draw(rt, "detail")
		}
		return f
	}
	if rapid.Bool().Draw(rt, "tools") {
		at := rapid.IntRange(1, 4).Draw(rt, "first tool")
		w.work = func(call int) bool { return call >= at }
	}
	return w
}

// breach runs one random turn and returns the invariant of spec/failover.md §16 it broke, or "".
func breach(rt *rapid.T, mutate func(*world)) string {
	w := drawWorld(rt)
	if mutate != nil {
		mutate(w)
	}
	settle := w.settle
	fault := ""
	w.settle = func(r policy.Rules, p policy.Pair, a policy.Attempt) policy.Pair {
		after := settle(r, p, a)
		if f := windowFault(p, after, a); f != "" && fault == "" {
			fault = f
		}
		return after
	}
	w.turn()
	if fault == "" {
		fault = traceFault(w)
	}
	return fault
}

// windowFault checks §16.3 and §16.6: a failure never makes anything available, an active window
// moves later only by a statement, and every window ends.
func windowFault(before, after policy.Pair, a policy.Attempt) string {
	if a.Failure == nil {
		return ""
	}
	_, stated := a.Failure.ResetAt, a.Failure.RetryAfter > 0 || !a.Failure.ResetAt.IsZero()
	for _, x := range [...][2]policy.Window{
		{before.All.Cooldown, after.All.Cooldown},
		{before.All.Disabled, after.All.Disabled},
		{before.Model.Cooldown, after.Model.Cooldown},
		{before.Model.Disabled, after.Model.Disabled},
	} {
		was, is := x[0], x[1]
		switch {
		case was.Active(a.At) && is.Until.Before(was.Until):
			return "3: an active window got shorter"
		case was.Active(a.At) && is.Until.After(was.Until) && !stated:
			return "3: an active window moved without a statement"
		case is.Until.Sub(a.At) > 8*24*time.Hour:
			return "3: a window does not end"
		}
	}
	return ""
}

// traceFault checks §16.2, 4, 5, 6 and 7 over what a turn did.
func traceFault(w *world) string {
	calls := map[string]int{}
	worked := false
	n := 0
	for _, e := range w.trace {
		if e.kind != "try" {
			continue
		}
		n++
		if !slices.ContainsFunc(w.chain, func(c policy.Candidate) bool { return c.Ref == e.ref }) {
			return "5: a model outside the chain was asked"
		}
		if worked && e.why != policy.WhyAskAgain && e.why != policy.WhyStateless && e.why != policy.WhyRepair {
			return "4: somebody else was asked after observable work"
		}
		if win, off := e.before.Disabled(e.profile, e.ref.Model, e.at); off && (win.Reason != llm.ReasonBilling || e.why != policy.WhyProbe) &&
			e.why != policy.WhyAskAgain && e.why != policy.WhyStateless && e.why != policy.WhyRepair {
			return "2: a disabled profile was called"
		}
		if _, blocked := e.before.Block(e.profile, e.ref.Model, e.at); blocked && (e.why == policy.WhyFree || e.why == policy.WhyRotation) {
			return "6: a blocked profile was taken for a free one"
		}
		if f := freeInstead(w, e); f {
			return "8.2: a cooling profile was tried while the candidate had a free one"
		}
		if e.why != policy.WhyAskAgain && e.why != policy.WhyStateless && e.why != policy.WhyRepair {
			calls[fmt.Sprint(e.pass, e.ref)]++
		}
		if e.reason == llm.ReasonRateLimit || e.reason == llm.ReasonOverloaded {
			k := fmt.Sprint(e.pass, e.ref, e.reason)
			calls[k]++
			most := w.rules.RateLimitRotations + 1
			if e.reason == llm.ReasonOverloaded {
				most = w.rules.OverloadedRotations + 1
			}
			if len(w.chain) > 1 && calls[k] > most {
				return "7: too many rotations"
			}
		}
		if calls[fmt.Sprint(e.pass, e.ref)] > len(w.order[e.ref.Provider]) {
			return "7: more calls than profiles"
		}
		worked = worked || w.work(n)
	}
	return ""
}

// freeInstead reports whether a blocked profile was used although another one was free and unasked.
func freeInstead(w *world, e event) bool {
	switch e.why {
	case policy.WhyProbe, policy.WhySibling, policy.WhyLastResort, policy.WhyPassRetry:
	default:
		return false
	}
	for _, p := range w.order[e.ref.Provider] {
		if _, blocked := e.before.Block(p, e.ref.Model, e.at); blocked {
			continue
		}
		asked := false
		for _, x := range w.trace {
			asked = asked || (x.kind == "try" && x.pass == e.pass && x.ref == e.ref && x.profile == p && !x.at.After(e.at))
		}
		if !asked {
			return true
		}
	}
	return false
}

func TestInvariants(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		if fault := breach(rt, nil); fault != "" {
			rt.Fatal(fault)
		}
	})
}

// TestInvariantsCatchMutations breaks policy in ways a tired person might, and expects the
// invariants to notice each.
func TestInvariantsCatchMutations(t *testing.T) {
	type nextFn = func(policy.Rules, *policy.RunState, time.Time) policy.Decision
	next := func(f func(nextFn, policy.Rules, *policy.RunState, time.Time) policy.Decision) func(*world) {
		return func(w *world) {
			real := w.next
			w.next = func(r policy.Rules, s *policy.RunState, now time.Time) policy.Decision { return f(real, r, s, now) }
		}
	}
	settle := func(f func(policy.Pair, policy.Attempt, policy.Pair) policy.Pair) func(*world) {
		return func(w *world) {
			real := w.settle
			w.settle = func(r policy.Rules, p policy.Pair, a policy.Attempt) policy.Pair { return f(p, a, real(r, p, a)) }
		}
	}
	for name, mutate := range map[string]func(*world){
		"a failure restarts the window": settle(func(_ policy.Pair, a policy.Attempt, after policy.Pair) policy.Pair {
			if a.Failure != nil && after.Model.Cooldown.Active(a.At) {
				after.Model.Cooldown.Until = a.At.Add(30 * time.Second)
			}
			return after
		}),
		"a failure of another reason clears": settle(func(p policy.Pair, a policy.Attempt, after policy.Pair) policy.Pair {
			if a.Failure != nil && a.Failure.Reason == llm.ReasonEmptyResponse {
				return policy.Pair{}
			}
			return after
		}),
		"windows without an end": settle(func(_ policy.Pair, a policy.Attempt, after policy.Pair) policy.Pair {
			if after.All.Disabled.Active(a.At) {
				after.All.Disabled.Until = a.At.Add(1000 * time.Hour)
			}
			return after
		}),
		"rotation limits are ignored": next(func(real nextFn, r policy.Rules, s *policy.RunState, now time.Time) policy.Decision {
			r.RateLimitRotations, r.OverloadedRotations = 99, 99
			return real(r, s, now)
		}),
		"observable work is forgotten": next(func(real nextFn, r policy.Rules, s *policy.RunState, now time.Time) policy.Decision {
			s.Work = false
			return real(r, s, now)
		}),
		"health is not looked at": next(func(real nextFn, r policy.Rules, s *policy.RunState, now time.Time) policy.Decision {
			s.Health = nil
			return real(r, s, now)
		}),
		"skips become attempts": next(func(real nextFn, r policy.Rules, s *policy.RunState, now time.Time) policy.Decision {
			d := real(r, s, now)
			if x, ok := d.(policy.Skip); ok && len(s.Chain[x.Index].Profiles) > 0 && x.Why != policy.WhyProviderLimit {
				return policy.Try{Index: x.Index, Profile: s.Chain[x.Index].Profiles[0], Why: policy.WhyLastResort}
			}
			return d
		}),
	} {
		t.Run(name, func(t *testing.T) {
			caught := map[string]int{}
			for i := 0; i < 100 && len(caught) == 0; i++ {
				rapid.Check(t, func(rt *rapid.T) {
					if fault := breach(rt, mutate); fault != "" {
						caught[fault]++
					}
				})
			}
			if len(caught) == 0 {
				t.Error("no invariant notices")
			}
		})
	}
}

func TestFailuresCommuteInsideOneWindow(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := policy.DefaultRules()
		start := failing(r, policy.Pair{}, llm.Failure{Reason: llm.ReasonRateLimit}, t0)
		at := t0.Add(time.Second)
		var fs []llm.Failure
		for range rapid.IntRange(2, 4).Draw(rt, "failures") {
			f := llm.Failure{Reason: rapid.SampledFrom([]llm.Reason{llm.ReasonRateLimit, llm.ReasonTimeout}).Draw(rt, "reason")}
			if rapid.Bool().Draw(rt, "stated") {
				f.RetryAfter = time.Duration(rapid.IntRange(1, 900).Draw(rt, "seconds")) * time.Second
			}
			fs = append(fs, f)
		}
		a, b := start, start
		for _, f := range fs {
			a = failing(r, a, f, at)
		}
		for _, f := range rapid.Permutation(fs).Draw(rt, "other order") {
			b = failing(r, b, f, at)
		}
		if !a.Model.Equal(b.Model) {
			rt.Fatalf("order matters:\n%+v\n%+v", a.Model, b.Model)
		}
	})
}
