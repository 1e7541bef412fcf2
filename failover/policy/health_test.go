package policy_test

import (
	"testing"
	"time"

	"understudy/failover/policy"
	"understudy/llm"
)

// failing settles one failure of alpha:p1 for a1 at t and returns both rows.
func failing(r policy.Rules, p policy.Pair, f llm.Failure, t time.Time) policy.Pair {
	return r.Settle(p, policy.Attempt{Profile: "alpha:p1", Model: "a1", Failure: &f, At: t})
}

func TestLadderAndLanes(t *testing.T) {
	h, min := time.Hour, time.Minute
	for _, x := range []struct {
		reason llm.Reason
		want   []time.Duration
	}{
		{llm.ReasonRateLimit, []time.Duration{30 * time.Second, min, 5 * min, 5 * min, 5 * min}},
		{llm.ReasonTimeout, []time.Duration{30 * time.Second, min, 5 * min, 5 * min}},
		{llm.ReasonAuth, []time.Duration{30 * time.Second, min, 5 * min}},
		{llm.ReasonOverloaded, []time.Duration{30 * time.Second, min, 5 * min}},
		{llm.ReasonBilling, []time.Duration{5 * h, 10 * h, 20 * h, 24 * h}},
		{llm.ReasonAuthPermanent, []time.Duration{10 * min, 20 * min, 40 * min, h, h}},
	} {
		t.Run(string(x.reason), func(t *testing.T) {
			var p policy.Pair
			now := t0
			for i, want := range x.want {
				p = failing(policy.DefaultRules(), p, llm.Failure{Reason: x.reason}, now)
				w := window(p, now)
				if got := w.Until.Sub(now); got != want {
					t.Fatalf("failure %d: window %s, want %s", i+1, got, want)
				}
				now = w.Until.Add(time.Second)
			}
		})
	}
}

// window returns the one active window of a pair.
func window(p policy.Pair, now time.Time) policy.Window {
	for _, w := range []policy.Window{p.All.Cooldown, p.All.Disabled, p.Model.Cooldown, p.Model.Disabled} {
		if w.Active(now) {
			return w
		}
	}
	return policy.Window{}
}

func TestWhichRowAFailureMarks(t *testing.T) {
	for _, x := range []struct {
		name       string
		f          llm.Failure
		all, model bool
	}{
		{"a rate limit is the model's", llm.Failure{Reason: llm.ReasonRateLimit}, false, true},
		{"unless the provider limits the account", llm.Failure{Reason: llm.ReasonRateLimit, Scope: llm.ScopeProfile}, true, false},
		{"a timeout is the model's", llm.Failure{Reason: llm.ReasonTimeout}, false, true},
		{"a request that never left marks nothing", llm.Failure{Reason: llm.ReasonTimeout, NotSent: true}, false, false},
		{"overload is the profile's", llm.Failure{Reason: llm.ReasonOverloaded}, true, false},
		{"a sign-in problem is the profile's", llm.Failure{Reason: llm.ReasonAuth}, true, false},
		{"a missing entitlement is one model's", llm.Failure{Reason: llm.ReasonAuth, Scope: llm.ScopeModel}, false, true},
		{"billing is the profile's", llm.Failure{Reason: llm.ReasonBilling}, true, false},
		{"an unknown model marks nothing", llm.Failure{Reason: llm.ReasonModelNotFound}, false, false},
		{"a rejected request marks nothing", llm.Failure{Reason: llm.ReasonFormat}, false, false},
		{"an overflow marks nothing", llm.Failure{Reason: llm.ReasonContextOverflow}, false, false},
		{"a stop marks nothing", llm.Failure{Reason: llm.ReasonAborted}, false, false},
		{"an empty answer marks nothing", llm.Failure{Reason: llm.ReasonEmptyResponse}, false, false},
		{"our own fault marks nothing", llm.Failure{Reason: llm.ReasonInternal}, false, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			p := failing(policy.DefaultRules(), policy.Pair{}, x.f, t0)
			if got := !p.All.Equal(policy.Row{}); got != x.all {
				t.Errorf("profile row marked: %v, want %v", got, x.all)
			}
			if got := !p.Model.Equal(policy.Row{}); got != x.model {
				t.Errorf("model row marked: %v, want %v", got, x.model)
			}
		})
	}
}

func TestWindowsAndStatements(t *testing.T) {
	r := policy.DefaultRules()
	limited := llm.Failure{Reason: llm.ReasonRateLimit}
	stated := func(d time.Duration) llm.Failure {
		return llm.Failure{Reason: llm.ReasonRateLimit, RetryAfter: d}
	}
	exact := func(d time.Duration) llm.Failure {
		return llm.Failure{Reason: llm.ReasonRateLimit, ResetAt: t0.Add(d)}
	}
	for _, x := range []struct {
		name   string
		first  llm.Failure
		then   llm.Failure // 10 s later
		want   time.Duration
		stated bool
		count  int
	}{
		{"a failure inside the window does not move it", limited, limited, 30 * time.Second, false, 1},
		{"nor does another reason", limited, llm.Failure{Reason: llm.ReasonTimeout}, 30 * time.Second, false, 1},
		{"the provider may name a later end", limited, stated(50 * time.Second), time.Minute, true, 1},
		{"but not an earlier one", limited, stated(5 * time.Second), 30 * time.Second, false, 1},
		{"the longer of ladder and statement counts", stated(7 * time.Second), limited, 30 * time.Second, false, 1},
		{"a stated end is kept", stated(90 * time.Second), limited, 90 * time.Second, true, 1},
		{"an exact reset is kept although short", exact(12 * time.Second), limited, 12 * time.Second, true, 1},
		{"an exact reset is kept when long", exact(2 * time.Hour), limited, 2 * time.Hour, true, 1},
	} {
		t.Run(x.name, func(t *testing.T) {
			p := failing(r, policy.Pair{}, x.first, t0)
			p = failing(r, p, x.then, t0.Add(10*time.Second))
			w := p.Model.Cooldown
			if got := w.Until.Sub(t0); got != x.want || w.Stated != x.stated || p.Model.ErrorCount != x.count {
				t.Errorf("ends at +%s (stated %v, step %d), want +%s (%v, %d)", got, w.Stated, p.Model.ErrorCount, x.want, x.stated, x.count)
			}
			if n := p.Model.FailureCounts[x.then.Reason]; n == 0 {
				t.Errorf("the second failure is not counted: %v", p.Model.FailureCounts)
			}
		})
	}
}

func TestLadderRestarts(t *testing.T) {
	r := policy.DefaultRules()
	old := policy.Row{
		ErrorCount: 3, LastFailureAt: t0.Add(-25 * time.Hour), FailureCounts: map[llm.Reason]int{llm.ReasonRateLimit: 3},
		Cooldown: policy.Window{Until: t0.Add(-10 * time.Minute), Reason: llm.ReasonRateLimit},
	}
	p := failing(r, policy.Pair{Model: old}, llm.Failure{Reason: llm.ReasonRateLimit}, t0)
	if p.Model.ErrorCount != 1 || p.Model.Cooldown.Until.Sub(t0) != 30*time.Second {
		t.Errorf("after a day without a failure: step %d, window %s", p.Model.ErrorCount, p.Model.Cooldown.Until.Sub(t0))
	}
	old.LastFailureAt = t0.Add(-100 * time.Minute)
	p = failing(r, policy.Pair{Model: old}, llm.Failure{Reason: llm.ReasonRateLimit}, t0)
	if p.Model.ErrorCount != 4 {
		t.Errorf("a window that ended is not forgotten: step %d, want 4", p.Model.ErrorCount)
	}
}

func TestSuccessClears(t *testing.T) {
	r := policy.DefaultRules()
	p := failing(r, policy.Pair{}, llm.Failure{Reason: llm.ReasonBilling}, t0)
	p = failing(r, p, llm.Failure{Reason: llm.ReasonRateLimit}, t0)
	p = r.Settle(p, policy.Attempt{Profile: "alpha:p1", Model: "a1", At: t0.Add(time.Second)})
	if !p.Model.Equal(policy.Row{}) || !p.All.Equal(policy.Row{LastUsed: t0.Add(time.Second)}) {
		t.Errorf("left behind: %+v", p)
	}
}

func TestBackgroundProbeBeginsNothing(t *testing.T) {
	r := policy.DefaultRules()
	f := llm.Failure{Reason: llm.ReasonRateLimit}
	p := r.Settle(policy.Pair{}, policy.Attempt{Profile: "alpha:p1", Model: "a1", Failure: &f, Background: true, At: t0})
	if p.Model.ErrorCount != 0 || p.Model.Cooldown.Active(t0) {
		t.Errorf("a failed probe cost something: %+v", p.Model)
	}
}

func TestLaneNumbers(t *testing.T) {
	r := policy.DefaultRules()
	r.BillingByProvider = map[string]time.Duration{"alpha": 3 * time.Hour, "beta": 48 * time.Hour}
	p := failing(r, policy.Pair{}, llm.Failure{Reason: llm.ReasonBilling}, t0)
	if got := p.All.Disabled.Until.Sub(t0); got != 3*time.Hour {
		t.Errorf("the provider's own number is %s, want 3h", got)
	}
	f := llm.Failure{Reason: llm.ReasonBilling}
	q := r.Settle(policy.Pair{}, policy.Attempt{Profile: "beta:p1", Model: "b1", Failure: &f, At: t0})
	if got := q.All.Disabled.Until.Sub(t0); got != 48*time.Hour {
		t.Errorf("a maximum below the base is raised to it: %s, want 48h", got)
	}
}

func TestWindowEndIsOver(t *testing.T) {
	w := policy.Window{Until: t0}
	if w.Active(t0) || !w.Active(t0.Add(-time.Millisecond)) {
		t.Error("a window is active while now < until")
	}
}
