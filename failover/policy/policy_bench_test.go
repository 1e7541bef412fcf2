package policy_test

import (
	"fmt"
	"testing"
	"time"

	"understudy/failover/policy"
	"understudy/llm"
)

// crowd is a busy agent: five providers with four profiles each, and 200 health rows, some of them
// active windows of other models.
func crowd(now time.Time) (pools []policy.Pool, chain []policy.Candidate, h policy.Health) {
	h = policy.Health{}
	for i := range 5 {
		provider := fmt.Sprintf("provider%d", i)
		pool := policy.Pool{Provider: provider}
		for j := range 4 {
			id := llm.ProfileID(fmt.Sprintf("%s:p%d", provider, j))
			pool.Stored = append(pool.Stored, policy.Profile{ID: id, Kind: llm.KindAPIKey, HasSecret: true})
			h[policy.Key{Profile: id}] = policy.Row{LastUsed: now.Add(-time.Duration(j) * time.Minute)}
			for m := range 9 {
				row := policy.Row{ErrorCount: 1, LastFailureAt: now.Add(-time.Hour), FailureCounts: map[llm.Reason]int{llm.ReasonRateLimit: 1}}
				if m%2 == 0 {
					row.Cooldown = policy.Window{Since: now.Add(-time.Minute), Until: now.Add(time.Minute), Reason: llm.ReasonRateLimit}
				}
				h[policy.Key{Profile: id, Model: fmt.Sprintf("other%d", m)}] = row
			}
		}
		pools = append(pools, pool)
		chain = append(chain, policy.Candidate{
			Ref:      llm.ModelRef{Provider: provider, Model: "model"},
			Profiles: policy.Order(pool, h, "model", now).Profiles,
		})
	}
	return pools, chain, h
}

// BenchmarkNext walks a whole pass in which every attempt is rate-limited: 10 attempts, 11
// decisions.
func BenchmarkNext(b *testing.B) {
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	_, chain, h := crowd(now)
	rules := policy.DefaultRules()
	decisions := 0
	b.ReportAllocs()
	for b.Loop() {
		s := policy.RunState{Chain: chain, Health: h, Started: now}
		for over := false; !over; decisions++ {
			switch d := rules.Next(&s, now).(type) {
			case policy.Try:
				s.Record(policy.Step{Kind: policy.StepFailed, Index: d.Index, Profile: d.Profile, Why: d.Why, Failure: llm.Failure{Reason: llm.ReasonRateLimit}})
			case policy.Skip:
				s.Record(policy.Step{Kind: policy.StepSkipped, Index: d.Index, Why: d.Why})
			default:
				over = true
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(decisions), "ns/decision")
}

// BenchmarkOrder sorts the four profiles of one candidate.
func BenchmarkOrder(b *testing.B) {
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	pools, _, h := crowd(now)
	for name, model := range map[string]string{"free": "model", "cooling": "other0"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got := policy.Order(pools[0], h, model, now); len(got.Profiles) != 4 {
					b.Fatal(got)
				}
			}
		})
	}
}

// BenchmarkSettle charges a failure to a profile.
func BenchmarkSettle(b *testing.B) {
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	rules := policy.DefaultRules()
	a := policy.Attempt{Profile: "alpha:p1", Model: "a1", At: now, Failure: &llm.Failure{Reason: llm.ReasonRateLimit}}
	b.ReportAllocs()
	for b.Loop() {
		rules.Settle(policy.Pair{}, a)
	}
}
