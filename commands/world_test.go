package commands_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"understudy/chat"
	"understudy/commands"
	"understudy/config"
	"understudy/failover/policy"
	"understudy/internal/clock"
	"understudy/internal/sqlite"
	"understudy/llm"
	"understudy/session"
)

var update = flag.Bool("update", false, "write the golden files and docs/commands.md")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is when these tests happen, a Monday.
var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

const standardConfig = `
agents:
  defaults:
    model: {primary: alpha/a1, fallbacks: [beta/b1]}
    models: {gamma/g1: {alias: gee}}
    modelPolicy: {allow: [alpha/*, beta/*, gamma/*]}
  list:
    - {id: main, default: true}
    - {id: ops, model: gamma/g1}
models:
  providers:
    alpha: {baseUrl: 'http://alpha.test/v1', models: [{id: a1, contextWindow: 1000}, {id: a2}]}
    beta: {baseUrl: 'http://beta.test/v1', models: [{id: b1}]}
    gamma: {baseUrl: 'http://gamma.test/v1', models: [{id: g1}, {id: 'g2@2026'}]}
    delta: {baseUrl: 'http://delta.test/v1', models: [{id: d1}]}
`

// world is a registry over a real session store and a real configuration.
type world struct {
	t      testing.TB
	store  *session.Store
	clock  *clock.Virtual
	lanes  lanes
	models *models
	deps   commands.Deps
	reg    *commands.Registry
}

func newWorld(t testing.TB, change ...func(*commands.Deps)) *world {
	t.Helper()
	w := &world{t: t, clock: clock.NewVirtual(noon), lanes: lanes{}, models: newModels(t, standardConfig)}
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "state", "bot.sqlite"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	n := 0
	w.store, err = session.New(t.Context(), db, session.Deps{Clock: w.clock.Clock(), NewID: func() string { n++; return fmt.Sprintf("s%d", n) }})
	if err != nil {
		t.Fatal(err)
	}
	w.deps = commands.Deps{
		Sessions: w.store, Lanes: w.lanes, Models: w.models,
		Health: func(context.Context, string) (policy.Snapshot, error) { return w.models.health, nil },
		Compact: func(ctx context.Context, c commands.Call, _ string) (int, int, error) {
			_, err := w.store.Update(ctx, c.Key, func(s *session.Session) error { s.Compactions++; return nil })
			return 900, 200, err
		},
		Clock: w.clock.Clock(), Version: "v1.2.3", Started: noon.Add(-150 * time.Minute),
	}
	for _, f := range change {
		f(&w.deps)
	}
	w.reg = commands.New(w.deps)
	return w
}

// run is what a person types. A text that is no command fails the test.
func (w *world) run(c commands.Call, text string) commands.Reply {
	w.t.Helper()
	inv, ok := w.reg.Match(text)
	if !ok {
		w.t.Fatalf("%q is no command", text)
	}
	return w.reg.Run(w.t.Context(), inv, c)
}

// says runs a command and compares the reply.
func (w *world) says(c commands.Call, text, want string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.run(c, text).Text); diff != "" {
		w.t.Errorf("%s (-want +got):\n%s", text, diff)
	}
}

// row returns the session of a call, which it creates if need be.
func (w *world) row(c commands.Call) session.Session {
	w.t.Helper()
	s, _, err := w.store.Ensure(w.t.Context(), session.Seed{Key: c.Key, AgentID: c.Agent, Parent: c.Parent, Address: c.To})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// set changes the session of a call.
func (w *world) set(c commands.Call, f func(*session.Session)) session.Session {
	w.t.Helper()
	w.row(c)
	s, err := w.store.Update(w.t.Context(), c.Key, func(s *session.Session) error { f(s); return nil })
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// direct is a call of the owner in a private chat.
func direct() commands.Call {
	a := chat.Address{Channel: "telegram", Account: "bot", Conversation: "7", Kind: chat.Direct}
	return commands.Call{
		Agent: "main", Key: "agent:main:telegram:direct:7", To: a, Owner: true,
		In: chat.Inbound{ID: "m1", Address: a, Sender: chat.Sender{ID: "7"}},
	}
}

// group is a call of somebody in a group.
func group() commands.Call {
	a := chat.Address{Channel: "telegram", Account: "bot", Conversation: "-100", Kind: chat.Group}
	return commands.Call{
		Agent: "main", Key: "agent:main:telegram:group:-100", To: a,
		In: chat.Inbound{ID: "m2", Address: a, Sender: chat.Sender{ID: "8"}},
	}
}

// topic is a call in a topic of that group.
func topic() commands.Call {
	c := group()
	c.Parent, c.Key, c.To.Thread = c.Key, c.Key+":topic:3", "3"
	return c
}

// lanes are lanes in a given state.
type lanes map[string]session.LaneState

func (l lanes) State(key string) session.LaneState { return l[key] }

func (l lanes) Stop(string, string) (queued int, active bool) { return 0, false }

// models answers from a real configuration and fixed credentials.
type models struct {
	cfg       *config.Config
	health    policy.Snapshot
	available []llm.ModelRef // through a credential, beside the configured ones
}

func newModels(t testing.TB, yaml string) *models {
	t.Helper()
	cfg, _, err := config.Parse("bot.yaml", []byte(yaml), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	m := &models{cfg: cfg}
	for id, kind := range map[llm.ProfileID]llm.CredentialKind{
		"alpha:p1": llm.KindOAuth, "alpha:me@example.com": llm.KindAPIKey, "beta:main": llm.KindAPIKey,
		"gamma:p1": llm.KindAPIKey, "gamma:p2": llm.KindToken,
	} {
		p := policy.Profile{ID: id, Kind: kind, HasSecret: true}
		if kind == llm.KindOAuth {
			p.HasRefresh = true
		}
		m.health.Profiles = append(m.health.Profiles, p)
	}
	slices.SortFunc(m.health.Profiles, func(a, b policy.Profile) int { return strings.Compare(string(a.ID), string(b.ID)) })
	m.health.Health = policy.Health{}
	return m
}

func (m *models) Agent(id string) policy.Models { return m.cfg.Agent(id).Models }

func (m *models) Resolve(_ context.Context, _, text string) (commands.Choice, error) {
	c, err := m.cfg.Resolve(text, config.Known{Profile: m.exists})
	switch {
	case errors.Is(err, config.ErrWrongProvider):
		return commands.Choice{}, errors.New("The profile belongs to another provider.") //nolint:staticcheck // a sentence for chat
	case err != nil:
		return commands.Choice{}, fmt.Errorf("I don't know %q. Try /models.", text) //nolint:staticcheck // a sentence for chat
	}
	return commands.Choice(c), nil
}

func (m *models) exists(id llm.ProfileID) bool {
	return slices.ContainsFunc(m.health.Profiles, func(p policy.Profile) bool { return p.ID == id })
}

func (m *models) ProfileExists(_ context.Context, _ string, id llm.ProfileID) bool {
	return m.exists(id)
}
func (m *models) Kind(llm.ProfileID) llm.CredentialKind { return "" }

func (m *models) Allowed(ref llm.ModelRef) bool { return m.cfg.Allowed(ref) }
func (m *models) Known(context.Context, string) []llm.ModelRef {
	return append(m.cfg.Configured(), m.available...)
}

func (m *models) Provider(id string) bool {
	_, ok := m.cfg.Models.Providers[id]
	return ok || slices.ContainsFunc(m.available, func(ref llm.ModelRef) bool { return ref.Provider == id })
}
func (m *models) Alias(ref llm.ModelRef) string { return m.cfg.Alias(ref) }

func (m *models) Info(ref llm.ModelRef) commands.Info {
	if ref == mustRef("alpha/a1") {
		return commands.Info{ContextWindow: 1000}
	}
	return commands.Info{}
}

func (m *models) Profiles(_ context.Context, _ string, ref llm.ModelRef) []llm.ProfileID {
	pool := m.cfg.Pool(ref.Provider)
	for _, p := range m.health.Profiles {
		if p.ID.Provider() == ref.Provider {
			pool.Stored = append(pool.Stored, p)
		}
	}
	return policy.Order(pool, m.health.Health, ref.Model, noon).Profiles
}

func mustRef(s string) llm.ModelRef {
	ref, err := llm.ParseRef(s)
	if err != nil {
		panic(err)
	}
	return ref
}

// golden compares a text with a file in testdata, or writes it there with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	compareFile(t, path, got+"\n")
}

func compareFile(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is stale; look at the change, then run \"go test ./commands -update\" (-file +now):\n%s", path, diff)
	}
}
