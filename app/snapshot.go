package app

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"understudy/authstore"
	"understudy/config"
	"understudy/failover"
	"understudy/failover/policy"
	"understudy/llm"
	"understudy/provider"
	"understudy/provider/anthropic"
	"understudy/provider/discover"
	"understudy/provider/openai"
	"understudy/provider/sim"
	"understudy/reply"
)

// snapshot is one configuration with what was built from it. It never changes; a reload makes a
// new one, and who holds the old one keeps a consistent view.
type snapshot struct {
	cfg      *config.Config
	registry *provider.Registry
	settings *failover.Settings
	signIns  *authstore.OAuthClient
	found    discover.Result // when no model is configured
	getenv   func(string) string
}

// newSnapshot builds what a configuration needs. Without a configured model it looks for some.
func (a *App) newSnapshot(ctx context.Context, cfg *config.Config) (*snapshot, error) {
	s := &snapshot{cfg: cfg, getenv: a.opts.getenv}
	catalogue := provider.NewCatalogue()
	providers := maps.Clone(cfg.Models.Providers)
	if cfg.Agent("").Models.Primary.IsZero() {
		s.found = discover.Find(ctx, discover.Deps{Getenv: a.opts.getenv, Stored: a.stored(ctx, cfg.DefaultAgent())})
		s.cfg = cfg.WithModel(policy.Models{Primary: s.found.Primary, Fallbacks: s.found.Fallbacks})
		for _, f := range s.found.Providers {
			if _, configured := providers[f.Provider]; configured || f.BaseURL == "" {
				continue
			}
			if providers == nil {
				providers = map[string]provider.Config{}
			}
			providers[f.Provider] = provider.Config{BaseURL: f.BaseURL}
		}
	}
	registry, err := provider.New(providers, provider.Deps{
		Factories: map[provider.API]provider.Factory{
			provider.OpenAIChat:        openai.New,
			provider.OpenAIResponses:   openai.New,
			provider.AnthropicMessages: anthropic.New,
			provider.Bedrock:           anthropic.NewBedrock,
			provider.Simulated:         func(provider.Spec) (llm.Client, error) { return a.sim, nil },
		},
		Transport: a.opts.Transport,
		Catalogue: catalogue,
	})
	if err != nil {
		return nil, fmt.Errorf("models.providers: %w", err)
	}
	s.registry = registry
	if s.signIns, err = newSignIns(cfg, a.opts); err != nil {
		return nil, fmt.Errorf("auth.providers: %w", err)
	}
	s.settings = &failover.Settings{
		Rules: cfg.Rules(), Order: map[string][]llm.ProfileID{}, Declared: map[string][]policy.Declared{}, Keys: map[string][]llm.Credential{}, SkipTTL: cfg.Env.SkipTTL,
	}
	for _, id := range cfg.AuthProviders() {
		pool := cfg.Pool(id)
		if pool.Configured != nil {
			s.settings.Order[id] = pool.Configured
		}
		if pool.Declared != nil {
			s.settings.Declared[id] = pool.Declared
		}
	}
	for _, id := range registry.Providers() {
		if keys := registry.Keys(id, a.opts.getenv); keys != nil {
			s.settings.Keys[id] = keys
		}
	}
	return s, nil
}

// stored tells of which providers an agent has a credential. A store that cannot be read has none:
// that it cannot is told elsewhere.
func (a *App) stored(ctx context.Context, agent string) func(provider string) bool {
	health, err := a.health(ctx, agent)
	return func(provider string) bool {
		return err == nil && slices.ContainsFunc(health.Profiles, func(p policy.Profile) bool { return p.ID.Provider() == provider && (p.HasSecret || p.HasRefresh) })
	}
}

// Client implements failover.Models. The offline models are callable only where they were found or
// configured (spec/chat.md §12 D14).
func (s *snapshot) Client(id string) (llm.Client, error) {
	if id == sim.Provider && !s.hasSim() {
		return nil, fmt.Errorf("%w %q", provider.ErrUnknownProvider, id)
	}
	return s.registry.Client(id)
}

func (s *snapshot) hasSim() bool {
	_, configured := s.cfg.Models.Providers[sim.Provider]
	return configured || s.found.Source == discover.SourceSim
}

// Info implements failover.Models.
func (s *snapshot) Info(ref llm.ModelRef) failover.ModelInfo {
	m := s.registry.Model(ref)
	return failover.ModelInfo{Known: m.Known, Images: m.Images, ContextWindow: m.ContextWindow}
}

// IdleTimeout implements failover.Models.
func (s *snapshot) IdleTimeout(id string) time.Duration { return s.registry.IdleTimeout(id) }

// Virtual implements failover.Models.
func (s *snapshot) Virtual(id string) (policy.Profile, llm.Credential, bool) {
	cred, ok := s.registry.Credential(id, s.getenv)
	if !ok {
		return policy.Profile{}, llm.Credential{}, false
	}
	return policy.Profile{ID: cred.Profile, Kind: cred.Kind, HasSecret: !cred.Secret.IsZero() || cred.Kind == llm.KindToken}, cred, true
}

// known returns every model the bot can name, the configured ones first.
func (s *snapshot) known() []llm.ModelRef {
	list := s.cfg.Configured()
	add := func(ref llm.ModelRef) {
		if !ref.IsZero() && !slices.Contains(list, ref) {
			list = append(list, ref)
		}
	}
	add(s.found.Primary)
	for _, ref := range s.found.Fallbacks {
		add(ref)
	}
	for _, f := range s.found.Providers {
		for _, id := range f.Models {
			add(llm.ModelRef{Provider: f.Provider, Model: id})
		}
	}
	return list
}

// compaction is how conversations are shortened.
func (s *snapshot) compaction() reply.Compaction {
	c := s.cfg.Compaction
	return reply.Compaction{
		Model: s.cfg.CompactionModel(), ReserveTokens: c.ReserveTokens, KeepRecentTokens: c.KeepRecentTokens, Notify: c.NotifyUser,
	}
}

// profiles returns the profiles that a model would be asked with now, in order.
func (s *snapshot) profiles(health policy.Snapshot, ref llm.ModelRef, now time.Time) []llm.ProfileID {
	return policy.Order(s.pool(health, ref.Provider), health.Health, ref.Model, now).Profiles
}

// pool is everything that is known about the credentials of a provider.
func (s *snapshot) pool(health policy.Snapshot, provider string) policy.Pool {
	pool := s.cfg.Pool(provider)
	pool.Override = health.Orders[provider]
	for _, p := range health.Profiles {
		if p.ID.Provider() == provider {
			pool.Stored = append(pool.Stored, p)
		}
	}
	if p, _, ok := s.Virtual(provider); ok {
		pool.Virtual = &p
	}
	for _, c := range s.settings.Keys[provider] {
		pool.More = append(pool.More, policy.Profile{ID: c.Profile, Kind: c.Kind, HasSecret: true})
	}
	return pool
}
