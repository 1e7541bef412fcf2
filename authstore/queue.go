package authstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"understudy/authstore/internal/authdb"
	"understudy/failover/policy"
	"understudy/internal/sqlite"
)

const (
	turnBudget  = 250 * time.Millisecond // a turn waits no longer for a write (design §5)
	maxQueue    = 1024                   // writes that wait; the next one is dropped
	retryFirst  = 250 * time.Millisecond // after a write that did not succeed, doubling
	retryMost   = 4 * time.Second
	lastAttempt = 2 * time.Second // for the queue when the store closes
)

// job is one write that waits for its turn: an attempt to settle, or something else to do.
type job struct {
	settle *settlement
	do     func(context.Context, *change) error // may run again if the transaction fails
	keep   bool                                 // do it also when nobody waits any more
	done   chan struct{}                        // closed once it is in the file

	changed   []policy.Changed // of settle, once done
	abandoned bool             // nobody waits any more; guarded by Store.mu
}

// enqueue lets j be written and shows its effect. quiet tells that it does no more than to move
// lastUsed, so that nobody need wait; expected is what it changes as far as is known here.
func (s *Store) enqueue(j *job) (expected []policy.Changed, quiet bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, false, ErrClosed
	case len(s.queue) >= maxQueue:
		return nil, false, ErrDropped
	}
	if j.settle != nil {
		quiet = j.settle.quiet(s.shown.Health)
		snap := *s.shown
		snap.Health = cloneHealth(snap.Health)
		expected = j.settle.apply(snap.Health)
		s.shown = &snap
	}
	s.queue = append(s.queue, j)
	if s.draining == nil {
		ctx, cancel := context.WithCancel(context.Background())
		s.draining = cancel
		s.deps.Clock.Go(func() {
			defer cancel()
			s.drain(ctx)
		})
	}
	return expected, quiet, nil
}

// await waits until j is in the file, but not longer than a turn may.
func (s *Store) await(ctx context.Context, j *job) error {
	s.mu.Lock()
	failing := s.failure != nil
	s.mu.Unlock()
	budget := turnBudget
	if failing {
		budget = 0 // it did not work a moment ago: do not make every turn find that out
	}
	ctx, cancel := s.deps.Clock.WithTimeout(ctx, budget, ErrLate)
	defer cancel()
	err := s.deps.Clock.Await(ctx, j.done)
	if err != nil {
		s.mu.Lock()
		j.abandoned = true
		s.mu.Unlock()
	}
	return err
}

// drain writes until the queue is empty, then ends.
func (s *Store) drain(ctx context.Context) {
	wait := retryFirst
	for s.pending() {
		err := s.writeQueue(ctx)
		s.report(ctx, err)
		if err == nil {
			wait = retryFirst
			continue
		}
		if s.deps.Clock.Sleep(ctx, wait) != nil {
			return // the store closes and writes the rest itself
		}
		wait = min(wait*2, retryMost)
	}
}

// pending reports whether there is something to write; if not, the goroutine that asks must end.
func (s *Store) pending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) > 0 && !s.closed {
		return true
	}
	s.draining = nil
	return false
}

// report notes that the file cannot be written, and logs when that begins; writeBatch notes the end.
func (s *Store) report(ctx context.Context, err error) {
	if err == nil {
		return
	}
	s.mu.Lock()
	before := s.failure != nil
	s.failure = err
	waiting := len(s.queue)
	s.mu.Unlock()
	if !before && ctx.Err() == nil {
		s.deps.Log.Error("auth_profile_bookkeeping_late", "path", s.db.Path(), "waiting", waiting, "error", err)
	}
}

// Late returns why what happens to the profiles cannot be written at this moment, an ErrLate with its
// cause, or nil. Nothing is lost so far: it counts, waits in memory and is tried again.
func (s *Store) Late() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure == nil || len(s.queue) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrLate, s.failure)
}

// writeQueue writes everything that waits now in one transaction.
func (s *Store) writeQueue(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return s.writeBatch(ctx)
}

// writeBatch is writeQueue for who holds the turn.
func (s *Store) writeBatch(ctx context.Context) error {
	s.mu.Lock()
	batch := s.queue[:len(s.queue):len(s.queue)]
	skip := make([]bool, len(batch))
	for i, j := range batch {
		skip[i] = j.abandoned && j.settle == nil && !j.keep
	}
	s.mu.Unlock()

	changed := make([][]policy.Changed, len(batch))
	st, err := s.transact(ctx, func(c *change) (err error) {
		for i, j := range batch {
			switch {
			case skip[i]:
			case j.settle != nil:
				changed[i], err = c.settle(ctx, j.settle)
			default:
				err = j.do(ctx, c)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.queue = append([]*job(nil), s.queue[len(batch):]...)
	s.publish(st)
	recovered := s.failure != nil
	s.failure = nil // before anybody hears that the write is done and asks again
	s.mu.Unlock()
	if recovered {
		s.deps.Log.Info("auth_profile_bookkeeping_caught_up", "path", s.db.Path())
	}
	for i, j := range batch {
		j.changed = changed[i]
		close(j.done)
	}
	return nil
}

// writeLast writes the queue and unsaved tokens of a store that closes.
func (s *Store) writeLast() error {
	ctx, cancel := context.WithTimeout(context.Background(), lastAttempt)
	defer cancel()
	s.mu.Lock()
	waiting, unsaved := len(s.queue), maps.Clone(s.unsaved)
	s.mu.Unlock()
	var errs []error
	if waiting > 0 {
		if err := s.writeBatch(ctx); err != nil {
			s.deps.Log.Error("auth_profile_bookkeeping_dropped", "path", s.db.Path(), "waiting", waiting, "error", err)
			errs = append(errs, fmt.Errorf("writing the last health rows: %w", err))
		}
	}
	for _, p := range unsaved {
		if _, err := s.swap(ctx, p); err != nil {
			errs = append(errs, fmt.Errorf("saving the new sign-in of %s: %w", p.ID, err))
		}
	}
	return errors.Join(errs...)
}

// change is a write transaction: the file on one side, the state it will show on the other.
type change struct {
	*authdb.Queries
	state    *state
	owned    struct{ health, good, probes bool } // copied already
	reloaded bool                                // the state has to be read again before the end
}

// transact runs f in one immediate transaction that begins with the newest state and ends with the
// next revision. The result is the state to publish; the caller does that.
func (s *Store) transact(ctx context.Context, f func(*change) error) (*state, error) {
	s.mu.Lock()
	base := s.committed
	s.mu.Unlock()
	var st *state
	err := s.db.Write(ctx, func(tx *sqlite.Tx) error {
		c := &change{Queries: authdb.New(tx)}
		n, err := c.Revision(ctx)
		if err != nil {
			return err
		}
		if n == base.revision {
			copied := *base
			c.state = &copied
		} else if c.state, err = load(ctx, c.Queries, s.follow); err != nil {
			return err
		}
		if err := f(c); err != nil {
			return err
		}
		if c.state.revision, err = c.BumpRevision(ctx); err != nil {
			return err
		}
		if c.reloaded {
			c.state, err = load(ctx, c.Queries, s.follow)
		}
		st = c.state
		return err
	})
	return st, err
}

// write is transact for callers that wait for the file as long as their context lets them.
func (s *Store) write(ctx context.Context, f func(*change) error) error {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return ErrClosed
	}
	st, err := s.transact(ctx, func(c *change) error {
		c.reloaded = true
		return f(c)
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publish(st)
	return nil
}

func (c *change) ownHealth() {
	if !c.owned.health {
		c.state.Health, c.owned.health = cloneHealth(c.state.Health), true
	}
}

func (c *change) ownLastGood() {
	if !c.owned.good {
		c.state.lastGood, c.owned.good = maps.Clone(c.state.lastGood), true
	}
}

func (c *change) ownProbes() {
	if !c.owned.probes {
		c.state.LastProbe, c.owned.probes = maps.Clone(c.state.LastProbe), true
	}
}
