package tts

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"sync/atomic"
	"time"

	"understudy/internal/sqlite"
)

//go:embed migrations/*.sql
var migrations embed.FS

const (
	longestProblem = 300                 // bytes of what is kept of a failure
	keepLatest     = 30 * 24 * time.Hour // what /tts latest spoke
)

// Prefs are what people chose with /tts for all conversations, over the configuration (Config.WithPrefs);
// zero fields = nothing.
type Prefs struct {
	Auto     string
	Provider string
	Limit    int // characters
	Last     Attempt
}

// Attempt is how speaking ended.
type Attempt struct {
	At       time.Time // zero = there was none
	Provider string    // that was asked last
	Problem  string    // in words fit for chat; "" = it was spoken
}

// Store keeps the preferences in state/bot.sqlite. It is safe for concurrent use.
type Store struct {
	db   *sqlite.DB
	last atomic.Pointer[Prefs]
}

// OpenStore returns the store over db and brings its tables up to date. The caller closes db.
func OpenStore(ctx context.Context, db *sqlite.DB) (*Store, error) {
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	if err := sqlite.Migrate(ctx, db, "tts", dir); err != nil {
		return nil, fmt.Errorf("speech preferences: %w", err)
	}
	s := &Store{db: db}
	_, err = s.Prefs(ctx)
	return s, err
}

// Current returns the preferences as they were last read or written here; it does not wait.
func (s *Store) Current() Prefs { return *s.last.Load() }

// Prefs reads the preferences.
func (s *Store) Prefs(ctx context.Context) (Prefs, error) {
	var p Prefs
	var at int64
	err := s.db.Reads().QueryRowContext(ctx, `SELECT auto, provider, max_length, last_at, last_provider, last_problem FROM tts_prefs WHERE id = 1`).
		Scan(&p.Auto, &p.Provider, &p.Limit, &at, &p.Last.Provider, &p.Last.Problem)
	if err != nil {
		if s.last.Load() == nil {
			s.last.Store(&Prefs{})
		}
		return Prefs{}, fmt.Errorf("reading speech preferences: %w", err)
	}
	if at != 0 {
		p.Last.At = time.UnixMilli(at)
	}
	s.last.Store(&p)
	return p, nil
}

// SetAuto stores when answers are spoken; "" = as configured.
func (s *Store) SetAuto(ctx context.Context, auto string) error {
	return s.set(ctx, `UPDATE tts_prefs SET auto = ? WHERE id = 1`, auto)
}

// SetProvider stores who is asked first; "" = as configured. Whether there is such a provider is the
// caller's to know.
func (s *Store) SetProvider(ctx context.Context, provider string) error {
	return s.set(ctx, `UPDATE tts_prefs SET provider = ? WHERE id = 1`, provider)
}

// SetLimit stores how many characters are spoken; 0 = as configured.
func (s *Store) SetLimit(ctx context.Context, characters int) error {
	return s.set(ctx, `UPDATE tts_prefs SET max_length = ? WHERE id = 1`, characters)
}

// Note stores how the last attempt ended.
func (s *Store) Note(ctx context.Context, a Attempt) error {
	return s.set(ctx, `UPDATE tts_prefs SET last_at = ?, last_provider = ?, last_problem = ? WHERE id = 1`,
		a.At.UnixMilli(), a.Provider, clip(a.Problem, longestProblem))
}

func (s *Store) set(ctx context.Context, query string, args ...any) error {
	if _, err := s.db.Writes().ExecContext(ctx, query, args...); err != nil {
		return fmt.Errorf("storing speech preferences: %w", err)
	}
	_, err := s.Prefs(ctx)
	return err
}

// WasSpoken reports whether text is what /tts latest spoke last in a conversation.
func (s *Store) WasSpoken(ctx context.Context, sessionKey, text string) (bool, error) {
	rows, err := s.db.Reads().QueryContext(ctx, `SELECT hash FROM tts_latest WHERE session_key = ?`, sessionKey)
	if err != nil {
		return false, fmt.Errorf("reading what was spoken: %w", err)
	}
	defer rows.Close()
	var hash []byte
	for rows.Next() {
		if err := rows.Scan(&hash); err != nil {
			return false, fmt.Errorf("reading what was spoken: %w", err)
		}
	}
	want := sha256.Sum256([]byte(text))
	return bytes.Equal(hash, want[:]), rows.Err()
}

// MarkSpoken stores that /tts latest spoke text; only its hash is kept.
func (s *Store) MarkSpoken(ctx context.Context, sessionKey, text string, at time.Time) error {
	hash := sha256.Sum256([]byte(text))
	err := s.db.Write(ctx, func(tx *sqlite.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM tts_latest WHERE at < ?`, at.Add(-keepLatest).UnixMilli()); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO tts_latest (session_key, hash, at) VALUES (?, ?, ?)
			ON CONFLICT (session_key) DO UPDATE SET hash = excluded.hash, at = excluded.at`, sessionKey, hash[:], at.UnixMilli())
		return err
	})
	if err != nil {
		return fmt.Errorf("storing what was spoken: %w", err)
	}
	return nil
}
