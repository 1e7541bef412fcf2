package channelstest

import (
	"testing"
	"time"

	"understudy/channels"
	"understudy/chat"
)

// Said is a message as people on the platform see it.
type Said struct {
	ID, Text, ReplyTo string
	ByBot, Silent     bool
}

// Platform is the emulator's side, driven by the tests. It may implement any of the abilities below;
// a behaviour whose ability is missing is skipped, so they can be added one by one:
//
//	Breaker     the next send fails in a given way
//	Editable    people change what they wrote              Deletable   … and take it back
//	Reactable   reactions of the bot can be seen           Sharer      files in both directions
//	Chooser     menus: options, pages, what pressers hear  Commander   native commands and their replies
//	Cutter      the connection breaks                      Revoker     the token is refused from now on
//	Duplicator  a message is delivered twice               Gapper      messages are missed for good
//
// Methods return at once. What they cause reaches the adapter by itself, in the order of the calls.
type Platform interface {
	// Say lets a person write; replyTo is a message id or "". It returns the message id.
	Say(person string, to chat.Address, text, replyTo string) string
	// Name is how people write the bot's name so that it is a mention.
	Name() string
	// Transcript returns what everybody can read at a destination, oldest first, without deleted
	// messages.
	Transcript(to chat.Address) []Said
	// Press presses the button, or chooses the option, with a label below a message. It does nothing
	// when there is none.
	Press(person string, to chat.Address, id, label string)
	// Close ends the emulator.
	Close()
}

// Breakage is a way the next send fails.
type Breakage uint8

// The ways.
const (
	CutAfterSend Breakage = iota + 1 // the platform did it, then the connection broke
	RateLimited                      // with RetryAfter as the stated wait
	ServerError                      // the platform is ill for a moment
	Forbidden                        // the bot was thrown out
)

// RetryAfter is the wait a RateLimited platform states.
const RetryAfter = 7 * time.Second

// Breaker makes the next send of a message fail, once.
type Breaker interface{ Break(how Breakage) }

// Editable lets people change what they wrote; the bot is told.
type Editable interface {
	Edit(person string, to chat.Address, id, text string)
}

// Deletable lets people take back what they wrote; the bot is told.
type Deletable interface {
	Delete(person string, to chat.Address, id string)
}

// Reactable shows the reactions of the bot to a message, in any notation.
type Reactable interface {
	Reactions(to chat.Address, id string) []string
}

// Sharer moves files.
type Sharer interface {
	// Share lets a person send a text and a file, of which Name, MediaType and Data are set. It
	// returns the message id.
	Share(person string, to chat.Address, text string, file chat.Attachment) string
	// Files returns the Name and Data of every file the bot sent to a destination, oldest first.
	Files(to chat.Address) []chat.Attachment
}

// Chooser shows menus.
type Chooser interface {
	// Options returns the labels that can be pressed or chosen below a message at the moment, in
	// order, the ones that turn pages included.
	Options(to chat.Address, id string) []string
	// Next is the label that leads to the next page.
	Next() string
	// Told returns what a person was told privately about presses (toasts, messages only they see),
	// oldest first.
	Told(person string) []string
}

// Commander runs native commands. Before the suite calls it, the adapter has registered the commands
// that Commands returns.
type Commander interface {
	// Run lets a person run a native command of the bot with arguments (one option or free text) and
	// returns a name for this run.
	Run(person string, to chat.Address, name, args string) string
	// Private returns what only that person can read at a destination, oldest first: replies to runs
	// and refusals.
	Private(person string, to chat.Address) []string
	// Expire ends the time in which the platform takes replies to a run.
	Expire(run string)
}

// Cutter breaks the connection on which the adapter receives, as a network does: without a farewell.
// What people say before the adapter is back reaches it as the platform's own rules have it.
type Cutter interface{ Cut() }

// Duplicator delivers a message once more, as platforms do when an acknowledgement is lost.
type Duplicator interface {
	Duplicate(to chat.Address, id string)
}

// Gapper keeps events from the adapter: between Away and Back it has no connection and cannot get
// one, and the platform delivers nothing of that time later. Only its history knows of it.
type Gapper interface {
	Away()
	Back()
}

// Revoker takes the adapter's credential away while it runs: connections end and every call fails.
type Revoker interface{ Revoke() }

// Subject is an adapter with its platform. The addresses exist on the platform; those that the
// platform does not have are left zero.
type Subject struct {
	Adapter  channels.Adapter
	Platform Platform
	Close    func() // frees the adapter's connections after Run
	Person   string
	Local    bool // the transport proves that Person is the owner (chat.Sender.Local)
	Direct   chat.Address
	Group    chat.Address // of several people
	Thread   chat.Address // a thread or topic in a group

	// Other is a second person in Group, "" = nobody.
	Other string
	// Seen are the marks the adapter was made with (its Deps.Seen); the suite keeps them. nil = the
	// adapter catches up with nothing.
	Seen *Marks
	// Second starts another account of the adapter, with its own name and credential, on a platform
	// that uses the same ids for people, conversations and messages. nil = there is only one account.
	Second func(t *testing.T) *Subject

	// The running adapter.
	stop    func()
	done    chan struct{} // closed when Run has returned err
	err     error
	revoked bool // err is wanted
}
