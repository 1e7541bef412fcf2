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
		if cleared = ses.clearAuto(probed); !cleared {
			return errUnchanged
		}
		return nil
	})
	if errors.Is(err, errUnchanged) {
		return false, nil
	}
	return cleared, err
}

// ClearAutos is ClearAuto for many sessions in one transaction: all that still hold the override they
// are listed with. Those that are gone are passed over. It returns how many were cleared.
func (s *Store) ClearAutos(ctx context.Context, probed []Session) (cleared int, err error) {
	err = s.tx(ctx, func(q *sessiondb.Queries) error {
		cleared = 0
		for _, p := range probed {
			ses, err := get(ctx, q, p.Key)
			if errors.Is(err, ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			_, err = s.change(ctx, q, ses, func(x *Session) error {
				if !x.clearAuto(p.Override) {
					return errUnchanged
				}
				return nil
			})
			switch {
			case errors.Is(err, errUnchanged):
			case err != nil:
				return err
			default:
				cleared++
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("clearing automatic overrides: %w", err)
	}
	return cleared, nil
}

// clearAuto removes an automatic override if it is the one that was probed.
func (ses *Session) clearAuto(probed Override) bool {
	if !ses.Override.Auto() || ses.Override != probed {
		return false
	}
	if ses.Notice == (Pair{}) && !probed.Origin.IsZero() {
		ses.Notice = Pair{Selected: probed.Origin, Active: probed.Model}
	}
	ses.Override = Override{}
	return true
}

var errUnchanged = errors.New("nothing to change")

func (s *Store) now() int64 { return millis(s.deps.Clock.Now()) }
