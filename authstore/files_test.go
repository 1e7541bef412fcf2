package authstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"understudy/llm"
)

// What one process writes takes nothing from what another wrote meanwhile.
func TestWritersKeepEachOthersProfiles(t *testing.T) {
	path := newPath(t)
	server := mustOpen(t, path, Deps{Refresher: &endpoint{valid: "R1"}})
	mustPut(t, server, signIn(-time.Second))
	mustSnapshot(t, server)
	cli := mustOpen(t, path, Deps{})
	mustPut(t, cli, key("beta:p1"), key("gamma:p1"))
	if _, err := server.Credential(t.Context(), me); err != nil {
		t.Fatal(err)
	}
	mustSettle(t, server, failed("beta:p1", "m1", llm.ReasonAuth, moment))
	if access, refresh := stored(t, cli); access != "A2" || refresh != "R2" {
		t.Errorf("the sign-in is %s, %s", access, refresh)
	}
	for _, id := range []llm.ProfileID{"beta:p1", "gamma:p1"} {
		if p, err := cli.Get(t.Context(), id); err != nil || p.Secret.Reveal() != "sk-"+string(id) {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// Nobody else can read the store, what SQLite keeps beside it, or the folders above, whatever the
// umask is and was.
func TestOnlyTheOwnerCanReadTheStore(t *testing.T) {
	old := syscall.Umask(0o022)
	defer syscall.Umask(old)
	state := t.TempDir()
	path := Path(state, "main")
	check := func(when string) {
		t.Helper()
		seen := 0
		err := filepath.WalkDir(filepath.Join(state, "agents"), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err == nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: %s has mode %v", when, path, info.Mode().Perm())
			}
			if !d.IsDir() {
				seen++
			}
			return err
		})
		if err != nil || seen < 3 {
			t.Errorf("%s: %d files, %v", when, seen, err)
		}
	}
	s := mustOpen(t, path, Deps{})
	mustPut(t, s, key("openai:a"))
	check("a new one")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(path, 0o644), os.Chmod(filepath.Dir(path), 0o755)); err != nil {
		t.Fatal(err)
	}
	mustPut(t, mustOpen(t, path, Deps{}), key("openai:b"))
	check("one that was open")
}
