package drill

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"understudy/app"
	"understudy/authstore"
	"understudy/failover/policy"
	emullm "understudy/internal/emulate/llm"
	emutg "understudy/internal/emulate/telegram"
)

// Prepare is to be called once, outside of any bubble and before the first World: the runtime's
// signal loop, which never ends, must not be born in a bubble.
func Prepare() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	signal.Stop(c)
}

// Options describe a World.
type Options struct {
	// Config is bot.yaml without the sections that a World adds itself: models, with the providers
	// alpha (Chat Completions), beta (Messages), gamma (Responses), pair (with two keys) and spare, channels.telegram,
	// commands and gateway.
	Config string
	// Network runs everything over sockets of loopback, in real time. Without it the World is in
	// memory and must live inside a synctest bubble.
	Network bool
	// Unreachable is the base address of alpha instead of the emulator's.
	Unreachable string
}

// World is a bot and everything around it. Only the test's goroutine uses it.
type World struct {
	Models   *emullm.Server
	Telegram *emutg.Server

	t       *testing.T
	opts    Options
	dir     string // state directory of the running process
	config  string // file
	roots   roots
	logs    writer
	shown   writer // what operators saw: status, errors
	held    held
	proc    *process
	servers []*httptest.Server
	copies  int
}

// process is one run of the bot.
type process struct {
	bot  *app.App
	stop context.CancelFunc
	done chan error
	kill context.CancelFunc
}

// New prepares a World; nothing runs before Start. Everything of it has ended when the test has.
func New(t *testing.T, o Options) *World {
	t.Helper()
	w := &World{
		t: t, opts: o, Models: emullm.New(), Telegram: emutg.New(emutg.Config{Token: botToken}),
		roots: roots{models: "http://models.test", telegram: emutg.Root},
	}
	t.Cleanup(w.end)
	base, err := os.MkdirTemp("", "drill") // short: the path of a socket is bounded
	w.must(err)
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	w.dir, w.config = filepath.Join(base, "state"), filepath.Join(base, "bot.yaml")
	if o.Network {
		server := httptest.NewServer(w.Models)
		w.servers = append(w.servers, server)
		w.roots.models = server.URL
		w.roots.telegram, err = w.Telegram.Listen()
		w.must(err)
	}
	w.roots.alpha = w.roots.models
	if o.Unreachable != "" {
		w.roots.alpha = o.Unreachable
	}
	w.must(seed(t.Context(), w.dir, w.busy()))
	w.Configure(o.Config)
	return w
}

func (w *World) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// busy is the busy timeout of databases: a bubble cannot see who waits for a file.
func (w *World) busy() time.Duration {
	if w.opts.Network {
		return 0
	}
	return -1
}

// Configure replaces bot.yaml. A running bot notices by itself.
func (w *World) Configure(text string) {
	w.t.Helper()
	w.must(os.WriteFile(w.config, []byte(settings(text, w.roots)), 0o600))
}

// Start runs the bot.
func (w *World) Start() {
	w.t.Helper()
	if w.proc != nil {
		w.t.Fatal("the bot is running already")
	}
	dead, kill := context.WithCancel(context.Background())
	bot, err := app.New(w.t.Context(), w.options(dead))
	if err != nil {
		kill()
		fmt.Fprintln(&w.shown, err)
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	p := &process{bot: bot, stop: stop, kill: kill, done: make(chan error, 1)}
	go func() { p.done <- bot.Run(ctx) }()
	w.proc = p
}

func (w *World) options(dead context.Context) app.Options {
	o := app.Options{
		Version: "drill", Config: w.config, Listen: "off", Env: environment(w.dir), BusyTimeout: w.busy(), NoControl: true,
		Log: slog.New(slog.NewJSONHandler(&w.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Transport: func(string) http.RoundTripper {
			if w.opts.Network {
				return &gate{dead, &http.Transport{}, &w.held}
			}
			return &gate{dead, w.Models.Transport(), &w.held}
		},
		Telegram: func() http.RoundTripper {
			if w.opts.Network {
				return &gate{dead, &http.Transport{}, &w.held}
			}
			return &gate{dead, w.Telegram.Transport(), &w.held}
		},
	}
	if w.opts.Network {
		o.Listen, o.NoControl = "127.0.0.1:0", false
	}
	return o
}

// Stop ends the bot in an orderly way.
func (w *World) Stop() {
	w.t.Helper()
	p := w.running()
	w.observe()
	p.stop()
	if err := <-p.done; err != nil {
		fmt.Fprintln(&w.shown, err)
		w.t.Errorf("the bot stopped with: %v", err)
	}
	w.must(p.bot.Close())
	p.kill()
	w.proc = nil
}

// Freeze lets the n-th call from now on that the bot makes to anybody, and all after it, never
// return. If done is set, that call is done before. Kill thaws.
func (w *World) Freeze(n int, done bool) {
	w.held.mu.Lock()
	defer w.held.mu.Unlock()
	w.held.calls, w.held.freeze, w.held.done = 0, n, done
}

// Calls returns how many calls the bot has made since Freeze, polls for updates apart.
func (w *World) Calls() int {
	w.held.mu.Lock()
	defer w.held.mu.Unlock()
	return w.held.calls
}

// Kill ends the bot as kill -9 would: what it has not stored is lost, and what it still does
// reaches nobody. It needs a World in memory.
func (w *World) Kill() {
	w.t.Helper()
	p := w.running()
	synctest.Wait() // the files are at rest
	w.copies++
	next := fmt.Sprintf("%s%d", w.dir, w.copies)
	w.must(copyState(w.dir, next))
	p.kill()
	p.stop()
	<-p.done
	w.must(p.bot.Close())
	w.dir, w.proc = next, nil
	w.Freeze(0, false)
}

func (w *World) running() *process {
	w.t.Helper()
	if w.proc == nil {
		w.t.Fatal("the bot is not running")
	}
	return w.proc
}

// end takes everything down.
func (w *World) end() {
	if w.proc != nil {
		w.Stop()
	}
	for _, s := range w.servers {
		s.CloseClientConnections()
	}
	w.Models.Close()
	w.Telegram.Close()
	for _, s := range w.servers {
		s.Close()
	}
}

// copyState copies the files of a state directory as a crash would leave them: with the logs of the
// databases, without locks, sockets and shared memory.
func copyState(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o700)
		case !d.Type().IsRegular() || strings.HasSuffix(path, "-shm"):
			return nil
		}
		in, err := os.Open(path)
		if err != nil {
			return err
		}
		defer in.Close()
		out, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		if _, err := io.Copy(out, in); err != nil {
			return err
		}
		return out.Close()
	})
}

// Store returns the path of the file that holds the credentials.
func (w *World) Store() string { return authstore.Path(w.dir, agent) }

// Health returns what is stored of the credentials.
func (w *World) Health() policy.Snapshot {
	w.t.Helper()
	store, err := authstore.Open(w.t.Context(), w.Store(), authstore.Deps{BusyTimeout: w.busy()})
	w.must(err)
	defer func() { w.must(store.Close()) }()
	snap, err := store.Snapshot(w.t.Context())
	w.must(err)
	return snap
}

// Records returns the log records with a message, oldest first.
func (w *World) Records(message string) []map[string]any {
	var out []map[string]any
	for line := range strings.Lines(w.logs.String()) {
		var r map[string]any
		if json.Unmarshal([]byte(line), &r) == nil && r[slog.MessageKey] == message {
			out = append(out, r)
		}
	}
	return out
}

// Log returns the whole log.
func (w *World) Log() string { return w.logs.String() }

// Outputs returns everything that was shown to somebody: the log, the chats with all earlier
// versions of their messages, and what operators saw.
func (w *World) Outputs() map[string]string {
	var chats strings.Builder
	for _, c := range w.Telegram.Calls("") {
		if c.Method != "getUpdates" {
			fmt.Fprintln(&chats, c.Method, c.Params)
		}
	}
	return map[string]string{"log": w.logs.String(), "chat": chats.String(), "operator": w.shown.String()}
}
