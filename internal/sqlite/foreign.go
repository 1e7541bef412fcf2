package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	driver "modernc.org/sqlite"
)

// ErrOurs tells that a database that was to be read as another program's is one of ours.
var ErrOurs = errors.New("the database is one of this program")

// ErrMoving tells that another program writes a database faster than it can be copied.
var ErrMoving = errors.New("another program is writing the database at this moment; stop it and try again")

// maxForeign bounds the copy that is made of another program's database, in bytes.
const maxForeign = 4 << 30

// Foreign reads the database of another program. It never writes a byte to it, nor a file beside
// it: a database with unfinished work in its log is copied first and read from the copy.
type Foreign struct {
	db   *sql.DB
	copy string // directory of the copy; "" = none was needed
	// Open tells that the other program seems to have the database open.
	Open bool
}

// OpenForeign opens the database at path, which must be a regular file and no symbolic link.
// scratch is a private directory for a copy. fs.ErrNotExist is returned as such.
func OpenForeign(ctx context.Context, path, scratch string) (*Foreign, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	at, err := inspect(path)
	var foreign *ForeignError
	switch {
	case err == nil && at == ours:
		return nil, ErrOurs
	case err == nil:
		return nil, &CorruptError{Path: path, Err: errors.New("too short for a database")}
	case !errors.As(err, &foreign):
		return nil, err
	}
	f := &Foreign{}
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: "mode=ro&immutable=1&_query_only=1"}
	if f.Open = pending(path); f.Open {
		if f.copy, err = os.MkdirTemp(scratch, "import-*"); err != nil {
			return nil, err
		}
		name := filepath.Join(f.copy, "copy.sqlite")
		if err := copyDatabase(path, name); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		dsn = url.URL{Scheme: "file", Path: name}
	}
	c, err := driver.NewConnector(dsn.String())
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	f.db = sql.OpenDB(c)
	f.db.SetMaxOpenConns(1)
	var n int
	if err := f.db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&n); err != nil {
		return nil, errors.Join(classify(path, err), f.Close())
	}
	return f, nil
}

// sides are the files beside a database that may hold a part of it.
func sides() []string { return []string{"-wal", "-journal"} }

// pending reports whether a part of the database at path stands in a file beside it.
func pending(path string) bool {
	for _, s := range sides() {
		if info, err := os.Lstat(path + s); err == nil && info.Size() > 0 {
			return true
		}
	}
	return false
}

// copyDatabase copies a database with its log. When somebody wrote meanwhile it starts again.
func copyDatabase(from, to string) error {
	for range 5 {
		before, err := stamps(from)
		if err != nil {
			return err
		}
		for _, s := range append(sides(), "") {
			if err := copyFile(from+s, to+s); err != nil && (s == "" || !errors.Is(err, fs.ErrNotExist)) {
				return err
			}
		}
		after, err := stamps(from)
		if err != nil {
			return err
		}
		if before == after {
			return nil
		}
		for _, s := range append(sides(), "") {
			if err := os.Remove(to + s); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return ErrMoving
}

// stamps tells whether a database or its log changed.
func stamps(path string) (string, error) {
	var all string
	for _, s := range append(sides(), "") {
		info, err := os.Lstat(path + s)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			all += "-;"
		case err != nil:
			return "", err
		case !info.Mode().IsRegular():
			return "", fmt.Errorf("%s is not a regular file", path+s)
		default:
			all += fmt.Sprint(info.Size(), info.ModTime().UnixNano(), ";")
		}
	}
	return all, nil
}

func copyFile(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(dst, io.LimitReader(src, maxForeign+1))
	if err == nil && n > maxForeign {
		err = fmt.Errorf("%s is larger than 4 GiB", from)
	}
	return errors.Join(err, dst.Close())
}

// Table names a table of text documents: a column of keys and a column of values.
type Table struct{ Name, Key, Value string }

// Document returns the value that stands in a table under a key, of at most most bytes; ok is false
// when there is no such table, column or row.
func (f *Foreign) Document(ctx context.Context, t Table, key string, most int64) (doc []byte, ok bool, err error) {
	var columns int
	err = f.db.QueryRowContext(ctx, "SELECT count(*) FROM pragma_table_info(?) WHERE name IN (?, ?)", t.Name, t.Key, t.Value).Scan(&columns)
	if err != nil || columns < 2 {
		return nil, false, err
	}
	var size sql.NullInt64
	query := fmt.Sprintf(`FROM %q WHERE %q = ?`, t.Name, t.Key)
	err = f.db.QueryRowContext(ctx, fmt.Sprintf("SELECT length(CAST(%q AS BLOB)) ", t.Value)+query, key).Scan(&size)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && !size.Valid:
		return nil, false, nil
	case err != nil:
		return nil, false, err
	case size.Int64 > most:
		return nil, false, fmt.Errorf("the document %s of table %s has %d bytes; at most %d are read", key, t.Name, size.Int64, most)
	}
	err = f.db.QueryRowContext(ctx, fmt.Sprintf("SELECT CAST(%q AS BLOB) ", t.Value)+query, key).Scan(&doc)
	return doc, err == nil, err
}

// Close closes the database and removes the copy.
func (f *Foreign) Close() error {
	var err error
	if f.db != nil {
		err = f.db.Close()
	}
	if f.copy != "" {
		err = errors.Join(err, os.RemoveAll(f.copy))
	}
	return err
}
