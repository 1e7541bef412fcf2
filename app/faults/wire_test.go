package faults

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/authstore"
	"understudy/chat"
	"understudy/config"
	"understudy/failover"
	"understudy/failover/policy"
	"understudy/internal/clock"
	emulate "understudy/internal/emulate/llm"
	"understudy/internal/secret"
	"understudy/internal/sqlite"
	"understudy/llm"
	"understudy/notices"
	"understudy/provider"
	"understudy/provider/anthropic"
	"understudy/provider/openai"
	"understudy/reply"
	"understudy/session"
)

// providers are the model APIs of the wire tests: alpha speaks Chat Completions, beta Messages,
// gamma Chat Completions again, rho Responses.
const providers = `
models:
  providers:
    alpha: {baseUrl: "http://alpha.test/v1", api: openai-chat, timeoutSeconds: 30}
    beta: {baseUrl: "http://beta.test", api: anthropic-messages, timeoutSeconds: 30}
    gamma: {baseUrl: "http://gamma.test/v1", api: openai-chat, timeoutSeconds: 30}
    rho: {baseUrl: "http://rho.test/v1", api: openai-responses, timeoutSeconds: 30}
`

// chain is the configuration of most wire tests.
const chain = "agents: {defaults: {model: {primary: alpha/a1, fallbacks: [beta/b1]}, systemPrompt: You are TESTBOT-42.}}\n" + providers

// house is the product between two edges: model APIs on the wire below, a channel that writes down
// what it is told above. It lives inside a bubble, so that waiting costs nothing.
type house struct {
	t        *testing.T
	apis     *emulate.Server
	cfg      *config.Config
	registry *provider.Registry
	stores   map[string]*authstore.Store
	store    func(agent string) (failover.Store, error) // of stores, unless a test wants another one
	sessions *session.Store
	reply    *reply.Runner
	tools    []reply.Tool
	stream   bool // the channel shows text as it arrives
	log      bytes.Buffer

	mu    sync.Mutex
	turns int
	said  []chat.Outbound
	shown strings.Builder
}

// newHouse opens a house for a configuration. Change tools, stream or sessions before the first
// turn only.
func newHouse(t *testing.T, text string, profiles ...llm.ProfileID) *house {
	t.Helper()
	h := &house{t: t, apis: emulate.New(), stores: map[string]*authstore.Store{}}
	t.Cleanup(h.apis.Close)
	dir := t.TempDir()
	file := filepath.Join(dir, "bot.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	h.cfg, _, err = config.Load(config.Options{Path: file, Env: func(string) (string, bool) { return "", false }})
	h.must(err)
	transport := h.apis.Transport()
	h.registry, err = provider.New(h.cfg.Models.Providers, provider.Deps{
		Factories: map[provider.API]provider.Factory{
			provider.OpenAIChat: openai.New, provider.OpenAIResponses: openai.New, provider.AnthropicMessages: anthropic.New,
		},
		Transport: func(string) http.RoundTripper { return transport },
	})
	h.must(err)
	t.Cleanup(h.registry.Close)
	db, err := sqlite.Open(t.Context(), filepath.Join(dir, "state", "bot.sqlite"), sqlite.Options{BusyTimeout: -1})
	h.must(err)
	t.Cleanup(func() { h.must(db.Close()) })
	h.sessions, err = session.New(t.Context(), db, session.Deps{})
	h.must(err)
	for _, agent := range h.cfg.AgentIDs() {
		h.stores[agent] = h.openStore(authstore.Path(dir, agent))
	}
	if len(profiles) == 0 {
		profiles = []llm.ProfileID{"alpha:p1", "beta:p1", "gamma:p1", "rho:p1"}
	}
	for _, store := range h.stores {
		for _, id := range profiles {
			h.must(store.Put(t.Context(), authstore.Profile{ID: id, Kind: llm.KindAPIKey, Secret: secret.New("key-" + string(id))}))
		}
	}
	h.store = func(agent string) (failover.Store, error) { return h.stores[agent], nil }
	h.open(h.sessions)
	return h
}

func (h *house) openStore(path string) *authstore.Store {
	h.t.Helper()
	s, err := authstore.Open(h.t.Context(), path, authstore.Deps{BusyTimeout: -1, Log: slog.New(slog.DiscardHandler)})
	h.must(err)
	h.t.Cleanup(func() { h.must(s.Close()) })
	return s
}

// open builds the runner over the given memory.
func (h *house) open(sessions reply.Sessions) {
	log := slog.New(slog.NewJSONHandler(&h.log, nil))
	settings := &failover.Settings{Rules: h.cfg.Rules(), Order: map[string][]llm.ProfileID{}}
	runner := failover.New(failover.Deps{
		Store:    func(agent string) (failover.Store, error) { return h.store(agent) },
		Models:   func() failover.Models { return h },
		Settings: func() *failover.Settings { return settings },
		Log:      log,
	})
	h.reply = reply.New(reply.Deps{
		Failover: runner, Sessions: sessions,
		Begin: func(chat.Address, *chat.Inbound, string) reply.Delivery { return &place{h: h} },
		Agent: func(id string) reply.Agent {
			a := h.cfg.Agent(id)
			return reply.Agent{System: a.SystemPrompt, Models: a.Models, ImageModel: a.ImageModels, Timeout: a.Timeout, Zone: time.UTC}
		},
		Models:  func() failover.Models { return h },
		Notices: func() notices.Config { return h.cfg.Notices },
		Tools:   h.tools, Clock: clock.Clock{}, Log: log,
	})
}

func (h *house) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// Client, Info, IdleTimeout and Virtual implement failover.Models.
func (h *house) Client(id string) (llm.Client, error) { return h.registry.Client(id) }

func (h *house) Info(ref llm.ModelRef) failover.ModelInfo {
	m := h.registry.Model(ref)
	return failover.ModelInfo{Known: m.Known, Images: m.Images, ContextWindow: m.ContextWindow}
}

func (h *house) IdleTimeout(id string) time.Duration { return h.registry.IdleTimeout(id) }

func (*house) Virtual(string) (policy.Profile, llm.Credential, bool) {
	return policy.Profile{}, llm.Credential{}, false
}

// says runs one turn of the default agent in a private chat.
func (h *house) says(text string) reply.Outcome {
	h.t.Helper()
	return h.turn(h.t.Context(), h.cfg.DefaultAgent(), chat.Direct, text)
}

func (h *house) turn(ctx context.Context, agent string, kind chat.Kind, text string) reply.Outcome {
	h.t.Helper()
	h.mu.Lock()
	h.turns++
	id := "turn-" + strconv.Itoa(h.turns)
	h.mu.Unlock()
	to := chat.Address{Channel: "test", Conversation: "room", Kind: kind}
	o, err := h.reply.Run(ctx, reply.Request{
		ID: id, Agent: agent, Key: agent + ":room", To: to, Text: text,
		In: &chat.Inbound{ID: id, Address: to, Text: text, Sender: chat.Sender{ID: "user"}, At: time.Now()},
	})
	h.must(err)
	return o
}

// heard returns what was said, with its class.
func (h *house) heard() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []string
	for _, o := range h.said {
		list = append(list, o.Class.String()+":"+o.Markdown)
	}
	return strings.Join(list, " | ")
}

// calls returns the requests so far, as model@profile.
func (h *house) calls() string {
	var list []string
	for _, r := range h.apis.Requests() {
		_, profile, _ := strings.Cut(strings.TrimPrefix(r.Key, "key-"), ":")
		list = append(list, r.Model+"@"+profile)
	}
	return strings.Join(list, " ")
}

// expectCalls compares the requests so far.
func (h *house) expectCalls(want string) {
	h.t.Helper()
	if got := h.calls(); got != want {
		h.t.Errorf("requests: %q, want %q", got, want)
	}
}

// row returns a health row of the default agent.
func (h *house) row(profile llm.ProfileID, model string) policy.Row {
	h.t.Helper()
	return h.rowOf(h.cfg.DefaultAgent(), profile, model)
}

func (h *house) rowOf(agent string, profile llm.ProfileID, model string) policy.Row {
	h.t.Helper()
	snap, err := h.stores[agent].Snapshot(h.t.Context())
	h.must(err)
	return snap.Health[policy.Key{Profile: profile, Model: model}]
}

// expectAnswer checks who answered.
func (h *house) expectAnswer(o reply.Outcome, ref string) {
	h.t.Helper()
	if o.Status != reply.Answered || o.Model.String() != ref {
		h.t.Errorf("the turn ended %s by %s (%s), want an answer of %s; trail: %s", o.Status, o.Model, o.Reason, ref, trail(o))
	}
}

// trail tells an outcome's attempts as model=reason.
func trail(o reply.Outcome) string {
	var list []string
	for _, r := range o.Trail {
		reason := string(r.Reason)
		if reason == "" {
			reason = "ok"
		}
		list = append(list, fmt.Sprintf("%s=%s", r.Model, reason))
	}
	return strings.Join(list, " ")
}

// place is a turn's place in the channel.
type place struct {
	h      *house
	showed bool
}

// Stream implements reply.Delivery.
func (p *place) Stream(text string) {
	p.h.mu.Lock()
	defer p.h.mu.Unlock()
	if p.h.stream {
		p.showed = true
		p.h.shown.WriteString(text)
	}
}

// Committed implements reply.Delivery.
func (p *place) Committed() bool { return p.showed }

// Restart implements reply.Delivery.
func (*place) Restart() {}

// Notify implements reply.Delivery.
func (p *place) Notify(o chat.Outbound) {
	p.h.mu.Lock()
	defer p.h.mu.Unlock()
	p.h.said = append(p.h.said, o)
}

// Finish implements reply.Delivery.
func (p *place) Finish(_ context.Context, o chat.Outbound) error {
	p.Notify(o)
	return nil
}

// Cancel implements reply.Delivery.
func (*place) Cancel() {}
