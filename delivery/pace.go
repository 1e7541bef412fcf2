package delivery

import (
	"context"
	"errors"
	"time"

	"golang.org/x/time/rate"

	"understudy/channels"
	"understudy/chat"
)

// call is a kind of platform call. Platforms limit the rate of each kind on its own.
type call uint8

const (
	callSend call = iota
	callEdit
	callDelete
	callTyping
	callReact
	callStream
	calls // how many there are
)

// callNames are labels of metrics.
var callNames = [calls]string{"send", "edit", "delete", "typing", "react", "stream"}

// place names a conversation, or a thread of one.
type place struct{ channel, account, conversation, thread string }

// conversation is what is known of the pace of a conversation. Its fields belong to Service.mu, but
// for the limiter, which is its own.
type conversation struct {
	pace *rate.Limiter
	free [calls]time.Time // the platform wants no such call before
}

// isIdle reports whether nothing is lost when the conversation is forgotten.
func (c *conversation) isIdle(now time.Time) bool {
	for _, t := range c.free {
		if t.After(now) {
			return false
		}
	}
	return c.pace.Limit() == rate.Inf || c.pace.TokensAt(now) >= float64(c.pace.Burst())
}

// conversation returns the one of an address, whose threads share it unless the platform counts them
// by themselves; s.mu is held.
func (s *Service) conversation(to chat.Address) *conversation {
	to = s.movedTo(to)
	key, a := place{to.Channel, to.Account, to.Conversation, ""}, s.accounts[accountKey{to.Channel, to.Account}]
	if a != nil && a.traits.ThreadsApart {
		key.thread = to.Thread
	}
	c := s.conversations[key]
	if c == nil {
		c = &conversation{pace: rate.NewLimiter(rate.Inf, 1)}
		if a != nil {
			c.pace = a.pace(to.Kind)
		}
		s.conversations[key] = c
	}
	return c
}

// sweepConversations forgets those that nothing is to be remembered of; s.mu is held.
func (s *Service) sweepConversations(now time.Time) {
	for k, c := range s.conversations {
		if c.isIdle(now) {
			delete(s.conversations, k)
		}
	}
}

// errHeld is why a call is not made: the platform has asked for a pause.
var errHeld = errors.New("the platform wants a pause here")

// held returns for how long the platform wants no more calls of a kind in a conversation.
func (s *Service) held(to chat.Address, c call) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.conversation(to).free[c].Sub(s.clock.Now()))
}

// heard takes in what came of a platform call: a pause that the platform asks for holds for every
// later call of the kind in the conversation, and for no other conversation.
func (s *Service) heard(to chat.Address, c call, err error) *channels.SendError {
	e := verdict(err)
	if e == nil || e.Verdict != channels.Retry || e.After <= 0 {
		return e
	}
	s.mu.Lock()
	conv := s.conversation(to)
	if until := s.clock.Now().Add(e.After); until.After(conv.free[c]) {
		conv.free[c] = until
	}
	s.mu.Unlock()
	if s.deps.RateLimited != nil {
		s.deps.RateLimited(to.Channel, callNames[c])
	}
	return e
}

// await waits for the pace of the conversation and of the account. Where the platform has asked for
// a pause it does not wait, but returns a *channels.SendError that says how long the pause is.
func (s *Service) await(ctx context.Context, a *account, to chat.Address) error {
	if wait := s.held(to, callSend); wait > 0 {
		return &channels.SendError{Verdict: channels.Retry, After: wait, Code: "held", Err: errHeld}
	}
	now := s.clock.Now()
	here, all := s.limiter(to).ReserveN(now, 1), a.global.ReserveN(now, 1)
	if s.clock.Sleep(ctx, max(here.DelayFrom(now), all.DelayFrom(now))) != nil {
		here.CancelAt(now) // as of the reservation: what was not waited for is given back
		all.CancelAt(now)
		return errStopped
	}
	return nil
}

// mayNow takes the right to one message if there is no need to wait.
func (s *Service) mayNow(a *account, to chat.Address) bool {
	now := s.clock.Now()
	pace := s.limiter(to)
	if pace.TokensAt(now) < 1 || s.held(to, callSend) > 0 || !a.global.AllowN(now, 1) {
		return false
	}
	return pace.AllowN(now, 1)
}

func (s *Service) limiter(to chat.Address) *rate.Limiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conversation(to).pace
}
