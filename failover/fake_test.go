package failover_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/failover"
	"understudy/failover/policy"
	"understudy/internal/clock"
	"understudy/internal/secret"
	"understudy/llm"
)

// stage is everything a Runner needs, on a virtual clock: a credential store in memory and models
// that do what the test says.
type stage struct {
	*testing.T
	v        *clock.Virtual
	store    *memStore
	settings failover.Settings
	info     map[llm.ModelRef]failover.ModelInfo
	idle     time.Duration
	answer   map[string]func(ctx context.Context, call int, req llm.Request) iter.Seq2[llm.Event, error] // by model
	runner   *failover.Runner
	log      bytes.Buffer

	mu    sync.Mutex
	calls []string // "a1@p1"
	count map[string]int
	at    []time.Duration
}

var start = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

func newStage(t *testing.T, profiles ...string) *stage {
	s := &stage{
		T: t, v: clock.NewVirtual(start), settings: failover.Settings{Rules: policy.DefaultRules()},
		info: map[llm.ModelRef]failover.ModelInfo{}, idle: 2 * time.Minute, count: map[string]int{},
		answer: map[string]func(context.Context, int, llm.Request) iter.Seq2[llm.Event, error]{},
		store:  &memStore{rows: policy.Health{}, probes: map[string]time.Time{}},
	}
	if len(profiles) == 0 {
		profiles = []string{"alpha:p1", "beta:p1", "gamma:p1"}
	}
	for _, p := range profiles {
		s.store.profiles = append(s.store.profiles, policy.Profile{ID: llm.ProfileID(p), Kind: llm.KindAPIKey, HasSecret: true})
	}
	s.runner = failover.New(failover.Deps{
		Store:    func(string) (failover.Store, error) { return s.store, nil },
		Models:   func() failover.Models { return s },
		Settings: func() *failover.Settings { return &s.settings },
		Clock:    s.v.Clock(),
		Log:      slog.New(slog.NewJSONHandler(&s.log, nil)),
	})
	return s
}

func (s *stage) Client(provider string) (llm.Client, error) {
	if provider == "nowhere" {
		return nil, errors.New("not configured")
	}
	return s, nil
}
func (s *stage) Info(ref llm.ModelRef) failover.ModelInfo { return s.info[ref] }
func (s *stage) IdleTimeout(string) time.Duration         { return s.idle }
func (s *stage) Virtual(string) (policy.Profile, llm.Credential, bool) {
	return policy.Profile{}, llm.Credential{}, false
}

// Stream implements llm.Client for every provider.
func (s *stage) Stream(ctx context.Context, cred llm.Credential, req llm.Request) iter.Seq2[llm.Event, error] {
	if cred.Profile.Provider() != req.Model.Provider {
		s.Errorf("%s was asked with a credential of %s", req.Model, cred.Profile)
	}
	s.mu.Lock()
	s.count[req.Model.Model]++
	n := s.count[req.Model.Model]
	s.calls = append(s.calls, req.Model.Model+"@"+cred.Profile.Name())
	s.at = append(s.at, s.v.Now().Sub(start))
	s.mu.Unlock()
	if f := s.answer[req.Model.Model]; f != nil {
		return f(ctx, n, req)
	}
	return says("ok from "+req.Model.Model)(ctx, n, req)
}

func (s *stage) story() string { return strings.Join(s.calls, " ") }

type seq = iter.Seq2[llm.Event, error]

type behaviour = func(context.Context, int, llm.Request) seq

func says(text string) behaviour {
	return func(context.Context, int, llm.Request) iter.Seq2[llm.Event, error] {
		return func(yield func(llm.Event, error) bool) {
			if yield(llm.Event{Text: text}, nil) {
				yield(llm.Event{Done: &llm.Done{Stop: llm.StopEnd}}, nil)
			}
		}
	}
}

func fails(f llm.Failure) behaviour {
	return func(context.Context, int, llm.Request) iter.Seq2[llm.Event, error] {
		return func(yield func(llm.Event, error) bool) {
			yield(llm.Event{}, &llm.Error{Failure: f, Err: errors.New("upstream")})
		}
	}
}

// first behaves like a for the first n calls and like b afterwards.
func first(n int, a, b behaviour) behaviour {
	return func(ctx context.Context, call int, req llm.Request) iter.Seq2[llm.Event, error] {
		if call <= n {
			return a(ctx, call, req)
		}
		return b(ctx, call, req)
	}
}

// hangs yields the texts and then nothing, until the context ends.
func (s *stage) hangs(texts ...string) behaviour {
	return func(ctx context.Context, _ int, _ llm.Request) iter.Seq2[llm.Event, error] {
		return func(yield func(llm.Event, error) bool) {
			for _, x := range texts {
				if !yield(llm.Event{Text: x}, nil) {
					return
				}
			}
			err := s.v.Clock().Await(ctx, nil)
			yield(llm.Event{}, err)
		}
	}
}

// drips yields one piece of text every pause.
func (s *stage) drips(n int, pause time.Duration) behaviour {
	return func(ctx context.Context, _ int, _ llm.Request) iter.Seq2[llm.Event, error] {
		return func(yield func(llm.Event, error) bool) {
			for range n {
				if err := s.v.Clock().Sleep(ctx, pause); err != nil {
					yield(llm.Event{}, err)
					return
				}
				if !yield(llm.Event{Text: "."}, nil) {
					return
				}
			}
			yield(llm.Event{Done: &llm.Done{Stop: llm.StopEnd}}, nil)
		}
	}
}

// host is a turn that writes down what it is told.
type host struct {
	text      string
	forgotten int
	retrying  []time.Duration
	left      bool
	compacted func() ([]llm.Message, bool)
	switched  []failover.Plan
	now       func() time.Time
}

func (h *host) Text(s string) bool { h.text += s; return h.left }
func (h *host) Forget()            { h.forgotten++; h.text = "" }
func (h *host) StillRetrying()     { h.retrying = append(h.retrying, h.now().Sub(start)) }
func (h *host) Compact(context.Context, llm.ModelRef) ([]llm.Message, bool) {
	if h.compacted == nil {
		return nil, false
	}
	return h.compacted()
}

func (h *host) Switched(context.Context) (failover.Plan, bool) {
	if len(h.switched) == 0 {
		return failover.Plan{}, false
	}
	p := h.switched[0]
	h.switched = h.switched[1:]
	return p, true
}

func plan(chain string) failover.Plan {
	p := failover.Plan{Ref: failover.Ref{Agent: "main", Session: "s1", Turn: "t1"}}
	for _, s := range strings.Fields(chain) {
		ref, err := llm.ParseRef(s)
		if err != nil {
			panic(err)
		}
		p.Chain = append(p.Chain, ref)
	}
	p.Selected = p.Chain[0]
	p.Strict = len(p.Chain) == 1
	return p
}

// turn runs one Ask on the virtual clock.
func (s *stage) turn(p failover.Plan, h *host) (failover.Answer, *failover.Run, error) {
	return s.turnWith(context.Background(), p, h)
}

func (s *stage) turnWith(ctx context.Context, p failover.Plan, h *host) (a failover.Answer, run *failover.Run, err error) {
	s.Helper()
	h.now = s.v.Now
	s.v.Clock().Go(func() {
		run = s.runner.Begin(ctx, p, h)
		defer run.Finish()
		a, err = run.Ask(ctx, llm.Request{Messages: []llm.Message{llm.Text(llm.RoleUser, "hi")}})
	})
	s.v.Run(start.Add(1000 * time.Hour))
	if run == nil {
		s.Fatal("the turn did not begin")
	}
	return a, run, err
}

// decisions returns the model_fallback_decision records of the log.
func (s *stage) decisions() []map[string]any {
	var out []map[string]any
	for line := range strings.Lines(s.log.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			s.Fatal(err)
		}
		if m["msg"] == "model_fallback_decision" {
			out = append(out, m)
		}
	}
	return out
}

// memStore is a failover.Store in memory.
type memStore struct {
	mu       sync.Mutex
	profiles []policy.Profile
	orders   map[string][]llm.ProfileID
	rows     policy.Health
	probes   map[string]time.Time
	broken   error
	refused  map[llm.ProfileID]error
	released int
}

func (m *memStore) Snapshot(context.Context) (policy.Snapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken != nil {
		return policy.Snapshot{}, m.broken // as the real store does
	}
	return policy.Snapshot{Profiles: m.profiles, Orders: m.orders, Health: maps.Clone(m.rows), LastProbe: maps.Clone(m.probes)}, nil
}

func (m *memStore) Credential(_ context.Context, id llm.ProfileID) (llm.Credential, error) {
	if err := m.refused[id]; err != nil {
		return llm.Credential{}, err
	}
	return llm.Credential{Profile: id, Kind: llm.KindAPIKey, Secret: secret.New("key-of-" + string(id))}, nil
}

func (m *memStore) Settle(_ context.Context, r policy.Rules, a policy.Attempt) ([]policy.Changed, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken != nil {
		return nil, m.broken
	}
	all, one := policy.Key{Profile: a.Profile}, policy.Key{Profile: a.Profile, Model: a.Model}
	after := r.Settle(policy.Pair{All: m.rows[all], Model: m.rows[one]}, a)
	var changed []policy.Changed
	for k, row := range map[policy.Key]policy.Row{all: after.All, one: after.Model} {
		if !row.Equal(m.rows[k]) {
			changed = append(changed, policy.Changed{Key: k, Row: row})
		}
		m.rows[k] = row
	}
	return changed, nil
}

func (m *memStore) ClaimProbe(_ context.Context, provider string, now time.Time) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last, ok := m.probes[provider]; ok && now.Sub(last) < policy.ProbeThrottle {
		return false, nil
	}
	m.probes[provider] = now
	return true, nil
}

func (m *memStore) ReleaseProbe(_ context.Context, provider string, _ time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.released++
	delete(m.probes, provider)
	return nil
}

func (m *memStore) cool(profile, model string, reason llm.Reason, until time.Duration) {
	k := policy.Key{Profile: llm.ProfileID(profile), Model: model}
	m.rows[k] = policy.Row{
		Cooldown: policy.Window{Since: start.Add(-time.Minute), Until: start.Add(until), Reason: reason}, ErrorCount: 1,
		LastFailureAt: start.Add(-time.Minute), FailureCounts: map[llm.Reason]int{reason: 1},
	}
}

func (s *stage) expect(want string) {
	s.Helper()
	if got := s.story(); got != want {
		s.Errorf("requests: %s, want %s", got, want)
	}
}

func (s *stage) when() string {
	var parts []string
	for _, d := range s.at {
		parts = append(parts, d.String())
	}
	return fmt.Sprint(parts)
}
