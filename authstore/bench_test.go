package authstore

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"understudy/failover/policy"
	"understudy/llm"
)

// BenchmarkTurn is what a turn asks of the store: one snapshot, the order of the profiles, one
// credential, one settled attempt, with every profile limited for two models.
func BenchmarkTurn(b *testing.B) {
	for _, profiles := range []int{1, 10, 100} {
		for _, outcome := range []string{"success", "failure"} {
			b.Run(fmt.Sprintf("profiles=%d/%s", profiles, outcome), func(b *testing.B) {
				s := mustOpen(b, newPath(b), Deps{})
				for i := range profiles {
					id := llm.ProfileID(fmt.Sprintf("openai:p%d", i))
					mustPut(b, s, key(id))
					mustSettle(b, s, failed(id, "m1", llm.ReasonRateLimit, moment))
					mustSettle(b, s, failed(id, "m2", llm.ReasonRateLimit, moment))
				}
				now, rules := moment, policy.DefaultRules()
				b.ReportAllocs()
				for b.Loop() {
					now = now.Add(time.Minute)
					snap, err := s.Snapshot(b.Context())
					if err != nil {
						b.Fatal(err)
					}
					pool := policy.Pool{Provider: "openai", Stored: snap.Profiles}
					if order := policy.Order(pool, snap.Health, "m1", now); len(order.Profiles) != profiles {
						b.Fatalf("%d profiles", len(order.Profiles))
					}
					if _, err := s.Credential(b.Context(), "openai:p0"); err != nil {
						b.Fatal(err)
					}
					a := succeeded("openai:p0", "m3", now)
					if outcome == "failure" {
						a = failed("openai:p0", "m3", llm.ReasonRateLimit, now)
					}
					if _, err := s.Settle(b.Context(), rules, a); err != nil && !errors.Is(err, ErrDropped) && !errors.Is(err, ErrLate) {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
