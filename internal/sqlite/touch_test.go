package sqlite

import (
	"errors"
	"fmt"
	"os"
	"testing"
)

// A full disk lets a transaction begin and end that changes nothing: Touch is to write something.
func TestTouchWrites(t *testing.T) {
	db := mustOpen(t, fresh(t), Options{})
	size := func() int64 {
		t.Helper()
		info, err := os.Stat(db.Path() + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	before := size()
	if err := db.Write(t.Context(), func(*Tx) error { return nil }); err != nil || size() != before {
		t.Errorf("nothing was written: %v, %d bytes, then %d", err, before, size())
	}
	for range 2 { // the second time, nothing is different
		before = size()
		if err := db.Touch(t.Context()); err != nil || size() <= before {
			t.Errorf("%v, %d bytes, then %d", err, before, size())
		}
	}
}

func TestFullIsKnown(t *testing.T) {
	db := mustOpen(t, fresh(t), Options{})
	if _, err := db.Writer().ExecContext(t.Context(), "CREATE TABLE t (x); PRAGMA max_page_count = 2"); err != nil {
		t.Fatal(err)
	}
	_, err := db.Writer().ExecContext(t.Context(), "INSERT INTO t VALUES (zeroblob(100000))")
	if !Full(fmt.Errorf("storing: %w", err)) || Full(nil) || Full(errors.New("full")) {
		t.Errorf("not known: %v", err)
	}
}
