package authstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"understudy/authstore/internal/authdb"
	"understudy/failover/policy"
	"understudy/llm"
)

// ClaimProbe takes the probe throttle of a provider: one probe per provider and agent within
// policy.ProbeThrottle, over all processes (spec/failover.md §8.3). false means that somebody else
// was faster. An error, ErrLate included, means no claim.
func (s *Store) ClaimProbe(ctx context.Context, provider string, now time.Time) (bool, error) {
	provider = llm.NormalizeProvider(provider)
	now = fromMillis(now.UnixMilli())
	if err := s.freshen(ctx); err != nil {
		return false, err
	}
	if last, ok := s.view().LastProbe[provider]; ok && !throttleOpen(last, now) {
		return false, nil
	}
	taken := false
	j := &job{done: make(chan struct{}), do: func(ctx context.Context, c *change) (err error) {
		taken, err = c.claim(ctx, provider, now)
		return err
	}}
	if _, _, err := s.enqueue(j); err != nil {
		return false, err
	}
	if err := s.await(ctx, j); err != nil {
		return false, err
	}
	return taken, nil
}

// throttleOpen reports whether a probe may follow one of the moment last. A moment that lies ahead
// by more than the throttle is a clock that was set back.
func throttleOpen(last, now time.Time) bool {
	d := now.Sub(last)
	return d >= policy.ProbeThrottle || d < -policy.ProbeThrottle
}

func (c *change) claim(ctx context.Context, provider string, now time.Time) (bool, error) {
	at, err := c.GetProbe(ctx, provider)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return false, err
	}
	if err == nil && !throttleOpen(fromMillis(at), now) {
		return false, nil
	}
	c.ownProbes()
	c.state.LastProbe[provider] = now
	return true, c.PutProbe(ctx, authdb.PutProbeParams{Provider: provider, At: millis(now), PreviousAt: at})
}

// ReleaseProbe gives a claim back because no call was made. It does nothing if somebody claimed
// since. Like Settle it waits 250 ms at most and is then done later (ErrLate).
func (s *Store) ReleaseProbe(ctx context.Context, provider string, claimedAt time.Time) error {
	provider = llm.NormalizeProvider(provider)
	j := &job{done: make(chan struct{}), keep: true, do: func(ctx context.Context, c *change) error {
		n, err := c.Queries.ReleaseProbe(ctx, authdb.ReleaseProbeParams{Provider: provider, At: claimedAt.UnixMilli()})
		if err != nil || n == 0 {
			return err
		}
		at, err := c.GetProbe(ctx, provider)
		if err != nil {
			return fmt.Errorf("probe of %s: %w", provider, err)
		}
		c.ownProbes()
		c.state.LastProbe[provider] = fromMillis(at)
		return nil
	}}
	if _, _, err := s.enqueue(j); err != nil {
		return err
	}
	return s.await(ctx, j)
}

// ImportHealth stores rows and probe times that another place recorded. What the store already
// knows of a profile and model, or of a provider, wins.
func (s *Store) ImportHealth(ctx context.Context, rows policy.Health, probes map[string]time.Time) error {
	err := s.write(ctx, func(c *change) error {
		for k, row := range rows {
			if _, known := c.state.Health[k]; known {
				continue
			}
			params, err := toRow(k, row)
			if err != nil {
				return err
			}
			if err := c.PutHealth(ctx, params); err != nil {
				return err
			}
		}
		for provider, at := range probes {
			if _, known := c.state.LastProbe[provider]; known {
				continue
			}
			if err := c.PutProbe(ctx, authdb.PutProbeParams{Provider: provider, At: millis(at)}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("importing health: %w", err)
	}
	return nil
}
