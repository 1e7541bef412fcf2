package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"understudy/chat"
	"understudy/session/internal/sessiondb"
)

// Defaults of maintenance (spec/chat.md §1.9).
const (
	DefaultMaxAge     = 30 * 24 * time.Hour
	DefaultMaxRows    = 500
	DefaultCronMaxAge = 24 * time.Hour
	usageKeptFor      = 400 * 24 * time.Hour
	runsKeptFor       = 30 * 24 * time.Hour
	mostPerCleanup    = 5000
)

// Maintenance says which sessions may go by themselves. Zero values are the defaults.
type Maintenance struct {
	MaxAge     time.Duration // of sessions that nobody talks in
	MaxRows    int           // of sessions that nobody talks in
	CronMaxAge time.Duration // of the transcripts of finished scheduled runs
}

func (m Maintenance) withDefaults() Maintenance {
	if m.MaxAge <= 0 {
		m.MaxAge = DefaultMaxAge
	}
	if m.MaxRows <= 0 {
		m.MaxRows = DefaultMaxRows
	}
	if m.CronMaxAge <= 0 {
		m.CronMaxAge = DefaultCronMaxAge
	}
	return m
}

// Removal is a session, or an ended transcript of one, that goes.
type Removal struct {
	Key       string
	SessionID string
	Why       string // age, rows, finished run
}

// Synthetic reports whether a key is one of the bot's own making: a scheduled task, a heartbeat, a
// script. Nobody would miss its transcript.
func Synthetic(key string) bool {
	part := strings.SplitN(key, ":", 4)
	if len(part) < 3 || part[0] != "agent" {
		return false
	}
	return part[2] == "cron" || part[2] == "cli" || part[2] == "heartbeat" && len(part) == 3
}

// disposable reports whether a session may go without being asked for: it is synthetic, or nobody ever
// wrote or chose anything in it. The settings of a group, a channel or a thread are kept with it, whoever
// talks there, and a model that a person chose keeps any session (spec/chat.md §1.9).
func disposable(s Session) bool {
	switch {
	case s.Override.User():
		return false
	case Synthetic(s.Key):
		return true
	case s.Parent != "", s.Address.Kind == chat.Group, s.Address.Kind == chat.Room:
		return false
	}
	return s.LastInteractionAt.IsZero() && s.Think == "" && s.Verbose == "" && s.UsageMode == "" && s.TTSAuto == "" && s.Queue == nil &&
		s.Pin.Source != SourceUser
}

// Cleanup removes what nobody needs, or with dryRun only tells what it would. Conversations in which
// people wrote are never removed.
func (s *Store) Cleanup(ctx context.Context, m Maintenance, dryRun bool) ([]Removal, error) {
	m = m.withDefaults()
	now := s.deps.Clock.Now()
	gone, err := s.idle(ctx, m, now)
	if err != nil {
		return nil, err
	}
	finished, err := s.query.ListArchivedBefore(ctx, sessiondb.ListArchivedBeforeParams{Before: now.Add(-m.CronMaxAge).UnixMilli(), Most: mostPerCleanup})
	if err != nil {
		return nil, fmt.Errorf("listing ended transcripts: %w", err)
	}
	for _, r := range finished {
		gone = append(gone, Removal{Key: r.Key, SessionID: r.SessionID, Why: "finished run"})
	}
	if dryRun {
		return gone, nil
	}
	for _, r := range gone {
		if err := s.remove(ctx, r); err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
	}
	return gone, s.tx(ctx, func(q *sessiondb.Queries) error {
		return errors.Join(q.PruneUsage(ctx, Day(now.Add(-usageKeptFor))), q.PruneRuns(ctx, now.Add(-runsKeptFor).UnixMilli()))
	})
}

// idle returns the disposable sessions that are too old or too many.
func (s *Store) idle(ctx context.Context, m Maintenance, now time.Time) ([]Removal, error) {
	rows, err := s.query.ListIdle(ctx, sessiondb.ListIdleParams{Before: now.UnixMilli(), Most: mostPerCleanup})
	if err != nil {
		return nil, fmt.Errorf("listing sessions: %w", err)
	}
	var list []Session // the oldest first
	for _, row := range rows {
		ses, err := fromRow(row)
		if err != nil {
			return nil, err
		}
		if disposable(ses) {
			list = append(list, ses)
		}
	}
	var gone []Removal
	for i, ses := range list {
		switch {
		case now.Sub(ses.UpdatedAt) > m.MaxAge:
			gone = append(gone, Removal{Key: ses.Key, SessionID: ses.ID, Why: "age"})
		case len(list)-i > m.MaxRows:
			gone = append(gone, Removal{Key: ses.Key, SessionID: ses.ID, Why: "rows"})
		}
	}
	return gone, nil
}

// remove carries out one removal. A session that was used since it was listed stays.
func (s *Store) remove(ctx context.Context, r Removal) error {
	return s.tx(ctx, func(q *sessiondb.Queries) error {
		if r.Why == "finished run" {
			return errors.Join(q.DeleteTranscript(ctx, r.SessionID), q.DeleteArchived(ctx, r.SessionID), q.DeleteRuns(ctx, r.SessionID))
		}
		ses, err := get(ctx, q, r.Key)
		if err != nil || ses.ID != r.SessionID || !disposable(ses) {
			return err
		}
		return erase(ctx, q, ses)
	})
}

// Delete removes a session with everything that was said in it, also before its resets, and the record
// of its turns. It cannot be undone.
func (s *Store) Delete(ctx context.Context, key string) error {
	err := s.tx(ctx, func(q *sessiondb.Queries) error {
		ses, err := get(ctx, q, key)
		if err != nil {
			return err
		}
		return erase(ctx, q, ses)
	})
	if err != nil {
		return fmt.Errorf("deleting session %s: %w", key, err)
	}
	return nil
}

func erase(ctx context.Context, q *sessiondb.Queries, ses Session) error {
	archived, err := q.ListArchive(ctx, sessiondb.ListArchiveParams{Key: ses.Key, Most: -1})
	if err != nil {
		return err
	}
	ids := []string{ses.ID}
	for _, a := range archived {
		ids = append(ids, a.SessionID)
	}
	for _, id := range ids {
		if err := errors.Join(q.DeleteTranscript(ctx, id), q.DeleteRuns(ctx, id)); err != nil {
			return err
		}
	}
	return errors.Join(
		q.DeleteArchive(ctx, ses.Key), q.DropDecisions(ctx, ses.Key), q.DeleteAliasesOf(ctx, ses.Key), q.DeleteSession(ctx, ses.Key),
	)
}

// Transcripts returns the ids of everything that was said under a key, the oldest transcript first and
// the present one last, for export.
func (s *Store) Transcripts(ctx context.Context, key string) ([]string, error) {
	ses, err := s.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	archived, err := s.Archive(ctx, ses.Key, -1)
	if err != nil {
		return nil, err
	}
	slices.Reverse(archived)
	ids := make([]string, 0, len(archived)+1)
	for _, a := range archived {
		ids = append(ids, a.ID)
	}
	return append(ids, ses.ID), nil
}
