package bench

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"understudy/chat"
	"understudy/heartbeat"
	"understudy/internal/sqlite"
	"understudy/llm"
	"understudy/session"
)

// waitingSessions is how many conversations wait for the same lead: half with the notice of a fallback,
// half with an automatic override of an earlier version.
//
//	go test -run '^$' -bench Probe -benchtime 5x ./bench
const waitingSessions = 5_000

// BenchmarkProbeTick is the five-minute job while the lead is away, and when it is back.
func BenchmarkProbeTick(b *testing.B) {
	ctx := b.Context()
	db, err := sqlite.Open(ctx, filepath.Join(b.TempDir(), "bot.sqlite"), sqlite.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	sessions, err := session.New(ctx, db, session.Deps{})
	if err != nil {
		b.Fatal(err)
	}
	lead, other := llm.ModelRef{Provider: "alpha", Model: "a1"}, llm.ModelRef{Provider: "beta", Model: "b1"}
	fill := func(only string) {
		for i := range waitingSessions {
			key := fmt.Sprintf("agent:main:telegram:direct:%d", i)
			to := chat.Address{Channel: "telegram", Conversation: fmt.Sprint(i), Kind: chat.Direct}
			if only == "" {
				if _, _, err := sessions.Ensure(ctx, session.Seed{Key: key, AgentID: "main", Address: to}); err != nil {
					b.Fatal(err)
				}
			}
			if only == "auto" && i%2 == 0 {
				continue
			}
			_, err := sessions.Update(ctx, key, func(s *session.Session) error {
				if s.Notice = (session.Pair{Selected: lead, Active: other}); i%2 == 1 {
					s.Override, s.Notice = session.Override{Model: other, Source: session.SourceAuto, Origin: lead}, session.Pair{}
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	fill("")
	asked, up := 0, false
	p := heartbeat.New(heartbeat.Deps{
		Sessions: sessions, Log: slog.New(slog.DiscardHandler),
		Probe: func(context.Context, string, llm.ModelRef, bool) (answered, wasAsked bool, err error) {
			asked++
			return up, true, nil
		},
	})
	b.Run("away", func(b *testing.B) {
		asked = 0
		for b.Loop() {
			p.Tick(ctx)
		}
		b.ReportMetric(float64(asked)/float64(b.N), "probes/tick")
	})
	b.Run("back", func(b *testing.B) {
		up = true
		var took time.Duration
		for range b.N {
			began := time.Now()
			p.Tick(ctx)
			took += time.Since(began)
			b.StopTimer()
			fill("auto")
			b.StartTimer()
		}
		b.ReportMetric(float64(took.Milliseconds())/float64(b.N), "ms/tick")
	})
}
