package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"understudy/channels"
	"understudy/chat"
	"understudy/internal/sqlite"
)

// benched is a running Service over a platform that answers at once.
type benched struct {
	s    *Service
	sent atomic.Int64
	want atomic.Int64
	all  chan struct{} // gets a value when sent reaches want
	seen chan struct{} // gets a value for every preview
}

// instant is a platform that costs nothing.
type instant struct{}

func (instant) Traits() channels.Traits {
	return channels.Traits{Channel: "fake", Markup: channels.TelegramHTML, TextLimit: 4000, Edits: true}
}
func (instant) Run(ctx context.Context, _ channels.Sink) error { <-ctx.Done(); return nil }
func (instant) Send(context.Context, channels.Piece) (channels.Receipt, error) {
	return channels.Receipt{IDs: []string{"1"}}, nil
}
func (instant) Edit(context.Context, chat.Address, string, channels.Piece) error { return nil }
func (instant) Delete(context.Context, chat.Address, string) error               { return nil }

// The methods of Metrics.

func (b *benched) Sent(chat.Address, chat.Class) {
	if b.sent.Add(1) == b.want.Load() {
		b.all <- struct{}{}
	}
}
func (*benched) Failed(chat.Address, chat.Class, string) {}
func (*benched) NoticeFailed(chat.Address)               {}

func bench(b *testing.B, things int) *benched {
	db, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "bot.sqlite"), sqlite.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	x := &benched{all: make(chan struct{}, 1), seen: make(chan struct{}, 1)}
	x.want.Store(int64(things))
	deps := Deps{
		DB: db, Log: slog.New(slog.DiscardHandler), Metrics: x,
		FirstVisible: func(string, time.Duration) {
			select {
			case x.seen <- struct{}{}:
			default:
			}
		},
	}
	if x.s, err = New(b.Context(), deps); err != nil {
		b.Fatal(err)
	}
	if err := x.s.Register(instant{}, Settings{Previews: true, ReplyTo: ModeFirst}); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- x.s.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	b.ReportAllocs()
	b.ResetTimer()
	return x
}

func (x *benched) send(b *testing.B, to string, i int) {
	o := chat.Outbound{
		To: at(to, "", chat.Direct), Class: chat.Cron, TurnID: fmt.Sprint("t", i), Markdown: "The **capital** of France is Paris.",
	}
	if err := x.s.Send(b.Context(), o); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkOutbox: one destination; an operation is a thing stored, sent and written off.
func BenchmarkOutbox(b *testing.B) {
	x := bench(b, b.N)
	for i := range b.N {
		x.send(b, "c", i)
	}
	<-x.all
}

// BenchmarkThousandDestinations: the same over a thousand conversations.
func BenchmarkThousandDestinations(b *testing.B) {
	x := bench(b, b.N)
	for i := range b.N {
		x.send(b, fmt.Sprint("c", i%1000), i)
	}
	<-x.all
}

// BenchmarkTurn: a turn with a preview that becomes its answer.
func BenchmarkTurn(b *testing.B) {
	x := bench(b, b.N)
	for i := range b.N {
		turn := x.s.Begin(at(fmt.Sprint("c", i%1000), "", chat.Direct), question, fmt.Sprint("t", i))
		turn.Stream("The **capital** of France")
		<-x.seen
		turn.Stream(" is")
		if err := turn.Finish(b.Context(), answer("The **capital** of France is Paris.")); err != nil {
			b.Fatal(err)
		}
	}
	<-x.all
}
