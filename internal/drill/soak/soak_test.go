package soak

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"understudy/app"
	"understudy/internal/drill"
)

var (
	long = flag.Duration("soak", 0, "how long TestSoak runs, in real time; 0 = not at all")
	seed = flag.Uint64("seed", 0, "what is left to chance; 0 = one of the clock in TestSoak, a fixed one elsewhere")
	out  = flag.String("log", "", "where the bot of TestSoak writes its log")
)

func TestMain(m *testing.M) {
	if config := os.Getenv(childVar); config != "" {
		os.Exit(child(config))
	}
	drill.Prepare()
	goleak.VerifyTestMain(m)
}

// memory is a text that several goroutines write.
type memory struct {
	mu sync.Mutex
	b  strings.Builder
}

func (m *memory) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.b.Write(p)
}

func (m *memory) tail(n int) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	lines := strings.Split(m.b.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// TestAnswersComeOnceWhateverFails is a short soak in virtual time. The bubble also proves that every
// goroutine ends.
func TestAnswersComeOnceWhateverFails(t *testing.T) {
	for n := range uint64(2) {
		s := n + 1
		if *seed != 0 {
			s = *seed + n
		}
		t.Run(fmt.Sprint(s), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { short(t, s) }) })
	}
}

func short(t *testing.T, seed uint64) {
	w := newWorld()
	defer w.close()
	dir := t.TempDir()
	config := filepath.Join(dir, "bot.yaml")
	if err := os.WriteFile(config, []byte(w.settings()), 0o600); err != nil {
		t.Fatal(err)
	}
	var logs memory
	var sink io.Writer = &logs
	if *out != "" {
		file, err := os.Create(*out)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		sink = io.MultiWriter(&logs, file)
	}
	bot, err := app.New(t.Context(), inMemory(w, config, dir, sink))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- bot.Run(ctx) }()
	r := newRun(Plan{
		Seed: seed, Conversations: 27, Messages: 8, Think: 8 * time.Second, Gust: 2 * time.Second, Patience: 10 * time.Minute,
	}, w, nil).play()
	stop()
	if err := errors.Join(<-done, bot.Close()); err != nil {
		t.Error(err)
	}
	var text strings.Builder
	r.Print(&text)
	t.Log(text.String())
	if len(r.Problems) > 0 {
		t.Errorf("%d problems; repeat with -seed %d\n%s", len(r.Problems), seed, logs.tail(100))
	}
}

// inMemory runs a bot against a world without sockets.
func inMemory(w *world, config, dir string, logs io.Writer) app.Options {
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		return w.models.net.Dial(ctx, network, address)
	}, MaxIdleConnsPerHost: 64}
	by := map[string]platform{}
	for _, s := range w.sides {
		by[s.name()] = s
	}
	return app.Options{
		Version: "soak", Config: config, Listen: "off", NoControl: true, BusyTimeout: -1, Env: environment(dir),
		Log:       slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Transport: func(string) http.RoundTripper { return transport.Clone() },
		Slack:     by["slack"].transport, Discord: by["discord"].transport, Telegram: by["telegram"].transport,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			for name, s := range by {
				if strings.HasPrefix(address, name) {
					return s.dial(ctx, network, address)
				}
			}
			return nil, fmt.Errorf("nobody is at %s", address)
		},
	}
}

func environment(dir string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := map[string]string{"OPENCLAW_STATE_DIR": filepath.Join(dir, "state"), "OLLAMA_HOST": "127.0.0.1:1"}[name]
		return v, ok
	}
}

// TestSoak is the long one, for `make soak`: real time, loopback, and the bot in a process of its own.
func TestSoak(t *testing.T) {
	if *long == 0 {
		t.Skip("it takes long: run `make soak`")
	}
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	fmt.Printf("soak of %s, seed %d\n", *long, s)
	w := newWorld()
	defer w.close()
	for _, side := range w.sides {
		if err := side.listen(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.models.listenLoopback(); err != nil {
		t.Fatal(err)
	}
	bot, err := startChild(t.TempDir(), w.settings(), *out)
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(Plan{
		Seed: s, Conversations: 200, Duration: *long, Think: 30 * time.Second, Gust: 3 * time.Second, Patience: 8 * time.Minute,
		Calm: min(*long/5, 6*time.Minute), Out: os.Stdout,
	}, w, bot.stats).play()
	if err := bot.stop(); err != nil {
		t.Errorf("the bot stopped with: %v", err)
	}
	r.Print(os.Stdout)
	if len(r.Problems) > 0 {
		t.Errorf("%d problems; repeat with -seed %d", len(r.Problems), s)
	}
}
