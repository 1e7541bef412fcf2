package app

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"understudy/authstore"
	"understudy/failover"
)

// stores opens the agents' credential stores when they are first needed. One that cannot be opened
// keeps its agent on the credentials of the environment; it is tried again after a reload.
type stores struct {
	open func(ctx context.Context, agent string, base *authstore.Store) (*authstore.Store, error)
	main string // the default agent, to whose credentials the others read through

	mu   sync.Mutex
	list map[string]opened
}

type opened struct {
	store *authstore.Store
	err   error
}

// get returns the store of an agent, or why it cannot be used.
func (s *stores) get(ctx context.Context, agent string) (*authstore.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.locked(ctx, agent)
}

// locked opens under the lock: opening is rare, and two openings of one file would be worse.
func (s *stores) locked(ctx context.Context, agent string) (*authstore.Store, error) {
	if o, ok := s.list[agent]; ok {
		return o.store, o.err
	}
	var base *authstore.Store
	if agent != s.main {
		base, _ = s.locked(ctx, s.main) // without it the agent has only its own credentials
	}
	store, err := s.open(ctx, agent, base)
	if s.list == nil {
		s.list = map[string]opened{}
	}
	s.list[agent] = opened{store, err}
	return store, err
}

// failover returns the store as failover wants it; a nil pointer must not hide in the interface.
func (s *stores) failover(agent string) (failover.Store, error) {
	store, err := s.get(context.Background(), agent)
	if err != nil {
		return nil, err
	}
	return store, nil
}

// problems lists the stores that cannot be used, and with authstore.ErrLate those that cannot be
// written at this moment.
func (s *stores) problems() map[string]error {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]error{}
	for agent, o := range s.list {
		err := o.err
		if o.store != nil {
			err = o.store.Late()
		}
		if err != nil {
			out[agent] = err
		}
	}
	return out
}

// retry forgets failures, so that the next use opens again.
func (s *stores) retry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for agent, o := range s.list {
		if o.err != nil {
			delete(s.list, agent)
		}
	}
}

// close closes all stores, those that read through first.
func (s *stores) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for agent, o := range s.list {
		if agent != s.main && o.store != nil {
			errs = append(errs, wrapClose(agent, o.store.Close()))
		}
	}
	if o := s.list[s.main]; o.store != nil {
		errs = append(errs, wrapClose(s.main, o.store.Close()))
	}
	s.list = nil
	return errors.Join(errs...)
}

func wrapClose(agent string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("auth store of %s: %w", agent, err)
}
