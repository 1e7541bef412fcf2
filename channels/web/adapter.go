package web

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"understudy/channels"
	"understudy/chat"
)

// Channel is the channel's name in addresses, configuration and logs.
const Channel = "web"

// Owner is the sender id of whoever got past the guard: there is one user, the bot's owner
// (spec/chat.md §12 D13).
const Owner = "owner"

// Config bounds what the adapter keeps in memory. The zero value means the defaults.
type Config struct {
	Events   int // changes a page may have missed before it must reload; default 1024
	Messages int // messages kept per session; default 400
	Sessions int // sessions kept in memory; default 64
	Listed   int // sessions in the page's list; default 200
	Streams  int // pages that may be open at once; default 32
}

// WithDefaults returns c with every unset bound at its default.
func (c Config) WithDefaults() Config {
	for _, f := range []struct {
		value *int
		def   int
	}{{&c.Events, 1024}, {&c.Messages, 400}, {&c.Sessions, 64}, {&c.Listed, 200}, {&c.Streams, 32}} {
		if *f.value == 0 {
			*f.value = f.def
		}
	}
	return c
}

// Validate reports a bound that is not positive.
func (c Config) Validate() error {
	for name, v := range map[string]int{
		"events": c.Events, "messages": c.Messages, "sessions": c.Sessions, "listed": c.Listed, "streams": c.Streams,
	} {
		if v < 0 {
			return fmt.Errorf("%s: must not be negative", name)
		}
	}
	return nil
}

// History is the past that outlives the process. Session ids are those of chat.Address.Conversation.
type History interface {
	// Sessions returns the stored web sessions in any order.
	Sessions(ctx context.Context) ([]Session, error)
	// Transcript returns the last messages of a session, at most limit, the oldest first; an
	// unknown session has none. Below them, and beyond the limit, stand the own messages that are
	// stored and not dealt with yet: their answers are still to come.
	Transcript(ctx context.Context, session string, limit int) ([]Entry, error)
	// Waits reports whether an own message is stored and not dealt with yet; id is its chat.Inbound.ID.
	Waits(ctx context.Context, session, id string) (bool, error)
}

// Entry is one message of a stored transcript. Text is Markdown, or plain text when Own is set. A
// Class of 0 means chat.Assistant.
type Entry struct {
	ID    string // of an own message that is not dealt with yet, its chat.Inbound.ID; else ""
	Own   bool
	Class chat.Class
	Text  string
	At    time.Time
}

// Deps are what the adapter works with.
type Deps struct {
	History History      // nil: nothing outlives the process
	Log     *slog.Logger // nil: silent
}

// Adapter is the web channel. It implements channels.Adapter, Editor, Typer and CommandRegistrar.
type Adapter struct {
	cfg   Config
	log   *slog.Logger
	board *board

	mu       sync.Mutex
	sink     channels.Sink // nil while Run is not running
	commands []channels.CommandInfo
	streams  int
	done     chan struct{} // closed when Run ends: streams end with it
	started  bool
}

var (
	_ channels.Adapter          = (*Adapter)(nil)
	_ channels.Editor           = (*Adapter)(nil)
	_ channels.Typer            = (*Adapter)(nil)
	_ channels.CommandRegistrar = (*Adapter)(nil)
)

// New returns an adapter. It receives nothing before Run.
func New(cfg Config, deps Deps) (*Adapter, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("web channel: %w", err)
	}
	cfg = cfg.WithDefaults()
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	epoch := strings.ToLower(rand.Text()[:8])
	return &Adapter{cfg: cfg, log: deps.Log, board: newBoard(cfg, deps.History, epoch), done: make(chan struct{})}, nil
}

const (
	editInterval = 120 * time.Millisecond
	typingTTL    = 8 * time.Second
)

// Traits implements channels.Adapter. The page takes Markdown of any length.
func (a *Adapter) Traits() channels.Traits {
	return channels.Traits{
		Channel: Channel, Markup: channels.Markdown, Edits: true, EditInterval: editInterval, Idempotent: true,
	}
}

// ErrRunTwice is returned by a second Run of one adapter.
var ErrRunTwice = errors.New("the web channel runs already")

// Run implements channels.Adapter: it takes messages from the page until ctx ends.
func (a *Adapter) Run(ctx context.Context, sink channels.Sink) error {
	a.mu.Lock()
	if a.started {
		a.mu.Unlock()
		return ErrRunTwice
	}
	a.started, a.sink = true, sink
	a.mu.Unlock()
	sink.Status(channels.Status{Channel: Channel, State: channels.Connected, Since: time.Now()})
	<-ctx.Done()
	a.mu.Lock()
	a.sink = nil
	close(a.done)
	a.mu.Unlock()
	sink.Status(channels.Status{Channel: Channel, State: channels.Stopped, Since: time.Now()})
	return nil
}

// Send implements channels.Adapter. Nobody needs to look at the page for it to succeed. Media are
// not shown.
func (a *Adapter) Send(ctx context.Context, p channels.Piece) (channels.Receipt, error) {
	if err := a.check(ctx, p.To); err != nil {
		return channels.Receipt{}, err
	}
	if p.Text == "" {
		return channels.Receipt{}, &channels.SendError{Verdict: channels.Refused, Code: "empty", Err: errNoText}
	}
	id := a.board.say(p.To.Conversation, p.Key, shown(p))
	return channels.Receipt{IDs: []string{id}}, nil
}

var (
	errNoText    = errors.New("nothing to show: the page takes text only")
	errNoSession = errors.New("not a web session")
	errMissing   = errors.New("no such message")
)

func shown(p channels.Piece) Message {
	return Message{
		Session: p.To.Conversation, Class: p.Class, Text: p.Text, HTML: Render(p.Text), Buttons: grouped(p.Buttons), At: now(),
	}
}

// grouped brings the buttons of each group together, in the order in which the groups begin. The
// page puts the group's name above them and marks the chosen one.
func grouped(list []chat.Button) []chat.Button {
	rank := map[string]int{}
	for _, b := range list {
		if _, known := rank[b.Group]; !known {
			rank[b.Group] = len(rank)
		}
	}
	out := slices.Clone(list)
	slices.SortStableFunc(out, func(x, y chat.Button) int { return rank[x.Group] - rank[y.Group] })
	return out
}

func now() time.Time { return time.Now().Truncate(time.Millisecond) }

func (a *Adapter) check(ctx context.Context, to chat.Address) error {
	if to.Channel != Channel || !validSession(to.Conversation) {
		return &channels.SendError{Verdict: channels.Gone, Code: "no_session", Err: errNoSession}
	}
	if err := ctx.Err(); err != nil {
		return &channels.SendError{Verdict: channels.Retry, Code: "cancelled", Err: err}
	}
	if err := a.board.open(ctx, to.Conversation); err != nil {
		return &channels.SendError{Verdict: channels.Retry, Code: "history", Err: err}
	}
	return nil
}

// Edit implements channels.Editor: a preview grows by it.
func (a *Adapter) Edit(ctx context.Context, to chat.Address, id string, p channels.Piece) error {
	if err := a.check(ctx, to); err != nil {
		return err
	}
	p.To = to
	if !a.board.change(to.Conversation, id, shown(p)) {
		return &channels.SendError{Verdict: channels.Missing, Code: "missing", Err: errMissing}
	}
	return nil
}

// Delete implements channels.Editor.
func (a *Adapter) Delete(ctx context.Context, to chat.Address, id string) error {
	if err := a.check(ctx, to); err != nil {
		return err
	}
	if !a.board.remove(to.Conversation, id) {
		return &channels.SendError{Verdict: channels.Missing, Code: "missing", Err: errMissing}
	}
	return nil
}

// Typing implements channels.Typer.
func (a *Adapter) Typing(ctx context.Context, to chat.Address) error {
	if err := a.check(ctx, to); err != nil {
		return err
	}
	a.board.typing(to.Conversation)
	return nil
}

// TypingTTL implements channels.Typer.
func (a *Adapter) TypingTTL() time.Duration { return typingTTL }

// Finished tells the page that the message with the given id (chat.Inbound.ID) has been dealt
// with, whether or not there was an answer: the signs of work disappear. The application calls it
// when the pipeline is done with an inbound message; without it they fade. How many replies there were
// does not matter here.
func (a *Adapter) Finished(to chat.Address, messageID string, _ int) {
	a.board.finish(to.Conversation, messageID)
}

// RegisterCommands implements channels.CommandRegistrar: the page completes these.
func (a *Adapter) RegisterCommands(_ context.Context, cmds []channels.CommandInfo) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.commands = append([]channels.CommandInfo(nil), cmds...)
	return nil
}

const maxSessionID = 64

// validSession reports whether id can be a session: lower-case letters, digits and dashes.
func validSession(id string) bool {
	if id == "" || len(id) > maxSessionID {
		return false
	}
	return strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
