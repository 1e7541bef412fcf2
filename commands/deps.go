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
	// Children returns the keys of the threads that belong to a conversation.
	Children(ctx context.Context, key string) ([]string, error)
	Decisions(ctx context.Context, key string, limit int) ([]session.Decision, error)
	// Totals returns the daily sums of an agent since a day (YYYY-MM-DD, included).
	Totals(ctx context.Context, agent, since string) ([]session.Total, error)
	ResetUsage(ctx context.Context, key string) error
	// Begun returns when a conversation that was reset began; zero = it never was.
	Begun(ctx context.Context, key string) (time.Time, error)
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
	// Kind returns what a profile that is not stored is, such as a key of the environment; "" = unknown.
	Kind(id llm.ProfileID) llm.CredentialKind
	// Allowed reports whether users may select the model (agents.defaults.modelPolicy.allow).
	Allowed(ref llm.ModelRef) bool
	// Known lists the models that can be named: the configured ones first, and behind them those that a
	// credential of the agent could ask, so many at most. "" is the default agent.
	Known(ctx context.Context, agent string) []llm.ModelRef
	// Provider reports whether a provider is configured, or whether there is a credential for it.
	Provider(id string) bool
	Alias(ref llm.ModelRef) string // "" = none
	Info(ref llm.ModelRef) Info
	// Profiles returns the profiles of a provider that the agent would try, in order.
	Profiles(ctx context.Context, agent string, ref llm.ModelRef) []llm.ProfileID
}

// Channel is the state of an account.
type Channel struct {
	Name, State string
	Since       time.Time // when it left the state in which it works; zero = it is in it
}

// Deps are what a Registry works with. A command whose part is nil does not exist.
type Deps struct {
	Sessions Sessions
	Lanes    Lanes
	// Switched is told that a model was chosen while a turn runs; nil = nobody.
	Switched func(key string)
	Models   Models
	// Health returns what is known about an agent's credentials.
	Health func(ctx context.Context, agent string) (policy.Snapshot, error)
	// Underway returns what the turn that runs in a conversation has tried so far; nil = unknown.
	Underway func(key string) (u Underway, runs bool)
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
	// Authorised reports whether somebody who is let in, and is no owner, may use commands there
	// (`commands.allowFrom`); nil = everybody.
	Authorised func(c Call) bool
	// Queue returns the `queue` section of the configuration; nil = the defaults.
	Queue func() session.QueueConfig
	// Steerable reports whether turns of an agent have steps between which they can listen when that model
	// answers; nil = yes.
	Steerable func(agent string, ref llm.ModelRef) bool
	// Context measures what the next request of a conversation would be made of.
	Context func(ctx context.Context, c Call) (ContextReport, error)
	// Aside answers a question beside the conversation; what it returns is the answer, or why there is
	// none, in words.
	Aside func(ctx context.Context, c Call, question string) (string, error)
	// Steer hands a text to the turn that runs; taken is false when none does or it cannot listen.
	Steer func(ctx context.Context, c Call, text string) (taken bool, err error)
	// Probe asks a model whether it is back, and does what follows from it. It leaves a model alone that
	// nothing keeps from serving (asked is false then).
	Probe func(ctx context.Context, agent string, ref llm.ModelRef) (answered, asked bool, err error)
	// NextProbe is when the five-minute job runs next; nil or zero = unknown.
	NextProbe func() time.Time
	// Restart begins a restart that waits for the turns that run, and returns at once. Who comes back is
	// to say so where c was.
	Restart func(ctx context.Context, c Call) error
	// Pair approves a pairing code; channel "" = the one of c.
	Pair        func(ctx context.Context, c Call, channel, code string) (Paired, error)
	Activations Activations
	Speech      Speech
	Cron        Cron
	Reminders   Reminders
	Loops       Loops
	Heartbeat   Heartbeat
	Clock       clock.Clock
	Zone        func(agent string) *time.Location // nil = UTC
	Log         *slog.Logger                      // nil = none
	Version     string
	Started     time.Time
}

// withDefaults fills what may be nil.
func (d Deps) withDefaults() Deps {
	if d.Endpoint == nil {
		d.Endpoint = func(string) (host, api string) { return "", "" }
	}
	if d.Underway == nil {
		d.Underway = func(string) (Underway, bool) { return Underway{}, false }
	}
	if d.Problems == nil {
		d.Problems = func(context.Context) []string { return nil }
	}
	if d.Channels == nil {
		d.Channels = func() []Channel { return nil }
	}
	if d.Authorised == nil {
		d.Authorised = func(Call) bool { return true }
	}
	if d.Queue == nil {
		d.Queue = func() session.QueueConfig { return session.QueueConfig{} }
	}
	if d.Steerable == nil {
		d.Steerable = func(string, llm.ModelRef) bool { return true }
	}
	if d.NextProbe == nil {
		d.NextProbe = func() time.Time { return time.Time{} }
	}
	if d.Zone == nil {
		d.Zone = func(string) *time.Location { return time.UTC }
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	return d
}
