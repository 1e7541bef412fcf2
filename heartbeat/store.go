package heartbeat

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"
	"unicode/utf8"

	"understudy/internal/sqlite"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Bounds of what is stored.
const (
	MaxScratch = 256 << 10 // bytes of a checklist (spec/chat.md §6.1)
	maxEvents  = 20        // that one heartbeat takes along
	maxEvent   = 32 << 10  // bytes of one
)

// ErrScratch tells that a text cannot be a checklist.
var ErrScratch = fmt.Errorf("a checklist is text of at most %d KiB", MaxScratch>>10)

// Store keeps what heartbeats have to remember in state/bot.sqlite. It is safe for concurrent use by any
// number of processes.
type Store struct{ db *sqlite.DB }

// NewStore returns the store over db and brings its tables up to date. The caller closes db.
func NewStore(ctx context.Context, db *sqlite.DB) (*Store, error) {
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	if err := sqlite.Migrate(ctx, db, "heartbeat", dir); err != nil {
		return nil, fmt.Errorf("heartbeats: %w", err)
	}
	return &Store{db}, nil
}

// Record is what is known of an agent's heartbeats. The zero value is an agent that had none.
type Record struct {
	Last Report `json:"last,omitzero"`
	// LastRun is when a model was asked last, Runs how often.
	LastRun time.Time `json:"lastRun,omitzero"`
	Runs    int64     `json:"runs,omitempty"`
	// Failures counts those in a row, Told that the owner heard of them.
	Failures int  `json:"failures,omitempty"`
	Told     bool `json:"told,omitempty"`
	// Explained tells that the owner was told how to switch heartbeats off.
	Explained bool `json:"explained,omitempty"`
	// Letter is what was found and is not yet in safe hands.
	Letter *Letter `json:"letter,omitempty"`

	Next time.Time `json:"-"` // zero = not planned
}

// Load returns what is known of an agent.
func (s *Store) Load(ctx context.Context, agent string) (Record, error) {
	return load(ctx, s.db.Reads(), agent)
}

type reader interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func load(ctx context.Context, from reader, agent string) (Record, error) {
	var r Record
	var last string
	var next sql.NullInt64
	err := from.QueryRowContext(ctx, `SELECT last_json, next_at FROM heartbeat_state WHERE agent_id = ?`, agent).Scan(&last, &next)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return r, nil
	case err != nil:
		return r, fmt.Errorf("reading the heartbeats of %s: %w", agent, err)
	}
	if last != "" {
		if err := json.Unmarshal([]byte(last), &r); err != nil {
			return r, fmt.Errorf("reading the heartbeats of %s: %w", agent, err)
		}
	}
	if next.Valid {
		r.Next = time.UnixMilli(next.Int64)
	}
	return r, nil
}

// Update changes what is known of an agent, in one transaction, and returns it. It is not interrupted
// by the end of a context: what has happened is written down also during a shutdown.
func (s *Store) Update(ctx context.Context, agent string, change func(*Record)) (Record, error) {
	ctx = context.WithoutCancel(ctx)
	var r Record
	err := s.db.Write(ctx, func(tx *sqlite.Tx) (err error) {
		if r, err = load(ctx, tx, agent); err != nil {
			return err
		}
		change(&r)
		text, err := json.Marshal(r)
		if err != nil {
			return err
		}
		var next any
		if !r.Next.IsZero() {
			next = r.Next.UnixMilli()
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO heartbeat_state (agent_id, last_json, next_at) VALUES (?, ?, ?)
			ON CONFLICT (agent_id) DO UPDATE SET last_json = excluded.last_json, next_at = excluded.next_at`, agent, string(text), next)
		return err
	})
	if err != nil {
		return r, fmt.Errorf("writing the heartbeats of %s: %w", agent, err)
	}
	return r, nil
}

// Scratch returns an agent's checklist and how often it was changed; ok is false when there is none.
func (s *Store) Scratch(ctx context.Context, agent string) (text string, revision int64, ok bool, err error) {
	var t sql.NullString
	err = s.db.Reads().QueryRowContext(ctx, `SELECT scratch, revision FROM heartbeat_state WHERE agent_id = ?`, agent).Scan(&t, &revision)
	if errors.Is(err, sql.ErrNoRows) {
		return "", 0, false, nil
	}
	if err != nil {
		return "", 0, false, fmt.Errorf("reading the checklist of %s: %w", agent, err)
	}
	return t.String, revision, t.Valid, nil
}

// SetScratch replaces an agent's checklist; nil removes it. It returns ErrScratch for what cannot be one.
func (s *Store) SetScratch(ctx context.Context, agent string, text *string) error {
	var value any
	if text != nil {
		if len(*text) > MaxScratch || !utf8.ValidString(*text) {
			return ErrScratch
		}
		value = *text
	}
	_, err := s.db.Writes().ExecContext(ctx, `INSERT INTO heartbeat_state (agent_id, scratch, revision) VALUES (?, ?, 1)
		ON CONFLICT (agent_id) DO UPDATE SET scratch = excluded.scratch, revision = revision + 1`, agent, value)
	if err != nil {
		return fmt.Errorf("writing the checklist of %s: %w", agent, err)
	}
	return nil
}

// Event is something that an agent is to notice.
type Event struct {
	ID, Text string
	At       time.Time // when it began to wait
}

// AddEvent keeps an event for an agent's next heartbeat; a second one of the same id changes nothing.
func (s *Store) AddEvent(ctx context.Context, agent string, e Event) error {
	if len(e.Text) > maxEvent {
		e.Text = e.Text[:maxEvent]
	}
	_, err := s.db.Writes().ExecContext(context.WithoutCancel(ctx), `INSERT INTO heartbeat_events (id, agent_id, text, at) VALUES (?, ?, ?, ?)
		ON CONFLICT (id) DO NOTHING`, e.ID, agent, e.Text, e.At.UnixMilli())
	if err != nil {
		return fmt.Errorf("keeping an event for %s: %w", agent, err)
	}
	return nil
}

// Events returns the oldest events that wait for an agent, at most as many as one heartbeat takes along.
// Those from before a moment are forgotten; zero = none.
func (s *Store) Events(ctx context.Context, agent string, before time.Time) ([]Event, error) {
	if !before.IsZero() {
		_, err := s.db.Writes().ExecContext(ctx, `DELETE FROM heartbeat_events WHERE agent_id = ? AND at < ?`, agent, before.UnixMilli())
		if err != nil {
			return nil, fmt.Errorf("forgetting the events of %s: %w", agent, err)
		}
	}
	rows, err := s.db.Reads().QueryContext(ctx, `SELECT id, text, at FROM heartbeat_events WHERE agent_id = ? ORDER BY at, id LIMIT ?`, agent, maxEvents)
	if err != nil {
		return nil, fmt.Errorf("reading the events of %s: %w", agent, err)
	}
	defer rows.Close()
	var out []Event
	for rows.Next() {
		var e Event
		var at int64
		if err := rows.Scan(&e.ID, &e.Text, &at); err != nil {
			return nil, fmt.Errorf("reading the events of %s: %w", agent, err)
		}
		e.At = time.UnixMilli(at)
		out = append(out, e)
	}
	return out, rows.Err()
}

// DropEvents forgets events that were noticed.
func (s *Store) DropEvents(ctx context.Context, events []Event) error {
	ctx = context.WithoutCancel(ctx)
	return s.db.Write(ctx, func(tx *sqlite.Tx) error {
		for _, e := range events {
			if _, err := tx.ExecContext(ctx, `DELETE FROM heartbeat_events WHERE id = ?`, e.ID); err != nil {
				return fmt.Errorf("forgetting an event: %w", err)
			}
		}
		return nil
	})
}
