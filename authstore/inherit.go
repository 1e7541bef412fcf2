package authstore

import (
	"cmp"
	"maps"
	"slices"

	"understudy/failover/policy"
	"understudy/llm"
)

// joined remembers what an agent's own view and the default agent's make together.
type joined struct {
	own, base *policy.Snapshot // what it was made of
	snapshot  policy.Snapshot
}

// owner returns the store in which a profile lives with its health: this one if it has the
// profile, else the default agent's. The latter also holds the health of a key from the
// environment or the configuration, which is the same for all agents.
func (s *Store) owner(id llm.ProfileID) *Store {
	if s.deps.Default == nil || has(s.view(), id) {
		return s
	}
	return s.deps.Default
}

// Inherits reports whether a profile is not this agent's own but read from the default agent, where its
// health is too.
func (s *Store) Inherits(id llm.ProfileID) bool { return s.owner(id) != s }

// has reports whether snap, whose profiles stand in order of id, has the profile.
func has(snap *policy.Snapshot, id llm.ProfileID) bool {
	_, ok := slices.BinarySearchFunc(snap.Profiles, id, func(p policy.Profile, id llm.ProfileID) int {
		return cmp.Compare(p.ID, id)
	})
	return ok
}

// join lays this agent's own profiles over the default agent's. Orders and the probe throttle are
// each agent's own.
func (s *Store) join(base *policy.Snapshot) policy.Snapshot {
	s.mu.Lock()
	own, last := s.shown, s.joined
	s.mu.Unlock()
	if last.own == own && last.base == base {
		return last.snapshot
	}
	snap := *own
	snap.Profiles = slices.Clone(own.Profiles)
	for _, p := range base.Profiles {
		if !has(own, p.ID) {
			snap.Profiles = append(snap.Profiles, p)
		}
	}
	slices.SortFunc(snap.Profiles, func(a, b policy.Profile) int { return cmp.Compare(a.ID, b.ID) })
	snap.Health = maps.Clone(base.Health)
	maps.DeleteFunc(snap.Health, func(k policy.Key, _ policy.Row) bool { return has(own, k.Profile) })
	for k, row := range own.Health {
		if has(own, k.Profile) {
			snap.Health[k] = row
		}
	}
	s.mu.Lock()
	s.joined = joined{own: own, base: base, snapshot: snap}
	s.mu.Unlock()
	return snap
}
