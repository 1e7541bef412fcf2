package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/app"
	emullm "understudy/internal/emulate/llm"
	emutg "understudy/internal/emulate/telegram"
)

const token = "bench-token-0123456789"

// bot is a whole bot on real databases: Telegram and the model API are emulators in memory, the web
// page is a listener on loopback.
type bot struct {
	telegram *emutg.Server
	models   *emullm.Server
	web      string // base URL
	page     *http.Client
}

func startBot(b *testing.B) *bot {
	b.Helper()
	dir := b.TempDir()
	x := &bot{telegram: emutg.New(emutg.Config{}), models: emullm.New(), web: "http://" + freePort(b)}
	x.page = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128}}
	b.Cleanup(x.page.CloseIdleConnections)
	config := filepath.Join(dir, "bot.yaml")
	err := os.WriteFile(config, fmt.Appendf(nil, `
agents: {defaults: {model: alpha/a1, maxConcurrent: 256}}
models: {providers: {alpha: {api: openai-chat, baseUrl: "http://models.test/v1", apiKey: "${BENCH_KEY}"}}}
channels: {telegram: {apiRoot: %s, dmPolicy: open, allowFrom: ["*"], streaming: {mode: "off"}}}
gateway: {token: "${BENCH_TOKEN}"}
`, emutg.Root), 0o600)
	if err != nil {
		b.Fatal(err)
	}
	env := map[string]string{
		"OPENCLAW_STATE_DIR": filepath.Join(dir, "state"), "BENCH_KEY": "sk-bench", "BENCH_TOKEN": token, "TELEGRAM_BOT_TOKEN": emutg.DefaultToken,
	}
	a, err := app.New(b.Context(), app.Options{
		Config: config, Listen: strings.TrimPrefix(x.web, "http://"), Env: func(k string) (string, bool) { v, ok := env[k]; return v, ok },
		Log:       slog.New(slog.DiscardHandler),
		Transport: func(string) http.RoundTripper { return x.models.Transport() },
		Telegram:  x.telegram.Transport,
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
		if err := a.Close(); err != nil {
			b.Error(err)
		}
		x.telegram.Close()
		x.models.Close()
	})
	return x
}

// BenchmarkTelegram is the time from a message at Telegram to the bot's answer there, with a model
// that answers at once. The messages come no faster than the platform lets a bot answer: one second
// per chat, 25 a second in all.
func BenchmarkTelegram(b *testing.B) {
	for _, x := range []struct {
		chats int
		every time.Duration
	}{{1, 1100 * time.Millisecond}, {100, 50 * time.Millisecond}} {
		b.Run(fmt.Sprintf("chats=%d", x.chats), func(b *testing.B) {
			bot := startBot(b)
			for c := range x.chats {
				bot.telegram.AddChat(emutg.Chat{ID: int64(c + 1), Type: "private"})
			}
			bot.telegramTurn(b, 1) // the first one opens connections
			var took []time.Duration
			pace := time.NewTicker(x.every)
			defer pace.Stop()
			for i := 0; b.Loop(); i++ {
				<-pace.C
				took = append(took, bot.telegramTurn(b, int64(i%x.chats+1)))
			}
			report(b, took)
		})
	}
}

// telegramTurn writes in a chat and waits for the answer.
func (x *bot) telegramTurn(b *testing.B, chat int64) time.Duration {
	before := len(x.telegram.Sent(chat))
	began := time.Now()
	x.telegram.UserSays(chat, chat, "hello")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := x.telegram.WaitFor(ctx, func() bool { return len(x.telegram.Sent(chat)) > before }); err != nil {
		b.Error("no answer:", err)
	}
	return time.Since(began)
}

// BenchmarkWeb is the same over the web page, which no platform slows down: every chat writes as
// soon as it has its answer. One operation is one turn.
func BenchmarkWeb(b *testing.B) {
	for _, chats := range []int{1, 100} {
		b.Run(fmt.Sprintf("chats=%d", chats), func(b *testing.B) {
			bot := startBot(b)
			answers := bot.listen(b)
			defer answers.close()
			var mu sync.Mutex
			var took []time.Duration
			work := make(chan int)
			var all sync.WaitGroup
			for c := range chats {
				all.Go(func() {
					for i := range work {
						d := bot.webTurn(b, answers, fmt.Sprintf("chat%05d", c), i)
						mu.Lock()
						took = append(took, d)
						mu.Unlock()
					}
				})
			}
			n := 0
			for b.Loop() {
				work <- n
				n++
				if n%1000 == 0 {
					bot.models.ClearRequests()
				}
			}
			close(work)
			all.Wait()
			b.StopTimer()
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "turns/s")
			report(b, took)
		})
	}
}

func report(b *testing.B, took []time.Duration) {
	b.Helper()
	if len(took) == 0 {
		return
	}
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(took[len(took)/2]), "ms-median")
	b.ReportMetric(ms(took[len(took)*95/100]), "ms-95th")
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "MiB-heap")
	b.ReportMetric(float64(runtime.NumGoroutine()), "goroutines")
	b.ReportMetric(0, "ns/op") // it says nothing here
}

// webTurn posts a message and waits for its answer.
func (x *bot) webTurn(b *testing.B, answers *stream, chat string, n int) time.Duration {
	arrived := answers.expect(chat)
	began := time.Now()
	body, err := json.Marshal(map[string]string{"id": fmt.Sprint("m", n), "text": "hello"})
	if err != nil {
		b.Error(err)
		return 0
	}
	res, err := x.do(http.MethodPost, "/api/sessions/"+chat+"/messages", body)
	if err != nil {
		b.Error(err)
		return 0
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusAccepted {
		b.Error(res.Status)
		return 0
	}
	select {
	case <-arrived:
	case <-time.After(time.Minute):
		b.Error("no answer")
	}
	return time.Since(began)
}

func (x *bot) do(method, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequest(method, x.web+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	return x.page.Do(req)
}

// stream is the page's event stream: it tells each chat that its answer is there.
type stream struct {
	mu      sync.Mutex
	waiting map[string]chan struct{}
	close   func()
}

func (s *stream) expect(chat string) <-chan struct{} {
	c := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[chat] = c
	return c
}

// listen opens the event stream.
func (x *bot) listen(b *testing.B) *stream {
	b.Helper()
	var res *http.Response
	for began := time.Now(); ; { // the listener opens while the bot starts
		var err error
		if res, err = x.do(http.MethodGet, "/api/events", nil); err == nil && res.StatusCode == http.StatusOK {
			break
		}
		if time.Since(began) > 10*time.Second {
			b.Fatal("the page does not open: ", err)
		}
		runtime.Gosched()
	}
	s := &stream{waiting: map[string]chan struct{}{}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(res.Body)
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				s.event([]byte(data))
			}
		}
	}()
	s.close = func() { _ = res.Body.Close(); <-ended }
	return s
}

func (s *stream) event(data []byte) {
	var e struct {
		Session string
		Message *struct {
			Session string
			Own     bool
		}
	}
	if json.Unmarshal(data, &e) != nil || e.Message == nil || e.Message.Own {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.waiting[e.Message.Session]; c != nil {
		delete(s.waiting, e.Message.Session)
		close(c)
	}
}

// freePort finds a free address of loopback.
func freePort(b *testing.B) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
