package bench

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"understudy/chat"
	"understudy/cron"
	"understudy/cron/schedule"
	"understudy/internal/clock"
	"understudy/internal/sqlite"
)

// The benchmarks of scheduled tasks, with ten thousand of them:
//
//	go test -run '^$' -bench Cron -benchtime 3x ./bench
const (
	scheduled  = 10_000
	dueAtOnce  = 500
	cronMetric = "ms/all"
)

// office runs tasks that need no time and takes whatever they say.
type office struct {
	ran  atomic.Int64
	said atomic.Int64
	done chan struct{} // closed when as many as wanted have said something
	want int64
}

func (o *office) Run(context.Context, cron.Task) (cron.Result, error) {
	o.ran.Add(1)
	return cron.Result{Text: "done"}, nil
}

func (o *office) Announce(context.Context, cron.Announcement) (cron.Arrival, []string, error) {
	if o.said.Add(1) == o.want {
		close(o.done)
	}
	return cron.Arrived, nil, nil
}

// expect makes done mean that so many more have said something.
func (o *office) expect(n int64) {
	o.said.Store(0)
	o.want, o.done = n, make(chan struct{})
}

func (*office) Tell(context.Context, string, string) error { return nil }

// desk is a scheduler over a database in a temporary directory.
func desk(b *testing.B, o *office, c clock.Clock) (*cron.Scheduler, *cron.Store, *sqlite.DB) {
	b.Helper()
	log := slog.New(slog.DiscardHandler)
	db, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "bot.sqlite"), sqlite.Options{Log: log})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	store, err := cron.NewStore(b.Context(), db)
	if err != nil {
		b.Fatal(err)
	}
	s, err := cron.New(cron.Config{}, cron.Deps{Store: store, Runner: o, Announcer: o, Owner: o, Clock: c, Log: log, Home: cron.Home{Zone: time.UTC, Named: true}, Alone: true})
	if err != nil {
		b.Fatal(err)
	}
	return s, store, db
}

// fill makes tasks that are not due for a while.
func fill(b *testing.B, s *cron.Scheduler, n int) {
	b.Helper()
	zones := []string{"Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"}
	year, day := time.Now().AddDate(0, 0, 2).Month(), time.Now().AddDate(0, 0, 2).Day()
	for i := range n {
		book(b, s, cron.Draft{Schedule: fmt.Sprintf("%d %d %d %d *", i%60, i/60%24, min(day, 28), year), Zone: zones[i%len(zones)], Message: "report"})
	}
}

func book(b *testing.B, s *cron.Scheduler, d cron.Draft) {
	b.Helper()
	d.Origin = chat.Address{Channel: "telegram", Conversation: "1", Kind: chat.Direct}
	if _, err := s.Add(b.Context(), d); err != nil {
		b.Fatal(err)
	}
}

// run has a scheduler work until the returned function is called.
func run(b *testing.B, s *cron.Scheduler) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Run(ctx)
	}()
	return func() { cancel(); <-ended }
}

// BenchmarkCronNext settles the next run of ten thousand schedules, read from their stored form.
func BenchmarkCronNext(b *testing.B) {
	zones := map[string]*time.Location{}
	find := func(name string) (*time.Location, error) {
		if z := zones[name]; z != nil {
			return z, nil
		}
		z, err := time.LoadLocation(name)
		zones[name] = z
		return z, err
	}
	names := []string{"Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"}
	exprs := []string{"0 9 * * 1-5", "*/20 * * * *", "30 2 * * *", "0 0 1 1 *", "0 9 29 2 *"}
	now := time.Now()
	for b.Loop() {
		for i := range scheduled {
			s, err := schedule.Spec{Kind: schedule.Cron, Expr: exprs[i%len(exprs)], TZ: names[i%len(names)]}.Compile(nil, find)
			if err != nil {
				b.Fatal(err)
			}
			if _, ok := s.Next(now); !ok {
				b.Fatal("no next run")
			}
		}
	}
}

// BenchmarkCronStart starts a scheduler with ten thousand tasks, until one that was missed has run and
// its result is handed over.
func BenchmarkCronStart(b *testing.B) {
	o := &office{}
	s, store, db := desk(b, o, clock.Clock{})
	fill(b, s, scheduled-dueAtOnce)
	for b.Loop() {
		b.StopTimer()
		at := time.Now().Add(50 * time.Millisecond)
		book(b, s, cron.Draft{Schedule: at.Format(time.RFC3339Nano), Message: "missed"})
		<-time.After(time.Until(at) + 10*time.Millisecond)
		o.expect(1)
		next, err := cron.New(cron.Config{}, cron.Deps{Store: store, Runner: o, Announcer: o, Owner: o, Log: slog.New(slog.DiscardHandler), Home: cron.Home{Zone: time.UTC}, Alone: true})
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		stop := run(b, next)
		<-o.done
		b.StopTimer()
		stop()
		b.StartTimer()
	}
	_ = db.Close()
}

// BenchmarkCronMissed starts a scheduler after a pause in which ten thousand tasks missed their time.
func BenchmarkCronMissed(b *testing.B) {
	start := time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)
	for b.Loop() {
		b.StopTimer()
		v := clock.NewVirtual(start)
		o := &office{}
		s, _, db := desk(b, o, v.Clock())
		for i := range scheduled {
			book(b, s, cron.Draft{Schedule: fmt.Sprintf("%d %d * * *", i%60, i/60%24), Message: "report"})
		}
		v.Advance(start.Add(36 * time.Hour))
		ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
		b.StartTimer()
		v.Clock().Go(func() { _ = s.Run(ctx) })
		v.Run(start.Add(36 * time.Hour))
		b.StopTimer()
		cancel()
		v.Run(start.Add(36 * time.Hour))
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkCronRush lets five hundred of ten thousand tasks become due at the same moment; ms/all is
// how long it takes until the last one has run and its result is handed over.
func BenchmarkCronRush(b *testing.B) {
	o := &office{}
	s, _, _ := desk(b, o, clock.Clock{})
	fill(b, s, scheduled-2*dueAtOnce) // those that ran are removed a moment later
	stop := run(b, s)
	defer stop()
	var total time.Duration
	for b.Loop() {
		b.StopTimer()
		o.expect(dueAtOnce)
		at := time.Now().Add(3 * time.Second).Truncate(time.Millisecond)
		for range dueAtOnce {
			book(b, s, cron.Draft{Schedule: at.Format(time.RFC3339Nano), Message: "rush"})
		}
		if time.Now().After(at) {
			b.Fatal("the machine is too slow to make the tasks")
		}
		<-time.After(time.Until(at))
		b.StartTimer()
		<-o.done
		total += time.Since(at)
	}
	b.ReportMetric(float64(total.Milliseconds())/float64(b.N), cronMetric)
}

// BenchmarkCronIdle is an hour of virtual time in which none of ten thousand tasks is due: 120 looks at
// the clock.
func BenchmarkCronIdle(b *testing.B) {
	start := time.Now().Truncate(time.Second)
	v := clock.NewVirtual(start)
	s, _, _ := desk(b, &office{}, v.Clock())
	fill(b, s, scheduled)
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	v.Clock().Go(func() { _ = s.Run(ctx) })
	v.Run(start)
	hour := 0
	for b.Loop() {
		hour++
		if hour > 24 {
			b.Fatal("run with a smaller -benchtime: the tasks become due")
		}
		v.Run(start.Add(time.Duration(hour) * time.Hour))
	}
	cancel()
	v.Run(v.Now())
}
