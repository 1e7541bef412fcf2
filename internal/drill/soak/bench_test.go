package soak

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/app"
	"understudy/internal/emulate/llm"
)

// BenchmarkAnswer is the time from a message at a platform to the bot's answer there, with a model that
// answers at once and previews off. A hundred people write in turn, 20 messages a second in all: no
// faster than the strictest platform lets a bot answer.
func BenchmarkAnswer(b *testing.B) {
	for _, kind := range []string{direct, thread} {
		for i, name := range []string{"slack", "discord", "telegram"} {
			b.Run(name+"/"+kind, func(b *testing.B) { benchmark(b, i, kind) })
		}
	}
}

func benchmark(b *testing.B, side int, kind string) {
	w := newWorld()
	defer w.close()
	w.models.srv.Forget()
	w.models.srv.Reply(llm.Reply{Echo: true, ChunkSize: 1 << 20})
	s := w.sides[side]
	dir := b.TempDir()
	config := filepath.Join(dir, "bot.yaml")
	if err := os.WriteFile(config, []byte(plain(w.settings())), 0o600); err != nil {
		b.Fatal(err)
	}
	o := inMemory(w, config, dir, io.Discard)
	o.BusyTimeout = 0
	bot, err := app.New(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- bot.Run(ctx) }()
	var all []*conversation
	for i := range 100 {
		all = append(all, &conversation{number: i + 1, side: s, place: s.open(i+1, kind)})
	}
	if d, ok := s.(*discordSide); ok { // nobody tells it later what was said before
		if err := waitFor(b.Context(), s, d.srv.Online); err != nil {
			b.Fatal(err)
		}
	}
	answerIn(b, all[0]) // the first one opens connections
	var took []time.Duration
	pace := time.NewTicker(50 * time.Millisecond)
	defer pace.Stop()
	for i := 0; b.Loop(); i++ {
		<-pace.C
		took = append(took, answerIn(b, all[i%len(all)]))
	}
	for _, q := range []float64{0.5, 0.95} {
		b.ReportMetric(float64(quantile(took, q).Microseconds())/1000, fmt.Sprintf("p%.0f-ms", 100*q))
	}
	b.ReportMetric(0, "ns/op") // most of it is the pause
	stop()
	if err := <-done; err != nil {
		b.Error(err)
	}
	if err := bot.Close(); err != nil {
		b.Error(err)
	}
}

// answerIn writes in a conversation and waits for the answer.
func answerIn(b *testing.B, c *conversation) time.Duration {
	began := time.Now()
	x := &said{tag: c.tag(), at: began}
	x.id, x.thread = c.side.say(&c.place, x.tag+" short please")
	c.all = append(c.all, x)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := waitFor(ctx, c.side, func() bool {
		_, ended, _ := find(c.side.transcript(c.place), x)
		return ended
	}); err != nil {
		b.Fatal("no answer:", err)
	}
	return time.Since(began)
}

// waitFor waits until something is so on a platform, without polling.
func waitFor(ctx context.Context, s platform, cond func() bool) error {
	var srv interface {
		WaitFor(ctx context.Context, cond func() bool) error
	}
	switch x := s.(type) {
	case *slackSide:
		srv = x.srv
	case *discordSide:
		srv = x.srv
	case *telegramSide:
		srv = x.srv
	}
	return srv.WaitFor(ctx, cond)
}

// plain switches previews off, on every platform.
func plain(settings string) string {
	settings = strings.ReplaceAll(settings, "    streaming: {mode: partial}\n", "")
	return strings.ReplaceAll(settings, "    dmPolicy: open\n", "    dmPolicy: open\n    streaming: {mode: \"off\"}\n")
}
