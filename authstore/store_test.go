package authstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"understudy/failover/policy"
	"understudy/internal/clock"
	"understudy/internal/secret"
	"understudy/internal/sqlite"
	"understudy/llm"
)

// childEnv makes the test binary a second process that works on the store at the given path.
const childEnv = "AUTHSTORE_TEST_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		if err := child(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if path := os.Getenv(fullDiskEnv); path != "" {
		if err := fullDisk(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if path := os.Getenv(strangerEnv); path != "" {
		if err := stranger(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if path := os.Getenv(readerEnv); path != "" {
		if err := reader(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if path := os.Getenv(turnsEnv); path != "" {
		if err := turns(path, os.Getenv(serverEnv), os.Getenv(stepEnv)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

const perChild = 30

// child fails a profile many times within one window.
func child(path string) error {
	ctx := context.Background()
	s, err := Open(ctx, path, Deps{})
	if err != nil {
		return err
	}
	for range perChild {
		if _, err := s.Settle(ctx, policy.DefaultRules(), failed("openai:a", "m1", llm.ReasonRateLimit, moment)); err != nil && !errors.Is(err, ErrLate) {
			return err
		}
	}
	return s.Close()
}

var moment = time.UnixMilli(1_790_000_000_000)

func failed(id llm.ProfileID, model string, reason llm.Reason, at time.Time) policy.Attempt {
	return policy.Attempt{Profile: id, Model: model, Failure: &llm.Failure{Reason: reason}, At: at}
}

func succeeded(id llm.ProfileID, model string, at time.Time) policy.Attempt {
	return policy.Attempt{Profile: id, Model: model, At: at}
}

func mustOpen(t testing.TB, path string, deps Deps) *Store {
	t.Helper()
	s, err := Open(t.Context(), path, deps)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func newPath(t testing.TB) string { return Path(t.TempDir(), "main") }

func key(id llm.ProfileID) Profile {
	return Profile{ID: id, Kind: llm.KindAPIKey, Secret: secret.New("sk-" + string(id))}
}

func mustPut(t testing.TB, s *Store, ps ...Profile) {
	t.Helper()
	for _, p := range ps {
		if err := s.Put(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
}

func mustSettle(t testing.TB, s *Store, a policy.Attempt) []policy.Changed {
	t.Helper()
	changed, err := s.Settle(t.Context(), policy.DefaultRules(), a)
	if err != nil && !errors.Is(err, ErrLate) { // a slow machine is no fault
		t.Fatal(err)
	}
	return changed
}

func mustSnapshot(t testing.TB, s *Store) policy.Snapshot {
	t.Helper()
	snap, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// hold keeps the write lock of the store's file, as a backup would, until the result is called.
func hold(t *testing.T, path string) (release func()) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, sqlite.Options{BusyTimeout: -1})
	if err != nil {
		t.Fatal(err)
	}
	tx, err := db.Writer().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	release = func() {
		once.Do(func() {
			if err := errors.Join(tx.Rollback(), db.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(release)
	return release
}

func TestProfilesSurviveWithAllTheirFields(t *testing.T) {
	path := newPath(t)
	want := Profile{
		ID: "openai:me@example.com", Kind: llm.KindOAuth, Secret: secret.New("access"), Refresh: secret.New("refresh"),
		Expires: moment, Email: "me@example.com", AccountID: "acc", ProjectID: "prj", EnterpriseURL: "https://e.example",
		Extra: Extra{"clientId": json.RawMessage(`"app"`), "xFuture": json.RawMessage("1")},
	}
	a, b := mustOpen(t, path, Deps{}), mustOpen(t, path, Deps{})
	given := want
	given.ID = "OpenAI-Codex:me@example.com"
	mustPut(t, a, given, key("anthropic:default"))

	got, err := b.Get(t.Context(), want.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(x, y secret.String) bool { return x == y }), cmp.FilterPath(
		func(p cmp.Path) bool { return p.String() == "version" }, cmp.Ignore()), cmp.AllowUnexported(Profile{})); diff != "" {
		t.Error(diff)
	}
	wantProfiles := []policy.Profile{
		{ID: "anthropic:default", Kind: llm.KindAPIKey, HasSecret: true},
		{ID: want.ID, Kind: llm.KindOAuth, Expires: moment, HasSecret: true, HasRefresh: true},
	}
	if diff := cmp.Diff(wantProfiles, mustSnapshot(t, b).Profiles); diff != "" {
		t.Error(diff)
	}
	if err := a.Remove(t.Context(), want.ID); err != nil {
		t.Fatal(err)
	}
	if err := a.Remove(t.Context(), want.ID); !errors.Is(err, ErrNoProfile) {
		t.Errorf("removing it again: %v", err)
	}
	if ps, err := b.Profiles(t.Context()); err != nil || len(ps) != 1 {
		t.Errorf("%v, %v", ps, err)
	}
}

func TestNothingPrintsASecret(t *testing.T) {
	p := Profile{
		ID: "openai:a", Kind: llm.KindOAuth, Secret: secret.New("hunter2"), Refresh: secret.New("hunter2"),
		Extra: Extra{"idToken": json.RawMessage(`"hunter2"`)},
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(format, p); strings.Contains(text, "hunter2") {
			t.Errorf("%s shows %s", format, text)
		}
	}
}

func TestUnusableProfilesAreRefused(t *testing.T) {
	s := mustOpen(t, newPath(t), Deps{})
	for _, p := range []Profile{
		{ID: "noname", Kind: llm.KindAPIKey, Secret: secret.New("x")},
		{ID: ":x", Kind: llm.KindAPIKey, Secret: secret.New("x")},
		{ID: "a:b", Kind: llm.KindAPIKey},
		{ID: "a:b", Kind: llm.KindToken},
		{ID: "a:b", Kind: llm.KindOAuth},
		{ID: "a:b", Kind: "aws-sdk", Secret: secret.New("x")},
	} {
		if err := s.Put(t.Context(), p); err == nil {
			t.Errorf("%v was stored", p)
		}
	}
}

func TestOrders(t *testing.T) {
	s := mustOpen(t, newPath(t), Deps{})
	if err := s.SetOrder(t.Context(), "OpenAI", []llm.ProfileID{"openai:b", "OPENAI:a"}); err != nil {
		t.Fatal(err)
	}
	if err := s.SetOrder(t.Context(), "anthropic", nil); err != nil {
		t.Fatal(err)
	}
	if err := s.SetOrder(t.Context(), "openai", []llm.ProfileID{"anthropic:a"}); err == nil {
		t.Error("a foreign profile was taken into an order")
	}
	got, err := s.Orders(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]llm.ProfileID{"openai": {"openai:b", "openai:a"}, "anthropic": {}}, got); diff != "" {
		t.Error(diff)
	}
	if err := s.ClearOrder(t.Context(), "anthropic"); err != nil {
		t.Fatal(err)
	}
	if got, err = s.Orders(t.Context()); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestANewerSecretClearsHealth(t *testing.T) {
	s := mustOpen(t, newPath(t), Deps{})
	mustPut(t, s, key("openai:a"))
	mustSettle(t, s, succeeded("openai:a", "m1", moment))
	break2 := func() {
		mustSettle(t, s, failed("openai:a", "m1", llm.ReasonRateLimit, moment))
		mustSettle(t, s, failed("openai:a", "m1", llm.ReasonBilling, moment))
		synced(t, s)
	}
	break2()
	mustPut(t, s, key("openai:a")) // the same one: nothing is new
	if h := mustSnapshot(t, s).Health; len(h) != 2 {
		t.Fatalf("putting the same secret changed the health: %v", h)
	}
	p := key("openai:a")
	p.Secret = secret.New("newer")
	mustPut(t, s, p)
	want := policy.Health{{Profile: "openai:a"}: {LastUsed: moment}}
	if diff := cmp.Diff(want, mustSnapshot(t, s).Health); diff != "" {
		t.Error(diff)
	}
	break2()
	if err := s.ClearHealth(t.Context(), "openai:a"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, mustSnapshot(t, s).Health); diff != "" {
		t.Error(diff)
	}
}

func TestSnapshotIsSharedUntilSomethingChanges(t *testing.T) {
	path := newPath(t)
	a, b := mustOpen(t, path, Deps{}), mustOpen(t, path, Deps{})
	mustPut(t, a, key("openai:a"))
	mustSettle(t, a, failed("openai:a", "m1", llm.ReasonRateLimit, moment))
	synced(t, a)
	first, again := mustSnapshot(t, b), mustSnapshot(t, b)
	first.Health[policy.Key{Profile: "probe"}] = policy.Row{} // breaks the rule, to see who shares it
	if len(again.Health) != len(first.Health) {
		t.Error("the unchanged state was read again")
	}
	delete(first.Health, policy.Key{Profile: "probe"})
	mustSettle(t, a, failed("openai:a", "m2", llm.ReasonRateLimit, moment))
	synced(t, a)
	later := mustSnapshot(t, b)
	if len(first.Health) != 1 || len(later.Health) != 2 {
		t.Errorf("%d rows before, %d after another store's write; want 1 and 2", len(first.Health), len(later.Health))
	}
}

func TestLegacyFilesAreRefused(t *testing.T) {
	path := newPath(t)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Repeat("not a database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	var corrupt *sqlite.CorruptError
	if _, err := Open(t.Context(), path, Deps{}); !errors.As(err, &corrupt) {
		t.Errorf("got %v, want a CorruptError", err)
	}
}

func TestTheFirstSchemaStillOpens(t *testing.T) {
	frozen := os.DirFS("testdata/frozen")
	now, err := migrations.ReadFile("migrations/00001_first.sql")
	if err != nil {
		t.Fatal(err)
	}
	then, err := os.ReadFile("testdata/frozen/00001_first.sql")
	if err != nil {
		t.Fatal(err)
	}
	if string(now) != string(then) {
		t.Error("a released migration was edited: add a new one instead")
	}
	path := newPath(t)
	db, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlite.Migrate(t.Context(), db, "auth", frozen); err != nil {
		t.Fatal(err)
	}
	err = db.Write(t.Context(), func(tx *sqlite.Tx) error {
		for _, statement := range []string{
			`INSERT INTO profiles VALUES ('openai:a', 'api_key', 'sk', '', 0, '', '', '', '', '{"x":1}', 1, 5)`,
			`INSERT INTO health VALUES ('openai:a', 'm', 0, 5, 1, 0, 0, '{"rate_limit":1}', 5, 9, 'rate_limit', '', 1, 0, 0, '', '', 0)`,
			`INSERT INTO probes VALUES ('openai', 7, 0)`,
		} {
			if _, err := tx.ExecContext(t.Context(), statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	snap := mustSnapshot(t, mustOpen(t, path, Deps{}))
	want := policy.Snapshot{
		Profiles: []policy.Profile{{ID: "openai:a", Kind: llm.KindAPIKey, HasSecret: true}},
		Orders:   map[string][]llm.ProfileID{},
		Health: policy.Health{{Profile: "openai:a", Model: "m"}: {
			LastFailureAt: time.UnixMilli(5), ErrorCount: 1, FailureCounts: map[llm.Reason]int{llm.ReasonRateLimit: 1},
			Cooldown: policy.Window{Since: time.UnixMilli(5), Until: time.UnixMilli(9), Reason: llm.ReasonRateLimit, Stated: true},
		}},
		LastProbe: map[string]time.Time{"openai": time.UnixMilli(7)},
	}
	if diff := cmp.Diff(want, snap); diff != "" {
		t.Error(diff)
	}
}

func TestProcessesLoseNoUpdate(t *testing.T) {
	path := newPath(t)
	s := mustOpen(t, path, Deps{})
	mustPut(t, s, key("openai:a"))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), self)
			cmd.Env = append(os.Environ(), childEnv+"="+path)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("child: %v\n%s", err, out)
			}
		})
	}
	for i := range perChild { // new credentials meanwhile: nobody may write an old picture back
		mustPut(t, s, key(llm.ProfileID(fmt.Sprintf("beta:p%d", i))))
	}
	wg.Wait()
	synced(t, s)
	snap := mustSnapshot(t, s)
	if len(snap.Profiles) != perChild+1 {
		t.Errorf("%d profiles, want %d", len(snap.Profiles), perChild+1)
	}
	row := snap.Health[policy.Key{Profile: "openai:a", Model: "m1"}]
	if n := row.FailureCounts[llm.ReasonRateLimit]; n != 2*perChild {
		t.Errorf("%d failures are counted, want %d", n, 2*perChild)
	}
	if row.ErrorCount != 1 || !row.Cooldown.Until.Equal(moment.Add(30*time.Second)) {
		t.Errorf("one incident became step %d until %v", row.ErrorCount, row.Cooldown.Until)
	}
}

func TestVirtualClock(t *testing.T) {
	v := clock.NewVirtual(moment)
	s := mustOpen(t, newPath(t), Deps{Clock: v.Clock()})
	mustPut(t, s, key("openai:a"))
	var changed []policy.Changed
	var err error
	v.Clock().Go(func() {
		changed, err = s.Settle(context.Background(), policy.DefaultRules(), failed("openai:a", "m1", llm.ReasonAuth, v.Now()))
	})
	v.Run(moment.Add(time.Minute))
	if err != nil || len(changed) != 1 {
		t.Errorf("%v, %v", changed, err)
	}
	if !v.Now().Equal(moment) {
		t.Errorf("a write took %v of virtual time", v.Now().Sub(moment))
	}
}

func TestInheritance(t *testing.T) {
	dir := t.TempDir()
	base := mustOpen(t, Path(dir, "main"), Deps{})
	ops := mustOpen(t, Path(dir, "ops"), Deps{Default: base})
	t.Cleanup(func() { ops.Close() })
	mustPut(t, base, key("openai:shared"), key("openai:own"))
	own := key("openai:own")
	own.Secret = secret.New("of ops")
	mustPut(t, ops, own)

	mustSettle(t, ops, failed("openai:shared", "m1", llm.ReasonRateLimit, moment))
	mustSettle(t, ops, failed("openai:own", "m1", llm.ReasonRateLimit, moment))
	mustSettle(t, ops, failed("openai:env", "m1", llm.ReasonRateLimit, moment))
	rows := func(s *Store) (ids []llm.ProfileID) {
		for _, id := range []llm.ProfileID{"openai:env", "openai:own", "openai:shared"} {
			if _, ok := mustSnapshot(t, s).Health[policy.Key{Profile: id, Model: "m1"}]; ok {
				ids = append(ids, id)
			}
		}
		return ids
	}
	if diff := cmp.Diff([]llm.ProfileID{"openai:env", "openai:own", "openai:shared"}, rows(ops)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]llm.ProfileID{"openai:env", "openai:shared"}, rows(base)); diff != "" {
		t.Errorf("the default agent's health:\n%s", diff)
	}
	if ps, err := ops.Profiles(t.Context()); err != nil || len(ps) != 2 {
		t.Errorf("%v, %v", ps, err)
	}
	for id, want := range map[llm.ProfileID]string{"openai:own": "of ops", "openai:shared": "sk-openai:shared"} {
		c, err := ops.Credential(t.Context(), id)
		if err != nil || c.Secret.Reveal() != want {
			t.Errorf("%s: wrong secret, %v", id, err)
		}
	}
}

func TestClosedStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mustOpen(t, newPath(t), Deps{BusyTimeout: -1})
		mustPut(t, s, key("openai:a"))
		mustSettle(t, s, succeeded("openai:a", "m1", moment)) // written behind the caller's back
		path := s.db.Path()
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Fatal(err)
		}
		if err := s.Put(t.Context(), key("openai:b")); !errors.Is(err, ErrClosed) {
			t.Errorf("put: %v", err)
		}
		again := mustOpen(t, path, Deps{BusyTimeout: -1})
		if row := mustSnapshot(t, again).Health[policy.Key{Profile: "openai:a"}]; !row.LastUsed.Equal(moment) {
			t.Errorf("the last use was lost: %v", row)
		}
	})
}
