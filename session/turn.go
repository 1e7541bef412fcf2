package session

import (
	"context"
	"encoding/json"
	"fmt"

	"understudy/llm"
	"understudy/session/internal/sessiondb"
)

// Turn is what a turn leaves behind.
type Turn struct {
	ID        string
	SessionID string // of the transcript it began in
	Entries   []Entry
	Usage     llm.Usage
	Decision  json.RawMessage // its record for the decision trail; nil = none
	Model     llm.ModelRef    // that answered; zero = none did
	Spend     []Spend         // what its requests used, for the daily totals
	// NoTotals leaves the session's own token counters as they are: heartbeats do not count there.
	NoTotals bool
	// Change is applied to the session as it is now, under the rules of Update; nil = nothing.
	Change func(*Session) error
}

// FinishTurn writes a turn in one transaction: its entries, what it used, its decision record and
// its change of the session. A turn that a reset overtook still completes its own transcript and
// the trail, and changes nothing of the new session.
func (s *Store) FinishTurn(ctx context.Context, key string, t Turn) error {
	rows, err := s.entryRows(t.SessionID, ofTurn(t.ID, t.Entries))
	if err != nil {
		return fmt.Errorf("turn %s: %w", t.ID, err)
	}
	err = s.tx(ctx, func(q *sessiondb.Queries) error {
		ses, err := get(ctx, q, key)
		if err != nil {
			return err
		}
		if err := appendRows(ctx, q, rows); err != nil {
			return err
		}
		if t.Decision != nil {
			if err := s.appendDecisions(ctx, q, ses.Key, []json.RawMessage{t.Decision}); err != nil {
				return err
			}
		}
		if err := s.spend(ctx, q, t.Spend); err != nil {
			return err
		}
		if ses.ID != t.SessionID {
			return nil
		}
		if !t.Model.IsZero() {
			ses.LastModel = t.Model
		}
		if t.NoTotals {
			_, err = s.change(ctx, q, ses, t.Change)
			return err
		}
		ses.TokensIn += int64(t.Usage.Input + t.Usage.CacheRead + t.Usage.CacheWrite)
		ses.TokensOut += int64(t.Usage.Output)
		if used, told := t.used(); told {
			ses.LastTurn = used
		}
		if t.Usage.ContextSize > 0 {
			ses.TokensContext = int64(t.Usage.ContextSize)
		}
		_, err = s.change(ctx, q, ses, t.Change)
		return err
	})
	if err != nil {
		return fmt.Errorf("turn %s of session %s: %w", t.ID, key, err)
	}
	return nil
}

// used is the turn as LastTurn; told is false where no model worked on it. What a model did not report is
// not known, rather than nothing.
func (t Turn) used() (u LastTurn, told bool) {
	u.In, u.Out = int64(t.Usage.Input+t.Usage.CacheRead+t.Usage.CacheWrite), int64(t.Usage.Output)
	switch {
	case u.In+u.Out > 0:
		u.CostMicros, u.Priced = Cost(t.Spend)
		return u, true
	case t.Model.IsZero():
		return LastTurn{}, false
	}
	return LastTurn{}, true
}

// Compact adds a summary to a transcript, counts the compaction and returns the session as it is
// then. If a reset ended the transcript meanwhile, only the summary is written.
func (s *Store) Compact(ctx context.Context, key, sessionID string, summary Entry) (Session, error) {
	var ses Session
	rows, err := s.entryRows(sessionID, []Entry{summary})
	if err != nil {
		return Session{}, err
	}
	err = s.tx(ctx, func(q *sessiondb.Queries) error {
		if ses, err = get(ctx, q, key); err != nil {
			return err
		}
		if err := appendRows(ctx, q, rows); err != nil || ses.ID != sessionID {
			return err
		}
		ses, err = s.change(ctx, q, ses, func(x *Session) error { x.Compactions++; return nil })
		return err
	})
	if err != nil {
		return Session{}, fmt.Errorf("compaction of session %s: %w", key, err)
	}
	return ses, nil
}
