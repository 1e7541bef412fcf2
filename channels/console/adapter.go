package console

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"understudy/channels"
	"understudy/chat"
)

// Channel is the channel's name in addresses, configuration and logs.
const Channel = "console"

// AccountWhole is the account whose answers arrive whole, for pipes. The default account, "",
// streams them.
const AccountWhole = "whole"

// Owner is the sender id of whoever sits at the terminal: the machine's owner.
const Owner = "owner"

// Adapter is one account of the console channel. It implements channels.Adapter, Editor, Typer and
// CommandRegistrar. What is sent while no terminal is attached is only in the transcript.
type Adapter struct {
	account string

	mu       sync.Mutex
	sink     channels.Sink // nil while Run is not running
	ended    bool
	nextID   uint64
	epoch    string          // makes ids of this process differ from those of earlier ones
	there    map[string]bool // ids of the newest messages that were not deleted
	order    []string        // of there, oldest first; deleted ones included
	commands []channels.CommandInfo
	talks    map[string]*talk // by conversation; only those with a terminal or open messages
}

// talk is one conversation as far as terminals are concerned.
type talk struct {
	links   map[*local]bool
	waiting map[string]bool // messages said here that are not finished
	open    []open          // messages whose Done is due, in the order of their Finished
	sent    int             // replies sent while a message was waiting or open
	owed    int             // replies that the finished messages have announced

	lastID, lastKey string // of the newest answer
}

type open struct {
	id   string
	owed int // Done is due once so many replies have been sent
}

var (
	_ channels.Adapter          = (*Adapter)(nil)
	_ channels.Editor           = (*Adapter)(nil)
	_ channels.Typer            = (*Adapter)(nil)
	_ channels.CommandRegistrar = (*Adapter)(nil)
)

// New returns the adapter of an account: "" or AccountWhole.
func New(account string) (*Adapter, error) {
	if account != "" && account != AccountWhole {
		return nil, fmt.Errorf("console channel: unknown account %q", account)
	}
	return &Adapter{
		account: account, epoch: strings.ToLower(rand.Text()[:8]), there: map[string]bool{}, talks: map[string]*talk{},
	}, nil
}

const (
	editInterval = 100 * time.Millisecond
	typingTTL    = 8 * time.Second
)

// Traits implements channels.Adapter.
func (a *Adapter) Traits() channels.Traits {
	t := channels.Traits{Channel: Channel, Account: a.account, Markup: channels.Markdown}
	if a.account == "" {
		t.Edits, t.EditInterval = true, editInterval
	}
	return t
}

// ErrRunTwice is returned by a second Run of one adapter.
var ErrRunTwice = errors.New("the console channel runs already")

// Run implements channels.Adapter: it takes messages from terminals until ctx ends. Then every link
// ends with ErrGone.
func (a *Adapter) Run(ctx context.Context, sink channels.Sink) error {
	a.mu.Lock()
	if a.sink != nil || a.ended {
		a.mu.Unlock()
		return ErrRunTwice
	}
	a.sink = sink
	a.mu.Unlock()
	sink.Status(channels.Status{Channel: Channel, Account: a.account, State: channels.Connected, Since: time.Now()})
	<-ctx.Done()
	a.mu.Lock()
	a.sink, a.ended = nil, true
	for _, t := range a.talks {
		for l := range t.links {
			l.end(ErrGone)
		}
	}
	clear(a.talks)
	a.mu.Unlock()
	sink.Status(channels.Status{Channel: Channel, Account: a.account, State: channels.Stopped, Since: time.Now()})
	return nil
}

// Attach connects a terminal of this process. Several may be attached to one conversation; all see
// the same.
func (a *Adapter) Attach(conversation string) (Link, error) {
	return a.attach(conversation)
}

func (a *Adapter) attach(conversation string) (*local, error) {
	if !validName(conversation) {
		return nil, fmt.Errorf("%q is not a conversation: use letters, digits, '-' and '_'", conversation)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return nil, ErrGone
	}
	l := &local{adapter: a, conversation: conversation, events: make(chan Event, backlog)}
	t := a.talks[conversation]
	if t == nil {
		t = &talk{links: map[*local]bool{}, waiting: map[string]bool{}}
		a.talks[conversation] = t
	}
	t.links[l] = true
	return l, nil
}

func validName(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	return s != "" && len(s) <= 64 && strings.Trim(s, letters) == ""
}

// tell passes e to every terminal of a conversation. One that has let its backlog fill up is cut
// off, so that it cannot hold up the bot. The lock is held.
func (a *Adapter) tell(conversation string, e Event) {
	t := a.talks[conversation]
	if t == nil {
		return
	}
	for l := range t.links {
		select {
		case l.events <- e:
		default:
			l.end(ErrTooSlow)
			a.detach(l)
		}
	}
}

// detach forgets a link; the lock is held.
func (a *Adapter) detach(l *local) {
	t := a.talks[l.conversation]
	if t == nil {
		return
	}
	delete(t.links, l)
	if len(t.links) == 0 {
		delete(a.talks, l.conversation)
	}
}

// Send implements channels.Adapter. It succeeds without a terminal, too. Media are not shown.
func (a *Adapter) Send(ctx context.Context, p channels.Piece) (channels.Receipt, error) {
	if err := a.check(ctx, p.To); err != nil {
		return channels.Receipt{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.count(p)
	if p.Text == "" {
		return channels.Receipt{}, &channels.SendError{Verdict: channels.Refused, Code: "empty", Err: errNoText}
	}
	id := a.newID()
	if t := a.talks[p.To.Conversation]; t != nil && p.Class == chat.Assistant {
		t.lastID, t.lastKey = id, p.Key
	}
	a.tell(p.To.Conversation, Event{Type: Sent, ID: id, Class: p.Class, Text: p.Text, Choices: p.Buttons})
	return channels.Receipt{IDs: []string{id}}, nil
}

// mostThere bounds how many messages can still be edited.
const mostThere = 1024

// newID numbers a message. The lock is held.
func (a *Adapter) newID() string {
	a.nextID++
	id := fmt.Sprintf("c%d-%s", a.nextID, a.epoch)
	if len(a.order) == mostThere {
		delete(a.there, a.order[0])
		a.order = a.order[1:]
	}
	a.there[id] = true
	a.order = append(a.order, id)
	return id
}

// count notes a reply, shown or refused: nobody shall wait for it any longer. The lock is held.
func (a *Adapter) count(p channels.Piece) {
	t := a.talks[p.To.Conversation]
	if t == nil || !isReply(p.Class) || len(t.waiting)+len(t.open) == 0 {
		return
	}
	t.sent++
	a.settle(p.To.Conversation, t)
}

// isReply tells the classes that a message of the terminal can be answered with.
func isReply(c chat.Class) bool { return c.TakesSlot() || c == chat.Command }

var (
	errNoText    = errors.New("nothing to show: a terminal takes text only")
	errNoAccount = errors.New("not a conversation of this account")
	errMissing   = errors.New("no such message")
)

func (a *Adapter) check(ctx context.Context, to chat.Address) error {
	if err := ctx.Err(); err != nil {
		return &channels.SendError{Verdict: channels.Retry, Code: "cancelled", Err: err}
	}
	if to.Channel != Channel || to.Account != a.account {
		return &channels.SendError{Verdict: channels.Gone, Code: "no_conversation", Err: errNoAccount}
	}
	return nil
}

// Edit implements channels.Editor. All versions of a preview share one key, so an edit with another
// key makes the answer of it.
func (a *Adapter) Edit(ctx context.Context, to chat.Address, id string, p channels.Piece) error {
	if err := a.check(ctx, to); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.there[id] {
		return &channels.SendError{Verdict: channels.Missing, Code: "missing", Err: errMissing}
	}
	e := Event{Type: Changed, ID: id, Class: p.Class, Text: p.Text, Choices: p.Buttons}
	if t := a.talks[to.Conversation]; t != nil && t.lastID == id {
		e.Final = p.Key != t.lastKey
	}
	a.tell(to.Conversation, e)
	return nil
}

// Delete implements channels.Editor. Only previews are taken back: the reply is still to come.
func (a *Adapter) Delete(ctx context.Context, to chat.Address, id string) error {
	if err := a.check(ctx, to); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.there[id] {
		return &channels.SendError{Verdict: channels.Missing, Code: "missing", Err: errMissing}
	}
	delete(a.there, id)
	if t := a.talks[to.Conversation]; t != nil && t.lastID == id {
		t.lastID, t.lastKey = "", ""
		t.sent = max(0, t.sent-1)
	}
	a.tell(to.Conversation, Event{Type: Deleted, ID: id})
	return nil
}

// Typing implements channels.Typer.
func (a *Adapter) Typing(ctx context.Context, to chat.Address) error {
	if err := a.check(ctx, to); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tell(to.Conversation, Event{Type: Typing})
	return nil
}

// TypingTTL implements channels.Typer.
func (a *Adapter) TypingTTL() time.Duration { return typingTTL }

// Finished tells the terminals that the bot is done with the message with the given id
// (chat.Inbound.ID), and has replied to it with so many messages of class Assistant, Error or
// Command; 0 for a silent turn. The replies may still be on their way: Done follows the last of
// them. The application must call it for every message, or a pipe waits for ever.
func (a *Adapter) Finished(to chat.Address, messageID string, replies int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.talks[to.Conversation]
	if t == nil || to.Channel != Channel || to.Account != a.account || !t.waiting[messageID] {
		return // said before any of these terminals was attached
	}
	delete(t.waiting, messageID)
	t.owed += replies
	t.open = append(t.open, open{messageID, t.owed})
	a.settle(to.Conversation, t)
}

// settle sends every Done that is due. The lock is held.
func (a *Adapter) settle(conversation string, t *talk) {
	for len(t.open) > 0 && t.sent >= t.open[0].owed {
		id := t.open[0].id
		t.open = t.open[1:]
		a.tell(conversation, Event{Type: Done, ID: id})
	}
}

// RegisterCommands implements channels.CommandRegistrar: terminals complete these.
func (a *Adapter) RegisterCommands(_ context.Context, cmds []channels.CommandInfo) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.commands = append([]channels.CommandInfo(nil), cmds...)
	return nil
}

// accept passes a message of a terminal on.
func (a *Adapter) accept(ctx context.Context, conversation, id, text string) error {
	if len(text) > MaxText {
		return ErrTooLong
	}
	a.mu.Lock()
	sink := a.sink
	if t := a.talks[conversation]; t != nil {
		if len(t.waiting)+len(t.open) == 0 {
			// A preview that was taken back counted as the reply of a command that stopped it.
			t.sent, t.owed, t.lastID, t.lastKey = 0, 0, "", ""
		}
		t.waiting[id] = true
	}
	a.mu.Unlock()
	if sink == nil {
		a.forget(conversation, id)
		return ErrNotRunning
	}
	err := sink.Accept(ctx, chat.Inbound{
		ID: id, EventKey: Channel + ":" + a.account + ":" + conversation + ":" + id,
		Address: chat.Address{Channel: Channel, Account: a.account, Conversation: conversation, Kind: chat.Direct},
		Sender:  chat.Sender{ID: Owner, Name: "Owner", Local: true},
		Text:    text, Mentioned: true, At: time.Now().Truncate(time.Millisecond),
	})
	if err != nil {
		a.forget(conversation, id)
	}
	return err
}

// forget stops waiting for a message that was not stored.
func (a *Adapter) forget(conversation, id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t := a.talks[conversation]; t != nil {
		delete(t.waiting, id)
	}
}
