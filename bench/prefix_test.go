package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/authstore"
	"understudy/chat"
	"understudy/failover"
	"understudy/failover/policy"
	"understudy/internal/clock"
	"understudy/internal/secret"
	"understudy/internal/sqlite"
	"understudy/llm"
	"understudy/notices"
	"understudy/reply"
	"understudy/session"
)

// memory is a world whose provider remembers the last request, as caches of prompts do, and counts how
// much of every request it knew already.
type memory struct {
	outage
	last         []string
	known, asked int // bytes
}

func (m *memory) Client(string) (llm.Client, error) { return m, nil }

func (m *memory) Stream(_ context.Context, _ llm.Credential, req llm.Request) iter.Seq2[llm.Event, error] {
	now := []string{fmt.Sprint(req.Tools), req.System}
	for _, x := range req.Messages {
		raw, err := json.Marshal(x)
		if err != nil {
			panic(err)
		}
		now = append(now, string(raw))
	}
	known := true
	for i, part := range now {
		m.asked += len(part)
		if known = known && i < len(m.last) && m.last[i] == part; known {
			m.known += len(part)
		}
	}
	m.last = now
	return func(yield func(llm.Event, error) bool) {
		if n := len(req.Messages); n%3 == 1 {
			call := &llm.ToolCall{ID: fmt.Sprint("c", n), Name: "look", Input: json.RawMessage(`{"at": "<the door>", "n": ` + fmt.Sprint(n) + `}`)}
			if yield(llm.Event{ToolCall: call}, nil) {
				yield(llm.Event{Done: &llm.Done{Stop: llm.StopToolUse}}, nil)
			}
			return
		}
		if yield(llm.Event{Text: strings.Repeat("An answer of some length. ", 20)}, nil) {
			yield(llm.Event{Done: &llm.Done{Stop: llm.StopEnd, Usage: llm.Usage{Input: 100, Output: 5}}}, nil)
		}
	}
}

// BenchmarkPrompt lets one person talk for fifty turns, a third of them with a tool whose results are
// large, and measures how much of every request the provider had seen in the one before. pause is the
// time between two messages: after five minutes old results are shortened, because the provider has
// forgotten by then.
func BenchmarkPrompt(b *testing.B) {
	for _, pause := range []time.Duration{time.Minute, 10 * time.Minute} {
		b.Run(fmt.Sprintf("pause=%s", pause), func(b *testing.B) {
			known, asked := 0, 0
			for b.Loop() {
				w := &memory{}
				talk(b, w, pause)
				known, asked = known+w.known, asked+w.asked
			}
			b.ReportMetric(100*float64(known)/float64(asked), "%-known")
			b.ReportMetric(float64(asked)/float64(b.N)/1024, "KiB-asked")
		})
	}
}

func talk(b *testing.B, w *memory, pause time.Duration) {
	b.Helper()
	dir, v, quiet := b.TempDir(), clock.NewVirtual(time.Date(2026, 3, 2, 6, 0, 0, 0, time.UTC)), slog.New(slog.DiscardHandler)
	db, err := sqlite.Open(b.Context(), filepath.Join(dir, "state", "bot.sqlite"), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	store, err := session.New(b.Context(), db, session.Deps{Clock: v.Clock()})
	if err != nil {
		b.Fatal(err)
	}
	auth, err := authstore.Open(b.Context(), authstore.Path(dir, "main"), authstore.Deps{Log: quiet})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = auth.Close() }()
	if err := auth.Put(b.Context(), authstore.Profile{ID: "alpha:p1", Kind: llm.KindAPIKey, Secret: secret.New("sk-bench")}); err != nil {
		b.Fatal(err)
	}
	settings := &failover.Settings{Rules: policy.DefaultRules()}
	runner := reply.New(reply.Deps{
		Failover: failover.New(failover.Deps{
			Store:    func(string) (failover.Store, error) { return auth, nil },
			Models:   func() failover.Models { return w },
			Settings: func() *failover.Settings { return settings }, Clock: v.Clock(), Log: quiet,
		}),
		Sessions: store, Clock: v.Clock(), Log: quiet,
		Begin: func(chat.Address, *chat.Inbound, string) reply.Delivery { return mute{} },
		Agent: func(string) reply.Agent {
			return reply.Agent{System: "You are brief.", Models: policy.Models{Primary: lead}}
		},
		Models:  func() failover.Models { return w },
		Notices: func() notices.Config { return notices.Config{} },
		Tools: []reply.Tool{{
			Tool: llm.Tool{Name: "look", Description: "looks", Schema: json.RawMessage(`{"type":"object"}`)},
			Run:  func(context.Context, reply.Call) (string, error) { return strings.Repeat("seen and found ", 600), nil },
		}},
	})
	to := chat.Address{Channel: "web", Conversation: "1", Kind: chat.Direct}
	for i := range 50 {
		v.Clock().Go(func() {
			o, err := runner.Run(context.Background(), reply.Request{
				ID: fmt.Sprint("t", i), Agent: "main", Key: "agent:main:web:direct:1", To: to, Text: "and now?",
				In: &chat.Inbound{Address: to, Sender: chat.Sender{Name: "Ada"}, Text: "and now?", At: v.Now()},
			})
			if err != nil || o.Status != reply.Answered {
				b.Errorf("%v: %v %s", o.Status, err, o.Text)
			}
		})
		v.Run(v.Now().Add(time.Hour))
		v.Advance(v.Now().Add(pause))
	}
}
