package authstore

import (
	"context"
	"time"

	"understudy/authstore/internal/authdb"
	"understudy/failover/policy"
	"understudy/llm"
)

// Settle records what an attempt costs its profile (spec/failover.md §7) and returns the rows that
// now say something else; being used once more does not count. The rows are read again, changed
// and written in one transaction, so that concurrent failures of any process add up.
//
// A success of a profile that had nothing to clear is written behind the caller's back. Everything
// else is waited for, 250 ms at most: then the error is ErrLate, the result is what the attempt
// makes of the state known here, Snapshot shows it, and the file follows when it can. No error of
// Settle may fail a request: log `auth_profile_bookkeeping_dropped` and go on.
func (s *Store) Settle(ctx context.Context, rules policy.Rules, a policy.Attempt) ([]policy.Changed, error) {
	if a.Failure != nil {
		if cost, _ := policy.CostOf(*a.Failure); cost == policy.CostNone {
			return nil, nil
		}
	}
	if err := s.freshen(ctx); err != nil {
		return nil, err
	}
	owner := s.owner(a.Profile)
	if owner != s {
		return owner.Settle(ctx, rules, a)
	}
	job := &job{settle: &settlement{rules: rules, attempt: a}, done: make(chan struct{})}
	expected, quiet, err := s.enqueue(job)
	if err != nil {
		return nil, err
	}
	if quiet {
		return nil, nil
	}
	if err := s.await(ctx, job); err != nil {
		return expected, err
	}
	return job.changed, nil
}

// settlement is an attempt on its way to the file.
type settlement struct {
	rules   policy.Rules
	attempt policy.Attempt
}

// keys returns the rows that an attempt can touch.
func (x *settlement) keys() []policy.Key {
	all := policy.Key{Profile: x.attempt.Profile}
	if x.attempt.Model == "" {
		return []policy.Key{all}
	}
	return []policy.Key{all, {Profile: x.attempt.Profile, Model: x.attempt.Model}}
}

// apply changes h as the attempt does and returns the rows that say something else.
func (x *settlement) apply(h policy.Health) []policy.Changed {
	keys := x.keys()
	before := policy.Pair{All: h[keys[0]]}
	if len(keys) > 1 {
		before.Model = h[keys[1]]
	}
	after := x.rules.Settle(before, x.attempt)
	if before.All.LastUsed.After(after.All.LastUsed) {
		after.All.LastUsed = before.All.LastUsed // a slower success of an earlier moment
	}
	changed := put(nil, h, keys[0], before.All, after.All)
	if len(keys) > 1 {
		changed = put(changed, h, keys[1], before.Model, after.Model)
	}
	return changed
}

// put stores a row, perfect health as no row at all.
func put(changed []policy.Changed, h policy.Health, k policy.Key, before, after policy.Row) []policy.Changed {
	if after.Equal(policy.Row{}) {
		delete(h, k)
	} else {
		h[k] = after
	}
	if !visible(before).Equal(visible(after)) {
		changed = append(changed, policy.Changed{Key: k, Row: after})
	}
	return changed
}

// visible is a row without the time of its last use.
func visible(r policy.Row) policy.Row {
	r.LastUsed = time.Time{}
	return r
}

// quiet reports whether the attempt does no more than to move lastUsed.
func (x *settlement) quiet(h policy.Health) bool {
	if x.attempt.Failure != nil {
		return false
	}
	for _, k := range x.keys() {
		if !visible(h[k]).Equal(policy.Row{}) {
			return false
		}
	}
	return true
}

// settle applies the attempt to the state being written and to the file.
func (c *change) settle(ctx context.Context, x *settlement) ([]policy.Changed, error) {
	c.ownHealth()
	keys := x.keys()
	before := make([]policy.Row, len(keys))
	for i, k := range keys {
		before[i] = c.state.Health[k]
	}
	changed := x.apply(c.state.Health)
	for i, k := range keys {
		if err := c.writeRow(ctx, k, before[i]); err != nil {
			return nil, err
		}
	}
	if x.attempt.Failure != nil {
		return changed, nil
	}
	return changed, c.good(ctx, x.attempt.Profile)
}

// writeRow brings one row of the file to what the state says.
func (c *change) writeRow(ctx context.Context, k policy.Key, before policy.Row) error {
	row, ok := c.state.Health[k]
	switch {
	case row.Equal(before):
		return nil
	case !ok:
		return c.DeleteHealthRow(ctx, authdb.DeleteHealthRowParams{Profile: string(k.Profile), Model: k.Model})
	}
	params, err := toRow(k, row)
	if err != nil {
		return err
	}
	return c.PutHealth(ctx, params)
}

// good remembers the profile that answered for its provider.
func (c *change) good(ctx context.Context, id llm.ProfileID) error {
	provider := id.Provider()
	if c.state.lastGood[provider] == id {
		return nil
	}
	c.ownLastGood()
	c.state.lastGood[provider] = id
	return c.PutLastGood(ctx, authdb.PutLastGoodParams{Provider: provider, Profile: string(id)})
}
