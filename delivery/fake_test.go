package delivery

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"understudy/channels"
	"understudy/chat"
	"understudy/internal/clock"
	"understudy/internal/sqlite"
)

// said is a message that stands in a conversation of the fake platform.
type said struct {
	ID, Text, ReplyTo string
	Class             chat.Class
	Silent            bool
	File              string
	Conversation      string
	Thread, Via, For  string
	Growing           bool // a native stream that was not stopped
}

// platform is an in-memory channel whose failures are scripted. A hook that returns an error of
// verdict Unsure is asked again after the message was stored, as when a connection is cut.
type platform struct {
	traits channels.Traits

	mu     sync.Mutex
	said   []said
	calls  []string // "send", "edit 1", "delete 1", "typing", with their times
	times  []time.Time
	nextID int
	keys   map[string]string
	hang   bool     // a send waits for the end of its context
	tale   []string // what happened, for a reader
	began  time.Time

	reactions map[string][]string // by message
	reacting  map[string]bool     // messages with a call under way

	then func() // runs once the next call has had its effect

	// Hooks fail the call; nil = it works. Stored tells that the call had its effect.
	onSend   func(p channels.Piece) (stored bool, err error)
	onEdit   func(id string, p channels.Piece) error
	onDelete func(id string) error
	onTyping func(ctx context.Context) error
	onReact  func(call string) error
	onStream func(call string) (done bool, err error) // start, append, stop
}

func newPlatform() *platform {
	return &platform{
		keys: map[string]string{}, reactions: map[string][]string{}, reacting: map[string]bool{},
		traits: channels.Traits{
			Channel: "fake", Markup: channels.Markdown, TextLimit: 1000,
			Edits: true, EditInterval: 1200 * time.Millisecond, References: true, SilentNotices: true,
		},
	}
}

func (f *platform) Traits() channels.Traits                        { return f.traits }
func (f *platform) Run(ctx context.Context, _ channels.Sink) error { <-ctx.Done(); return nil }
func (f *platform) TypingTTL() time.Duration                       { return 5 * time.Second }

// done runs what was to follow a call's effect.
func (f *platform) done() {
	f.mu.Lock()
	then := f.then
	f.then = nil
	f.mu.Unlock()
	if then != nil {
		then()
	}
}

func (f *platform) log(call string) {
	f.calls, f.times = append(f.calls, call), append(f.times, time.Now())
}

// tell adds a line to the tale.
func (f *platform) tell(format string, args ...any) {
	f.tale = append(f.tale, fmt.Sprintf("%6s  ", time.Since(f.began).Round(time.Millisecond))+fmt.Sprintf(format, args...))
}

// special says what is special about a piece.
func special(p channels.Piece) string {
	var b strings.Builder
	for _, x := range []struct{ what, value string }{{"in", p.To.Thread}, {"→", p.ReplyTo}, {"via", p.Via}, {"for", p.For}} {
		if x.value != "" {
			b.WriteString(" " + x.what + " " + x.value)
		}
	}
	if p.Silent {
		b.WriteString(" silent")
	}
	return b.String()
}

func (f *platform) Send(ctx context.Context, p channels.Piece) (channels.Receipt, error) {
	if f.hang {
		<-ctx.Done()
		return channels.Receipt{}, unsure()
	}
	stored, err := true, error(nil)
	if f.onSend != nil {
		stored, err = f.onSend(p)
	}
	defer f.done()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log("send")
	if err != nil && !stored {
		f.tell("%s fails: %s", p.Class, verdict(err).Code)
		return channels.Receipt{}, err
	}
	if id, ok := f.keys[p.Key]; ok && f.traits.Idempotent {
		return channels.Receipt{IDs: []string{id}}, err
	}
	f.nextID++
	id := fmt.Sprint(f.nextID)
	f.keys[p.Key] = id
	m := said{
		ID: id, Text: p.Text, ReplyTo: p.ReplyTo, Class: p.Class, Silent: p.Silent,
		Conversation: p.To.Conversation, Thread: p.To.Thread, Via: p.Via, For: p.For,
	}
	if p.Text == "" {
		m.Text = p.Plain
	}
	if len(p.Media) > 0 {
		m.File = p.Media[0].Name
	}
	f.said = append(f.said, m)
	f.tell("#%s %s%s: %s%s", id, p.Class, special(p), m.Text, m.File)
	if err != nil {
		return channels.Receipt{}, err
	}
	return channels.Receipt{IDs: []string{id}}, nil
}

func (f *platform) Edit(_ context.Context, _ chat.Address, id string, p channels.Piece) error {
	var err error
	if f.onEdit != nil {
		err = f.onEdit(id, p)
	}
	defer f.done()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log("edit " + id)
	if err != nil {
		f.tell("#%s is not edited: %s", id, verdict(err).Code)
		return err
	}
	for i := range f.said {
		if f.said[i].ID == id {
			if f.said[i].Growing {
				return &channels.SendError{Verdict: channels.Refused, Code: "streaming", Err: fmt.Errorf("a stream cannot be edited")}
			}
			if f.said[i].Text = p.Text; p.Text == "" {
				f.said[i].Text = p.Plain
			}
			f.tell("#%s now: %s", id, f.said[i].Text)
			return nil
		}
	}
	return &channels.SendError{Verdict: channels.Missing, Code: "missing"}
}

func (f *platform) Delete(_ context.Context, _ chat.Address, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log("delete " + id)
	if f.onDelete != nil {
		if err := f.onDelete(id); err != nil {
			return err
		}
	}
	for i := range f.said {
		if f.said[i].ID == id {
			if f.said[i].Growing {
				return &channels.SendError{Verdict: channels.Refused, Code: "streaming", Err: fmt.Errorf("a stream cannot be deleted")}
			}
			f.said = append(f.said[:i], f.said[i+1:]...)
			f.tell("#%s deleted", id)
			return nil
		}
	}
	return &channels.SendError{Verdict: channels.Missing, Code: "missing"}
}

func (f *platform) Typing(ctx context.Context, _ chat.Address) error {
	f.mu.Lock()
	f.log("typing")
	f.tell("typing")
	f.mu.Unlock()
	if f.onTyping != nil {
		return f.onTyping(ctx)
	}
	return nil
}

func (f *platform) texts() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, m := range f.said {
		out = append(out, m.Text)
	}
	return out
}

func (f *platform) all() []said {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]said(nil), f.said...)
}

func (f *platform) count(call string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.calls {
		if c == call {
			n++
		}
	}
	return n
}

// counters is a Metrics.
type counters struct {
	mu                         sync.Mutex
	sent, failed, noticeFailed int
}

func (c *counters) Sent(chat.Address, chat.Class)           { c.add(&c.sent) }
func (c *counters) Failed(chat.Address, chat.Class, string) { c.add(&c.failed) }
func (c *counters) NoticeFailed(chat.Address)               { c.add(&c.noticeFailed) }

func (c *counters) add(n *int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*n++
}

// world is a running Service in a bubble.
type world struct {
	t       *testing.T
	s       *Service
	f       *platform
	db      *sqlite.DB
	set     Settings
	metrics *counters
	unknown []chat.Outbound
	deps    func(*Deps) // changes what the Service gets
	stop    context.CancelFunc
	done    chan struct{}
}

var home = chat.Address{Channel: "fake", Conversation: "c1", Kind: chat.Direct}

var question = &chat.Inbound{ID: "555", Address: home, Text: "hello?"}

// bubble runs a test with a started Service in a bubble of its own time.
func bubble(t *testing.T, set Settings, prepare func(f *platform), test func(w *world)) {
	t.Helper()
	bubbleWith(t, set, nil, prepare, test)
}

// bubbleWith is bubble with changed Deps.
func bubbleWith(t *testing.T, set Settings, deps func(*Deps), prepare func(f *platform), test func(w *world)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bot.sqlite")
	synctest.Test(t, func(t *testing.T) {
		f := newPlatform()
		f.began = time.Now()
		if prepare != nil {
			prepare(f)
		}
		w := &world{t: t, f: f, set: set, deps: deps}
		w.open(path)
		w.boot()
		test(w)
		w.halt()
		w.close()
	})
}

func (w *world) open(path string) {
	db, err := sqlite.Open(w.t.Context(), path, sqlite.Options{BusyTimeout: -1, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.db = db
}

func (w *world) close() {
	if err := w.db.Close(); err != nil {
		w.t.Error(err)
	}
}

// boot starts a new Service over the database and the platform, as a new process would.
func (w *world) boot() {
	w.t.Helper()
	w.make()
	if err := w.s.Recover(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.run()
}

func (w *world) make() {
	w.metrics = &counters{}
	deps := Deps{
		DB: w.db, Log: slog.New(slog.DiscardHandler), Metrics: w.metrics,
		Unknown: func(_ context.Context, o chat.Outbound, _ bool) { w.unknown = append(w.unknown, o) },
	}
	if w.deps != nil {
		w.deps(&deps)
	}
	s, err := New(w.t.Context(), deps)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := s.Register(w.f, w.set); err != nil {
		w.t.Fatal(err)
	}
	w.s = s
}

func (w *world) run() {
	ctx, cancel := context.WithCancel(context.Background())
	w.stop, w.done = cancel, make(chan struct{})
	go func() {
		defer close(w.done)
		if err := w.s.Run(ctx); err != nil {
			w.t.Error(err)
		}
	}()
}

func (w *world) halt() {
	w.stop()
	<-w.done
}

// pass lets time pass and everything settle.
func (w *world) pass(d time.Duration) {
	if err := (clock.Clock{}).Sleep(w.t.Context(), d); err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
}

// slowly lets a call of the platform take its time.
func slowly(d time.Duration) { _ = (clock.Clock{}).Sleep(context.Background(), d) }

func (w *world) finish(turn *Turn, o chat.Outbound) {
	w.t.Helper()
	if err := turn.Finish(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

func answer(text string) chat.Outbound { return chat.Outbound{Class: chat.Assistant, Markdown: text} }

func retryAfter(d time.Duration) error {
	return &channels.SendError{Verdict: channels.Retry, After: d, Code: "rate_limited", Err: fmt.Errorf("slow down")}
}

func unsure() error {
	return &channels.SendError{Verdict: channels.Unsure, Code: "cut", Err: fmt.Errorf("connection cut")}
}

// migrateFirst makes the tables as the first release made them.
func (w *world) migrateFirst() {
	first, err := fs.Sub(migrations, "migrations")
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := fs.ReadFile(first, "00001_outbox.sql")
	if err != nil {
		w.t.Fatal(err)
	}
	if err := sqlite.Migrate(w.t.Context(), w.db, "outbox", fstest.MapFS{"00001_outbox.sql": {Data: text}}); err != nil {
		w.t.Fatal(err)
	}
}
