package authstore

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"understudy/authstore/internal/authdb"
	"understudy/failover/policy"
	"understudy/internal/clock"
	"understudy/internal/secret"
	"understudy/internal/sqlite"
	"understudy/llm"
)

//go:generate go tool -modfile=../tools/sqlc/go.mod sqlc generate -f ../tools/sqlc/sqlc.yaml

//go:embed migrations/*.sql
var migrations embed.FS

// Errors of a Store.
var (
	ErrNoProfile = errors.New("no such auth profile")
	ErrClosed    = errors.New("the auth store is closed")
	// ErrLate tells that a write did not reach the file within the time a turn may wait for it. It
	// counts already, and is written as soon as the file can be.
	ErrLate = errors.New("the auth store cannot be written now; the change is written later")
	// ErrDropped tells that a write was given up, because too many wait already.
	ErrDropped = errors.New("the auth store cannot be written; the change was dropped")
	// ErrRefreshLocked tells that another process is refreshing the profile and did not finish in
	// time. It is no failure of the profile: try the next one (spec/failover.md §13).
	ErrRefreshLocked = errors.New("another process is still refreshing the sign-in")
)

// Deps is what a Store needs.
type Deps struct {
	Clock clock.Clock
	// Refresher renews OAuth sign-ins; nil = none can be renewed.
	Refresher Refresher
	// Getenv reads the variables that imported references name; nil = os.Getenv.
	Getenv func(name string) string
	// Hide is told every secret before it is used, for redaction; nil = nobody needs to know.
	Hide func(...secret.String)
	// Default is the store of the default agent; nil for that agent itself.
	Default *Store
	Log     *slog.Logger // nil = slog.Default()
	// BusyTimeout is sqlite.Options.BusyTimeout: 0 in production, negative in synctest bubbles.
	BusyTimeout time.Duration
	// Volatile is sqlite.Options.Volatile: for `bot simulate`.
	Volatile bool
}

// Store is one agent's credentials and their health. It is safe for concurrent use.
type Store struct {
	db    *sqlite.DB
	query *authdb.Queries // over the readers
	deps  Deps
	// turn is held while the queue is being written; closing needs it too.
	turn chan struct{}

	mu        sync.Mutex       // never held across I/O
	committed *state           // as read from or written to the file
	shown     *policy.Snapshot // committed, and what the queue will make of it
	joined    joined           // shown together with the default agent's
	queue     []*job
	draining  context.CancelFunc // of the goroutine that empties the queue; nil = none runs
	failure   error              // of the last write, and the log says so; nil = it succeeded
	flights   map[llm.ProfileID]*flight
	unsaved   map[llm.ProfileID]Profile // refreshed tokens that are not in the file yet
	closed    bool
}

// Path returns where the store of an agent lies under the state directory.
func Path(stateDir, agentID string) string {
	return filepath.Join(stateDir, "agents", agentID, "agent", "openclaw-agent.sqlite")
}

// Open opens the store at path, creating it where there is none. Another program's database at
// that path is a *sqlite.ForeignError, a damaged one a *sqlite.CorruptError; neither is touched.
func Open(ctx context.Context, path string, deps Deps) (*Store, error) {
	if deps.Log == nil {
		deps.Log = slog.Default()
	}
	db, err := sqlite.Open(ctx, path, sqlite.Options{BusyTimeout: deps.BusyTimeout, Volatile: deps.Volatile, Verify: true, Log: deps.Log})
	if err != nil {
		return nil, fmt.Errorf("auth store: %w", err)
	}
	s := &Store{
		db: db, query: authdb.New(db.Reads()), deps: deps,
		turn:    make(chan struct{}, 1),
		flights: map[llm.ProfileID]*flight{},
		unsaved: map[llm.ProfileID]Profile{},
	}
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("auth store: %w", err), db.Close())
	}
	return s, nil
}

func (s *Store) prepare(ctx context.Context) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	if err := sqlite.Migrate(ctx, s.db, "auth", files); err != nil {
		return err
	}
	return s.reload(ctx)
}

// closeGrace is how long Close waits for a token endpoint that was already asked: its answer may
// hold the only valid refresh token.
const closeGrace = 10 * time.Second

// Close writes what still waits and closes the file. The store must not be used afterwards, nor
// may any other that reads through to it.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	if s.draining != nil {
		s.draining()
	}
	var all, asked []*flight
	for _, f := range s.flights {
		all = append(all, f)
		if f.asked {
			asked = append(asked, f)
			continue
		}
		f.cancel(ErrClosed)
	}
	s.mu.Unlock()

	awaitAll(closeGrace, asked, func(f *flight) <-chan struct{} { return f.done })
	for _, f := range asked {
		f.cancel(ErrClosed)
	}
	awaitAll(lastAttempt, all, func(f *flight) <-chan struct{} { return f.over }) // their locks are given back first
	s.turn <- struct{}{}                                                          // never given back: nobody writes any more
	err := s.writeLast()
	return errors.Join(err, s.db.Close())
}

// awaitAll waits for something of several flights, for d together.
func awaitAll(d time.Duration, flights []*flight, of func(*flight) <-chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	for _, f := range flights {
		select {
		case <-of(f):
		case <-ctx.Done():
		}
	}
}
