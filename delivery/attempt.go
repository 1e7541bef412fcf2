package delivery

import (
	"context"
	"errors"
	"time"

	"understudy/channels"
	"understudy/chat"
)

// Times of the attempts (spec/chat.md §2.10).
const (
	firstWait  = 400 * time.Millisecond // back-off after the first failure
	longestOwn = 30 * time.Second       // the longest back-off of our own; a platform may ask for more
	roundTries = 3                      // attempts before a longer pause
	roundPause = 30 * time.Second       // the pause, while the platform cannot be reached
	holdFor    = 15 * time.Minute       // how long a durable thing is held for a platform that is away
	longPause  = time.Minute            // a platform that wants a longer pause is told of in the log

	textTimeout  = 45 * time.Second // one call without a file; adapters' own limits are shorter
	mediaTimeout = 6 * time.Minute  // one call with a file
	grace        = 5 * time.Second  // how long a call may go on after the stop
)

// errStopped tells that the Service stops: what was not begun stays as it is.
var errStopped = errors.New("delivery stops")

// errOverdue is the cause of a platform call that took too long.
var errOverdue = errors.New("the platform did not answer in time")

// begun returns the context of one platform call, which outlives ctx by the grace time.
func (s *Service) begun(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	call, cancel := s.clock.WithTimeout(context.WithoutCancel(ctx), limit, errOverdue)
	unhook := context.AfterFunc(ctx, func() {
		t := s.clock.AfterFunc(grace, cancel)
		context.AfterFunc(call, func() { t.Stop() })
	})
	return call, func() {
		unhook()
		cancel()
	}
}

// verdict makes every error of an adapter a *channels.SendError. One that is not says nothing about
// what happened, so it may have been sent.
func verdict(err error) *channels.SendError {
	if err == nil {
		return nil
	}
	var e *channels.SendError
	if errors.As(err, &e) {
		return e
	}
	return &channels.SendError{Verdict: channels.Unsure, Code: "internal", Err: err}
}

// backoff is the wait after the nth failure in a row (n ≥ 1), when the platform asked for asked.
func backoff(n int, asked time.Duration) time.Duration {
	wait := longestOwn
	if n < 8 {
		wait = min(longestOwn, firstWait<<(n-1))
	}
	return max(wait, asked)
}

// patience says how often a request is repeated.
type patience struct {
	tries    int           // at most; 0 = until the time below
	until    time.Time     // no attempt begins later
	most     time.Duration // a platform that wants a longer pause gets no further attempt; 0 = any
	harmless bool          // doing it twice does no harm: an unsure attempt is repeated too
	// parked is told, once, that the platform wants an unusually long pause. Then the request rests
	// until the pause or the patience is over. nil = what would outlast the patience ends at once.
	parked func(wait time.Duration)
}

// insist makes a request until it succeeds, is refused, or patience ends. It returns nil, a
// *channels.SendError, or errStopped.
func (s *Service) insist(ctx context.Context, p patience, once func(context.Context) error) error {
	for n := 1; ; n++ {
		if ctx.Err() != nil {
			return errStopped
		}
		err := once(ctx)
		if err == nil || errors.Is(err, errStopped) {
			return err
		}
		e := verdict(err)
		if e.Verdict != channels.Retry && (e.Verdict != channels.Unsure || !p.harmless || e.Once) {
			return e
		}
		wait := backoff(n, e.After)
		if p.tries == 0 && n%roundTries == 0 {
			wait = max(wait, roundPause)
		}
		left := p.until.Sub(s.clock.Now())
		last := wait > left
		switch {
		case n == p.tries, p.most > 0 && wait > p.most, last && (p.parked == nil || e.After <= left):
			return e
		case p.parked != nil && e.After > longPause:
			p.parked(e.After)
			p.parked = func(time.Duration) {}
		}
		if s.clock.Sleep(ctx, min(wait, left)) != nil {
			return errStopped
		}
		if last {
			return e
		}
	}
}

// where returns the address to give to the adapter: a conversation may have moved.
func (s *Service) where(to chat.Address) chat.Address {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.movedTo(to)
}

// movedTo is where with s.mu held.
func (s *Service) movedTo(to chat.Address) chat.Address {
	if id, ok := s.moved[accountKey{to.Channel, to.Account}][to.Conversation]; ok {
		to.Conversation = id
	}
	return to
}

// relocate remembers that a conversation has a new id and reports whether that is news.
func (s *Service) relocate(ctx context.Context, to chat.Address, id string) bool {
	key := accountKey{to.Channel, to.Account}
	s.mu.Lock()
	if id == "" || id == to.Conversation || s.moved[key][to.Conversation] == id {
		s.mu.Unlock()
		return false
	}
	if s.moved[key] == nil {
		s.moved[key] = map[string]string{}
	}
	s.moved[key][to.Conversation] = id
	s.mu.Unlock()
	s.log.Info("conversation moved", "channel", to.Channel)
	if s.deps.Moved != nil {
		s.deps.Moved(ctx, to, id)
	}
	return true
}
