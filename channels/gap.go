package channels

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"understudy/chat"
)

// Bounds of catching up after a gap in the connection (spec/chat.md §2.1, §2.7, §2.8).
const (
	// LeastGap is the shortest gap that is looked into.
	LeastGap = time.Minute
	// RecentFor is how long ago a conversation may have been active to be looked into.
	RecentFor = 7 * 24 * time.Hour
	// MostConversations is how many conversations are looked into at once, the latest first. An adapter
	// goes on with the others at the pace that its platform allows.
	MostConversations = 25
	// MostMarks is how many conversations are looked into at all, the latest first.
	MostMarks = 1000
)

// Mark is how far a conversation has been seen.
type Mark struct {
	Address chat.Address
	Space   string
	LastID  string // the newest message that was accepted
	At      time.Time
}

// Seen tells what an account's conversations are and how far each has been seen. What is fetched
// after a mark goes to Sink.Accept like any event, oldest first, with CatchUp set. What is too old to be
// answered may be among it; Accept decides.
type Seen interface {
	// Marks returns the marks of conversations in which the bot was active since a time, the latest
	// first, at most so many.
	Marks(ctx context.Context, since time.Time, most int) ([]Mark, error)
}

// CatchUp bounds what is answered after a gap (`channels.<c>.catchUp`, else `messages.catchUp`).
type CatchUp struct {
	MaxAge      time.Duration `yaml:"maxAge"`      // default 1h
	MaxMessages int           `yaml:"maxMessages"` // per conversation; default 50
}

// Look is what came of looking for what was said during a gap. It is for operators and holds no secret.
type Look struct {
	At     time.Time `json:"at"`             // when it ended
	Looked int       `json:"looked"`         // conversations whose history was read
	Found  int       `json:"found"`          // messages that were passed on
	Left   int       `json:"left,omitempty"` // conversations that were not looked into
	Why    string    `json:"why,omitempty"`  // why some were not
}

// Looker is an adapter that looks for what was said during gaps.
type Looker interface {
	// LastLook returns what came of the last look that has ended; false = none has yet.
	LastLook() (Look, bool)
}

// Looks keeps what came of an adapter's last look. The zero value is ready; it is safe for concurrent use.
type Looks struct{ last atomic.Pointer[Look] }

// Ended takes in and logs what came of a look that has ended now.
func (l *Looks) Ended(sum Look, log *slog.Logger) {
	sum.At = time.Now()
	l.last.Store(&sum)
	if sum.Left > 0 {
		log.Info("not everything was caught up", "conversations", sum.Looked, "messages", sum.Found, "left", sum.Left, "error", sum.Why)
		return
	}
	log.Debug("caught up", "conversations", sum.Looked, "messages", sum.Found)
}

// Last returns the last one; false = none has ended yet.
func (l *Looks) Last() (Look, bool) {
	if sum := l.last.Load(); sum != nil {
		return *sum, true
	}
	return Look{}, false
}
