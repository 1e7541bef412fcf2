package failover_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"testing"
	"time"

	"understudy/failover"
	"understudy/failover/policy"
	"understudy/internal/clock"
	"understudy/llm"
)

// instant is models that answer at once.
type instant struct{}

func (i instant) Client(string) (llm.Client, error)                          { return i, nil }
func (instant) Info(llm.ModelRef) (m failover.ModelInfo)                     { return m }
func (instant) IdleTimeout(string) time.Duration                             { return 2 * time.Minute }
func (instant) Virtual(string) (p policy.Profile, c llm.Credential, ok bool) { return p, c, false }

func (instant) Stream(context.Context, llm.Credential, llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		if yield(llm.Event{Text: "ok"}, nil) {
			yield(llm.Event{Done: &llm.Done{Stop: llm.StopEnd}}, nil)
		}
	}
}

// BenchmarkRun is what a turn costs beside its requests: the run around an instant provider, with a
// store in memory and a log that is thrown away.
func BenchmarkRun(b *testing.B) {
	for _, profiles := range []int{1, 4} {
		b.Run(fmt.Sprintf("profiles=%d", profiles), func(b *testing.B) {
			store := &memStore{rows: policy.Health{}, probes: map[string]time.Time{}}
			var chain []llm.ModelRef
			for i := range 5 {
				p := fmt.Sprintf("provider%d", i)
				chain = append(chain, llm.ModelRef{Provider: p, Model: "m"})
				for j := range profiles {
					store.profiles = append(store.profiles, policy.Profile{ID: llm.ProfileID(fmt.Sprintf("%s:p%d", p, j)), Kind: llm.KindAPIKey, HasSecret: true})
				}
			}
			settings := failover.Settings{Rules: policy.DefaultRules()}
			r := failover.New(failover.Deps{
				Store:    func(string) (failover.Store, error) { return store, nil },
				Models:   func() failover.Models { return instant{} },
				Settings: func() *failover.Settings { return &settings },
				Clock:    clock.Clock{}, Log: slog.New(slog.DiscardHandler),
			})
			p := failover.Plan{Ref: failover.Ref{Agent: "main", Session: "s", Turn: "t"}, Selected: chain[0], Chain: chain, Deadline: time.Now().Add(time.Hour)}
			h := &host{now: time.Now}
			req := llm.Request{Messages: []llm.Message{llm.Text(llm.RoleUser, "hi")}}
			b.ReportAllocs()
			for b.Loop() {
				run := r.Begin(b.Context(), p, h)
				if _, err := run.Ask(b.Context(), req); err != nil {
					b.Fatal(err)
				}
				run.Finish()
				h.text = ""
			}
		})
	}
}
