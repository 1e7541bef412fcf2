package failover_test

import (
	"context"
	"testing"
	"time"

	"understudy/failover"
	"understudy/failover/policy"
	"understudy/llm"
)

// probe runs one background probe of alpha/a1 on the virtual clock.
func (s *stage) probe(onlyCooling bool) (result failover.ProbeResult, err error) {
	s.v.Clock().Go(func() {
		result, _, err = s.runner.Probe(context.Background(), "main", llm.ModelRef{Provider: "alpha", Model: "a1"}, onlyCooling)
	})
	s.v.Run(s.v.Now().Add(time.Hour))
	return result, err
}

func TestBackgroundProbe(t *testing.T) {
	row := policy.Key{Profile: "alpha:p1", Model: "a1"}
	t.Run("success clears the window early", func(t *testing.T) {
		s := newStage(t)
		s.store.cool("alpha:p1", "a1", llm.ReasonRateLimit, 72*time.Hour)
		if got, err := s.probe(true); got != failover.ProbeBack || err != nil {
			t.Fatalf("%s: %v", got, err)
		}
		if s.store.rows[row].Cooldown.Active(s.v.Now()) {
			t.Error("the window stands")
		}
	})
	t.Run("a failure costs nothing", func(t *testing.T) {
		s := newStage(t)
		s.answer["a1"] = limited
		s.store.cool("alpha:p1", "a1", llm.ReasonRateLimit, time.Hour)
		before := s.store.rows[row]
		if got, err := s.probe(true); got != failover.ProbeDown || err != nil {
			t.Fatalf("%s: %v", got, err)
		}
		after := s.store.rows[row]
		if after.ErrorCount != before.ErrorCount || after.Cooldown != before.Cooldown {
			t.Errorf("%+v became %+v", before, after)
		}
	})
	t.Run("a failure of a free model begins no window", func(t *testing.T) {
		s := newStage(t)
		s.answer["a1"] = limited
		if got, _ := s.probe(false); got != failover.ProbeDown || s.store.rows[row].Cooldown.Active(s.v.Now()) {
			t.Errorf("%s: %+v", got, s.store.rows[row])
		}
	})
	t.Run("what does not cool is left alone", func(t *testing.T) {
		s := newStage(t)
		if got, _ := s.probe(true); got != failover.ProbeNotCooling {
			t.Error(got)
		}
		s.expect("")
	})
	t.Run("an answer without words is one", func(t *testing.T) {
		s := newStage(t)
		s.answer["a1"] = says(" ")
		if got, _ := s.probe(false); got != failover.ProbeBack {
			t.Error(got)
		}
	})
	t.Run("the throttle binds it", func(t *testing.T) {
		s := newStage(t)
		s.store.probes["alpha"] = start.Add(-29 * time.Second)
		if got, _ := s.probe(false); got != failover.ProbeNotNow {
			t.Error(got)
		}
	})
	t.Run("a silent model is given up", func(t *testing.T) {
		s := newStage(t)
		s.answer["a1"] = s.hangs()
		if got, err := s.probe(false); got != failover.ProbeDown || err != nil || s.v.Now().Sub(start) > 20*time.Second {
			t.Errorf("%s after %s: %v", got, s.v.Now().Sub(start), err)
		}
	})
	for name, x := range map[string]struct {
		reason llm.Reason
		ago    time.Duration
		want   failover.ProbeResult
	}{
		"billing after half an hour": {llm.ReasonBilling, 30 * time.Minute, failover.ProbeBack},
		"billing not sooner":         {llm.ReasonBilling, 29 * time.Minute, failover.ProbeNotNow},
		"a revoked key never":        {llm.ReasonAuthPermanent, time.Hour, failover.ProbeNotNow},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.store.rows[policy.Key{Profile: "alpha:p1"}] = policy.Row{Disabled: policy.Window{Until: start.Add(5 * time.Hour), Reason: x.reason}}
			s.store.probes["alpha"] = start.Add(-x.ago)
			if got, _ := s.probe(true); got != x.want {
				t.Errorf("%s, want %s", got, x.want)
			}
		})
	}
}
