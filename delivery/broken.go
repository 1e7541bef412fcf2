package delivery

import (
	"context"

	"understudy/channels"
	"understudy/chat"
)

// mostBroken bounds how many broken destinations are remembered.
const mostBroken = 1024

// reached takes in what came of a message: where nobody can be reached, Deps.Broken is told once,
// until something arrives there again.
func (s *Service) reached(ctx context.Context, to chat.Address, c call, err error) *channels.SendError {
	e := s.heard(to, c, err)
	key := destKey(to)
	s.mu.Lock()
	was := s.broken[key]
	switch {
	case e == nil:
		delete(s.broken, key)
	case e.Verdict == channels.Gone && !was:
		if len(s.broken) >= mostBroken {
			clear(s.broken)
		}
		s.broken[key] = true
	}
	s.mu.Unlock()
	if e != nil && e.Verdict == channels.Gone && !was {
		s.log.Warn("destination broken", "channel", to.Channel, "code", e.Code)
		if s.deps.Broken != nil {
			s.deps.Broken(context.WithoutCancel(ctx), to, e.Code)
		}
	}
	return e
}
