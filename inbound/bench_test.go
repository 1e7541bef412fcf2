package inbound

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"

	"understudy/chat"
	"understudy/internal/sqlite"
)

// discard takes every message and answers none.
type discard struct{}

// Handle implements Handler.
func (discard) Handle(context.Context, Message) {}

// BenchmarkAccept measures what one event costs until its platform may be told that it is safe.
func BenchmarkAccept(b *testing.B) {
	room := func(n int) chat.Inbound {
		m := message(n, "hello")
		m.Address.Kind, m.Address.Conversation = chat.Room, "C1"
		m.Sender.ID = fmt.Sprint("U", n)
		return m
	}
	for name, make := range map[string]func(n int) chat.Inbound{
		"answered":  func(n int) chat.Inbound { m := room(n); m.Mentioned = true; return m },
		"direct":    func(n int) chat.Inbound { m := message(n, "hello"); m.Sender.ID = fmt.Sprint(n); return m },
		"overheard": func(n int) chat.Inbound { return room(n) },
		"refused":   func(n int) chat.Inbound { m := room(n); m.Address.Account = ""; return m },
	} {
		b.Run(name, func(b *testing.B) {
			p := benchPipeline(b)
			n := 0
			for b.Loop() {
				n++
				if err := p.Accept(b.Context(), make(n)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkTurn measures the journal's part of one answered message, from its arrival to its end.
func BenchmarkTurn(b *testing.B) {
	p := benchPipeline(b)
	n := int64(0)
	for b.Loop() {
		n++
		m := message(int(n), "hello")
		m.Sender.ID = fmt.Sprint(n)
		if err := p.Accept(b.Context(), m); err != nil {
			b.Fatal(err)
		}
		if _, err := p.Dispatched(b.Context(), n); err != nil {
			b.Fatal(err)
		}
		if err := p.Done(b.Context(), n); err != nil {
			b.Fatal(err)
		}
	}
}

func benchPipeline(b *testing.B) *Pipeline {
	b.Helper()
	db, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "bot.sqlite"), sqlite.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	p, err := New(b.Context(), Config{Access: map[Account]Access{{Channel: "telegram"}: {}, {Channel: "telegram", Name: "open"}: open}}, Deps{
		DB: db, Log: slog.New(slog.DiscardHandler), Handler: discard{},
		Send:      func(context.Context, chat.Outbound) error { return nil },
		Answer:    func(context.Context, string) (Answer, error) { return AnswerNone, nil },
		IsCommand: func(text string) bool { return text == "/status" },
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := p.Recover(b.Context()); err != nil {
		b.Fatal(err)
	}
	return p
}
