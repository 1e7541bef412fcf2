package channels

import (
	"context"
	"time"

	"understudy/chat"
)

// Bounds of catching up after a gap in the connection (spec/chat.md §2.1, §2.7, §2.8).
const (
	// LeastGap is the shortest gap that is looked into.
	LeastGap = time.Minute
	// RecentFor is how long ago a conversation may have been active to be looked into.
	RecentFor = 7 * 24 * time.Hour
	// MostConversations is how many conversations are looked into, the latest first.
	MostConversations = 25
)

// Mark is how far a conversation has been seen.
type Mark struct {
	Address chat.Address
	Space   string
	LastID  string // the newest message that was accepted
	At      time.Time
}

// Seen tells what an account's conversations are and how far each has been seen. What is fetched
// after a mark goes to Sink.Accept like any event, oldest first, with CatchUp set.
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
