package commands

import (
	"context"
	"log/slog"
	"time"

	"understudy/failover/policy"
	"understudy/internal/clock"
	"understudy/llm"
	"understudy/session"
)

// Sessions is what commands need of the session store.
type Sessions interface {
	Get(ctx context.Context, key string) (session.Session, error)
	Ensure(ctx context.Context, seed session.Seed) (s session.Session, created bool, err error)
	Update(ctx context.Context, key string, change func(*session.Session) error) (session.Session, error)
	Reset(ctx context.Context, key string) (session.Session, error)
	Selection(ctx context.Context, s session.Session) (o session.Override, from string, err error)
	Decisions(ctx context.Context, key string, limit int) ([]session.Decision, error)
}

// Lanes is what commands need of the lanes.
type Lanes interface {
	State(key string) session.LaneState
	// Stop ends what owner asked for, everybody's work when owner is "".
	Stop(key, owner string) (queued int, active bool)
}

// Choice is a model as a person named it.
type Choice struct {
	Ref     llm.ModelRef
	Profile llm.ProfileID // "" = none given
	// Guessed tells that the provider was assumed.
	Guessed bool
}

// Info is what is known of a model.
type Info struct {
	ContextWindow int // tokens; 0 = unknown
}

// Models answers what can be selected.
type Models interface {
	// Agent returns what an agent is configured with.
	Agent(id string) policy.Models
	// Resolve reads what stands behind /model. Its error is fit for chat.
	Resolve(ctx context.Context, agent, text string) (Choice, error)
	// ProfileExists reports whether a profile can be pinned.
	ProfileExists(ctx context.Context, agent string, id llm.ProfileID) bool
	// Allowed reports whether users may select the model (agents.defaults.modelPolicy.allow).
	Allowed(ref llm.ModelRef) bool
	// Known lists the models that can be named, the configured ones first.
	Known() []llm.ModelRef
	Alias(ref llm.ModelRef) string // "" = none
	Info(ref llm.ModelRef) Info
	// Profiles returns the profiles of a provider that the agent would try, in order.
	Profiles(ctx context.Context, agent string, ref llm.ModelRef) []llm.ProfileID
}

// Channel is the state of a connected account.
type Channel struct{ Name, State string }

// Deps are what a Registry works with.
type Deps struct {
	Sessions Sessions
	Lanes    Lanes
	// Switched is told that a model was chosen while a turn runs; nil = nobody.
	Switched func(key string)
	Models   Models
	// Health returns what is known about an agent's credentials.
	Health func(ctx context.Context, agent string) (policy.Snapshot, error)
	// Compact shortens a conversation; focus may be "". It returns tokens before and after; equal
	// numbers mean that nothing could be gained.
	Compact func(ctx context.Context, c Call, focus string) (before, after int, err error)
	// Endpoint returns the host and the API family of a provider, for /model status; nil or "" =
	// unknown.
	Endpoint func(provider string) (host, api string)
	// Sim steers the offline models for an agent; nil where there are none.
	Sim func(ctx context.Context, agent, args string) (string, error)
	// Problems lists what the operator should know: a reload that failed, a store that cannot be
	// read. nil = nothing.
	Problems func(ctx context.Context) []string
	Channels func() []Channel // nil = none
	Clock    clock.Clock
	Zone     func(agent string) *time.Location // nil = UTC
	Log      *slog.Logger                      // nil = none
	Version  string
	Started  time.Time
}

// withDefaults fills what may be nil.
func (d Deps) withDefaults() Deps {
	if d.Endpoint == nil {
		d.Endpoint = func(string) (host, api string) { return "", "" }
	}
	if d.Problems == nil {
		d.Problems = func(context.Context) []string { return nil }
	}
	if d.Channels == nil {
		d.Channels = func() []Channel { return nil }
	}
	if d.Zone == nil {
		d.Zone = func(string) *time.Location { return time.UTC }
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	return d
}
