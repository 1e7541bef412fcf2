package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/llm"
	"understudy/session/internal/sessiondb"
)

// Purpose is what tokens were used for.
type Purpose string

// The purposes. All but PurposeMessage and PurposeSummary are background work.
const (
	PurposeMessage   Purpose = "message"   // somebody wrote
	PurposeSummary   Purpose = "summary"   // a compaction
	PurposeCron      Purpose = "cron"      // a scheduled task
	PurposeHeartbeat Purpose = "heartbeat" // a heartbeat
	PurposeProbe     Purpose = "probe"     // is a model back?
)

// Background reports whether nobody asked for the work just now.
func (p Purpose) Background() bool {
	return p == PurposeCron || p == PurposeHeartbeat || p == PurposeProbe
}

// Spend is what one or more requests to a model used.
type Spend struct {
	At      time.Time // its day, in its own location, is the one it counts for
	Agent   string
	Model   llm.ModelRef
	Purpose Purpose
	Turns   int
	Usage   llm.Usage
	// CostMicros is the price in millionths of a US dollar. It counts only if Priced: an unknown
	// price is unknown, never 0.
	CostMicros int64
	Priced     bool
}

// Cost sums prices up; known is false where one of them is not known, or there is none.
func Cost(spent []Spend) (micros int64, known bool) {
	for _, x := range spent {
		if !x.Priced {
			return 0, false
		}
		micros += x.CostMicros
	}
	return micros, len(spent) > 0
}

// Total is the sum of a day for one model and purpose.
type Total struct {
	Day        string // YYYY-MM-DD
	Agent      string
	Model      llm.ModelRef
	Purpose    Purpose
	Turns      int64
	Usage      llm.Usage // without ContextSize
	CostMicros int64
	Unpriced   int64 // turns whose price is unknown
}

// Day is how a moment's day is written in totals: in the moment's own location.
func Day(t time.Time) string { return t.Format(time.DateOnly) }

// AddSpend counts work that belongs to no turn of a session, such as probes.
func (s *Store) AddSpend(ctx context.Context, spent ...Spend) error {
	if len(spent) == 0 {
		return nil
	}
	if err := s.tx(ctx, func(q *sessiondb.Queries) error { return s.spend(ctx, q, spent) }); err != nil {
		return fmt.Errorf("counting usage: %w", err)
	}
	return nil
}

func (s *Store) spend(ctx context.Context, q *sessiondb.Queries, spent []Spend) error {
	for _, x := range spent {
		if x.Model.IsZero() {
			continue
		}
		at := x.At
		if at.IsZero() {
			at = s.deps.Clock.Now()
		}
		row := sessiondb.AddUsageParams{
			Day: Day(at), AgentID: x.Agent, ModelRef: refText(x.Model), Purpose: string(x.Purpose), Turns: int64(x.Turns),
			Input: int64(x.Usage.Input), Output: int64(x.Usage.Output),
			CacheRead: int64(x.Usage.CacheRead), CacheWrite: int64(x.Usage.CacheWrite),
		}
		if x.Priced {
			row.CostMicros = x.CostMicros
		} else {
			row.Unpriced = int64(x.Turns)
		}
		if err := q.AddUsage(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

// Totals returns the daily sums since a day (YYYY-MM-DD, included), oldest first; agent "" means all.
func (s *Store) Totals(ctx context.Context, agent, since string) ([]Total, error) {
	rows, err := s.query.ListUsage(ctx, sessiondb.ListUsageParams{Since: since, AgentID: agent})
	if err != nil {
		return nil, fmt.Errorf("reading usage: %w", err)
	}
	list := make([]Total, len(rows))
	for i, r := range rows {
		list[i] = Total{
			Day: r.Day, Agent: r.AgentID, Model: parseRef(r.ModelRef), Purpose: Purpose(r.Purpose), Turns: r.Turns,
			Usage:      llm.Usage{Input: int(r.Input), Output: int(r.Output), CacheRead: int(r.CacheRead), CacheWrite: int(r.CacheWrite)},
			CostMicros: r.CostMicros, Unpriced: r.Unpriced,
		}
	}
	return list, nil
}

// ResetUsage begins the session's own counters anew (/usage reset). Daily totals stay.
func (s *Store) ResetUsage(ctx context.Context, key string) error {
	_, err := s.Update(ctx, key, func(ses *Session) error {
		ses.TokensIn, ses.TokensOut, ses.UsageSince = 0, 0, s.deps.Clock.Now()
		return nil
	})
	return err
}

// AppendOnce adds entries to the present transcript of a key on behalf of a run of something else,
// unless this run did so before. It moves no time that people's words move.
func (s *Store) AppendOnce(ctx context.Context, key, runID string, entries []Entry) error {
	if runID == "" {
		return errors.New("appending to a session without a run id")
	}
	err := s.tx(ctx, func(q *sessiondb.Queries) error {
		ses, err := get(ctx, q, key)
		if err != nil {
			return err
		}
		n, err := q.MarkRun(ctx, sessiondb.MarkRunParams{SessionID: ses.ID, RunID: runID, At: s.now()})
		if err != nil || n == 0 {
			return err
		}
		rows, err := s.entryRows(ses.ID, ofTurn(runID, entries))
		if err != nil {
			return err
		}
		return appendRows(ctx, q, rows)
	})
	if err != nil {
		return fmt.Errorf("appending run %s to session %s: %w", runID, key, err)
	}
	return nil
}
