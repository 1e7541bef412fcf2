package console

import (
	"context"
	"errors"

	"understudy/channels"
	"understudy/chat"
)

// EventType is what happened at the bot's end of a link.
type EventType string

// The types of events.
const (
	Sent    EventType = "sent"    // a message of the bot
	Changed EventType = "changed" // a message has new text: an answer grows, or starts over
	Deleted EventType = "deleted" // a message was taken back
	Typing  EventType = "typing"  // the bot works on an answer
	// Done ends the work on the message of the terminal with the event's ID: what belongs to it has
	// been sent before.
	Done EventType = "done"
)

// Event is one thing that happened at the bot's end.
type Event struct {
	Type  EventType  `json:"type"`
	ID    string     `json:"id,omitempty"`
	Class chat.Class `json:"class,omitempty"`
	Text  string     `json:"text,omitempty"` // Markdown
	// Final marks the last Changed of an answer: it does not grow any more.
	Final bool `json:"final,omitempty"`
	// Choices are commands offered below the text.
	Choices []chat.Button `json:"choices,omitempty"`
}

// Link is a terminal's connection to the bot, for one conversation.
type Link interface {
	// Say passes on one message; id is chosen by the caller and returns in its Done event. It
	// returns once the message is safely stored.
	Say(ctx context.Context, id, text string) error
	// Events delivers what happens. It is closed when the link ends; Err then says why.
	Events() <-chan Event
	// Err is nil while the link is open, and after Close.
	Err() error
	// Commands returns the slash commands to complete.
	Commands(ctx context.Context) ([]channels.CommandInfo, error)
	// Close ends the link and frees what it holds.
	Close() error
}

// The reasons for which a link ends by itself, and those for which Say fails.
var (
	ErrGone       = errors.New("the bot has stopped")
	ErrTooSlow    = errors.New("the terminal does not keep up with the bot")
	ErrNotRunning = errors.New("the bot is starting or stopping")
	ErrTooLong    = errors.New("the message is too long: at most 64 KB")
)

// MaxText is the longest message, in bytes (spec/chat.md §8 S10).
const MaxText = 64 << 10
