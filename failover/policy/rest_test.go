package policy_test

import (
	"testing"
	"time"

	"understudy/failover/policy"
	"understudy/llm"
)

func TestRest(t *testing.T) {
	window := func(r llm.Reason, since, until time.Duration) policy.Window {
		return policy.Window{Since: t0.Add(since), Until: t0.Add(until), Reason: r}
	}
	cooling := policy.Row{Cooldown: window(llm.ReasonTimeout, -time.Minute, 4*time.Minute)}
	revoked := policy.Row{Disabled: window(llm.ReasonAuthPermanent, -time.Minute, 9*time.Minute)}
	unpaid := policy.Row{Disabled: window(llm.ReasonBilling, -10*time.Minute, 5*time.Hour)}
	for name, x := range map[string]struct {
		a, b          policy.Row // of a:p1 and a:p2
		probed        time.Duration
		profile       llm.ProfileID
		from, until   time.Duration // 0 = never, nothing
		free, nothing bool
	}{
		"one is free":                      {a: revoked, profile: "a:p2", free: true},
		"revoked keys are never asked":     {a: revoked, b: revoked, until: 9 * time.Minute},
		"a cooling one is asked":           {a: revoked, b: cooling, profile: "a:p2", from: 1, until: 4 * time.Minute},
		"an unpaid one not at once":        {a: unpaid, b: unpaid, from: 20 * time.Minute, until: 5 * time.Hour},
		"counted from the last probe":      {a: unpaid, b: unpaid, probed: -5 * time.Minute, from: 25 * time.Minute, until: 5 * time.Hour},
		"the cooling one beside an unpaid": {a: unpaid, b: cooling, profile: "a:p2", from: 1, until: 4 * time.Minute},
		"no profile":                       {nothing: true},
	} {
		s := policy.Snapshot{Health: policy.Health{{Profile: "a:p1"}: x.a, {Profile: "a:p2"}: x.b}}
		if x.probed != 0 {
			s.LastProbe = map[string]time.Time{"a": t0.Add(x.probed)}
		}
		ids := []llm.ProfileID{"a:p1", "a:p2"}
		if x.nothing {
			ids = nil
		}
		r := s.Rest(ids, llm.ModelRef{Provider: "a", Model: "m"}, t0)
		if r.Profile != x.profile || r.Free != x.free {
			t.Errorf("%s: %+v", name, r)
		}
		if x.free {
			continue
		}
		from := time.Time{}
		switch x.from {
		case 0:
		case 1:
			from = t0
		default:
			from = t0.Add(x.from)
		}
		if !r.From.Equal(from) || x.until != 0 && !r.Until.Equal(t0.Add(x.until)) {
			t.Errorf("%s: from %s until %s", name, r.From.Sub(t0), r.Until.Sub(t0))
		}
	}
}
