package reply

import (
	"context"
	"slices"
	"sync"

	"understudy/internal/clock"
)

// mostShelved is how many bytes of people's files are in memory at a time, over all conversations: from
// their download until the model's request, or the transcript, is made of them (spec/chat.md §8, S10).
const mostShelved = 96 << 20

// shelf bounds what all turns hold together. Who comes first is served first, so that a large file does not
// wait for ever behind small ones.
type shelf struct {
	clock clock.Clock
	mu    sync.Mutex
	free  int64
	queue []*claim
}

// claim is a turn that waits for room.
type claim struct {
	bytes int64
	given chan struct{} // closed once it has the room
}

func newShelf(c clock.Clock, bytes int64) *shelf { return &shelf{clock: c, free: bytes} }

// take waits for so much room, which must not be more than there is at all, until ctx ends. Whoever got it
// gives it back, once.
func (s *shelf) take(ctx context.Context, bytes int64) (give func(), err error) {
	c := &claim{bytes, make(chan struct{})}
	s.mu.Lock()
	s.queue = append(s.queue, c)
	s.serve()
	s.mu.Unlock()
	give = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.free += bytes
		s.serve()
	}
	if err := s.clock.Await(ctx, c.given); err != nil {
		s.mu.Lock()
		i := slices.Index(s.queue, c)
		if i >= 0 {
			s.queue = slices.Delete(s.queue, i, i+1)
			s.serve() // others may fit now
		}
		s.mu.Unlock()
		if i < 0 { // it was given in this moment
			give()
		}
		return nil, err
	}
	return give, nil
}

// serve gives room to those who wait, in order; the lock is held.
func (s *shelf) serve() {
	for len(s.queue) > 0 && s.queue[0].bytes <= s.free {
		s.free -= s.queue[0].bytes
		close(s.queue[0].given)
		s.queue = s.queue[1:]
	}
}
