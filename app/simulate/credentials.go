package simulate

import (
	"context"
	"errors"
	"time"

	"understudy/authstore"
	"understudy/failover/policy"
	"understudy/llm"
)

// login stores a new secret for a profile, as `bot auth login` does.
func (s *stage) login(ctx context.Context, id llm.ProfileID) error {
	store := s.auth[s.config.DefaultAgent()]
	p := profile{id: id, kind: llm.KindAPIKey}
	for i, x := range s.sc.profiles {
		if x.id != id {
			continue
		}
		if x.kind == llm.KindOAuth {
			s.sc.profiles[i].expires = s.clock.Now().Add(time.Hour)
		} else {
			s.sc.profiles[i].expires = time.Time{}
		}
		p = s.sc.profiles[i]
	}
	s.stored[id.Provider()] = true
	return s.visibly(ctx, store, id, func() error {
		return store.Put(ctx, s.credential(p, int(s.clock.Now().UnixMilli())))
	})
}

// remove takes a profile away, as `bot auth remove` does. A provider that ever had a profile in the
// scenario has no key in the environment to fall back on.
func (s *stage) remove(ctx context.Context, id llm.ProfileID) error {
	store := s.auth[s.config.DefaultAgent()]
	return s.visibly(ctx, store, id, func() error {
		if err := store.Remove(ctx, id); !errors.Is(err, authstore.ErrNoProfile) {
			return err
		}
		return nil // it is gone already, or not there yet
	})
}

// visibly changes a profile and tells the trace what that does to its health.
func (s *stage) visibly(ctx context.Context, store *authstore.Store, id llm.ProfileID, change func() error) error {
	before, err := store.Snapshot(ctx)
	if err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	after, err := store.Snapshot(ctx)
	if err != nil {
		return err
	}
	var changed []policy.Changed
	for k := range before.Health {
		if k.Profile == id {
			changed = append(changed, policy.Changed{Key: k, Row: after.Health[k]})
		}
	}
	s.trace.Settled("", changed)
	return nil
}
