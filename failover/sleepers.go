package failover

import (
	"context"
	"errors"
	"sync"
)

// errSwitched ends the pause of a turn whose user chose another model.
var errSwitched = errors.New("the user chose another model")

// sleepers are the turns that pause between attempts, by session.
type sleepers struct {
	mu sync.Mutex
	m  map[string]context.CancelCauseFunc
}

// lie registers a turn that is about to pause. nap ends with errSwitched when its user chooses another
// model; rise must be called after the pause.
func (s *sleepers) lie(ctx context.Context, session string) (nap context.Context, rise func()) {
	nap, wake := context.WithCancelCause(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m == nil {
		s.m = map[string]context.CancelCauseFunc{}
	}
	s.m[session] = wake
	return nap, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.m, session)
		wake(nil)
	}
}

// Switched tells that the user of a session chose another model. A turn of it that pauses between two
// attempts takes the choice at once; any other takes it at its next safe point (spec/failover.md §8.7).
func (r *Runner) Switched(session string) {
	r.sleepers.mu.Lock()
	wake := r.sleepers.m[session]
	r.sleepers.mu.Unlock()
	if wake != nil {
		wake(errSwitched)
	}
}
