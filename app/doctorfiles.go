package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"understudy/internal/sqlite"
)

// leastFree is the free space below which writing will soon fail, in bytes (spec/chat.md §7.2).
const leastFree = 200 << 20

// files checks that nobody else can read what the bot keeps, and with Fix sees to it.
func (d *doctor) files() {
	info, err := os.Stat(d.state)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !d.do.Fix:
		d.ok("files", "%s does not exist yet; the first start makes it", d.state)
		return
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(d.state, 0o700); err != nil {
			d.bad("files", "choose another directory with OPENCLAW_STATE_DIR", "%s cannot be made: %s", d.state, err)
			return
		}
		d.ok("files", "made %s", d.state)
		return
	case err != nil:
		d.bad("files", "", "%s", err)
		return
	case !info.IsDir():
		d.bad("files", "choose another directory with OPENCLAW_STATE_DIR", "%s is not a directory", d.state)
		return
	}
	before := len(d.findings)
	d.mode(d.state, info)
	err = filepath.WalkDir(d.state, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == d.state {
			return err
		}
		if e.IsDir() {
			if strings.Count(strings.TrimPrefix(path, d.state), string(filepath.Separator)) > 4 {
				return fs.SkipDir
			}
			if !private(path) {
				return nil
			}
		} else if !e.Type().IsRegular() || !private(path) {
			return nil
		}
		info, err := e.Info()
		if err == nil {
			d.mode(path, info)
		}
		return err
	})
	if err != nil {
		d.bad("files", "", "%s", err)
	}
	if len(d.findings) == before {
		d.ok("files", "nobody else can read %s", d.state)
	}
}

// private reports whether something below the state directory holds secrets or conversations.
func private(path string) bool {
	name := filepath.Base(path)
	switch name {
	case "credentials", "agents", "agent", "state", "oauth.json", "auth.json", "auth-profiles.json", "auth-state.json", cookieKeyFile:
		return true
	}
	return strings.Contains(name, ".sqlite") || strings.Contains(name, ".imported-")
}

// mode checks one file or directory.
func (d *doctor) mode(path string, info fs.FileInfo) {
	perm := info.Mode().Perm()
	if perm&0o077 == 0 {
		return
	}
	want, fix := fs.FileMode(0o600), "chmod 600 "+path
	if info.IsDir() {
		want, fix = 0o700, "chmod 700 "+path
	}
	if !d.do.Fix {
		d.warn("files", fix, "other users can reach %s (mode %04o)", path, perm)
		return
	}
	if name := filepath.Base(path); strings.Contains(name, ".sqlite") {
		if !strings.HasSuffix(name, ".sqlite") && !strings.HasSuffix(name, "-wal") && !strings.HasSuffix(name, "-shm") {
			d.warn("files", fix, "other users can reach %s (mode %04o)", path, perm) // a copy; whose, is not for us to say
		}
		return // opening one of ours does it; another program's is not ours to change
	}
	if err := os.Chmod(path, want); err != nil {
		d.bad("files", fix, "other users can reach %s and it cannot be changed: %s", path, err)
		return
	}
	d.ok("files", "took %s from other users (mode %04o is %04o now)", path, perm, want)
}

// databases checks that what is stored can be read.
func (d *doctor) databases(ctx context.Context) {
	paths, err := filepath.Glob(filepath.Join(d.state, "agents", "*", "agent", "openclaw-agent.sqlite"))
	if err != nil {
		d.bad("files", "", "%s", err)
	}
	for _, path := range append(paths, filepath.Join(d.state, "state", "bot.sqlite")) {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		d.database(ctx, path)
	}
}

func (d *doctor) database(ctx context.Context, path string) {
	db, err := sqlite.Open(ctx, path, sqlite.Options{Verify: true, BusyTimeout: d.opts.BusyTimeout, Log: quiet()})
	var foreign *sqlite.ForeignError
	var corrupt *sqlite.CorruptError
	switch {
	case errors.As(err, &foreign):
		d.bad("files", "choose another directory: OPENCLAW_STATE_DIR=DIR bot doctor --fix --from "+d.state, "%s", foreign.Public())
		return
	case errors.As(err, &corrupt):
		d.bad("files", "put a backup in its place, or move the file away to start afresh", "%s is damaged; it was left as it is", path)
		return
	case err != nil:
		d.bad("files", remedy(path, err), "%s", err)
		return
	}
	if err := db.Touch(ctx); err != nil && !sqlite.Busy(err) {
		_ = db.Close() // it fails for the same reason
		d.bad("files", remedy(path, err), "%s cannot be written: %s", path, err)
		return
	}
	var mode string
	err = db.Reader().QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode)
	if err := errors.Join(err, db.Close()); err != nil {
		d.bad("files", "", "%s: %s", path, err)
		return
	}
	if mode != "wal" {
		d.warn("files", "stop every program that uses it, then start the bot", "%s is in the mode %s instead of wal; writers will block readers", path, mode)
		return
	}
	d.ok("files", "%s is sound", path)
}

// remedy says what to do about a database that cannot be opened or written.
func remedy(path string, err error) string {
	if sqlite.Full(err) {
		return "make room on the disk"
	}
	var st unix.Stat_t
	if unix.Stat(path, &st) == nil && int(st.Uid) != os.Geteuid() && os.Geteuid() != 0 {
		return fmt.Sprintf("it belongs to the user %d: sudo chown -R %d %s", st.Uid, os.Geteuid(), filepath.Dir(path))
	}
	if errors.Is(unix.Access(filepath.Dir(path), unix.W_OK), unix.EROFS) {
		return "the disk is mounted for reading: mount it for writing, or choose another directory with OPENCLAW_STATE_DIR"
	}
	return fmt.Sprintf("is the disk full? may the user that runs the bot write the file and its folder? (chown -R USER %s)", filepath.Dir(path))
}

// disk checks where the state directory lies.
func (d *doctor) disk() {
	dir := d.state
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	free, network, err := fileSystem(dir)
	switch {
	case err != nil:
		d.warn("files", "", "the file system of %s cannot be asked: %s", dir, err)
	case network != "":
		d.bad("files", "choose a local directory with OPENCLAW_STATE_DIR", "%s lies on a network file system (%s), on which databases break", dir, network)
	case free < leastFree:
		d.bad("files", "make room", "only %d MB are free at %s", free>>20, dir)
	default:
		d.ok("files", "%d MB are free", free>>20)
	}
}

// surroundings checks what the machine has to bring.
func (d *doctor) surroundings() {
	if _, err := time.LoadLocation("Europe/Berlin"); err != nil {
		d.bad("system", "install tzdata", "there is no time zone data")
	}
	if d.state == "" {
		return
	}
	if _, err := os.Stat(filepath.Join(d.state, "lock")); err != nil {
		return // looking must not make anything
	}
	switch lock, err := takeState(d.state); {
	case errors.Is(err, ErrRunning):
		d.ok("system", "a bot serves %s", d.state)
	case err != nil:
		d.bad("files", "", "%s", err)
	default:
		_ = lock.Close()
		d.ok("system", "no bot serves %s at this moment", d.state)
	}
}
