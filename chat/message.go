package chat

import (
	"slices"
	"strings"
	"time"
)

// Inbound is one message as the pipeline sees it, after the adapter normalised it.
type Inbound struct {
	// ID is the platform's message id, used for replies to it.
	ID string `json:"id"`
	// EventKey identifies the delivery for dedupe, unique over all channels (spec/chat.md §1.6);
	// AltKeys are further keys of the same message.
	EventKey string   `json:"eventKey"`
	AltKeys  []string `json:"altKeys,omitempty"`

	Address     Address      `json:"address"`
	Sender      Sender       `json:"sender"`
	Text        string       `json:"text"` // without the leading mention of the bot
	Attachments []Attachment `json:"attachments,omitempty"`
	ReplyTo     string       `json:"replyTo,omitempty"` // id of the message it answers
	Quote       string       `json:"quote,omitempty"`   // text of that message: untrusted
	// QuoteFrom wrote Quote; zero = unknown.
	QuoteFrom Sender `json:"quoteFrom,omitzero"`
	Mentioned bool   `json:"mentioned,omitempty"`
	// At is when it was written, by the clock of this machine also where that differs from the platform's.
	At time.Time `json:"at"`
	// Edited marks a new version of a message that was delivered before, Deleted its removal.
	Edited  bool `json:"edited,omitempty"`
	Deleted bool `json:"deleted,omitempty"`

	// Space is the server or workspace the conversation belongs to (Discord guild, Slack team), for
	// access rules; "" = none. Roles are the sender's roles there, by id.
	Space string   `json:"space,omitempty"`
	Roles []string `json:"roles,omitempty"`
	// MentionsOthers tells that the message names somebody, and not the bot.
	MentionsOthers bool `json:"mentionsOthers,omitempty"`
	// Album groups messages that people sent as one (Telegram's media groups); "" = alone.
	Album string `json:"album,omitempty"`
	// Via is the handle of a waiting interaction (native command, pressed button) through which
	// the platform wants the reply; "" = an ordinary message. Only the adapter knows what it means;
	// it dies with the process or after the platform's time, then the reply is an ordinary message.
	Via string `json:"via,omitempty"`
	// Title is what people call the group or channel, without "#": untrusted; "" = unknown.
	Title string `json:"title,omitempty"`
	// Batched tells that several messages were merged into this one.
	Batched bool `json:"batched,omitempty"`
	// CatchUp marks a message that was found after a gap in the connection, or that its platform kept meanwhile.
	CatchUp bool `json:"catchUp,omitempty"`
}

// Attachment is a file in or out. Inbound files carry a Ref that only the adapter can fetch, so
// that nothing is downloaded before its sender is authorised; Data is set once it is.
type Attachment struct {
	Name      string `json:"name,omitempty"`
	MediaType string `json:"mediaType,omitempty"`
	Size      int64  `json:"size,omitempty"` // bytes; 0 = unknown
	Ref       string `json:"ref,omitempty"`
	Data      []byte `json:"data,omitempty"`
	Voice     bool   `json:"voice,omitempty"`
}

// AsVoice returns files with the sound among them marked as voice notes. What a channel does not play as
// one stays a file there.
func AsVoice(files []Attachment) []Attachment {
	files = slices.Clone(files)
	for i, f := range files {
		if strings.HasPrefix(strings.ToLower(strings.TrimSpace(f.MediaType)), "audio/") {
			files[i].Voice = true
		}
	}
	return files
}

// Outbound is one thing to say.
type Outbound struct {
	To       Address      `json:"to"`
	Class    Class        `json:"class"`
	Markdown string       `json:"markdown"`
	Media    []Attachment `json:"media,omitempty"`
	// ReplyTo is the inbound message this belongs to; whether a reference is attached is the
	// slot's decision, not the sender's.
	ReplyTo string `json:"replyTo,omitempty"`
	TurnID  string `json:"turnId,omitempty"`
	// Seq orders the parts of one turn and, with TurnID, makes the outbox row unique.
	Seq int `json:"seq,omitempty"`
	// Buttons are offered below the text where the channel has them; each stands for a command.
	// For is the only person who may press them ("" = whoever may use the command).
	Buttons []Button `json:"buttons,omitempty"`
	For     string   `json:"for,omitempty"`
	// Replaces is the id of an earlier message of the bot's at the same place, whose place this takes,
	// buttons included. Where it cannot be edited (any more), this is a message of its own and that one
	// goes, if it can. It counts for what is sent outside a turn. "" = nothing is replaced.
	Replaces string `json:"replaces,omitempty"`
	// Via is Inbound.Via of the message this replies to. A reply of class Command that has it is
	// seen by the person who asked alone, where the channel can do that.
	Via string `json:"via,omitempty"`
	// Speech is how this is spoken, decided by package reply; nil = not at all. It counts for classes
	// that are Speakable only.
	Speech *Speech `json:"speech,omitempty"`
}

// Speech is what is said aloud beside a text (spec/chat.md §4.2).
type Speech struct {
	Text     string            `json:"text"`               // plain words
	Provider string            `json:"provider,omitempty"` // "" = as configured
	Options  map[string]string `json:"options,omitempty"`  // voice, speed, …, of a directive
	Agent    string            `json:"agent,omitempty"`    // whose settings count; "" = the default agent's
}

// Button is a press-to-send command, for example {"openai/gpt-5.5", "/model openai/gpt-5.5"}. Many
// buttons are shown as pages or as a selection; those of one Group stand together under its name.
type Button struct {
	Label   string `json:"label"`
	Command string `json:"command"`
	Group   string `json:"group,omitempty"`
	// Chosen marks what is selected now.
	Chosen bool `json:"chosen,omitempty"`
}

// Class is what kind of thing an Outbound is. Whether it may be spoken, takes the first-reply
// slot, is durable or enters the transcript is a function of the class: there is no flag that a
// caller could get wrong (spec/chat.md §2.3).
type Class uint8

// The classes.
const (
	Assistant Class = iota + 1 // an answer of the model
	Heartbeat                  // an alert of a heartbeat turn
	Cron                       // the result of a scheduled task
	Notice                     // operations: fallback, still trying, compaction
	Command                    // the reply of a slash command
	Error                      // stands where an answer would have stood
	Progress                   // a notice that is worth nothing once its turn is over: still trying
)

var classNames = [...]string{Assistant: "assistant", Heartbeat: "heartbeat", Cron: "cron", Notice: "notice", Command: "command", Error: "error", Progress: "progress"}

// String returns the stable lower-case name used in logs, metrics and the outbox.
func (c Class) String() string {
	if int(c) < len(classNames) && c != 0 {
		return classNames[c]
	}
	return "unknown"
}

// MarshalText writes the name.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads a name; an unknown one becomes 0.
func (c *Class) UnmarshalText(b []byte) error {
	*c = 0
	for i, n := range classNames {
		if n != "" && n == string(b) {
			*c = Class(i)
		}
	}
	return nil
}

// TakesSlot reports whether a thing of this class may own the turn's first-reply slot. Errors do:
// they stand where an answer would (spec/failover.md §11).
func (c Class) TakesSlot() bool { return c == Assistant || c == Error }

// Speakable reports whether it may be turned into audio (spec/chat.md §4.2).
func (c Class) Speakable() bool { return c == Assistant || c == Heartbeat || c == Cron }

// Durable reports whether it must survive a crash in the outbox (spec/chat.md §2.10).
func (c Class) Durable() bool { return c != Notice && c != Progress && c != 0 }

// Remembered reports whether its text is part of the conversation the model sees.
func (c Class) Remembered() bool { return c == Assistant || c == Heartbeat || c == Cron }
