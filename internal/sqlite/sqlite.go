package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	driver "modernc.org/sqlite"
)

// Defaults of Options.
const (
	DefaultBusyTimeout = 5 * time.Second
	DefaultReaders     = 4
)

// Options adjust Open. The zero value is what production uses.
type Options struct {
	// BusyTimeout is how long a statement waits for the lock of another process: 0 means
	// DefaultBusyTimeout, a negative value not to wait at all. Inside a testing/synctest bubble it
	// must be negative, because the driver waits in real time.
	BusyTimeout time.Duration
	// Readers is the size of the reader pool; 0 means DefaultReaders.
	Readers int
	// Verify reads the whole file once and refuses a damaged one. For small files that hold
	// something irreplaceable.
	Verify bool
	// Volatile is for files that nobody needs after a crash of the machine: nothing waits for the
	// disk.
	Volatile bool
	// Log gets the warning about a file that others could read; nil is slog.Default().
	Log *slog.Logger
}

// DB is one database file. It is safe for concurrent use.
type DB struct {
	path   string
	writer *sql.DB
	reader *sql.DB
	writes *statements // of writer
	reads  *statements // of reader
}

// Open opens the database at path and creates it (mode 0600, missing directories 0700) where there
// is none. It returns a *ForeignError for another program's database and a *CorruptError for a
// damaged one; neither is touched. One that stands where nothing can be written is opened for reading,
// with a warning.
func Open(ctx context.Context, path string, opts Options) (*DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("opening a database: %w", err)
	}
	db, err := open(ctx, path, opts.withDefaults())
	if err != nil {
		err = classify(path, err)
		var foreign *ForeignError
		var corrupt *CorruptError
		if errors.As(err, &foreign) || errors.As(err, &corrupt) {
			return nil, err
		}
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	return db, nil
}

func (o Options) withDefaults() Options {
	switch {
	case o.BusyTimeout == 0:
		o.BusyTimeout = DefaultBusyTimeout
	case o.BusyTimeout < 0:
		o.BusyTimeout = 0
	}
	if o.Readers <= 0 {
		o.Readers = DefaultReaders
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return o
}

func open(ctx context.Context, path string, opts Options) (*DB, error) {
	if err := makeDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	at, err := inspect(path)
	if err != nil {
		return nil, err
	}
	switch at {
	case missing:
		err = create(ctx, path, opts)
	case empty:
		err = mark(ctx, path, opts)
	}
	if err != nil {
		return nil, err
	}
	if err := restrict(path, opts.Log); err != nil {
		return nil, err
	}
	db, err := connect(ctx, path, opts, "_txlock=immediate&_pragma=journal_mode(WAL)", "_query_only=1")
	if at != ours || !unwritable(path, err) {
		return db, err
	}
	how := frozen
	if logged(path) {
		how = guarded
	}
	db, again := connect(ctx, path, opts, how, how)
	if again != nil {
		return nil, errors.Join(err, again)
	}
	opts.Log.Warn("database can only be read", "path", path, "error", err)
	return db, nil
}

// guarded opens a file with a log where nothing can be written. SQLite reads both if what it keeps beside
// them is there too.
const guarded = "mode=ro&_query_only=1"

// frozen opens a file where nothing can be written, not even what SQLite keeps beside a database in
// WAL mode. Every write fails.
const frozen = "mode=ro&immutable=1&_query_only=1"

// logged reports whether there is a log that a frozen file would be read without.
func logged(path string) bool {
	info, err := os.Stat(path + "-wal")
	return err == nil && info.Size() > 0
}

// connect opens the connections of a file that exists and looks at it.
func connect(ctx context.Context, path string, opts Options, writing, reading string) (*DB, error) {
	db := &DB{path: path}
	var err error
	if db.writer, err = pool(path, 1, opts, writing); err != nil {
		return nil, err
	}
	if db.reader, err = pool(path, opts.Readers, opts, reading); err != nil {
		return nil, errors.Join(err, db.writer.Close())
	}
	db.writes, db.reads = newStatements(db.writer), newStatements(db.reader)
	if err := db.probe(ctx, opts.Verify); err != nil {
		return nil, errors.Join(err, db.reader.Close(), db.writer.Close())
	}
	return db, nil
}

// probe makes the first real access, so that a damaged file is found here and not in some turn.
func (db *DB) probe(ctx context.Context, verify bool) error {
	var n int
	if err := db.writer.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&n); err != nil {
		return err
	}
	if !verify {
		return nil
	}
	var verdict string
	if err := db.writer.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return err
	}
	if verdict != "ok" {
		return &CorruptError{Path: db.path, Err: errors.New(verdict)}
	}
	return nil
}

// create makes the file under a name of its own and links it into place. When another process was
// faster, its file stands.
func create(ctx context.Context, path string, opts Options) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*") // mode 0600
	if err != nil {
		return err
	}
	name := f.Name()
	defer os.Remove(name)
	if err := f.Close(); err != nil {
		return err
	}
	if err := mark(ctx, name, opts); err != nil {
		return err
	}
	err = os.Link(name, path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	if _, exists := os.Lstat(path); exists == nil {
		return nil
	}
	return os.Rename(name, path) // a file system without links
}

// mark turns a file of no bytes into an empty database of ours.
func mark(ctx context.Context, path string, opts Options) error {
	db, err := pool(path, 1, opts, "")
	if err != nil {
		return err
	}
	for _, pragma := range []string{"PRAGMA application_id = " + strconv.Itoa(applicationID), "PRAGMA journal_mode = WAL"} {
		if _, err := db.ExecContext(ctx, pragma); err != nil {
			return errors.Join(err, db.Close())
		}
	}
	return db.Close()
}

// pool opens a handle of at most n connections.
func pool(path string, n int, opts Options, extra string) (*sql.DB, error) {
	busy, sync := strconv.FormatInt(opts.BusyTimeout.Milliseconds(), 10), "NORMAL"
	if opts.Volatile {
		sync = "OFF"
	}
	dsn := (&url.URL{Scheme: "file", Path: path}).String() +
		"?_pragma=busy_timeout(" + busy + ")&_pragma=synchronous(" + sync + ")&_pragma=foreign_keys(1)"
	if extra != "" {
		dsn += "&" + extra
	}
	c, err := driver.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return db, nil
}

// Path returns the file's absolute path.
func (db *DB) Path() string { return db.path }

// Writer returns the handle of the one writing connection. Inside a transaction it must not be
// used beside the transaction: it would wait for itself for ever.
func (db *DB) Writer() *sql.DB { return db.writer }

// Reader returns the pool of connections that cannot write.
func (db *DB) Reader() *sql.DB { return db.reader }

// Writes returns what runs single statements on the writing connection, under the same rule as
// Writer.
func (db *DB) Writes() Pool { return Pool{db.writes} }

// Reads returns what runs single queries on the connections that cannot write.
func (db *DB) Reads() Pool { return Pool{db.reads} }

// Touch changes the file and commits: only that tells whether it can be written. A transaction that changes
// nothing succeeds on a full disk too.
func (db *DB) Touch(ctx context.Context) error {
	_, err := db.writer.ExecContext(ctx, "PRAGMA user_version = 1") // the number means nothing
	return err
}

// Write runs f in one immediate transaction and commits unless f returns an error. f may run
// statements and nothing else: no network, no waiting, no other transaction.
func (db *DB) Write(ctx context.Context, f func(*Tx) error) error {
	return db.writes.run(ctx, f)
}

// Read runs f on one consistent state of the file.
func (db *DB) Read(ctx context.Context, f func(*Tx) error) error {
	return db.reads.run(ctx, f)
}

func (s *statements) run(ctx context.Context, f func(*Tx) error) error {
	begun, err := s.pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	tx := &Tx{tx: begun, s: s}
	if err := f(tx); err != nil {
		if back := begun.Rollback(); back != nil && !errors.Is(back, sql.ErrTxDone) {
			err = errors.Join(err, back)
		}
		return err
	}
	if err := begun.Commit(); err != nil {
		return err
	}
	tx.learn(ctx)
	return nil
}

// Flush makes everything committed so far safe against a power loss. It waits for nobody: what a
// reader still needs stays in the log, synced.
func (db *DB) Flush(ctx context.Context) error {
	return db.checkpoint(ctx, "PASSIVE")
}

// Truncate moves the log into the database and empties it. Once a day keeps it small.
func (db *DB) Truncate(ctx context.Context) error {
	return db.checkpoint(ctx, "TRUNCATE")
}

func (db *DB) checkpoint(ctx context.Context, mode string) error {
	var busy, pages, moved int
	err := db.writer.QueryRowContext(ctx, "PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &pages, &moved)
	if err != nil {
		return fmt.Errorf("checkpoint of %s: %w", db.path, err)
	}
	return nil
}

// Close empties the log into the database and closes it. Readers in other processes do not keep it
// from closing.
func (db *DB) Close() error {
	err := db.reader.Close()
	if at := db.Truncate(context.Background()); at != nil && !Busy(at) && !errors.Is(at, sql.ErrConnDone) {
		err = errors.Join(err, at)
	}
	return errors.Join(err, db.writer.Close())
}
