package bench

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy/authstore"
	"understudy/chat"
	"understudy/failover"
	"understudy/failover/policy"
	"understudy/internal/secret"
	"understudy/internal/sqlite"
	"understudy/llm"
	"understudy/notices"
	"understudy/reply"
	"understudy/session"
)

const (
	people = 1000
	// thinking is how long the understudy lets everybody wait, so that all turns are under way at
	// the same time.
	thinking = 300 * time.Millisecond
)

var (
	lead       = llm.ModelRef{Provider: "alpha", Model: "a1"}
	understudy = llm.ModelRef{Provider: "beta", Model: "b1"}
)

// outage is a world in which the lead's provider is down.
type outage struct{ calls atomic.Int64 }

func (o *outage) Client(string) (llm.Client, error)                          { return o, nil }
func (*outage) Info(llm.ModelRef) (m failover.ModelInfo)                     { return m }
func (*outage) IdleTimeout(string) time.Duration                             { return 2 * time.Minute }
func (*outage) Virtual(string) (p policy.Profile, c llm.Credential, ok bool) { return p, c, false }

func (o *outage) Stream(ctx context.Context, _ llm.Credential, req llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		o.calls.Add(1)
		if req.Model == lead {
			yield(llm.Event{}, &llm.Error{Failure: llm.Failure{Reason: llm.ReasonTimeout, Detail: llm.DetailServerError, Status: 503}})
			return
		}
		select {
		case <-time.After(thinking):
		case <-ctx.Done():
			yield(llm.Event{}, ctx.Err())
			return
		}
		if yield(llm.Event{Text: "I stand in."}, nil) {
			yield(llm.Event{Done: &llm.Done{Stop: llm.StopEnd, Usage: llm.Usage{Input: 100, Output: 5}}}, nil)
		}
	}
}

// counted counts the write transactions of a session store.
type counted struct {
	*session.Store
	writes atomic.Int64
}

func (c *counted) Ensure(ctx context.Context, seed session.Seed) (session.Session, bool, error) {
	s, created, err := c.Store.Ensure(ctx, seed)
	if created {
		c.writes.Add(1)
	}
	return s, created, err
}

func (c *counted) Touch(ctx context.Context, key string, at time.Time) error {
	c.writes.Add(1)
	return c.Store.Touch(ctx, key, at)
}

func (c *counted) FinishTurn(ctx context.Context, key string, t session.Turn) error {
	c.writes.Add(1)
	return c.Store.FinishTurn(ctx, key, t)
}

func (c *counted) Update(ctx context.Context, key string, f func(*session.Session) error) (session.Session, error) {
	c.writes.Add(1)
	return c.Store.Update(ctx, key, f)
}

// mute is a channel that costs nothing.
type mute struct{}

func (mute) Stream(string)                               {}
func (mute) Committed() bool                             { return false }
func (mute) Restart()                                    {}
func (mute) Notify(chat.Outbound)                        {}
func (mute) Finish(context.Context, chat.Outbound) error { return nil }
func (mute) Cancel()                                     {}

// stand builds what answers: real stores on disk, the real runners, a world that is down.
func stand(b *testing.B) (r *reply.Runner, sessions *counted, healthWrites func() int64, world *outage) {
	b.Helper()
	dir := b.TempDir()
	db, err := sqlite.Open(b.Context(), filepath.Join(dir, "state", "bot.sqlite"), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	store, err := session.New(b.Context(), db, session.Deps{})
	if err != nil {
		b.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	path := authstore.Path(dir, "main")
	auth, err := authstore.Open(b.Context(), path, authstore.Deps{Log: quiet})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = auth.Close() })
	for _, id := range []llm.ProfileID{"alpha:p1", "alpha:p2", "beta:p1"} {
		p := authstore.Profile{ID: id, Kind: llm.KindAPIKey, Secret: secret.New("sk-bench")}
		if err := auth.Put(b.Context(), p); err != nil {
			b.Fatal(err)
		}
	}
	world, sessions = &outage{}, &counted{Store: store}
	settings := &failover.Settings{Rules: policy.DefaultRules()}
	fo := failover.New(failover.Deps{
		Store:    func(string) (failover.Store, error) { return auth, nil },
		Models:   func() failover.Models { return world },
		Settings: func() *failover.Settings { return settings }, Log: quiet,
	})
	r = reply.New(reply.Deps{
		Failover: fo, Sessions: sessions, Log: quiet,
		Begin: func(chat.Address, *chat.Inbound, string) reply.Delivery { return mute{} },
		Agent: func(string) reply.Agent {
			return reply.Agent{System: "You are a helpful bot.", Models: policy.Models{Primary: lead, Fallbacks: []llm.ModelRef{understudy}}, Timeout: 10 * time.Minute}
		},
		Models:  func() failover.Models { return world },
		Notices: func() notices.Config { return notices.Config{} },
	})
	return r, sessions, func() int64 { return revision(b, path) }, world
}

// BenchmarkOutage lets a thousand people write at the same moment while the first provider is down.
// One operation is all thousand turns.
func BenchmarkOutage(b *testing.B) {
	runner, sessions, healthWrites, world := stand(b)
	before := healthWrites()
	var idle runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&idle)
	var mostHeap, mostGoroutines atomic.Int64
	done := watch(&mostHeap, &mostGoroutines)
	turns := 0
	for b.Loop() {
		var all sync.WaitGroup
		for i := range people {
			all.Go(func() { oneTurn(b, runner, i, turns) })
		}
		all.Wait()
		turns += people
	}
	done()
	per := func(n int64) float64 { return float64(n) / float64(turns) }
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N)-float64(thinking.Milliseconds()), "ms-beyond-the-model")
	b.ReportMetric(float64(mostHeap.Load()-int64(idle.HeapAlloc))/people/1024, "KiB/turn-at-most")
	b.ReportMetric(float64(mostGoroutines.Load()), "goroutines-at-most")
	b.ReportMetric(per(sessions.writes.Load()), "session-writes/turn")
	b.ReportMetric(per(healthWrites()-before), "health-writes/turn")
	b.ReportMetric(per(world.calls.Load()), "requests/turn")
}

func oneTurn(b *testing.B, r *reply.Runner, person, round int) {
	id := fmt.Sprint(person)
	to := chat.Address{Channel: "bench", Conversation: id, Kind: chat.Direct}
	o, err := r.Run(context.Background(), reply.Request{
		ID: fmt.Sprintf("t%d-%d", round, person), Agent: "main", Key: "agent:main:bench:direct:" + id, To: to, Text: "Are you there?",
		In: &chat.Inbound{ID: "m", Address: to, Sender: chat.Sender{ID: id, Name: "Ada"}, Text: "Are you there?", At: time.Now()},
	})
	if err != nil || o.Status != reply.Answered || o.Model != understudy {
		b.Errorf("%v by %s: %v %s", o.Status, o.Model, err, o.Text)
	}
}

// watch keeps the highest heap and number of goroutines until it is told to stop.
func watch(heap, goroutines *atomic.Int64) (stop func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		var m runtime.MemStats
		for {
			runtime.ReadMemStats(&m)
			heap.Store(max(heap.Load(), int64(m.HeapAlloc)))
			goroutines.Store(max(goroutines.Load(), int64(runtime.NumGoroutine())))
			select {
			case <-quit:
				return
			case <-tick.C:
			}
		}
	}()
	return func() { close(quit); <-ended }
}

// revision counts the write transactions of a credential store.
func revision(b *testing.B, path string) int64 {
	b.Helper()
	db, err := sqlite.Open(b.Context(), path, sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	var n int64
	if err := db.Reader().QueryRowContext(b.Context(), "SELECT n FROM revision WHERE id = 1").Scan(&n); err != nil {
		b.Fatal(err)
	}
	return n
}
