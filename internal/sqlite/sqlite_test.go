package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"testing/synctest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func migration(text string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("-- +goose Up\n" + text)}
}

var first = fstest.MapFS{"00001_first.sql": migration("CREATE TABLE t (n INTEGER NOT NULL) STRICT;\nINSERT INTO t VALUES (0);")}

func mustOpen(t *testing.T, path string, opts Options) *DB {
	t.Helper()
	db, err := Open(t.Context(), path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func fresh(t *testing.T) string { return filepath.Join(t.TempDir(), "state", "bot.sqlite") }

func number(t *testing.T, db *DB) (n int) {
	t.Helper()
	if err := db.Reader().QueryRowContext(t.Context(), "SELECT n FROM t").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestModesWhateverTheUmask(t *testing.T) {
	for _, umask := range []int{0o022, 0o000, 0o077} {
		old := syscall.Umask(umask)
		path := fresh(t)
		db := mustOpen(t, path, Options{})
		err := Migrate(t.Context(), db, "set", first)
		syscall.Umask(old)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]fs.FileMode{path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600, filepath.Dir(path): 0o700} {
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm() != want {
				t.Errorf("umask %03o: %s has mode %v, want %v", umask, filepath.Base(name), info.Mode().Perm(), want)
			}
		}
	}
}

func TestOpenToOthersIsRepairedAndSaid(t *testing.T) {
	path := fresh(t)
	if err := mustOpen(t, path, Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	mustOpen(t, path, Options{Log: slog.New(slog.NewTextHandler(&out, nil))})
	for name, want := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", name, info.Mode().Perm(), want)
		}
	}
	if got := strings.Count(out.String(), "level=WARN"); got != 2 {
		t.Errorf("%d warnings, want 2:\n%s", got, out.String())
	}
}

// foreign makes a database as another program would, with its table still in the log only.
func foreign(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := db.Exec("CREATE TABLE auth_profile_store (store_key TEXT PRIMARY KEY, store_json TEXT)"); err != nil {
		t.Fatal(err)
	}
}

// contents returns every file of a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(b)
	}
	return all
}

func TestForeignFileIsRefusedUntouched(t *testing.T) {
	path := fresh(t)
	foreign(t, path)
	before := contents(t, filepath.Dir(path))
	_, err := Open(t.Context(), path, Options{})
	var refused *ForeignError
	if !errors.As(err, &refused) || refused.Path != path {
		t.Fatalf("got %v, want a ForeignError", err)
	}
	for _, want := range []string{path, "OPENCLAW_STATE_DIR", "doctor --fix --from"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %q: %v", want, err)
		}
	}
	if !maps.Equal(before, contents(t, filepath.Dir(path))) {
		t.Error("the foreign file or its neighbours changed")
	}
}

func TestDamagedFileIsRefusedUntouched(t *testing.T) {
	noise := make([]byte, 10<<10)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	whole := func(t *testing.T) []byte {
		path := fresh(t)
		db := mustOpen(t, path, Options{})
		if err := Migrate(t.Context(), db, "set", first); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	cases := map[string]func(*testing.T) []byte{
		"noise":       func(*testing.T) []byte { return noise },
		"short":       func(*testing.T) []byte { return []byte("SQLite") },
		"half a page": func(t *testing.T) []byte { return whole(t)[:2000] },
		"lost tail":   func(t *testing.T) []byte { b := whole(t); return b[:len(b)-4096] },
		"overwritten": func(t *testing.T) []byte {
			b := whole(t)
			copy(b[4096:], noise)
			return b
		},
	}
	for name, damaged := range cases {
		t.Run(name, func(t *testing.T) {
			path := fresh(t)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			before := damaged(t)
			if err := os.WriteFile(path, before, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Open(t.Context(), path, Options{Verify: true})
			var corrupt *CorruptError
			if !errors.As(err, &corrupt) {
				t.Fatalf("got %v, want a CorruptError", err)
			}
			after, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(before, after) {
				t.Error("the damaged file was changed")
			}
		})
	}
}

func TestEmptyFileBecomesADatabase(t *testing.T) {
	path := fresh(t)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	db := mustOpen(t, path, Options{})
	if err := Migrate(t.Context(), db, "set", first); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if n := number(t, mustOpen(t, path, Options{})); n != 0 {
		t.Errorf("n = %d", n)
	}
}

func TestOddPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?c#d%20", "x&y.sqlite")
	db := mustOpen(t, path, Options{})
	if err := Migrate(t.Context(), db, "set", first); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

func TestReaderCannotWrite(t *testing.T) {
	db := mustOpen(t, fresh(t), Options{})
	if err := Migrate(t.Context(), db, "set", first); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Reader().ExecContext(t.Context(), "UPDATE t SET n = 1"); err == nil {
		t.Error("a reader wrote")
	}
}

func TestWriteRollsBack(t *testing.T) {
	db := mustOpen(t, fresh(t), Options{})
	if err := Migrate(t.Context(), db, "set", first); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	err := db.Write(t.Context(), func(tx *Tx) error {
		if _, err := tx.ExecContext(t.Context(), "UPDATE t SET n = 7"); err != nil {
			return err
		}
		return stop
	})
	if !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	if n := number(t, db); n != 0 {
		t.Errorf("n = %d after a rollback", n)
	}
}

func TestReadThenWriteLosesNothing(t *testing.T) {
	path := fresh(t)
	a, b := mustOpen(t, path, Options{}), mustOpen(t, path, Options{})
	if err := Migrate(t.Context(), a, "set", first); err != nil {
		t.Fatal(err)
	}
	const each = 25
	var wg sync.WaitGroup
	for _, db := range []*DB{a, b, a, b} {
		wg.Go(func() {
			for range each {
				err := db.Write(t.Context(), func(tx *Tx) error {
					var n int
					if err := tx.QueryRowContext(t.Context(), "SELECT n FROM t").Scan(&n); err != nil {
						return err
					}
					_, err := tx.ExecContext(t.Context(), "UPDATE t SET n = ?", n+1)
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := number(t, a); n != 4*each {
		t.Errorf("n = %d, want %d", n, 4*each)
	}
}

func TestOpenAndMigrateAtOnce(t *testing.T) {
	path := fresh(t)
	files := fstest.MapFS{
		"00001_first.sql":  first["00001_first.sql"],
		"00002_second.sql": migration("ALTER TABLE t ADD COLUMN m INTEGER NOT NULL DEFAULT 5;"),
		"00003_third.sql":  migration("UPDATE t SET n = n + 1;"),
	}
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			db, err := Open(t.Context(), path, Options{})
			if err != nil {
				t.Error(err)
				return
			}
			if err := Migrate(t.Context(), db, "set", files); err != nil {
				t.Error(err)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	db := mustOpen(t, path, Options{})
	if n := number(t, db); n != 1 {
		t.Errorf("the third migration ran %d times", n)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*.new-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestMigrationSetsAreIndependent(t *testing.T) {
	db := mustOpen(t, fresh(t), Options{})
	other := fstest.MapFS{"00001_first.sql": migration("CREATE TABLE other (n INTEGER) STRICT;")}
	for range 2 { // the second time there is nothing to do
		if err := Migrate(t.Context(), db, "set", first); err != nil {
			t.Fatal(err)
		}
		if err := Migrate(t.Context(), db, "other", other); err != nil {
			t.Fatal(err)
		}
	}
	newer := maps.Clone(first)
	newer["00002_second.sql"] = migration("CREATE TABLE second (n INTEGER) STRICT;")
	if err := Migrate(t.Context(), db, "set", newer); err != nil {
		t.Fatal(err)
	}
	if err := Migrate(t.Context(), db, "set", first); !errors.Is(err, ErrNewer) {
		t.Errorf("an older program got %v, want ErrNewer", err)
	}
	if err := Migrate(t.Context(), db, "bad name", first); err == nil {
		t.Error("a set name that is none was taken")
	}
}

func TestBrokenMigrationChangesNothing(t *testing.T) {
	db := mustOpen(t, fresh(t), Options{})
	broken := fstest.MapFS{"00001_first.sql": migration("CREATE TABLE t (n INTEGER) STRICT;\nINSERT INTO nowhere VALUES (1);")}
	if err := Migrate(t.Context(), db, "set", broken); err == nil {
		t.Fatal("no error")
	}
	if err := Migrate(t.Context(), db, "set", first); err != nil {
		t.Errorf("the repaired migration: %v", err)
	}
}

func TestBusyInsideABubble(t *testing.T) {
	path := fresh(t)
	synctest.Test(t, func(t *testing.T) {
		a, b := mustOpen(t, path, Options{BusyTimeout: -1}), mustOpen(t, path, Options{BusyTimeout: -1})
		if err := Migrate(t.Context(), a, "set", first); err != nil {
			t.Fatal(err)
		}
		err := a.Write(t.Context(), func(*Tx) error {
			inner := b.Write(t.Context(), func(*Tx) error { return nil })
			if !Busy(inner) {
				t.Errorf("got %v, want busy", inner)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if Busy(context.Canceled) {
			t.Error("any error counts as busy")
		}
	})
}

func TestCloseEmptiesTheLog(t *testing.T) {
	path := fresh(t)
	db := mustOpen(t, path, Options{})
	if err := Migrate(t.Context(), db, "set", first); err != nil {
		t.Fatal(err)
	}
	if err := db.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a log is left: %v", err)
	}
}

// Queries are compiled once, whoever runs them first, and stay right: after a failure, after the
// schema changed under them, and without keeping the log from being emptied.
func TestCompiledQueries(t *testing.T) {
	db := mustOpen(t, fresh(t), Options{})
	if err := Migrate(t.Context(), db, "set", first); err != nil {
		t.Fatal(err)
	}
	const add, get = "UPDATE t SET n = n + ?", "SELECT n FROM t"
	write := func(query string, args ...any) error {
		return db.Write(t.Context(), func(tx *Tx) error {
			_, err := tx.ExecContext(t.Context(), query, args...)
			return err
		})
	}
	read := func() (inside, single int) {
		t.Helper()
		err := db.Read(t.Context(), func(tx *Tx) error { return tx.QueryRowContext(t.Context(), get).Scan(&inside) })
		if err = errors.Join(err, db.Reads().QueryRowContext(t.Context(), get).Scan(&single)); err != nil {
			t.Fatal(err)
		}
		return inside, single
	}
	for i := range 5 {
		if err := write(add, 1); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Writes().ExecContext(t.Context(), add, 1); err != nil {
			t.Fatal(err)
		}
		if a, b := read(); a != 2*i+2 || b != a {
			t.Fatalf("round %d: %d in a transaction, %d outside", i, a, b)
		}
		for range 2 {
			if err := write("UPDATE nowhere SET n = 1"); err == nil {
				t.Fatal("a wrong query succeeds")
			}
		}
		if err := write(fmt.Sprintf("ALTER TABLE t ADD COLUMN c%d INTEGER", i)); err != nil {
			t.Fatal(err)
		}
		if err := db.Truncate(t.Context()); err != nil {
			t.Errorf("a compiled query holds the log: %v", err)
		}
	}
	if n := len(db.writes.known); n != 1 {
		t.Errorf("%d compiled queries for the writer, want 1", n)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.Write(cancelled, func(tx *Tx) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if a, b := read(); a != 10 || b != a {
		t.Errorf("after a cancelled call: %d, %d", a, b)
	}
}

// Whatever is thrown at it, the number of kept statements is bounded.
func TestCompiledQueriesAreBounded(t *testing.T) {
	db := mustOpen(t, fresh(t), Options{})
	for i := range maxCompiled + 10 {
		var n int
		if err := db.Reads().QueryRowContext(t.Context(), fmt.Sprintf("SELECT %d", i)).Scan(&n); err != nil || n != i {
			t.Fatal(n, err)
		}
	}
	if n := len(db.reads.known); n != maxCompiled {
		t.Errorf("%d kept", n)
	}
}

// BenchmarkWrite is a small transaction.
func BenchmarkWrite(b *testing.B) {
	db, err := Open(b.Context(), filepath.Join(b.TempDir(), "state", "x.sqlite"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	if err := Migrate(b.Context(), db, "set", first); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		err := db.Write(b.Context(), func(tx *Tx) error {
			_, err := tx.ExecContext(b.Context(), "UPDATE t SET n = n + ?", 1)
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
