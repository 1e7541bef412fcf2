package sqlite

import (
	"errors"
	"fmt"

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

// unwritable reports whether err means that the file, or the folder it lies in, can only be read.
func unwritable(err error) bool { return code(err) == lib.SQLITE_READONLY }

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
