package delivery

import (
	"context"

	"understudy/channels"
	"understudy/chat"
)

// Bounds of what is remembered of broken places.
const (
	mostBroken        = 1024 // conversations
	mostBrokenThreads = 64   // of one conversation
)

// breakage is what is known of a conversation in which something could not be said for good.
type breakage struct {
	threads map[string]bool // where; "" is the conversation outside of threads
	// partial tells that elsewhere in it something has arrived since Deps.Broken was told.
	partial bool
}

// reached takes in what came of a message: of a conversation where nobody can be reached, Deps.Broken is
// told once for all of its threads, until something arrives there again. A closed thread of a
// conversation that goes on is told of once as well.
func (s *Service) reached(ctx context.Context, to chat.Address, c call, err error) *channels.SendError {
	e := s.heard(to, c, err)
	where := place{to.Channel, to.Account, to.Conversation, ""}
	switch {
	case e == nil:
		s.mended(where, to.Thread)
	case e.Verdict == channels.Gone && s.broke(where, to.Thread):
		s.log.Warn("conversation broken", "channel", to.Channel, "code", e.Code)
		if s.deps.Broken != nil {
			s.deps.Broken(context.WithoutCancel(ctx), to, e.Code)
		}
	}
	return e
}

// broke takes in that nothing can be said somewhere, and reports whether that is news.
func (s *Service) broke(where place, thread string) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.broken[where]
	if b == nil {
		if len(s.broken) >= mostBroken {
			clear(s.broken)
		}
		b = &breakage{threads: map[string]bool{}, partial: true}
		s.broken[where] = b
	}
	if news = b.partial && !b.threads[thread]; news {
		b.partial = false
	}
	if len(b.threads) < mostBrokenThreads {
		b.threads[thread] = true
	}
	return news
}

// mended takes in that something has arrived somewhere.
func (s *Service) mended(where place, thread string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.broken[where]
	if b == nil {
		return
	}
	delete(b.threads, thread)
	b.partial = true
	if len(b.threads) == 0 {
		delete(s.broken, where)
	}
}
