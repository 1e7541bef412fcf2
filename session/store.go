package session

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/google/uuid"

	"understudy/chat"
	"understudy/internal/clock"
	"understudy/internal/sqlite"
	"understudy/session/internal/sessiondb"
)

//go:generate go tool -modfile=../tools/sqlc/go.mod sqlc generate -f ../tools/sqlc/sqlc.yaml

//go:embed migrations/*.sql
var migrations embed.FS

// ErrNotFound tells that there is no session under a key.
var ErrNotFound = errors.New("no such session")

// Deps is what a Store needs.
type Deps struct {
	Clock clock.Clock
	// NewID makes session ids; nil = random UUIDs. The simulator wants repeatable ones.
	NewID func() string
}

// Store keeps sessions, transcripts and decision trails in state/bot.sqlite. It is safe for
// concurrent use by any number of processes.
//
// A key that a conversation had before its platform renamed it still finds the session.
type Store struct {
	db    *sqlite.DB
	query *sessiondb.Queries // over the readers
	deps  Deps
}

// New returns the store over db and brings its tables up to date. The caller closes db.
func New(ctx context.Context, db *sqlite.DB, deps Deps) (*Store, error) {
	if deps.NewID == nil {
		deps.NewID = uuid.NewString
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	if err := sqlite.Migrate(ctx, db, "session", files); err != nil {
		return nil, fmt.Errorf("session store: %w", err)
	}
	return &Store{db: db, query: sessiondb.New(db.Reads()), deps: deps}, nil
}

// Get returns the session under key, or ErrNotFound.
func (s *Store) Get(ctx context.Context, key string) (Session, error) {
	return get(ctx, s.query, key)
}

// get reads a row, under the key's newer name if need be.
func get(ctx context.Context, q *sessiondb.Queries, key string) (Session, error) {
	row, err := q.GetSession(ctx, key)
	if errors.Is(err, sql.ErrNoRows) {
		var newer string
		if newer, err = q.ResolveAlias(ctx, key); err == nil {
			row, err = q.GetSession(ctx, newer)
		}
	}
	if errors.Is(err, sql.ErrNoRows) {
		return Session{}, fmt.Errorf("%w: %s", ErrNotFound, key)
	}
	if err != nil {
		return Session{}, fmt.Errorf("reading session %s: %w", key, err)
	}
	return fromRow(row)
}

// Seed is what a session is created with.
type Seed struct {
	Key, AgentID, Parent string
	Address              chat.Address
}

// Ensure returns the session under seed.Key and creates it if there is none. An existing one gets
// the seed's address: it is where the conversation is answered now. Call it only once the sender
// is authorised (spec/chat.md §0.2).
func (s *Store) Ensure(ctx context.Context, seed Seed) (ses Session, created bool, err error) {
	ses, err = s.Get(ctx, seed.Key)
	if err == nil && ses.Address == seed.Address {
		return ses, false, nil
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Session{}, false, err
	}
	err = s.tx(ctx, func(q *sessiondb.Queries) error {
		ses, err = get(ctx, q, seed.Key)
		now := s.deps.Clock.Now()
		switch {
		case errors.Is(err, ErrNotFound):
			created = true
			ses = Session{
				Key: seed.Key, ID: s.deps.NewID(), AgentID: seed.AgentID, Parent: seed.Parent, Address: seed.Address,
				StartedAt: now, UpdatedAt: now,
			}
		case err != nil:
			return err
		default:
			ses.Address = seed.Address
		}
		return put(ctx, q, ses)
	})
	if err != nil {
		return Session{}, false, fmt.Errorf("session %s: %w", seed.Key, err)
	}
	return ses, created, nil
}

// Update changes a session: f gets the row as it is in the file now, and what it leaves there is
// written in the same transaction. f must not block, and may run again if the transaction fails;
// an error of f is returned as it is, with nothing changed. Key, agent, id and times are not f's
// to change.
func (s *Store) Update(ctx context.Context, key string, f func(*Session) error) (Session, error) {
	var ses Session
	err := s.tx(ctx, func(q *sessiondb.Queries) error {
		before, err := get(ctx, q, key)
		if err != nil {
			return err
		}
		ses, err = s.change(ctx, q, before, f)
		return err
	})
	if err != nil {
		return Session{}, err
	}
	return ses, nil
}

// change lets f, which may be nil, work on a row and writes what it leaves.
func (s *Store) change(ctx context.Context, q *sessiondb.Queries, before Session, f func(*Session) error) (Session, error) {
	ses := before
	if f != nil {
		if err := f(&ses); err != nil {
			return Session{}, err
		}
	}
	ses.Key, ses.AgentID, ses.ID = before.Key, before.AgentID, before.ID
	ses.StartedAt, ses.LastInteractionAt = before.StartedAt, before.LastInteractionAt
	ses.UpdatedAt = s.deps.Clock.Now()
	switch was, is := before.Notice, ses.Notice; {
	case is == (Pair{}):
		ses.NoticeSince = time.Time{}
	case is.Selected != was.Selected || is.Active != was.Active:
		ses.NoticeSince = ses.UpdatedAt
	default: // another reason is the same matter
		ses.NoticeSince = before.NoticeSince
	}
	return ses, put(ctx, q, ses)
}

func put(ctx context.Context, q *sessiondb.Queries, ses Session) error {
	row, err := toRow(ses)
	if err != nil {
		return err
	}
	return q.PutSession(ctx, row)
}

// Reset ends the present transcript and begins the next one under the same key. A user's model
// selection and preferences stay; automatic overrides, pins, notice state and counters end
// (spec/failover.md §3, spec/chat.md §1.3).
func (s *Store) Reset(ctx context.Context, key string) (Session, error) {
	return s.resetIf(ctx, key, func(Session) bool { return true })
}

// Renew is Reset for a session that has to begin anew, as it is at that moment; any other one it leaves
// alone. Of two that renew the same session only one does. due must not block.
func (s *Store) Renew(ctx context.Context, key string, due func(Session) bool) error {
	ses, err := s.Get(ctx, key)
	if err != nil || !due(ses) {
		return err
	}
	_, err = s.resetIf(ctx, key, due)
	return err
}

func (s *Store) resetIf(ctx context.Context, key string, due func(Session) bool) (Session, error) {
	var ses Session
	err := s.tx(ctx, func(q *sessiondb.Queries) (err error) {
		if ses, err = get(ctx, q, key); err != nil || !due(ses) {
			return err
		}
		now := s.deps.Clock.Now()
		if err := archive(ctx, q, ses, now.UnixMilli()); err != nil {
			return err
		}
		ses.reset(s.deps.NewID(), now)
		ses.UpdatedAt = now
		return put(ctx, q, ses)
	})
	if err != nil {
		return Session{}, fmt.Errorf("resetting session %s: %w", key, err)
	}
	return ses, nil
}

func archive(ctx context.Context, q *sessiondb.Queries, ses Session, now int64) error {
	return q.Archive(ctx, sessiondb.ArchiveParams{
		SessionID: ses.ID, Key: ses.Key, StartedAt: millis(ses.StartedAt), EndedAt: now,
	})
}

// Rename moves a conversation, its threads included, to another key, because its platform gave it
// another id. The old key stays an alias. If there is a session under the new key already, its
// transcript is archived: the conversation is the older one.
func (s *Store) Rename(ctx context.Context, from, to string) error {
	err := s.tx(ctx, func(q *sessiondb.Queries) error {
		children, err := q.ListChildren(ctx, from)
		if err != nil {
			return err
		}
		for _, child := range children {
			if err := s.rename(ctx, q, child, to+child[min(len(from), len(child)):], to); err != nil {
				return err
			}
		}
		err = s.rename(ctx, q, from, to, "")
		if errors.Is(err, ErrNotFound) && len(children) > 0 {
			return nil // only in its threads anything was said
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("renaming session %s: %w", from, err)
	}
	return nil
}

func (s *Store) rename(ctx context.Context, q *sessiondb.Queries, from, to, parent string) error {
	ses, err := get(ctx, q, from)
	if err != nil || ses.Key != from {
		return err // ses.Key differs: it was renamed before
	}
	now := s.deps.Clock.Now()
	if there, err := get(ctx, q, to); err == nil {
		if err := archive(ctx, q, there, now.UnixMilli()); err != nil {
			return err
		}
	} else if !errors.Is(err, ErrNotFound) {
		return err
	}
	ses.Key, ses.UpdatedAt = to, now
	if parent != "" {
		ses.Parent = parent
	}
	steps := []func() error{
		func() error { return q.DeleteSession(ctx, from) },
		func() error { return put(ctx, q, ses) },
		func() error { return q.MoveAliases(ctx, sessiondb.MoveAliasesParams{NewKey: to, Key: from}) },
		func() error { return q.DropAlias(ctx, to) },
		func() error { return q.PutAlias(ctx, sessiondb.PutAliasParams{OldKey: from, Key: to}) },
		func() error { return q.DropDecisions(ctx, to) },
		func() error { return q.MoveDecisions(ctx, sessiondb.MoveDecisionsParams{NewKey: to, Key: from}) },
		func() error { return q.MoveArchive(ctx, sessiondb.MoveArchiveParams{NewKey: to, Key: from}) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// Filter narrows List. The zero value is every session.
type Filter struct {
	AgentID    string
	Channel    string
	AutoOnly   bool // with a legacy automatic override (spec/failover.md §12)
	FallenBack bool // last answered by another model than selected
	Limit      int  // 0 = 1000
}

// List returns sessions, the last changed first.
func (s *Store) List(ctx context.Context, f Filter) ([]Session, error) {
	params := sessiondb.ListSessionsParams{AgentID: f.AgentID, Channel: f.Channel, Most: int64(f.Limit)}
	if f.Limit <= 0 {
		params.Most = 1000
	}
	if f.AutoOnly {
		params.Source = SourceAuto
	}
	if f.FallenBack {
		params.FallenBack = 1
	}
	rows, err := s.query.ListSessions(ctx, params)
	if err != nil {
		return nil, fmt.Errorf("listing sessions: %w", err)
	}
	list := make([]Session, 0, len(rows))
	for _, row := range rows {
		ses, err := fromRow(row)
		if err != nil {
			return nil, err
		}
		list = append(list, ses)
	}
	return list, nil
}

// Selection returns the override that counts for a session: its own, else that of the
// conversation it belongs to (spec/chat.md §1.1). from is the key it stands under.
func (s *Store) Selection(ctx context.Context, ses Session) (o Override, from string, err error) {
	if !ses.Override.Model.IsZero() || ses.Override.Source == SourceDefault || ses.Parent == "" {
		return ses.Override, ses.Key, nil
	}
	parent, err := s.Get(ctx, ses.Parent)
	switch {
	case errors.Is(err, ErrNotFound):
		return Override{}, ses.Key, nil
	case err != nil:
		return Override{}, "", err
	case !parent.Override.User():
		return Override{}, ses.Key, nil
	}
	return parent.Override, parent.Key, nil
}

// Children returns the keys of the threads that belong to a conversation, sorted.
func (s *Store) Children(ctx context.Context, key string) ([]string, error) {
	keys, err := s.query.ListChildren(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("threads of session %s: %w", key, err)
	}
	return keys, nil
}

func (s *Store) tx(ctx context.Context, f func(*sessiondb.Queries) error) error {
	return s.db.Write(ctx, func(tx *sqlite.Tx) error { return f(sessiondb.New(tx)) })
}
