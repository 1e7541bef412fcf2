package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/session/internal/sessiondb"
)

// Touch records that a person wrote at the given moment. Heartbeats, scheduled tasks, probes,
// notices and reactions must not call it.
func (s *Store) Touch(ctx context.Context, key string, at time.Time) error {
	err := s.tx(ctx, func(q *sessiondb.Queries) error {
		params := sessiondb.TouchSessionParams{At: millis(at), Now: s.now(), Key: key}
		n, err := q.TouchSession(ctx, params)
		if err != nil || n > 0 {
			return err
		}
		ses, err := get(ctx, q, key) // renamed, or not there
		if err != nil {
			return err
		}
		params.Key = ses.Key
		_, err = q.TouchSession(ctx, params)
		return err
	})
	if err != nil {
		return fmt.Errorf("session %s: %w", key, err)
	}
	return nil
}

// TakeSwitch consumes a pending live switch. If there was one, the session as it is now is
// returned: its selection is what the running turn takes over.
func (s *Store) TakeSwitch(ctx context.Context, key string) (ses Session, pending bool, err error) {
	if ses, err = s.Get(ctx, key); err != nil || !ses.SwitchPending {
		return ses, false, err
	}
	err = s.tx(ctx, func(q *sessiondb.Queries) error {
		if ses, err = get(ctx, q, key); err != nil {
			return err
		}
		pending = ses.SwitchPending
		ses.SwitchPending = false
		_, err := q.ClearSwitch(ctx, ses.Key)
		return err
	})
	if err != nil {
		return Session{}, false, fmt.Errorf("session %s: %w", key, err)
	}
	return ses, pending, nil
}

// ClearAuto removes a legacy automatic override, but only if it still is the one that was probed
// (spec/failover.md §12). What it stood in for stays as the announced pair, so that the next turn
// tells that the origin is back (§10).
func (s *Store) ClearAuto(ctx context.Context, key string, probed Override) (cleared bool, err error) {
	_, err = s.Update(ctx, key, func(ses *Session) error {
		cleared = ses.Override.Auto() && ses.Override == probed
		if !cleared {
			return errUnchanged
		}
		if ses.Notice == (Pair{}) && !probed.Origin.IsZero() {
			ses.Notice = Pair{Selected: probed.Origin, Active: probed.Model}
		}
		ses.Override = Override{}
		return nil
	})
	if errors.Is(err, errUnchanged) {
		return false, nil
	}
	return cleared, err
}

var errUnchanged = errors.New("nothing to change")

func (s *Store) now() int64 { return millis(s.deps.Clock.Now()) }
