package session

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"understudy/session/internal/sessiondb"
)

// maxDecisions is how many decision records of a session are kept.
const maxDecisions = 200

// Decision is one record of a session's decision trail (spec/failover.md §15). What is in it is
// the writer's; it must hold no secret.
type Decision struct {
	At     time.Time
	Record json.RawMessage
}

// AppendDecision adds a record to the trail under key. The newest 200 are kept.
func (s *Store) AppendDecision(ctx context.Context, key string, records ...json.RawMessage) error {
	err := s.tx(ctx, func(q *sessiondb.Queries) error {
		ses, err := get(ctx, q, key)
		if err != nil {
			return err
		}
		return s.appendDecisions(ctx, q, ses.Key, records)
	})
	if err != nil {
		return fmt.Errorf("decisions of session %s: %w", key, err)
	}
	return nil
}

func (s *Store) appendDecisions(ctx context.Context, q *sessiondb.Queries, key string, records []json.RawMessage) error {
	last, err := q.LastDecision(ctx, key)
	if err != nil {
		return err
	}
	now := s.now()
	for _, r := range records {
		last++
		err := q.AppendDecision(ctx, sessiondb.AppendDecisionParams{SessionKey: key, Seq: last, RecordJson: string(r), At: now})
		if err != nil {
			return err
		}
	}
	return q.PruneDecisions(ctx, sessiondb.PruneDecisionsParams{SessionKey: key, Seq: last - maxDecisions})
}

// Decisions returns the last records of the trail under key, the newest first.
func (s *Store) Decisions(ctx context.Context, key string, limit int) ([]Decision, error) {
	ses, err := s.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	rows, err := s.query.ListDecisions(ctx, sessiondb.ListDecisionsParams{SessionKey: ses.Key, Most: int64(limit)})
	if err != nil {
		return nil, fmt.Errorf("decisions of session %s: %w", key, err)
	}
	list := make([]Decision, len(rows))
	for i, r := range rows {
		list[i] = Decision{At: fromMillis(r.At), Record: json.RawMessage(r.RecordJson)}
	}
	return list, nil
}
