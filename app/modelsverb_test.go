package app_test

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"understudy/app"
	"understudy/internal/sqlite"
)

// house is a configuration file with a state directory, without a bot.
func house(t *testing.T, text string) (o app.Options, dir string) {
	t.Helper()
	dir = t.TempDir()
	o = app.Options{Config: filepath.Join(dir, "bot.yaml"), Env: func(name string) (string, bool) {
		v, ok := map[string]string{"OPENCLAW_STATE_DIR": filepath.Join(dir, "state"), "OLLAMA_HOST": "127.0.0.1:1"}[name]
		return v, ok
	}}
	if err := os.WriteFile(o.Config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return o, dir
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestModelsAreSetInTheFile(t *testing.T) {
	const before = `# ours
agents:
  defaults:
    model: # who answers
      primary: sim/lead # the lead
    models:
      sim/understudy: {alias: second}
models:
  providers:
    sim: {}
    house: {baseUrl: 'http://127.0.0.1:1/v1', apiKey: sk-house-1234567890abcdef} # a comment
`
	o, dir := house(t, before)
	edit := func(want int, c app.ModelsChange, dry bool) string {
		t.Helper()
		exit, text := run(func(std app.Std) int { return app.ModelsEdit(o, std, c, dry) })
		if exit != want {
			t.Errorf("%+v: exit %d, %s", c, exit, text)
		}
		return text
	}
	if text := edit(app.ExitOK, app.ModelsChange{Add: "second"}, true); !strings.Contains(text, "+       fallbacks: [sim/understudy]") {
		t.Errorf("the difference: %s", text)
	}
	for name, c := range map[string]app.ModelsChange{
		"a model of nobody":    {Primary: "nobody/x"},
		"a bare id":            {Primary: "lead-9"},
		"a profile":            {Primary: "sim/lead@sim:a"},
		"none of them":         {Remove: "house/x"},
		"itself as a fallback": {Add: "sim/lead"},
		"no reference":         {Add: "a b"},
	} {
		if text := edit(app.ExitFailed, c, false); !strings.HasPrefix(text, "bot: ") {
			t.Errorf("%s: %s", name, text)
		}
	}
	if text := edit(app.ExitOK, app.ModelsChange{Primary: "sim/lead"}, false); !strings.Contains(text, "That is so already") {
		t.Errorf("no change: %s", text)
	}
	if got := read(t, o.Config); got != before {
		t.Errorf("what must not change anything made it: %s", got)
	}

	edit(app.ExitOK, app.ModelsChange{Add: "second"}, false)
	edit(app.ExitOK, app.ModelsChange{Add: "house/big"}, false)
	edit(app.ExitOK, app.ModelsChange{Remove: "sim/understudy"}, false)
	edit(app.ExitOK, app.ModelsChange{Primary: "second"}, false)
	want := strings.Replace(before, "      primary: sim/lead # the lead\n", "      primary: sim/understudy # the lead\n      fallbacks: [house/big]\n", 1)
	if got := read(t, o.Config); got != want {
		t.Errorf("the file is now\n%s", got)
	}
	if exit, text := run(func(std app.Std) int { return app.FallbacksList(o, std) }); exit != app.ExitOK || text != "house/big\n" {
		t.Errorf("exit %d, %s", exit, text)
	}
	edit(app.ExitOK, app.ModelsChange{Clear: true}, false)
	if got := read(t, o.Config); !strings.Contains(got, "fallbacks: []\n") {
		t.Errorf("the file is now\n%s", got)
	}
	if info, err := os.Stat(o.Config); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".bot-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestAnEditNeverShowsASecretNorBreaksAFile(t *testing.T) {
	o, dir := house(t, "{agents: {defaults: {model: sim/lead}}, models: {providers: {sim: {}, house: {baseUrl: 'http://127.0.0.1:1/v1', apiKey: sk-house-1234567890abcdef}}}}\n")
	exit, text := run(func(std app.Std) int {
		return app.ModelsEdit(o, std, app.ModelsChange{Primary: "sim/understudy"}, true)
	})
	if exit != app.ExitOK || strings.Contains(text, "1234567890") || !strings.Contains(text, "sim/understudy") {
		t.Errorf("exit %d, %s", exit, text)
	}
	real := filepath.Join(dir, "real.yaml")
	if err := os.Rename(o.Config, real); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real.yaml", o.Config); err != nil {
		t.Fatal(err)
	}
	if exit, text := run(func(std app.Std) int {
		return app.ModelsEdit(o, std, app.ModelsChange{Primary: "sim/understudy"}, false)
	}); exit != app.ExitOK {
		t.Errorf("through a link: exit %d, %s", exit, text)
	}
	if info, err := os.Lstat(o.Config); err != nil || info.Mode()&os.ModeSymlink == 0 || !strings.Contains(read(t, real), "sim/understudy") {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}

	own, _ := house(t, "agents: {defaults: {model: sim/lead}, list: [{id: main, model: sim/understudy}]}\nmodels: {providers: {sim: {}}}\n")
	if exit, text := run(func(std app.Std) int {
		return app.ModelsEdit(own, std, app.ModelsChange{Primary: "sim/understudy"}, false)
	}); exit != app.ExitFailed || !strings.Contains(text, "agents.list") {
		t.Errorf("an agent with its own model: exit %d, %s", exit, text)
	}
	broken, _ := house(t, "agents: {defaults: {modl: x}}\n")
	if exit, _ := run(func(std app.Std) int {
		return app.ModelsEdit(broken, std, app.ModelsChange{Primary: "sim/lead"}, false)
	}); exit != app.ExitConfig {
		t.Errorf("a broken file: exit %d", exit)
	}
}

func TestSecretsAudit(t *testing.T) {
	const key = "sk-house-1234567890abcdef"
	o, dir := house(t, "models: {providers: {house: {baseUrl: 'http://127.0.0.1:1/v1', apiKey: "+key+"}, sim: {}}}\n")
	audit := func() (int, string) {
		return run(func(std app.Std) int { return app.SecretsAudit(t.Context(), o, std, false) })
	}
	if exit, text := audit(); exit != app.ExitFailed || !strings.Contains(text, "models.providers.house.apiKey is written in the configuration itself") || strings.Contains(text, key) {
		t.Errorf("a key in the file: exit %d, %s", exit, text)
	}
	if err := os.WriteFile(o.Config, []byte("models: {providers: {house: {baseUrl: 'http://127.0.0.1:1/v1', apiKey: 'file:"+dir+"/key'}, sim: {}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if exit, text := audit(); exit != app.ExitFailed || !strings.Contains(text, "apiKey") {
		t.Errorf("a reference to nothing: exit %d, %s", exit, text)
	}
	if err := os.WriteFile(dir+"/key", []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	if exit, text := audit(); exit != app.ExitOK {
		t.Errorf("all is well: exit %d, %s", exit, text)
	}
	old := filepath.Join(dir, "state", "agents", "main", "agent", "auth.json.imported-20260921T141320Z")
	if err := os.MkdirAll(filepath.Dir(old), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(old, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if exit, text := audit(); exit != app.ExitFailed || !strings.Contains(text, "still holds credentials that were imported") {
		t.Errorf("a file that was imported: exit %d, %s", exit, text)
	}
	if err := os.Remove(old); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(o.Config, 0o622); err != nil {
		t.Fatal(err)
	}
	if exit, text := audit(); exit != app.ExitFailed || !strings.Contains(text, "other users can change") {
		t.Errorf("an open file: exit %d, %s", exit, text)
	}
}

func TestABackupHoldsConversationsAndNoSecret(t *testing.T) {
	s := newScripts(t, "gateway: {token: a-token-of-some-length}\n")
	s.expect("turn.run", `{"session":"x","message":"remember the milk"}`, `"status":"answered"`)
	dir := t.TempDir()
	file := filepath.Join(dir, "backup.tgz")
	backup := func() (int, string) {
		return run(func(std app.Std) int { return app.Backup(t.Context(), s.o, std, file) })
	}
	if exit, text := backup(); exit != app.ExitOK {
		t.Fatalf("exit %d, %s", exit, text)
	}
	if exit, _ := backup(); exit != app.ExitFailed {
		t.Error("a backup was written over another")
	}
	parts := unpack(t, file)
	if text := parts["bot.yaml"]; !strings.Contains(text, "sim/lead") || strings.Contains(text, "a-token-of-some-length") {
		t.Errorf("the configuration: %s", text)
	}
	copied := filepath.Join(dir, "bot.sqlite")
	if err := os.WriteFile(copied, []byte(parts["state/bot.sqlite"]), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(t.Context(), copied, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var n int
	if err := db.Reads().QueryRowContext(t.Context(), "SELECT count(*) FROM transcript WHERE content_json LIKE '%milk%'").Scan(&n); err != nil || n == 0 {
		t.Errorf("%d entries, %v", n, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".bot-*")); len(left) > 0 || len(parts) != 2 {
		t.Errorf("left behind: %v; %d parts", left, len(parts))
	}
	o, dir := house(t, offlineModels)
	if exit, text := run(func(std app.Std) int { return app.Backup(t.Context(), o, std, dir+"/b.tar") }); exit != app.ExitFailed || !strings.Contains(text, "no conversations yet") {
		t.Errorf("of nothing: exit %d, %s", exit, text)
	}
	if _, err := os.Stat(dir + "/b.tar"); err == nil {
		t.Error("half a backup was left")
	}
}

// unpack reads an archive.
func unpack(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return parts
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		parts[h.Name] = string(text)
	}
}
