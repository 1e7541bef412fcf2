package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// key parses a configuration whose one provider has the given apiKey.
func key(t *testing.T, apiKey string, vars ...string) (string, *Config) {
	t.Helper()
	c := must(t, "models:\n  providers:\n    openai:\n      apiKey: "+apiKey+"\n", vars...)
	return c.Models.Providers["openai"].APIKey.Reveal(), c
}

func TestSecretReferences(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("sk-from-file\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ written, want string }{
		{"sk-plain", "sk-plain"},
		{"${KEY}", "sk-env"},
		{"'x-${KEY}-y'", "x-sk-env-y"},
		{"{source: env, id: KEY}", "sk-env"},
		{"file:" + file, "sk-from-file"},
		{"{source: file, path: " + file + "}", "sk-from-file"},
		{"123456", "123456"},
		{"'$${KEY}'", "${KEY}"},
	} {
		got, c := key(t, tt.written, "KEY", "sk-env")
		if got != tt.want || len(c.Unavailable) > 0 {
			t.Errorf("%s: %q, unavailable %v", tt.written, got, c.Unavailable)
		}
		if len(c.Secrets()) != 1 || c.Secrets()[0].Reveal() != tt.want {
			t.Errorf("%s: not among the secrets to hide", tt.written)
		}
		if plain := len(c.Plaintext()) == 1; plain != (tt.written == "sk-plain" || tt.written == "123456") {
			t.Errorf("%s: counted as plain text: %v", tt.written, plain)
		}
	}
}

func TestUnresolvedSecretSwitchesOffItsOwnerOnly(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(p, mode); err != nil {
			t.Fatal(err)
		}
		return p
	}
	good := write("good", "sk", 0o600)
	link, fifo := filepath.Join(dir, "link"), filepath.Join(dir, "fifo")
	if err := errors.Join(os.Symlink(good, link), syscall.Mkfifo(fifo, 0o600)); err != nil {
		t.Fatal(err)
	}
	for written, reason := range map[string]string{
		"${MISSING}":                           "the environment variable MISSING is not set",
		"${EMPTY}":                             "the environment variable is empty",
		"{source: env, id: MISSING}":           "the environment variable MISSING is not set",
		"file:" + dir + "/none":                "no such file or directory",
		"file:" + dir:                          "it is not a regular file",
		"file:" + link:                         "it is a symbolic link",
		"file:" + fifo:                         "it is not a regular file",
		"file:" + write("open", "sk", 0o644):   "every user of this machine can read it",
		"file:" + write("empty", " \n", 0o600): "the file is empty",
		"file:" + write("big", strings.Repeat("x", 65537), 0o600): "it is larger than 64 KiB",
	} {
		got, c := key(t, written, "EMPTY", "")
		if got != "" || len(c.Unavailable) != 1 {
			t.Errorf("%s: %q, unavailable %v", written, got, c.Unavailable)
			continue
		}
		u := c.Unavailable[0]
		if u.Provider != "openai" || u.Channel != "" || u.Problem.Key != "models.providers.openai.apiKey" || u.Problem.Line != 4 || !strings.Contains(u.Problem.Text, reason) {
			t.Errorf("%s: %+v", written, u)
		}
	}
	if _, c := key(t, "${MISSING}"); c.Agent("").ID != "main" {
		t.Error("the rest must work")
	}
}

func TestSecretThatNobodyCanDoWithout(t *testing.T) {
	want := []string{"bot.yaml:1:18: gateway.token: the environment variable MISSING is not set"}
	if diff := cmp.Diff(want, problems(t, "gateway: {token: '${MISSING}'}")); diff != "" {
		t.Error(diff)
	}
}

func TestMalformedReferences(t *testing.T) {
	for written, want := range map[string]string{
		"{source: vault, id: X}":    `"vault" is not one of env, file`,
		"{id: X}":                   `the key "source" is missing`,
		"{source: env, id: lower}":  `"lower" is not the name of an environment variable`,
		"{source: env}":             `"" is not the name of an environment variable`,
		"{source: file, path: a/b}": `"a/b" is not an absolute path`,
		"file:secrets/x":            `"secrets/x" is not an absolute path`,
		"{source: env, idd: X}":     `unknown key (did you mean "id"?)`,
		"[a]":                       "here a secret is expected, not a list",
		"'${lower}'":                "this is not a variable that can be replaced",
	} {
		got := problems(t, "models: {providers: {openai: {apiKey: "+written+"}}}")
		if len(got) == 0 || !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("%s: %v, want %q", written, got, want)
		}
	}
}

func TestOwnerOfASecret(t *testing.T) {
	for path, want := range map[string]Unavailable{
		"models.providers.OpenAI.apiKey":             {Provider: "openai"},
		`models.providers["z.ai"].headers.X`:         {Provider: "zai"},
		"channels.telegram.botToken":                 {Channel: "telegram"},
		"channels.telegram.accounts.ops.botToken":    {Channel: "telegram", Account: "ops"},
		`channels.telegram.accounts["a.b"].botToken`: {Channel: "telegram", Account: "a.b"},
		"gateway.token":                              {},
		"models.providers":                           {},
		"channels.telegram.groups[0].x":              {Channel: "telegram"},
	} {
		if got := ownerOf(path); got != want {
			t.Errorf("%s: %+v", path, got)
		}
	}
}
