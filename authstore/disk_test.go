package authstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/failover/policy"
	"understudy/internal/secret"
	"understudy/internal/sqlite"
	"understudy/llm"
)

// The variables that make the test binary a process on the store at a path: whose disk is full, who is not
// root, or for whom the disk can only be read.
const (
	fullDiskEnv = "AUTHSTORE_TEST_FULL_DISK"
	strangerEnv = "AUTHSTORE_TEST_STRANGER"
	readerEnv   = "AUTHSTORE_TEST_READER"
)

// runChild runs the test binary as another process.
func runChild(t *testing.T, env, path string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), env+"="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// fill lets no file of this process grow or change any more, or lets them again.
func fill(full bool) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	limit.Cur = limit.Max
	if full {
		limit.Cur = 1
	}
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
}

// fullDisk uses the store at path while nothing can be written.
func fullDisk(path string) error {
	ctx := context.Background()
	signal.Ignore(syscall.SIGXFSZ)
	e := &endpoint{valid: "R1"}
	s, err := Open(ctx, path, Deps{Refresher: e, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if err := fill(true); err != nil {
		return err
	}
	if _, err := s.Settle(ctx, policy.DefaultRules(), failed("openai:a", "m1", llm.ReasonAuth, moment)); !errors.Is(err, ErrLate) {
		return fmt.Errorf("settle: %w", err)
	}
	if snap, err := s.Snapshot(ctx); err != nil || len(snap.Health) != 1 {
		return fmt.Errorf("what happened does not count: %v, %w", snap.Health, err)
	}
	if cred, err := s.Credential(ctx, "openai:a"); err != nil || cred.Secret.Reveal() != "sk-openai:a" {
		return fmt.Errorf("the key: %w", err)
	}
	other := key("openai:a")
	other.Secret = secret.New("sk-other")
	if err := s.Put(ctx, other); err == nil {
		return errors.New("a key was stored on a full disk")
	}
	if _, err := s.Credential(ctx, me); err == nil || e.count() != 0 {
		return fmt.Errorf("refreshed without the lock (%d calls): %w", e.count(), err)
	}
	// The disk fills up after the lock was taken: the new tokens are used, and saved when they can be.
	if err := fill(false); err != nil {
		return err
	}
	e.do = func(context.Context) {
		if err := fill(true); err != nil {
			panic(err)
		}
	}
	for range 2 {
		if cred, err := s.Credential(ctx, me); err != nil || cred.Secret.Reveal() != "A2" || e.count() != 1 {
			return fmt.Errorf("the sign-in after %d calls: %w", e.count(), err)
		}
	}
	if err := fill(false); err != nil {
		return err
	}
	return s.Close()
}

func TestAFullDiskLosesNothing(t *testing.T) {
	path := newPath(t)
	s := mustOpen(t, path, Deps{})
	mustPut(t, s, key("openai:a"), signIn(-time.Second))
	runChild(t, fullDiskEnv, path)
	if access, refresh := stored(t, s); access != "A2" || refresh != "R2" {
		t.Errorf("the sign-in is %s, %s", access, refresh)
	}
	if p, err := s.Get(t.Context(), "openai:a"); err != nil || p.Secret.Reveal() != "sk-openai:a" {
		t.Errorf("the key: %v", err)
	}
	if h := mustSnapshot(t, s).Health; h[policy.Key{Profile: "openai:a"}].ErrorCount != 1 {
		t.Errorf("health %v", h)
	}
}

// nobody is a user without rights.
const nobody = 65534

// stranger uses the store at path as somebody who may not write there, or may not even look.
func stranger(path string) error {
	if os.Getuid() == 0 {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody)); err != nil {
			return err
		}
	}
	return reader(path)
}

// reader uses the store at path where nothing can be written.
func reader(path string) error {
	ctx := context.Background()
	_, closed := os.ReadFile(path)
	s, err := Open(ctx, path, Deps{Refresher: &endpoint{valid: "R1"}, Log: slog.New(slog.DiscardHandler)})
	var corrupt *sqlite.CorruptError
	var foreign *sqlite.ForeignError
	switch {
	case closed != nil && err != nil && !errors.As(err, &corrupt) && !errors.As(err, &foreign) && strings.Contains(err.Error(), filepath.Dir(path)):
		return nil
	case closed != nil || err != nil:
		return fmt.Errorf("%w, and opened: %w", closed, err)
	}
	if cred, err := s.Credential(ctx, "openai:a"); err != nil || cred.Secret.Reveal() != "sk-openai:a" {
		return fmt.Errorf("the key: %w", err)
	}
	if cred, err := s.Credential(ctx, me); err != nil || cred.Secret.Reveal() != "A1" {
		return fmt.Errorf("a sign-in that lasts another minute: %w", err)
	}
	if _, err := s.Settle(ctx, policy.DefaultRules(), failed("openai:a", "m1", llm.ReasonAuth, moment)); !errors.Is(err, ErrLate) {
		return fmt.Errorf("settle: %w", err)
	}
	if snap, err := s.Snapshot(ctx); err != nil || len(snap.Health) != 1 {
		return fmt.Errorf("what happened does not count: %v, %w", snap.Health, err)
	}
	if err := s.Put(ctx, key("openai:b")); err == nil {
		return errors.New("a key was stored")
	}
	if err := s.Close(); err == nil {
		return errors.New("closing does not tell that something could not be written")
	}
	return nil
}

func TestAReadOnlyDirectoryLosesNothing(t *testing.T) {
	for name, mode := range map[string]struct{ folder, file fs.FileMode }{
		"folder":         {0o500, 0o600},
		"file":           {0o700, 0o400},
		"folder, file":   {0o500, 0o400},
		"nothing at all": {0, 0o600},
	} {
		t.Run(name, func(t *testing.T) {
			base, err := os.MkdirTemp("", "authstore") // that of the test is closed to others
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(base) })
			path := Path(base, "main")
			s := mustOpen(t, path, Deps{})
			mustPut(t, s, key("openai:a"), signIn(time.Minute))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			protect(t, base, filepath.Dir(path), mode.folder, mode.file)
			runChild(t, strangerEnv, path)
			protect(t, base, filepath.Dir(path), 0o700, 0o600)
			after, err := os.ReadFile(path)
			if err != nil || string(after) != string(before) {
				t.Errorf("the file was changed: %v", err)
			}
			if p, err := mustOpen(t, path, Deps{}).Get(t.Context(), "openai:a"); err != nil || p.Secret.Reveal() != "sk-openai:a" {
				t.Errorf("the key: %v", err)
			}
		})
	}
}

// A store that belongs to another user and stands open to everybody is used too: that is for its owner to
// change.
func TestAStoreOfSomebodyElseIsUsed(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	base, err := os.MkdirTemp("", "authstore") // that of the test is closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	path := Path(base, "main")
	s := mustOpen(t, path, Deps{})
	mustPut(t, s, key("openai:a"), signIn(time.Minute))
	if err := errors.Join(s.Close(), os.Chmod(path, 0o644)); err != nil {
		t.Fatal(err)
	}
	for dir := filepath.Dir(path); len(dir) >= len(base); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	runChild(t, strangerEnv, path)
}

// protect sets the modes of the store's folder and of what is in it; everything from base on belongs
// to nobody, if this process may give it away.
func protect(t *testing.T, base, folder string, folderMode, fileMode fs.FileMode) {
	t.Helper()
	if err := os.Chmod(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error {
		if err == nil && os.Getuid() == 0 {
			err = os.Lchown(path, nobody, nobody)
		}
		if err == nil && !d.IsDir() {
			err = os.Chmod(path, fileMode)
		}
		return err
	})
	if err := errors.Join(err, os.Chmod(folder, folderMode)); err != nil {
		t.Fatal(err)
	}
}
