package conversations

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy/app"
	"understudy/internal/emulate/llm"
)

// patience is what the bot has for a step; the screens are looked at every now and then.
const (
	patience = 20 * time.Second
	glance   = 250 * time.Millisecond
)

// journal is a log.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

// world is a bot on one platform. It lives in a synctest bubble.
type world struct {
	t        *testing.T
	platform string
	side     side
	models   *llm.Server
	studio   studio
	logs     journal
	dir      string
	texts    *archive
	seen     map[string]shown
	asked    int

	bot  *app.App
	halt context.CancelFunc
	done chan error
}

func newWorld(t *testing.T, platform string, a *archive) *world {
	t.Helper()
	time.Sleep(time.Until(time.Date(2026, time.March, 2, 10, 0, 0, 0, time.UTC)))
	dir, err := os.MkdirTemp("", "talk")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, platform: platform, models: llm.New(), dir: dir, texts: a, seen: map[string]shown{}}
	switch platform {
	case "slack":
		w.side = newSlack()
	case "discord":
		w.side = newDiscord()
	case "telegram":
		w.side = newTelegram()
	}
	t.Cleanup(func() {
		if w.bot != nil {
			w.stop()
		}
		w.side.close()
		w.models.Close()
		_ = os.RemoveAll(dir)
	})
	if err := os.WriteFile(w.config(), []byte(settings(a, w.side)), 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) config() string { return filepath.Join(w.dir, "bot.yaml") }

// settings is the whole configuration.
func settings(a *archive, s side) string {
	var more strings.Builder
	for line := range strings.Lines(a.section("channel.yaml")) {
		more.WriteString("    " + line)
	}
	text := a.section("bot.yaml")
	if !strings.Contains(text, "agents:") {
		text += "agents: {defaults: {userTimezone: UTC, model: {primary: alpha/a1, fallbacks: [beta/b1]}}}\n"
	}
	return text + `models:
  providers:
    alpha: {api: openai-chat, baseUrl: "http://models.test/v1", apiKey: sk-alpha, models: [{id: a1, input: [text, image]}]}
    beta: {api: anthropic-messages, baseUrl: "http://models.test", apiKey: sk-beta, models: [{id: b1}]}
channels:
` + s.settings(more.String())
}

func (w *world) options() app.Options {
	return app.Options{
		Version: "test", Config: w.config(), Listen: "off", NoControl: true, BusyTimeout: -1,
		Env: func(name string) (string, bool) {
			v, ok := map[string]string{"OPENCLAW_STATE_DIR": filepath.Join(w.dir, "state"), "OLLAMA_HOST": "127.0.0.1:1"}[name]
			return v, ok
		},
		Log:       slog.New(slog.NewTextHandler(&w.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Transport: func(string) http.RoundTripper { return w.models.Transport() },
		Speech:    &w.studio,
		Slack:     w.side.transport, Discord: w.side.transport, Telegram: w.side.transport, Dial: w.side.dial,
	}
}

func (w *world) start() {
	w.t.Helper()
	bot, err := app.New(w.t.Context(), w.options())
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, halt := context.WithCancel(context.Background())
	w.bot, w.halt, w.done = bot, halt, make(chan error, 1)
	go func() { w.done <- bot.Run(ctx) }()
	time.Sleep(5 * time.Second)
	synctest.Wait()
}

func (w *world) stop() {
	w.t.Helper()
	w.halt()
	if err := <-w.done; err != nil {
		w.t.Errorf("the bot stopped with: %v", err)
	}
	if err := w.bot.Close(); err != nil {
		w.t.Error(err)
	}
	w.bot = nil
}

// watch looks at the screens until the bot has had its time, and tells what changed.
func (w *world) watch() []string { return w.pass(patience) }

// pass lets time go by and tells what changed. Whoever waits for long does not look all the time.
func (w *world) pass(d time.Duration) []string {
	out, every := []string{}, glance
	if d > 10*time.Minute {
		every = d / 200
	}
	for until := time.Now().Add(d); time.Now().Before(until); {
		time.Sleep(every)
		synctest.Wait()
		out = append(out, w.news()...)
	}
	return out
}

// news tells what changed on people's screens since the last time.
func (w *world) news() (out []string) {
	all := w.side.messages()
	byID := map[string]shown{}
	for _, m := range all {
		byID[m.id] = m
	}
	for _, m := range all {
		before, known := w.seen[m.id]
		w.seen[m.id] = m
		if m.who != "bot" {
			continue
		}
		var how []string
		switch {
		case known && before.deleted || !known && m.deleted:
			continue
		case m.deleted:
			how = append(how, "deletes")
		case known && before.text == m.text && slices.Equal(before.buttons, m.buttons):
			continue
		case known:
			how = append(how, "edits")
		}
		out = append(out, line(m, how, byID, known))
	}
	return out
}

// pairing finds the codes that strangers get, which are different every time.
var pairing = regexp.MustCompile(`(Pairing code: |pairing approve [a-z]+ )[A-Z0-9]{8}`)

// reminder finds the id of a reminder, which is different every time.
var reminder = regexp.MustCompile("(I will remind you: [^(]*\\(`?)[a-z2-7]{10}")

// task finds the id of a scheduled task, which is different every time.
var task = regexp.MustCompile("(Scheduled [^(]*\\(`?)[a-z2-7]{10}")

// frame finds the marks around strangers' words, which are different every time.
var frame = regexp.MustCompile(`<<<(untrusted|end) [A-Z0-9]+>>>`)

// line describes a message of the bot.
func line(m shown, how []string, byID map[string]shown, known bool) string {
	if !known {
		if m.quiet {
			how = append(how, "quietly")
		}
		if m.only != "" {
			how = append(how, "for "+m.only+" alone")
		}
		if to, ok := byID[m.to]; ok {
			how = append(how, fmt.Sprintf("to %q", brief(to.text)))
		}
	}
	where := ""
	switch {
	case strings.HasPrefix(m.place, private):
		if who := strings.TrimPrefix(m.place, private+" "); who != "alice" {
			where = " with " + who
		}
	default:
		where = " in " + m.place
	}
	if m.thread != "" {
		where += fmt.Sprintf(", thread of %q", brief(m.thread))
	}
	if len(how) > 0 {
		where += " (" + strings.Join(how, "; ") + ")"
	}
	text := pairing.ReplaceAllString(strings.ReplaceAll(m.text, "\n", "⏎"), "${1}CODE")
	text = task.ReplaceAllString(reminder.ReplaceAllString(text, "${1}ID"), "${1}ID")
	for _, b := range m.buttons {
		text += " [" + b + "]"
	}
	for _, f := range m.files {
		text += " <" + f + ">"
	}
	return "bot" + where + ": " + text
}

// brief is the beginning of a text, without who is mentioned.
func brief(s string) string {
	for _, name := range []string{"<@U0BOT0001> ", "<@110201543000000001> ", "@understudy_bot "} {
		s = strings.TrimPrefix(s, name)
	}
	if r := []rune(s); len(r) > 30 {
		return string(r[:30]) + "…"
	}
	return s
}

// mention puts the bot's name into a text.
func mention(text, bot string) string { return strings.ReplaceAll(text, "{bot}", bot) }
