package channels

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"
)

// leastSkew is the least difference between two clocks that counts. The times that answers bring are whole
// seconds and some seconds old.
const leastSkew = time.Minute

// Skew is by how much the clock of this machine is ahead of a platform's. How old a message is can only be
// told by one of the two: its date is the platform's, and our clock may be hours off until it is set. The
// zero value takes them for the same. It is safe for concurrent use.
type Skew struct {
	ahead atomic.Int64 // nanoseconds
}

// Learn takes in an answer of the platform that has just come: its header tells the time there (RFC 9110
// §6.6.1). Other answers, such as a proxy's page, must not be given. What changes is logged.
func (s *Skew) Learn(h http.Header, log *slog.Logger) {
	there, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return
	}
	ahead := time.Since(there)
	if (ahead - s.Ahead()).Abs() < leastSkew {
		return
	}
	if ahead.Abs() < leastSkew {
		ahead = 0
	}
	s.ahead.Store(int64(ahead))
	if ahead == 0 {
		log.Info("the clock agrees with the platform's again")
		return
	}
	log.Warn("the clock of this machine is not the platform's; ages of messages are taken by the platform's", "ahead", ahead.Round(time.Second))
}

// Ahead is how far our clock is ahead, negative if it is behind; exact to a minute, and 0 for less than that.
func (s *Skew) Ahead() time.Duration { return time.Duration(s.ahead.Load()) }

// There returns what the platform's clock shows when ours shows t.
func (s *Skew) There(t time.Time) time.Time { return t.Add(-s.Ahead()) }

// Here returns what our clock showed at a time of the platform.
func (s *Skew) Here(t time.Time) time.Time { return t.Add(s.Ahead()) }
