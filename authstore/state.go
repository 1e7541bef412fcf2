package authstore

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"understudy/authstore/internal/authdb"
	"understudy/failover/policy"
	"understudy/internal/secret"
	"understudy/internal/sqlite"
	"understudy/llm"
)

// state is one revision of the file. It is not changed once it is published.
type state struct {
	revision int64
	policy.Snapshot
	lastGood map[string]llm.ProfileID
}

// Profiles returns what is stored, in order of id.
func (s *Store) Profiles(ctx context.Context) ([]policy.Profile, error) {
	snap, err := s.Snapshot(ctx)
	return snap.Profiles, err
}

// Orders returns the stored order overrides per provider. An empty one means to use no profile.
func (s *Store) Orders(ctx context.Context) (map[string][]llm.ProfileID, error) {
	snap, err := s.Snapshot(ctx)
	return snap.Orders, err
}

// LastGood returns, per provider, the profile that last answered.
func (s *Store) LastGood(ctx context.Context) (map[string]llm.ProfileID, error) {
	if err := s.freshen(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.committed.lastGood), nil
}

// Snapshot returns the newest state, other processes' writes included. While nothing changed it
// costs one look at the revision. Its slices and maps are shared: nobody may change them.
func (s *Store) Snapshot(ctx context.Context) (policy.Snapshot, error) {
	if err := s.freshen(ctx); err != nil {
		return policy.Snapshot{}, err
	}
	if s.deps.Default == nil {
		return *s.view(), nil
	}
	if err := s.deps.Default.freshen(ctx); err != nil {
		return policy.Snapshot{}, err
	}
	return s.join(s.deps.Default.view()), nil
}

// view returns what is shown at this moment.
func (s *Store) view() *policy.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown
}

// freshen reads the file again if somebody else wrote it.
func (s *Store) freshen(ctx context.Context) error {
	n, err := s.query.Revision(ctx)
	if err != nil {
		return fmt.Errorf("reading the auth store: %w", err)
	}
	s.mu.Lock()
	known := s.committed.revision
	s.mu.Unlock()
	if n == known {
		return nil
	}
	return s.reload(ctx)
}

func (s *Store) reload(ctx context.Context) error {
	var st *state
	err := s.db.Read(ctx, func(tx *sqlite.Tx) (err error) {
		st, err = load(ctx, authdb.New(tx), s.follow)
		return err
	})
	if err != nil {
		return fmt.Errorf("reading the auth store: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publish(st)
	return nil
}

// publish makes st the committed state unless a newer one is, and shows it; mu is held.
func (s *Store) publish(st *state) {
	if s.committed == nil || st.revision >= s.committed.revision {
		s.committed = st
	}
	s.show()
}

// show lays the attempts that still wait over the committed state; mu is held.
func (s *Store) show() {
	snap := s.committed.Snapshot
	copied := false
	for _, j := range s.queue {
		if j.settle == nil {
			continue
		}
		if !copied {
			snap.Health, copied = cloneHealth(snap.Health), true
		}
		j.settle.apply(snap.Health)
	}
	s.shown = &snap
}

func cloneHealth(h policy.Health) policy.Health {
	c := make(policy.Health, len(h)+2)
	maps.Copy(c, h)
	return c
}

// load reads one consistent state.
func load(ctx context.Context, q *authdb.Queries, follow func(Reference) secret.String) (*state, error) {
	st := &state{Snapshot: policy.Snapshot{
		Orders: map[string][]llm.ProfileID{}, Health: policy.Health{}, LastProbe: map[string]time.Time{},
	}, lastGood: map[string]llm.ProfileID{}}
	var err error
	if st.revision, err = q.Revision(ctx); err != nil {
		return nil, err
	}
	if err := st.loadProfiles(ctx, q, follow); err != nil {
		return nil, err
	}
	rows, err := q.ListHealth(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		row, err := fromRow(r)
		if err != nil {
			return nil, err
		}
		st.Health[policy.Key{Profile: llm.ProfileID(r.Profile), Model: r.Model}] = row
	}
	probes, err := q.ListProbes(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range probes {
		st.LastProbe[p.Provider] = fromMillis(p.At)
	}
	good, err := q.ListLastGood(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range good {
		st.lastGood[g.Provider] = llm.ProfileID(g.Profile)
	}
	return st, nil
}

func (st *state) loadProfiles(ctx context.Context, q *authdb.Queries, follow func(Reference) secret.String) error {
	profiles, err := q.ListProfiles(ctx)
	if err != nil {
		return err
	}
	for _, p := range profiles {
		ref, err := parseReference(p.ReferenceJson)
		if err != nil {
			return fmt.Errorf("profile %s: %w", p.ID, err)
		}
		st.Profiles = append(st.Profiles, policy.Profile{
			ID: llm.ProfileID(p.ID), Kind: llm.CredentialKind(p.Kind), Expires: fromMillis(p.ExpiresAt),
			HasSecret: p.HasSecret || !follow(ref).IsZero(), HasRefresh: p.HasRefresh,
		})
	}
	orders, err := q.ListOrders(ctx)
	if err != nil {
		return err
	}
	for _, o := range orders {
		ids := []llm.ProfileID{}
		if err := json.Unmarshal([]byte(o.ProfilesJson), &ids); err != nil {
			return fmt.Errorf("order of %s: %w", o.Provider, err)
		}
		st.Orders[o.Provider] = ids
	}
	return nil
}
