// Package channels is the contract between the bot and a chat platform. An adapter connects,
// normalises what arrives into chat.Inbound, and sends rendered pieces. Everything that is the
// same for all platforms (access, order, pacing, splitting, the reply slot, retries, durability)
// is done above it; an adapter makes one platform call per method call and never retries.
package channels

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"understudy/chat"
)

// Sink takes what an adapter receives. Accept returns nil once the event is safely journalled (or
// recognised as known or refused): only then may the adapter acknowledge it to the platform. An
// error means "not stored": do not acknowledge, deliver it again later. The one exception is a
// *Refusal, which only a message with a Via gets: the event is dealt with, and the adapter tells the
// person who waits for the interaction.
type Sink interface {
	Accept(ctx context.Context, m chat.Inbound) error
	// Status reports a change of the connection, for /status, health and logs.
	Status(s Status)
}

// Refusal tells the person behind an interaction why nothing will happen.
type Refusal struct{ Text string }

// Error implements error.
func (r *Refusal) Error() string { return r.Text }

// State is the state of an account's connection.
type State string

// The states of a connection.
const (
	Connecting State = "connecting"
	Connected  State = "connected"
	Down       State = "reconnecting"
	Stopped    State = "stopped" // permanent: needs the operator
)

// Status describes the connection of one account. Detail is fit for an operator and holds no secret.
type Status struct {
	Channel, Account string
	State            State
	Detail           string
	Since            time.Time
}

// Markup is the dialect a channel speaks; delivery renders Markdown into it.
type Markup uint8

// The dialects.
const (
	Plain         Markup = iota
	Markdown             // passes through (web, console)
	TelegramHTML         // Telegram's HTML parse mode
	SlackMrkdwn          // Slack's mrkdwn
	SlackMarkdown        // Slack's markdown_text
	DiscordMD            // Discord's Markdown
)

// Traits are the constant limits and abilities of a channel (spec/chat.md §2).
type Traits struct {
	Channel, Account string
	Markup           Markup
	// TextLimit is the most one message may hold, in UTF-16 units of the Markdown source; 0 = no
	// limit. VisibleLimit, if set, is what the rendered text may show.
	TextLimit, VisibleLimit int
	LineLimit               int // soft limit of lines per message; 0 = none
	// SpanLimit is how many stretches of one message may have a format of their own; 0 = no limit. The
	// platform shows what is more without it.
	SpanLimit int

	// Edits tells that a sent message can be replaced: previews are possible.
	Edits bool
	// EditInterval is the least time between two edits of a preview.
	EditInterval time.Duration
	// References tells that a message can point at the one it answers without opening a thread.
	References bool
	// OpensThreads tells that answering a top-level message in a room may open a thread (Slack).
	OpensThreads bool
	// Idempotent tells that the platform itself drops a piece sent twice with the same Key.
	Idempotent bool
	// SilentNotices tells that pieces of class Notice can be sent without a sound.
	SilentNotices bool

	// Pace is the allowed rate to one conversation, over all its threads unless ThreadsApart tells that
	// the platform counts each of them by itself; zero values mean unlimited. Global is the account's
	// rate over all conversations, per second.
	Pace         Pace
	ThreadsApart bool
	Global       float64
	// GroupPace and GroupEditInterval are those of conversations of several people, where they
	// differ; zero = the same.
	GroupPace         Pace
	GroupEditInterval time.Duration
	// VoiceCaption tells that the sound of an answer is a voice note that stands before its text, and
	// how much visible text it carries itself, in UTF-16 units. 0 = sound is a file behind the text.
	VoiceCaption int
	// StreamInterval is the least time between two additions to a native stream (Streamer).
	StreamInterval time.Duration
}

// Pace is a token bucket: Burst messages at once, then one every Every.
type Pace struct {
	Every time.Duration
	Burst int
}

// Piece is one rendered message, ready to send.
type Piece struct {
	To      chat.Address
	Class   chat.Class
	Text    string // in the channel's dialect
	Plain   string // the same without markup, for a channel that rejects Text
	Media   []chat.Attachment
	Buttons []chat.Button
	// ReplyTo is the message to reference; "" = none. The slot has already decided.
	ReplyTo string
	Silent  bool
	// Via is the interaction to answer (chat.Inbound.Via), "" = none. For is the id of the person
	// this is meant for: who may press its buttons, and who watches a native stream.
	Via, For string
	// Key is stable over retries of the same piece (at most 25 ASCII characters).
	Key string
}

// Receipt says what the platform made of a piece: the primary message id first.
type Receipt struct {
	IDs []string `json:"ids"`
}

// Adapter is one account on one platform.
type Adapter interface {
	Traits() Traits
	// Run connects, receives and reconnects until ctx ends (then it returns nil) or the account is
	// permanently refused (then it returns why, in words for the operator). Every goroutine it
	// started has ended when it returns.
	Run(ctx context.Context, sink Sink) error
	// Send makes one attempt. Its error is a *SendError.
	Send(ctx context.Context, p Piece) (Receipt, error)
}

// Editor is an adapter that can replace and delete what it sent.
type Editor interface {
	Edit(ctx context.Context, to chat.Address, id string, p Piece) error
	Delete(ctx context.Context, to chat.Address, id string) error
}

// Typer is an adapter that can show that the bot is working. The sign lasts for TypingTTL and is
// repeated by delivery.
type Typer interface {
	Typing(ctx context.Context, to chat.Address) error
	TypingTTL() time.Duration
}

// Quieter is a Typer whose sign can be taken back before its TypingTTL.
type Quieter interface {
	Quiet(ctx context.Context, to chat.Address) error
}

// Recorder is a Typer that can also show that the bot records a voice note, for as long.
type Recorder interface {
	Recording(ctx context.Context, to chat.Address) error
}

// Reactor is an adapter that can put an emoji on a message and take it away. Emoji is a Unicode
// emoji or the platform's own name for one. Both succeed when there is nothing to do.
type Reactor interface {
	React(ctx context.Context, to chat.Address, id, emoji string) error
	Unreact(ctx context.Context, to chat.Address, id, emoji string) error
}

// Streamer is an adapter with messages that grow on the platform's side (Slack). Text is Markdown.
// A stream that was started is always stopped; then its message can be edited like any other.
type Streamer interface {
	// Streams reports whether p.To and p.ReplyTo are a place where the platform streams.
	Streams(p Piece) bool
	// StartStream posts the first text and returns the message's id.
	StartStream(ctx context.Context, p Piece) (id string, err error)
	// AppendStream adds text at the end.
	AppendStream(ctx context.Context, to chat.Address, id, text string) error
	// StopStream ends the growth.
	StopStream(ctx context.Context, to chat.Address, id string) error
}

// Webhook is an adapter that the platform calls over HTTP. The gateway serves it at Path, without
// the page's guards: the handler itself proves who calls, bounds what it reads, and answers only once
// the event is in the journal.
type Webhook interface {
	Path() string // "" = the account does not listen
	ServeHTTP(w http.ResponseWriter, r *http.Request)
}

// Prober is an adapter that can check its access without connecting: for doctor and smoke tests. The
// lines are fit for an operator and hold no secret.
type Prober interface {
	Probe(ctx context.Context) ([]Finding, error)
}

// CommandProber is a CommandRegistrar that can tell whether the platform shows these commands, without
// changing anything.
type CommandProber interface {
	ProbeCommands(ctx context.Context, cmds []CommandInfo) ([]Finding, error)
}

// Finding is one thing a Prober saw. Fix says what to do about it, "" = all is well.
type Finding struct{ What, Fix string }

// ErrTooLarge tells that a file is larger than its limit, or than the platform takes.
var ErrTooLarge = errors.New("file is too large")

// Fetcher is an adapter that can download an attachment of an authorised message, at most limit
// bytes; a larger one is ErrTooLarge.
type Fetcher interface {
	Fetch(ctx context.Context, a chat.Attachment, limit int64) ([]byte, error)
}

// CommandRegistrar is an adapter that can show a menu of commands.
type CommandRegistrar interface {
	RegisterCommands(ctx context.Context, cmds []CommandInfo) error
}

// CommandInfo is what a platform's command menu shows.
type CommandInfo struct {
	Name        string // without the slash
	Description string
	Args        string // usage of the arguments, "" = none
	// Options are the arguments one by one, for platforms with fields; text that a person puts into
	// them is joined by blanks. nil = one free text, if Args is not empty.
	Options []CommandOption
}

// CommandOption is one argument of a command.
type CommandOption struct {
	Name, Description string
	Required          bool
	Choices           []string // all that is allowed; nil = free text
	Complete          bool     // a Completer knows suggestions
}

// Completer suggests what may stand in an option, best first, for a person who has typed text so far.
// It must be quick: people wait for every letter. It is asked for authorised people only.
type Completer func(ctx context.Context, q Completion) []chat.Button

// Completion is the question to a Completer.
type Completion struct {
	Address         chat.Address
	Space           string
	Sender          chat.Sender
	Roles           []string
	Command, Option string
	Text            string
}

// Verdict is what a failed send means for the caller.
type Verdict uint8

// The verdicts.
const (
	Retry   Verdict = iota + 1 // not sent; worth another attempt, after SendError.After
	Unsure                     // perhaps sent: do not repeat unless the channel is Idempotent
	Refused                    // never with this content
	Gone                       // never to this destination
	Missing                    // the message to edit or delete is not there (any more)
	TooLong                    // split smaller, once
	Markups                    // the dialect was rejected: send Piece.Plain, once
	Moved                      // the conversation has a new id: SendError.MovedTo
)

// SendError is the only error type of Send, Edit and Delete. Err is for logs and holds no secret.
type SendError struct {
	Verdict Verdict
	After   time.Duration // least wait before a retry; 0 = the caller's own back-off
	MovedTo string
	Code    string // the platform's error code, for metrics and logs; from a small set
	// Once tells, of an Unsure piece, that the platform would show it twice although the channel is
	// Idempotent: not to be repeated.
	Once bool
	Err  error
}

// Error implements error.
func (e *SendError) Error() string { return fmt.Sprintf("send (%s): %v", e.Code, e.Err) }

// Unwrap returns the cause.
func (e *SendError) Unwrap() error { return e.Err }
