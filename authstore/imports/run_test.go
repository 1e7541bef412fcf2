package imports

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"understudy/authstore"
	"understudy/failover/policy"
	"understudy/internal/secret"
	"understudy/llm"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		dieAt(dir, os.Getenv(stepEnv))
		return
	}
	goleak.VerifyTestMain(m)
}

// house is a state directory with its stores.
type house struct {
	t      *testing.T
	dir    string
	stores map[string]*authstore.Store
}

func newHouse(t *testing.T) *house {
	h := &house{t: t, dir: t.TempDir(), stores: map[string]*authstore.Store{}}
	t.Cleanup(func() {
		for _, s := range h.stores {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return h
}

func (h *house) store(agent string) *authstore.Store {
	h.t.Helper()
	s, err := h.open(h.t.Context(), agent)
	if err != nil {
		h.t.Fatal(err)
	}
	return s.(*authstore.Store)
}

func (h *house) open(ctx context.Context, agent string) (Store, error) {
	if s, ok := h.stores[agent]; ok {
		return s, nil
	}
	s, err := authstore.Open(ctx, authstore.Path(h.dir, agent), authstore.Deps{Getenv: func(string) string { return "" }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	h.stores[agent] = s
	return s, nil
}

func (h *house) options() Options {
	return Options{StateDir: h.dir, Main: "main", Rules: policy.DefaultRules(), Now: func() time.Time { return now }, Open: h.open}
}

func (h *house) run(change func(*Options)) []Result {
	h.t.Helper()
	o := h.options()
	if change != nil {
		change(&o)
	}
	results, err := Run(h.t.Context(), o)
	if err != nil {
		h.t.Fatal(err)
	}
	return results
}

// write puts a file below the state directory, readable by everybody, as careless programs do.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func secretOf(t *testing.T, s *authstore.Store, id llm.ProfileID) string {
	t.Helper()
	p, err := s.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return p.Secret.Reveal() + "/" + p.Refresh.Reveal()
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, ".sqlite") {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		list = append(list, rel)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

const agentDir = "agents/main/agent/"

func TestLegacyFilesAreTakenOverOnce(t *testing.T) {
	h := newHouse(t)
	write(t, h.dir, agentDir+profilesFile, `{"version":1,"profiles":{
		"openai:work":{"type":"api_key","provider":"openai","key":"sk-1"},
		"openai:bad":{"type":"api_key","provider":"openai"}},
		"order":{"openai":["openai:bad"],"anthropic":["anthropic:default"]}}`)
	write(t, h.dir, agentDir+stateFile, `{"order":{"openai":["openai:work"]},"usageStats":{"openai:work":{"lastUsed":1772445600000},"nobody:x":{"lastUsed":1772445600000}}}`)
	write(t, h.dir, agentDir+authFile, `{"anthropic":{"type":"oauth","access":"A","refresh":"R","expires":5000000000000},"openai":{"type":"api_key","key":"sk-2"}}`)
	write(t, h.dir, "agents/ops/agent/"+authFile, `{"anthropic":{"type":"oauth","access":"A","refresh":"R","expires":5000000000000},"groq":{"key":"gk"}}`)
	write(t, h.dir, signInsFile, `{"google":{"access":"GA","refresh":"GR","expires":5000000000000,"email":"a@b.c"}}`)

	got := h.run(nil)
	path := func(name string) string { return filepath.Join(h.dir, name) }
	const stamp = ".imported-20260921T141320Z"
	want := []Result{
		{Source: path(agentDir + profilesFile), Agent: "main", Status: Imported, Added: []llm.ProfileID{"openai:work"}, Problems: []Problem{{"openai:bad", errNoSecret.Error()}}},
		{Source: path(agentDir + stateFile), Agent: "main", Status: Imported},
		{Source: path(agentDir + authFile), Agent: "main", Status: Imported, Added: []llm.ProfileID{"anthropic:default", "openai:default"}},
		{Source: path(signInsFile), Agent: "main", Status: Imported, Added: []llm.ProfileID{"google:a@b.c"}},
		{Source: path("agents/ops/agent/" + authFile), Agent: "ops", Status: Imported, Added: []llm.ProfileID{"groq:default"}, Shared: []llm.ProfileID{"anthropic:default"}},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Result{}, "Archived")); diff != "" {
		t.Fatal(diff)
	}
	wantFiles := []string{
		agentDir + profilesFile + stamp, agentDir + stateFile + stamp, agentDir + authFile + stamp,
		"agents/ops/agent/" + authFile + stamp, signInsFile,
	}
	if diff := cmp.Diff(wantFiles, files(t, h.dir)); diff != "" {
		t.Error(diff)
	}
	for _, name := range wantFiles[:4] {
		if info, err := os.Stat(path(name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	snap, err := h.store("main").Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]llm.ProfileID{"openai": {"openai:work"}, "anthropic": {"anthropic:default"}}, snap.Orders); diff != "" {
		t.Error(diff)
	}
	if len(snap.Health) != 1 || snap.Health[policy.Key{Profile: "openai:work"}].LastUsed.UnixMilli() != 1772445600000 {
		t.Errorf("health %v", snap.Health)
	}
	for _, r := range h.run(nil) {
		if r.Status != Unchanged {
			t.Errorf("the second run: %+v", r)
		}
	}
}

func TestTheStoreWins(t *testing.T) {
	h := newHouse(t)
	s := h.store("main")
	ours := authstore.Profile{ID: "openai:default", Kind: llm.KindOAuth, Secret: secret.New("A9"), Refresh: secret.New("R9"), Expires: now.Add(time.Hour)}
	if err := s.Put(t.Context(), ours); err != nil {
		t.Fatal(err)
	}
	if err := s.SetOrder(t.Context(), "openai", nil); err != nil {
		t.Fatal(err)
	}
	write(t, h.dir, signInsFile, `{"openai":{"access":"A1","refresh":"R1","expires":1772445600000}}`)
	write(t, h.dir, agentDir+profilesFile, `{"profiles":{"openai:default":{"type":"oauth","provider":"openai","access":"A2","refresh":"R2"}},"order":{"openai":["openai:default"]},"usageStats":{"openai:default":{"cooldownUntil":9000000000000}}}`)
	for range 2 {
		h.run(nil)
		if got := secretOf(t, s, "openai:default"); got != "A9/R9" {
			t.Errorf("the store holds %s", got)
		}
	}
	snap, err := s.Snapshot(t.Context())
	if err != nil || len(snap.Orders["openai"]) != 0 || len(snap.Health) != 0 {
		t.Errorf("orders %v, health %v, %v", snap.Orders, snap.Health, err)
	}
	// A file that comes back changed is imported again, and still loses.
	write(t, h.dir, agentDir+profilesFile, `{"profiles":{"openai:default":{"type":"oauth","provider":"openai","access":"A3","refresh":"R3"},"openai:new":{"type":"api_key","provider":"openai","key":"k"}}}`)
	h.run(nil)
	if got := secretOf(t, s, "openai:default"); got != "A9/R9" {
		t.Errorf("the store holds %s", got)
	}
	if got := secretOf(t, s, "openai:new"); got != "k/" {
		t.Errorf("new: %s", got)
	}
}

func TestDamagedAndHostileSourcesAreLeftAlone(t *testing.T) {
	h := newHouse(t)
	broken := write(t, h.dir, agentDir+profilesFile, `{"profiles":{"a:1":{"type":"api_key","provider":"a","key":"k"},"a:2":{"type":`)
	target := write(t, h.dir, "elsewhere.json", `{"x":{"key":"k"}}`)
	if err := os.Symlink(target, filepath.Join(h.dir, agentDir+stateFile)); err != nil {
		t.Fatal(err)
	}
	write(t, h.dir, agentDir+authFile, `{"groq":{"key":"g"}}`)
	large := write(t, h.dir, "agents/ops/agent/"+authFile, `{}`)
	if err := os.Truncate(large, maxDocument+1); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(h.dir, "agents/dir/agent/"+authFile), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, h.dir, "agents/empty/agent/"+profilesFile, `{"version":1,"profiles":{}}`)
	by := map[string]Result{}
	for _, r := range h.run(nil) {
		rel, _ := filepath.Rel(h.dir, r.Source)
		by[rel] = r
	}
	for name, want := range map[string]string{
		agentDir + profilesFile: "a:2", agentDir + stateFile: "symbolic link", "agents/ops/agent/" + authFile: "8 MiB", "agents/dir/agent/" + authFile: "regular file",
	} {
		if r := by[name]; r.Status != Damaged || !strings.Contains(r.Error, want) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := by["agents/empty/agent/"+profilesFile]; r.Status != Empty {
		t.Errorf("empty: %+v", r)
	}
	if r := by[agentDir+authFile]; r.Status != Imported || secretOf(t, h.store("main"), "groq:default") != "g/" {
		t.Errorf("the good file beside them: %+v", r)
	}
	if text, err := os.ReadFile(broken); err != nil || len(text) == 0 {
		t.Errorf("the damaged file: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(h.dir, agentDir+stateFile)); err != nil {
		t.Error(err)
	}
}

// foreignDB writes a database as the other program does; busy leaves its log behind.
func foreignDB(t *testing.T, path, table, key, value string, docs map[string]string, busy bool) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)")
	if err != nil {
		t.Fatal(err)
	}
	exec := func(q string, args ...any) {
		if _, err := db.Exec(q, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE TABLE IF NOT EXISTS " + table + " (" + key + " TEXT PRIMARY KEY, " + value + " TEXT, updated_at INTEGER)")
	for k, v := range docs {
		exec("INSERT OR REPLACE INTO "+table+" VALUES (?, ?, 1)", k, v)
	}
	if busy {
		t.Cleanup(func() { _ = db.Close() })
		return
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestDatabasesOfAnotherDirectory(t *testing.T) {
	for _, busy := range []bool{false, true} {
		h := newHouse(t)
		other := t.TempDir()
		path := filepath.Join(other, "agents/main/agent", agentStore)
		foreignDB(t, path, "auth_profile_store", "store_key", "store_json", map[string]string{
			"primary": `{"version":1,"profiles":{"openai:work":{"type":"api_key","provider":"openai","key":"k1"},"openai:me":{"type":"oauth","provider":"openai","access":"A","refresh":"R","expires":5000000000000}}}`,
		}, busy)
		foreignDB(t, path, "auth_profile_state", "state_key", "state_json", map[string]string{"primary": `{"lastGood":{"openai":"openai:work"}}`}, busy)
		foreignDB(t, filepath.Join(other, machineStore), "config_machine_state", "state_key", "value_json", map[string]string{
			"authProfiles.store": `{"version":1,"profiles":{"groq:default":{"type":"api_key","provider":"groq","key":"k2"}}}`,
		}, false)
		before := listing(t, other)

		from := func(o *Options) { o.From = other }
		results := h.run(from)
		if len(results) != 2 || results[0].InUse != busy || results[0].Status != Imported || len(results[0].Withheld) != 1 {
			t.Fatalf("%+v", results)
		}
		s := h.store("main")
		if secretOf(t, s, "openai:work") != "k1/" || secretOf(t, s, "groq:default") != "k2/" {
			t.Error("the keys were not imported")
		}
		if _, err := s.Get(t.Context(), "openai:me"); !errors.Is(err, authstore.ErrNoProfile) {
			t.Errorf("a sign-in was adopted unasked: %v", err)
		}
		if good, err := s.LastGood(t.Context()); err != nil || good["openai"] != "openai:work" {
			t.Errorf("last good %v %v", good, err)
		}
		if results := h.run(from); results[0].Status != Unchanged {
			t.Errorf("again: %+v", results[0])
		}
		h.run(func(o *Options) { o.From, o.AdoptOAuth = other, true })
		if got := secretOf(t, s, "openai:me"); got != "A/R" {
			t.Errorf("adopted %s", got)
		}
		if diff := cmp.Diff(before, listing(t, other)); diff != "" {
			t.Errorf("the other directory was touched: %s", diff)
		}
		if left, _ := filepath.Glob(filepath.Join(h.dir, "import-*")); len(left) > 0 {
			t.Errorf("copies are left: %v", left)
		}
	}
}

func TestOurOwnDirectoryIsNoSource(t *testing.T) {
	h := newHouse(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(h.dir, link); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{h.dir, link} {
		o := h.options()
		o.From = from
		if _, err := Run(t.Context(), o); !errors.Is(err, ErrSameDirectory) {
			t.Errorf("%s: %v", from, err)
		}
	}
	o := h.options()
	if o.From = filepath.Join(h.dir, "none"); true {
		if _, err := Run(t.Context(), o); !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	}
}

func listing(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			out[path] = info.Size()<<20 ^ info.ModTime().UnixNano()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestFirstUseReadsTheSharedSignIns(t *testing.T) {
	h := newHouse(t)
	s := h.store("main")
	if _, ok := FirstUse(t.Context(), s, h.options()); ok {
		t.Error("there is no file")
	}
	path := write(t, h.dir, signInsFile, `{"openai-codex":{"access":"A","refresh":"R","expires":5000000000000,"email":"me@example.com"},"bad":7}`)
	r, ok := FirstUse(t.Context(), s, h.options())
	if !ok || r.Status != Imported || len(r.Problems) != 1 || secretOf(t, s, "openai:me@example.com") != "A/R" {
		t.Errorf("%+v %v", r, ok)
	}
	if err := s.Remove(t.Context(), "openai:me@example.com"); err != nil {
		t.Fatal(err)
	}
	if r, ok := FirstUse(t.Context(), s, h.options()); ok {
		t.Errorf("read twice: %+v", r)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

func TestPendingTellsWhatWaits(t *testing.T) {
	h := newHouse(t)
	write(t, h.dir, agentDir+profilesFile, `{"profiles":{"a:1":{"type":"api_key","provider":"a","key":"k"}}}`)
	write(t, h.dir, agentDir+stateFile, `{"order":{"a":["a:1"]}}`)
	write(t, h.dir, "agents/ops/agent/"+profilesFile, `{"version":1,"profiles":{}}`)
	before := listing(t, h.dir)
	got := Pending(t.Context(), h.options())
	if len(got) != 2 || got[0].Status != Waiting || got[1].Status != Empty {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff(before, listing(t, h.dir)); diff != "" {
		t.Error(diff)
	}
}

func TestAFileThatChangesMeanwhileStays(t *testing.T) {
	h := newHouse(t)
	path := write(t, h.dir, agentDir+authFile, `{"groq":{"key":"g"}}`)
	o := h.options()
	o.Open = func(ctx context.Context, agent string) (Store, error) {
		write(t, h.dir, agentDir+authFile, `{"groq":{"key":"newer-and-longer"}}`)
		return h.open(ctx, agent)
	}
	results, err := Run(t.Context(), o)
	if err != nil || !strings.Contains(results[0].Error, "changed") {
		t.Errorf("%+v %v", results, err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

// The shared sign-ins are read at first use, everything else when a person asks for it; what was read
// first is ours then, and wins (spec/imports.md).
func TestTheSharedSignInIsThereBeforeTheWaitingOne(t *testing.T) {
	h := newHouse(t)
	s := h.store("main")
	write(t, h.dir, signInsFile, `{"openai":{"access":"A1","refresh":"R1","expires":5000000000000}}`)
	write(t, h.dir, agentDir+profilesFile, `{"profiles":{"openai:default":{"type":"oauth","provider":"openai","access":"A2","refresh":"R2","expires":5000000000000}}}`)
	if r, ok := FirstUse(t.Context(), s, h.options()); !ok || len(r.Added) != 1 {
		t.Errorf("%+v", r)
	}
	var kept []llm.ProfileID
	for _, r := range h.run(nil) {
		kept = append(kept, r.Kept...)
		if len(r.Added) > 0 {
			t.Errorf("added again: %+v", r)
		}
	}
	if got := secretOf(t, s, "openai:default"); got != "A1/R1" || !slices.Equal(kept, []llm.ProfileID{"openai:default"}) {
		t.Errorf("the store holds %s, kept %v", got, kept)
	}
}
