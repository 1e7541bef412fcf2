package policy_test

import (
	"strings"
	"testing"
	"time"

	"understudy/failover/policy"
	"understudy/llm"
)

type m = map[string]*llm.Failure

func TestOnePass(t *testing.T) {
	limited, busy, hang := fail(llm.ReasonRateLimit), fail(llm.ReasonOverloaded), fail(llm.ReasonTimeout)
	for _, x := range []struct {
		name     string
		chain    string
		profiles []string
		answers  m
		setup    func(*world)
		want     string
	}{
		{name: "the lead answers", chain: "alpha/a1 beta/b1", want: "a1@p1 ok"},
		{name: "a limited lead hands over at once", chain: "alpha/a1 beta/b1", answers: m{"a1": limited}, want: "a1@p1 rate_limit; b1@p1 ok"},
		{
			name: "one rotation for a rate limit", chain: "alpha/a1 beta/b1", profiles: []string{"alpha:p1", "alpha:p2", "alpha:p3"},
			answers: m{"a1": limited}, want: "a1@p1 rate_limit; a1@p2 rate_limit; b1@p1 ok",
		},
		{
			name: "no rotation when the limit is 0", chain: "alpha/a1 beta/b1", profiles: []string{"alpha:p1", "alpha:p2"},
			answers: m{"a1": limited}, setup: func(w *world) { w.rules.RateLimitRotations = 0 }, want: "a1@p1 rate_limit; b1@p1 ok",
		},
		{
			name: "without a fallback rotation goes to the end", chain: "alpha/a1", profiles: []string{"alpha:p1", "alpha:p2", "alpha:p3"},
			answers: m{"a1@p1": limited, "a1@p2": limited}, want: "a1@p1 rate_limit; a1@p2 rate_limit; a1@p3 ok",
		},
		{
			name: "auth rotates through all", chain: "alpha/a1 beta/b1", profiles: []string{"alpha:p1", "alpha:p2", "alpha:p3"},
			answers: m{"a1": fail(llm.ReasonAuth)}, want: "a1@p1 auth; a1@p2 auth; a1@p3 auth; b1@p1 ok",
		},
		{
			name: "an unknown model is not asked with another key", chain: "alpha/a1 beta/b1", profiles: []string{"alpha:p1", "alpha:p2"},
			answers: m{"a1": fail(llm.ReasonModelNotFound)}, want: "a1@p1 model_not_found; b1@p1 ok",
		},
		{
			name: "a rejected request stops everything", chain: "alpha/a1 beta/b1", profiles: []string{"alpha:p1", "alpha:p2"},
			answers: m{"a1": fail(llm.ReasonFormat)}, want: "a1@p1 format",
		},
		{
			name: "a known repair is tried once", chain: "alpha/a1 beta/b1",
			answers: m{"a1": {Reason: llm.ReasonFormat, Repairable: true}}, want: "a1@p1 format; a1@p1 [repair] format",
		},
		{
			name: "an expired session is asked once without state", chain: "alpha/a1 beta/b1", profiles: []string{"alpha:p1", "alpha:p2"},
			answers: m{"a1": fail(llm.ReasonSessionExpired)}, want: "a1@p1 session_expired; a1@p1 [stateless] session_expired; b1@p1 ok",
		},
		{name: "a stop is silent and final", chain: "alpha/a1 beta/b1", answers: m{"a1": fail(llm.ReasonAborted)}, want: "a1@p1 aborted"},
		{name: "a refusal is final", chain: "alpha/a1 beta/b1", answers: m{"a1": fail(llm.ReasonRefusal)}, want: "a1@p1 refusal"},
		{name: "our own fault never walks the chain", chain: "alpha/a1 beta/b1", answers: m{"a1": fail(llm.ReasonInternal)}, want: "a1@p1 internal"},
		{name: "an empty answer advances", chain: "alpha/a1 beta/b1", answers: m{"a1": fail(llm.ReasonEmptyResponse)}, want: "a1@p1 empty_response; b1@p1 ok"},
		{
			name: "after a timeout a provider gets one more candidate", chain: "alpha/a1 alpha/a2 alpha/a3 beta/b1",
			answers: m{"a1": hang, "a2": hang, "a3": hang}, want: "a1@p1 timeout; a2@p1 timeout; skip a3 timeout provider_limit; b1@p1 ok",
		},
		{
			name: "unless nobody else stands behind", chain: "beta/b1 alpha/a1 alpha/a2 alpha/a3",
			answers: m{"b1": hang, "a1": hang, "a2": hang}, want: "b1@p1 timeout; a1@p1 timeout; a2@p1 timeout; a3@p1 ok",
		},
		{
			name: "an overloaded profile cools for its siblings: one sibling probe", chain: "alpha/a1 alpha/a2 beta/b1",
			answers: m{"a1": busy, "a2": busy}, want: "a1@p1 overloaded; a2@p1 [sibling] overloaded; b1@p1 ok",
		},
	} {
		t.Run(x.name, func(t *testing.T) {
			w := newWorld(x.chain, x.profiles...)
			w.answer = by(x.answers)
			if x.setup != nil {
				x.setup(w)
			}
			w.turn()
			if got := w.story(); got != x.want {
				t.Errorf("\n got %s\nwant %s", got, x.want)
			}
		})
	}
}

func TestCoolingCandidates(t *testing.T) {
	const minute = time.Minute
	for _, x := range []struct {
		name  string
		chain string
		setup func(*world)
		want  string
	}{
		{"the first one far from its end is skipped", "alpha/a1 beta/b1", func(w *world) {
			w.cool("alpha:p1", "a1", llm.ReasonRateLimit, 5*minute, false)
		}, "skip a1 rate_limit cooling; b1@p1 ok"},
		{"and probed within the last two minutes", "alpha/a1 beta/b1", func(w *world) {
			w.cool("alpha:p1", "a1", llm.ReasonRateLimit, 2*minute, true)
		}, "a1@p1 [probe] ok"},
		{"unless the throttle is closed", "alpha/a1 beta/b1", func(w *world) {
			w.cool("alpha:p1", "a1", llm.ReasonRateLimit, minute, false)
			w.lastProbe["alpha"] = t0.Add(-29 * time.Second)
		}, "skip a1 rate_limit cooling; b1@p1 ok"},
		{"which opens after 30 seconds", "alpha/a1 beta/b1", func(w *world) {
			w.cool("alpha:p1", "a1", llm.ReasonRateLimit, minute, false)
			w.lastProbe["alpha"] = t0.Add(-30 * time.Second)
		}, "a1@p1 [probe] ok"},
		{"a sign-in problem is never probed", "alpha/a1 beta/b1", func(w *world) {
			w.cool("alpha:p1", "", llm.ReasonAuth, minute, false)
		}, "skip a1 auth cooling; b1@p1 ok"},
		{"nor a revoked key", "alpha/a1", func(w *world) {
			w.cool("alpha:p1", "", llm.ReasonAuthPermanent, minute, false)
		}, "skip a1 auth_permanent disabled"},
		{"billing is skipped", "alpha/a1 beta/b1", func(w *world) {
			w.cool("alpha:p1", "", llm.ReasonBilling, time.Hour, false)
		}, "skip a1 billing disabled; b1@p1 ok"},
		{"but probed when it is the only one", "alpha/a1", func(w *world) {
			w.cool("alpha:p1", "", llm.ReasonBilling, time.Hour, false)
		}, "a1@p1 [probe] ok"},
		{"and only once per throttle", "alpha/a1", func(w *world) {
			w.cool("alpha:p1", "", llm.ReasonBilling, time.Hour, false)
			w.lastProbe["alpha"] = t0
		}, "skip a1 billing disabled"},
		{"a later one in billing is skipped", "alpha/a1 beta/b1", func(w *world) {
			w.cool("alpha:p1", "", llm.ReasonAuth, minute, false)
			w.cool("beta:p1", "", llm.ReasonBilling, minute, false)
		}, "skip a1 auth cooling; skip b1 billing disabled"},
		{"a later one is skipped while a free one stands behind", "alpha/a1 beta/b1 gamma/g1", func(w *world) {
			w.cool("alpha:p1", "a1", llm.ReasonRateLimit, 5*minute, false)
			w.cool("beta:p1", "b1", llm.ReasonRateLimit, minute, false)
		}, "skip a1 rate_limit cooling; skip b1 rate_limit cooling; g1@p1 ok"},
		{"and attempted when none does", "alpha/a1 beta/b1 gamma/g1", func(w *world) {
			w.cool("alpha:p1", "a1", llm.ReasonRateLimit, 5*minute, false)
			w.cool("beta:p1", "b1", llm.ReasonTimeout, 5*minute, false)
			w.cool("gamma:p1", "", llm.ReasonBilling, 5*minute, false)
		}, "skip a1 rate_limit cooling; b1@p1 [last_resort] ok"},
		{"an only candidate counts as a last one", "alpha/a1", func(w *world) {
			w.cool("alpha:p1", "a1", llm.ReasonRateLimit, 5*minute, false)
			w.lastProbe["alpha"] = t0
		}, "a1@p1 [last_resort] ok"},
		{"but not before a stated end", "alpha/a1", func(w *world) {
			w.cool("alpha:p1", "a1", llm.ReasonRateLimit, 5*minute, true)
		}, "skip a1 rate_limit cooling"},
		{"a sibling is attempted despite the cooldown", "alpha/a1 alpha/a2 beta/b1", func(w *world) {
			w.cool("alpha:p1", "", llm.ReasonOverloaded, 5*minute, false)
		}, "skip a1 overloaded cooling; a2@p1 [sibling] ok"},
		{"a sibling not before a stated end", "alpha/a1 alpha/a2 beta/b1", func(w *world) {
			w.cool("alpha:p1", "", llm.ReasonOverloaded, 5*minute, true)
		}, "skip a1 overloaded cooling; skip a2 overloaded cooling; b1@p1 ok"},
		{"a free profile goes before a cooling one", "alpha/a1 beta/b1", func(w *world) {
			w.order["alpha"] = []llm.ProfileID{"alpha:p1", "alpha:p2"}
			w.cool("alpha:p1", "a1", llm.ReasonRateLimit, minute, false)
		}, "a1@p2 ok"},
		{"other models' windows do not count", "alpha/a1 beta/b1", func(w *world) {
			w.cool("alpha:p1", "a9", llm.ReasonRateLimit, minute, false)
		}, "a1@p1 ok"},
	} {
		t.Run(x.name, func(t *testing.T) {
			w := newWorld(x.chain)
			w.answer = by(nil)
			x.setup(w)
			w.turn()
			if got := w.story(); got != x.want {
				t.Errorf("\n got %s\nwant %s", got, x.want)
			}
		})
	}
}

func TestOverloadedPassIsRepeatedTenTimes(t *testing.T) {
	w := newWorld("alpha/a1 beta/b1")
	w.answer = func(llm.ModelRef, llm.ProfileID, time.Time) *llm.Failure { return fail(llm.ReasonOverloaded) }
	if got := w.turn(); !got.IsZero() {
		t.Fatalf("answered by %s", got)
	}
	var waits []string
	tries := 0
	for _, e := range w.trace {
		switch e.kind {
		case "wait":
			waits = append(waits, e.wait.String())
		case "try":
			tries++
		}
	}
	if got, want := strings.Join(waits, " "), "2.5s 5s 10s 20s 30s 30s 30s 30s 30s 30s"; got != want {
		t.Errorf("waits %s, want %s", got, want)
	}
	if want := 2 * 11; tries != want {
		t.Errorf("%d requests, want %d", tries, want)
	}
}

func TestMixedFailuresAreNotRepeated(t *testing.T) {
	w := newWorld("alpha/a1 beta/b1")
	w.answer = by(m{"a1": fail(llm.ReasonOverloaded), "b1": fail(llm.ReasonBilling)})
	w.turn()
	if got, want := w.story(), "a1@p1 overloaded; b1@p1 billing"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestServerErrorsAreRepeatedOnce(t *testing.T) {
	w := newWorld("alpha/a1 beta/b1")
	w.answer = by(m{"a1": serverError(), "b1": serverError()})
	w.turn()
	want := "a1@p1 timeout; b1@p1 timeout; wait 2.5s; a1@p1 [pass_retry] timeout; b1@p1 [pass_retry] timeout"
	if got := w.story(); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

func TestObservableWorkEndsTheTurn(t *testing.T) {
	for name, f := range map[string]*llm.Failure{
		"timeout": fail(llm.ReasonTimeout), "limit": fail(llm.ReasonRateLimit), "auth": fail(llm.ReasonAuth), "overload": fail(llm.ReasonOverloaded),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld("alpha/a1 beta/b1", "alpha:p1", "alpha:p2")
			w.answer = by(m{"a1": f})
			w.work = func(int) bool { return true }
			if got := w.turn(); !got.IsZero() || len(w.trace) != 1 {
				t.Errorf("went on after observable work: %s", w.story())
			}
		})
	}
}

func TestRetryAfterOnTheLastResort(t *testing.T) {
	wait := func(d time.Duration) *llm.Failure {
		return &llm.Failure{Reason: llm.ReasonRateLimit, Status: 429, RetryAfter: d}
	}
	for _, x := range []struct {
		name  string
		chain string
		f     *llm.Failure
		limit time.Duration
		want  string
	}{
		{"a bearable wait is sat out twice", "alpha/a1", wait(7 * time.Second), time.Minute, "a1@p1 rate_limit; wait 7s; a1@p1 [ask_again] rate_limit; wait 7s; a1@p1 [ask_again] rate_limit"},
		{"a wait equal to the cap is honoured", "alpha/a1", wait(time.Minute), time.Minute, "a1@p1 rate_limit; wait 1m0s; a1@p1 [ask_again] rate_limit; wait 1m0s; a1@p1 [ask_again] rate_limit"},
		{"a longer one surfaces at once", "alpha/a1", wait(61 * time.Second), time.Minute, "a1@p1 rate_limit"},
		{"no cap", "alpha/a1", wait(2 * time.Minute), -1, "a1@p1 rate_limit; wait 2m0s; a1@p1 [ask_again] rate_limit; wait 2m0s; a1@p1 [ask_again] rate_limit"},
		{"nothing is waited for while somebody else can answer", "alpha/a1 beta/b1", wait(7 * time.Second), time.Minute, "a1@p1 rate_limit; b1@p1 ok"},
		{"a status that is no retryable one", "alpha/a1", &llm.Failure{Reason: llm.ReasonAuth, Status: 401, RetryAfter: time.Second}, time.Minute, "a1@p1 auth"},
	} {
		t.Run(x.name, func(t *testing.T) {
			w := newWorld(x.chain)
			w.rules.RetryAfterCap = x.limit
			w.answer = by(m{"a1": x.f})
			w.turn()
			if got := w.story(); got != x.want {
				t.Errorf("\n got %s\nwant %s", got, x.want)
			}
		})
	}
}

func TestOverloadedBackoffComesBeforeARotation(t *testing.T) {
	w := newWorld("alpha/a1 beta/b1", "alpha:p1", "alpha:p2")
	w.rules.OverloadedBackoff = 250 * time.Millisecond
	w.answer = by(m{"a1@p1": fail(llm.ReasonOverloaded)})
	w.turn()
	if got, want := w.story(), "a1@p1 overloaded; wait 250ms; a1@p2 ok"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestLiveSwitch(t *testing.T) {
	w := newWorld("alpha/a1 beta/b1 gamma/g1")
	state := &policy.RunState{Chain: w.chain, Started: t0}
	w.refresh(state)
	state.Record(policy.Step{Kind: policy.StepFailed, Index: 0, Profile: "alpha:p1", Failure: *fail(llm.ReasonTimeout)})
	state.JumpTo(1, true)
	d, ok := w.rules.Next(state, t0).(policy.Try)
	if !ok || d.Index != 1 {
		t.Fatalf("after a jump to b1: %+v", d)
	}
	state.Record(policy.Step{Kind: policy.StepFailed, Index: 1, Profile: "beta:p1", Failure: *fail(llm.ReasonTimeout)})
	if d := w.rules.Next(state, t0); d != (policy.Exhausted{}) {
		t.Errorf("a user's choice is strict, but then: %+v", d)
	}
	back := &policy.RunState{Chain: w.chain, Started: t0}
	w.refresh(back)
	back.JumpTo(1, false)
	back.Record(policy.Step{Kind: policy.StepFailed, Index: 1, Profile: "beta:p1", Failure: *fail(llm.ReasonTimeout)})
	if d, ok := w.rules.Next(back, t0).(policy.Try); !ok || d.Index != 2 {
		t.Errorf("back to the usual order, so g1 may follow: %+v", d)
	}
}

func TestWhyAProviderIsDown(t *testing.T) {
	for _, x := range []struct {
		name  string
		setup func(*world)
		want  string
	}{
		{"disable windows come first", func(w *world) {
			w.cool("alpha:p1", "", llm.ReasonBilling, time.Hour, false)
			w.cool("alpha:p2", "a1", llm.ReasonRateLimit, time.Hour, false)
		}, "skip a1 billing disabled; b1@p1 ok"},
		{"one kind of window needs no count", func(w *world) {
			w.cool("alpha:p1", "", llm.ReasonAuth, time.Minute, false)
			w.cool("alpha:p2", "", llm.ReasonAuth, time.Minute, false)
			row := w.health[policy.Key{Profile: "alpha:p1"}]
			row.FailureCounts = map[llm.Reason]int{llm.ReasonOverloaded: 7, llm.ReasonAuth: 1}
			w.health[policy.Key{Profile: "alpha:p1"}] = row
		}, "skip a1 auth cooling; b1@p1 ok"},
		{"the reason most counted", func(w *world) {
			w.cool("alpha:p1", "a1", llm.ReasonRateLimit, time.Hour, false)
			w.cool("alpha:p2", "a1", llm.ReasonTimeout, time.Hour, false)
			row := w.health[policy.Key{Profile: "alpha:p2", Model: "a1"}]
			row.FailureCounts = map[llm.Reason]int{llm.ReasonTimeout: 3}
			w.health[policy.Key{Profile: "alpha:p2", Model: "a1"}] = row
		}, "skip a1 timeout cooling; b1@p1 ok"},
		{"a tie goes to the harder one", func(w *world) {
			w.cool("alpha:p1", "", llm.ReasonAuth, time.Hour, false)
			w.cool("alpha:p2", "a1", llm.ReasonRateLimit, time.Hour, false)
		}, "skip a1 auth cooling; b1@p1 ok"},
	} {
		t.Run(x.name, func(t *testing.T) {
			w := newWorld("alpha/a1 beta/b1", "alpha:p1", "alpha:p2")
			w.answer = by(nil)
			x.setup(w)
			w.turn()
			if got := w.story(); got != x.want {
				t.Errorf("\n got %s\nwant %s", got, x.want)
			}
		})
	}
}
