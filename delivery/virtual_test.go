package delivery

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/channels"
	"understudy/chat"
	"understudy/internal/clock"
	"understudy/internal/sqlite"
)

// TestVirtualClock: on a virtual clock hours pass at once, also while the platform is away, and
// everything waits through the clock.
func TestVirtualClock(t *testing.T) {
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "bot.sqlite"), sqlite.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 1, 18, 0, 0, 0, 0, time.UTC)
	v := clock.NewVirtual(start)
	f := newPlatform()
	f.onSend = func(p channels.Piece) (bool, error) {
		if p.Class == chat.Assistant && v.Now().Before(start.Add(5*time.Minute)) {
			return false, retryAfter(0)
		}
		return true, nil
	}
	s, err := New(t.Context(), Deps{DB: db, Clock: v.Clock(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Register(f, Settings{Previews: true, Typing: TypingInstant}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	v.Clock().Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	v.Clock().Go(func() {
		turn := s.Begin(home, question, "t1")
		for range 60 {
			turn.Stream("word ")
			if err := v.Clock().Sleep(ctx, time.Second); err != nil {
				t.Error(err)
			}
		}
		turn.Notify(chat.Outbound{Markdown: "notice"})
		if err := turn.Finish(ctx, answer("Paris.")); err != nil {
			t.Error(err)
		}
	})
	v.Run(start.Add(time.Hour))
	if d := cmp.Diff([]string{"notice", "Paris."}, f.texts()); d != "" {
		t.Error(d)
	}
	cancel()
	if v.Run(start.Add(2 * time.Hour)) {
		t.Error("something waits after the stop")
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
