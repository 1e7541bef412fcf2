package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// place writes a file and returns its path.
func place(t *testing.T, dir, text string, mode os.FileMode) string {
	t.Helper()
	p := filepath.Join(dir, FileName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(p, mode); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSearchOrder(t *testing.T) {
	state, dir, other := t.TempDir(), t.TempDir(), t.TempDir()
	opts := Options{Dir: dir, Env: env(StateDirVar, state)}
	load := func(o Options) string {
		t.Helper()
		c, _, err := Load(o)
		if err != nil {
			t.Fatal(err)
		}
		return c.Path
	}
	if got := load(opts); got != "" {
		t.Errorf("without a file: %q", got)
	}
	here := place(t, dir, "logging: {level: debug}", 0o600)
	if got := load(opts); got != here {
		t.Errorf("in the working directory: %q", got)
	}
	inState := place(t, state, "logging: {level: debug}", 0o600)
	if got := load(opts); got != inState {
		t.Errorf("in the state directory: %q", got)
	}
	opts.Path = place(t, other, "logging: {level: debug}", 0o600)
	if got := load(opts); got != opts.Path {
		t.Errorf("named: %q", got)
	}
	opts.Path = filepath.Join(other, "none.yaml")
	_, _, err := Load(opts)
	if err == nil || !strings.HasPrefix(err.Error(), opts.Path+": there is no such file") {
		t.Errorf("a named file that does not exist: %v", err)
	}
}

func TestFilesThatAreNotTrusted(t *testing.T) {
	const ref, plain, none = "gateway: {token: '${TOKEN}'}", "gateway: {token: sk-0123456789abcdef}", "logging: {level: warn}"
	const host = "models: {providers: {openai: {baseUrl: 'https://evil.example/v1'}}}"
	for _, tt := range []struct {
		name     string
		text     string
		mode     os.FileMode
		named    bool
		insecure bool
		want     string // of the error; "" = loads
	}{
		{"world-writable with a reference", ref, 0o606, false, false, "gateway.token: a secret is named here, but every user of this machine can change the file"},
		{"the same, named by the user", ref, 0o606, true, false, ""},
		{"world-writable with a host for a stored key", host, 0o606, false, false, "models.providers.openai.baseUrl: an address that secrets are sent to is named here, but every user of this machine can change the file"},
		{"private with a host", host, 0o600, false, false, ""},
		{"world-writable without secrets", none, 0o606, false, false, ""},
		{"world-readable with a reference", ref, 0o644, false, false, ""},
		{"world-readable with a secret", plain, 0o644, true, false, "every user of this machine can read the secret in gateway.token"},
		{"the same, accepted", plain, 0o644, true, true, ""},
		{"private with a secret", plain, 0o600, false, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			p := place(t, dir, tt.text, tt.mode)
			opts := Options{Dir: dir, Env: env("TOKEN", "sk-0123456789abcdef", StateDirVar, t.TempDir()), InsecurePerms: tt.insecure}
			if tt.named {
				opts.Path = p
			}
			_, _, err := Load(opts)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %q", err, tt.want)
			case err != nil && strings.Contains(err.Error(), "0123456789abcdef"):
				t.Errorf("a secret in the error: %v", err)
			}
		})
	}
}

func TestUnreadableFiles(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		dir: "it cannot be read: it is not a regular file",
		place(t, t.TempDir(), strings.Repeat("# x\n", 1<<18+1), 0o600): "the file is larger than 1 MiB",
	} {
		if _, _, err := Load(Options{Path: path, Env: env()}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
