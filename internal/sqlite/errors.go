package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// ErrNewer tells that the file's schema was written by a newer version of the bot.
var ErrNewer = errors.New("the database was written by a newer version of the bot")

// ForeignError tells that the path holds a database of another program. The file is untouched.
type ForeignError struct{ Path string }

// Error names the file and the two ways out.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s is a database of another program; choose another state directory with OPENCLAW_STATE_DIR, "+
		"then take its contents over with `bot doctor --fix --from <dir>`", e.Path)
}

// Public is the same text: it holds nothing private (design §5).
func (e *ForeignError) Public() string { return e.Error() }

// CorruptError tells that the file is damaged. It is left as it is.
type CorruptError struct {
	Path string
	Err  error // what was found
}

// Error names the file and what to do.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s is damaged (%v); nothing was changed: put a backup in its place, or move the file away to start afresh", e.Path, e.Err)
}

// Unwrap returns what was found.
func (e *CorruptError) Unwrap() error { return e.Err }

// Public is the text without the driver's words.
func (e *CorruptError) Public() string {
	return fmt.Sprintf("%s is damaged; nothing was changed: put a backup in its place, or move the file away to start afresh", e.Path)
}

// Busy reports whether err means that another connection or process holds the lock. The same
// statement may be tried again later.
func Busy(err error) bool {
	switch code(err) {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return true
	}
	return false
}

// Full reports whether err means that the disk is full.
func Full(err error) bool { return code(err) == lib.SQLITE_FULL }

// unwritable reports whether err, of opening path, means that the file or the folder it lies in can only be
// read. On a disk that is mounted so, SQLite says that it cannot open what it keeps beside the file, as it
// does when the process has no file descriptor left.
func unwritable(path string, err error) bool {
	switch code(err) {
	case lib.SQLITE_READONLY:
		return true
	case lib.SQLITE_CANTOPEN:
		return unix.Access(filepath.Dir(path), unix.W_OK) != nil
	}
	return false
}

// code returns the primary result code of a driver error, 0 for any other.
func code(err error) int {
	var e *driver.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// classify turns the driver's word for damage into a CorruptError.
func classify(path string, err error) error {
	switch code(err) {
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		return &CorruptError{Path: path, Err: err}
	}
	return err
}
