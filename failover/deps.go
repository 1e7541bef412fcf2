package failover

import (
	"context"
	"log/slog"
	"time"

	"understudy/failover/policy"
	"understudy/internal/clock"
	"understudy/llm"
)

// Store is an agent's credentials and their health (package authstore). Every method returns
// quickly; none of their errors may fail a turn but Credential's.
type Store interface {
	Snapshot(ctx context.Context) (policy.Snapshot, error)
	// Credential returns what profile authenticates with, refreshed when it must be. Its error is
	// an *llm.Error when the provider refused the refresh; any other error (a lock time-out) says
	// nothing about the profile.
	Credential(ctx context.Context, id llm.ProfileID) (llm.Credential, error)
	Settle(ctx context.Context, r policy.Rules, a policy.Attempt) ([]policy.Changed, error)
	ClaimProbe(ctx context.Context, provider string, now time.Time) (bool, error)
	ReleaseProbe(ctx context.Context, provider string, claimed time.Time) error
}

// ModelInfo is what the catalogue knows of a model.
type ModelInfo struct {
	Known         bool // else the other fields mean nothing
	Images        bool // takes images
	ContextWindow int  // tokens; 0 = unknown
}

// Models answers what a candidate can do and who speaks for it (package provider).
type Models interface {
	// Client returns the client of a provider; an error means that it is not configured.
	Client(provider string) (llm.Client, error)
	Info(ref llm.ModelRef) ModelInfo
	// IdleTimeout is how long a provider may stay silent within an attempt (spec §8.4).
	IdleTimeout(provider string) time.Duration
	// Virtual returns the credential that the environment or the configuration holds for a
	// provider, as profile "<provider>:env".
	Virtual(provider string) (policy.Profile, llm.Credential, bool)
}

// Settings is the configuration of failover; a Run keeps the one it began with.
type Settings struct {
	Rules    policy.Rules
	Order    map[string][]llm.ProfileID   // auth.order; a present empty list means none
	Declared map[string][]policy.Declared // auth.profiles by provider
	SkipTTL  time.Duration                // OPENCLAW_FALLBACK_SKIP_TTL_MS; 0 = off (spec §8.6)
	// Keys are further keys of the environment by provider, beside the one that Models.Virtual
	// returns; each behaves like a profile of its own (spec §5.1).
	Keys map[string][]llm.Credential
}

// key returns the further key of the environment with the given id.
func (s *Settings) key(id llm.ProfileID) (llm.Credential, bool) {
	for _, c := range s.Keys[id.Provider()] {
		if c.Profile == id {
			return c, true
		}
	}
	return llm.Credential{}, false
}

// Observer is told what happens, in order; the simulator and the metrics listen. Its methods must
// not block.
type Observer interface {
	Attempted(run Ref, r Record)
	Skipped(run Ref, r Record)
	Fell(run Ref, from, to llm.ModelRef, reason llm.Reason) // the chain goes on behind from
	Waited(run Ref, d time.Duration, why policy.Why)        // how long it really was
	Settled(agent string, changed []policy.Changed)
}

// Ref names a run for observers and logs.
type Ref struct{ Agent, Session, Turn string }

// Purse guards what stand-ins cost (package budget).
type Purse interface {
	// MayStandIn reports whether a candidate behind the first may be asked in a turn. It is asked once per
	// candidate and turn, before the first request, and may wait for a person's word; it returns soon
	// after ctx ends. unattended tells that nobody is there to be asked.
	MayStandIn(ctx context.Context, turn Ref, ref llm.ModelRef, unattended bool) bool
	// StoodIn is told what an answer of such a candidate used. It must be quick.
	StoodIn(ctx context.Context, ref llm.ModelRef, u llm.Usage)
}

// Deps are what a Runner works with.
type Deps struct {
	// Store returns the store of an agent. An error means that it cannot be used now; the run goes
	// on with the credentials of the environment.
	Store    func(agent string) (Store, error)
	Models   func() Models    // of the current configuration
	Settings func() *Settings // of the current configuration
	Clock    clock.Clock
	Log      *slog.Logger
	Observer Observer // optional
	Purse    Purse    // optional: nobody looks at the money
}

// Host is the turn that a Run works for. Its methods are called one at a time from the goroutine
// that called Ask, except StillRetrying; none may block.
type Host interface {
	// Text takes streamed text of the answer, to be appended. It returns true once any of it left
	// for the channel in a way that cannot be taken back.
	Text(delta string) (left bool)
	// Forget drops the text streamed since the Ask began: its candidate failed.
	Forget()
	// Compact shortens the conversation after ref's context overflowed and returns the messages to
	// ask with. ok is false when nothing could be gained.
	Compact(ctx context.Context, ref llm.ModelRef) (messages []llm.Message, ok bool)
	// Switched returns the plan for the newest selection when the user changed it during the turn,
	// and takes note that it has been seen (spec §8.7).
	Switched(ctx context.Context) (Plan, bool)
	// StillRetrying is called at most once, when everything was overloaded for 30 seconds.
	StillRetrying()
}
