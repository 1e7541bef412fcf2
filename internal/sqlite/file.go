package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
)

// applicationID marks our files in the database header ("UNDS").
const applicationID = 0x554e4453

// The database header (https://www.sqlite.org/fileformat2.html#the_database_header).
const (
	headerSize       = 100
	magic            = "SQLite format 3\x00"
	offPageSize      = 16
	offChange        = 24
	offPages         = 28
	offApplicationID = 68
	offVersionValid  = 92
)

// state is what stands at a database path.
type state uint8

const (
	missing state = iota
	empty         // a file of no bytes: nothing of anybody's
	ours
)

// inspect reads the header of the file at path without opening it as a database, so that a file
// that is not ours gains neither a byte nor a side file.
func inspect(path string) (state, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return missing, nil
	}
	if err != nil {
		return missing, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return missing, err
	}
	if !info.Mode().IsRegular() {
		return missing, fmt.Errorf("%s is not a regular file", path)
	}
	if info.Size() == 0 {
		return empty, nil
	}
	header := make([]byte, headerSize)
	if _, err := io.ReadFull(f, header); err != nil {
		return missing, &CorruptError{Path: path, Err: errors.New("too short for a database")}
	}
	if !bytes.HasPrefix(header, []byte(magic)) {
		return missing, &CorruptError{Path: path, Err: errors.New("not a database")}
	}
	if binary.BigEndian.Uint32(header[offApplicationID:]) != applicationID {
		return missing, &ForeignError{Path: path}
	}
	return ours, checkLength(path, header, info.Size())
}

// checkLength finds a file that lost its end. Pages beyond the end may stand in the log, so the
// check counts only where there is none.
func checkLength(path string, header []byte, size int64) error {
	page := int64(binary.BigEndian.Uint16(header[offPageSize:]))
	if page == 1 {
		page = 65536
	}
	pages := int64(binary.BigEndian.Uint32(header[offPages:]))
	valid := bytes.Equal(header[offChange:offChange+4], header[offVersionValid:offVersionValid+4])
	if !valid || size >= page*pages {
		return nil
	}
	if wal, err := os.Stat(path + "-wal"); err == nil && wal.Size() > 0 {
		return nil
	}
	return &CorruptError{Path: path, Err: fmt.Errorf("%d of %d bytes are left", size, page*pages)}
}

// makeDir creates the directory of a database with mode 0700, whatever the umask.
func makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	return os.MkdirAll(dir, 0o700)
}

// restrict takes the permissions of everybody else away from the database, its side files and its
// directory, and says so: somebody may have read what they hold.
func restrict(path string, log *slog.Logger) error {
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err == nil && info.Mode()&os.ModeSticky == 0 && info.Mode().Perm()&0o077 != 0 {
		log.Warn("directory was open to other users", "path", dir, "mode", info.Mode().Perm().String())
		if err := os.Chmod(dir, info.Mode().Perm()&0o700); err != nil {
			log.Warn("directory stays open to other users", "path", dir, "error", err)
		}
	}
	for _, name := range []string{path, path + "-wal", path + "-shm", path + "-journal"} {
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 == 0 {
			continue
		}
		log.Warn("database was open to other users", "path", name, "mode", info.Mode().Perm().String())
		if err := os.Chmod(name, 0o600); err != nil {
			log.Warn("database stays open to other users", "path", name, "error", err)
		}
	}
	return nil
}
