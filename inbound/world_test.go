package inbound

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy/channels"
	"understudy/chat"
	"understudy/internal/clock"
	"understudy/internal/sqlite"
)

// world is a Pipeline with everything around it recorded.
type world struct {
	t    *testing.T
	path string
	db   *sqlite.DB
	p    *Pipeline
	cfg  Config

	mu      sync.Mutex
	handled []Message
	gone    []int64                  // what the Handler was told to forget
	sent    map[string]chat.Outbound // by TurnID and Seq, as delivery keeps them
	order   []chat.Outbound
	answers map[string]Answer
	sendErr error
	passed  time.Duration
}

// open lets everybody write to the account "open" of the fake channel.
var open = Access{DMPolicy: PolicyOpen, AllowFrom: []string{"*"}, GroupPolicy: PolicyOpen}

// bubble runs a test in its own time with a recovered Pipeline.
func bubble(t *testing.T, test func(w *world)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bot.sqlite")
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, path: path, sent: map[string]chat.Outbound{}, answers: map[string]Answer{}}
		w.cfg = Config{Access: map[Account]Access{{Channel: "telegram"}: {}, {Channel: "telegram", Name: "open"}: open}}
		w.boot()
		test(w)
		w.close()
	})
}

// boot starts a new process over the database.
func (w *world) boot() {
	w.t.Helper()
	if w.db != nil {
		w.close()
	}
	w.make()
	if err := w.p.Recover(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) make() {
	w.t.Helper()
	db, err := sqlite.Open(w.t.Context(), w.path, sqlite.Options{BusyTimeout: -1, Volatile: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.db, w.handled = db, nil
	w.p, err = New(w.t.Context(), w.cfg, Deps{
		DB: db, Log: slog.New(slog.DiscardHandler), Handler: w, Send: w.send,
		Answer:    func(_ context.Context, turn string) (Answer, error) { return w.answers[turn], nil },
		IsCommand: func(text string) bool { return strings.HasPrefix(text, "/status") },
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) close() {
	w.p.Close()
	if err := w.db.Close(); err != nil {
		w.t.Error(err)
	}
	w.db = nil
}

// Handle implements Handler.
func (w *world) Handle(_ context.Context, m Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handled = append(w.handled, m)
}

// Withdraw implements Withdrawer.
func (w *world) Withdraw(seq int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone = append(w.gone, seq)
}

func (w *world) send(_ context.Context, o chat.Outbound) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sendErr != nil {
		return w.sendErr
	}
	if o.TurnID != "" {
		key := fmt.Sprint(o.TurnID, "/", o.Seq)
		if _, ok := w.sent[key]; ok {
			return nil
		}
		w.sent[key] = o
	}
	w.order = append(w.order, o)
	return nil
}

func (w *world) accept(m chat.Inbound) {
	w.t.Helper()
	if err := w.p.Accept(w.t.Context(), m); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) dispatch(seq int64) Message {
	w.t.Helper()
	m, err := w.p.Dispatched(w.t.Context(), seq)
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

func (w *world) done(seq int64) {
	w.t.Helper()
	if err := w.p.Done(w.t.Context(), seq); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) pass(d time.Duration) {
	w.t.Helper()
	w.mu.Lock() // what was read before happens before what a timer does
	w.passed += d
	w.mu.Unlock()
	if err := (clock.Clock{}).Sleep(w.t.Context(), d); err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
}

// rules changes the rules of the account "open".
func (w *world) rules(change func(a *Access)) {
	w.t.Helper()
	key := Account{Channel: "telegram", Name: "open"}
	a := w.cfg.Access[key]
	change(&a)
	w.cfg.Access[key] = a
	w.reload()
}

func (w *world) reload() {
	w.t.Helper()
	if err := w.p.Reload(w.cfg); err != nil {
		w.t.Fatal(err)
	}
}

// refused is what a person is told whose interaction is refused, "" = it was not.
func (w *world) refused(m chat.Inbound) string {
	w.t.Helper()
	err := w.p.Accept(w.t.Context(), m)
	var refusal *channels.Refusal
	if errors.As(err, &refusal) {
		return refusal.Text
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return ""
}

// last is what was handled last.
func (w *world) last() Message {
	w.t.Helper()
	if len(w.handled) == 0 {
		w.t.Fatal("nothing was handled")
	}
	return w.handled[len(w.handled)-1]
}

// texts returns what was handled.
func (w *world) texts() []string {
	var out []string
	for _, m := range w.handled {
		out = append(out, m.In.Text)
	}
	return out
}

// count returns a number from the database.
func (w *world) count(query string, args ...any) int {
	w.t.Helper()
	var n int
	if err := w.db.Reader().QueryRowContext(w.t.Context(), query, args...).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w *world) state(seq int64) string {
	w.t.Helper()
	var state string
	if err := w.db.Reader().QueryRowContext(w.t.Context(), "SELECT state FROM inbound WHERE id = ?", seq).Scan(&state); err != nil {
		w.t.Fatal(err)
	}
	return state
}

// message is a direct message to the open account.
func message(n int, text string) chat.Inbound {
	return chat.Inbound{
		ID: fmt.Sprint(n), EventKey: fmt.Sprint("tg:1:", n), AltKeys: []string{fmt.Sprint("tg:chat:", n)},
		Address: chat.Address{Channel: "telegram", Account: "open", Conversation: "9", Kind: chat.Direct},
		Sender:  chat.Sender{ID: "9", Name: "Ann"}, Text: text,
	}
}

// inRoom is a message to a room of the open account.
func inRoom(n int, sender, text string) chat.Inbound {
	m := message(n, text)
	m.Address.Conversation, m.Address.Kind, m.Space = "C1", chat.Room, "G"
	m.Sender = chat.Sender{ID: sender, Name: "Person " + sender}
	return m
}

// mention is a message to a room that names the bot.
func mention(n int, sender, text string) chat.Inbound {
	m := inRoom(n, sender, text)
	m.Mentioned = true
	return m
}

// edited is a new version of a message, deleted its removal.
func edited(m chat.Inbound, version int, text string) chat.Inbound {
	m.EventKey, m.AltKeys, m.Edited, m.Text = fmt.Sprint(m.EventKey, ":edit:", version), nil, true, text
	return m
}

func deleted(m chat.Inbound) chat.Inbound {
	return chat.Inbound{ID: m.ID, EventKey: m.EventKey + ":deleted", Address: m.Address, Deleted: true}
}

// stranger is a direct message to the account with the default rules.
func stranger(n int, sender string) chat.Inbound {
	m := message(n, "let me in")
	m.Address.Account, m.Address.Conversation, m.Sender.ID = "", sender, sender
	return m
}
