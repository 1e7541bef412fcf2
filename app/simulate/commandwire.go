package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"understudy/commands"
	"understudy/config"
	"understudy/failover/policy"
	"understudy/llm"
	"understudy/session"
)

// commandDeps says what the commands of a process work with.
func (s *stage) commandDeps(p *process) commands.Deps {
	return commands.Deps{
		Sessions: s.sessions, Lanes: p.lanes, Switched: p.failover.Switched, Models: selectable{s},
		Health: func(ctx context.Context, agent string) (policy.Snapshot, error) { return s.auth[agent].Snapshot(ctx) },
		Compact: func(ctx context.Context, c commands.Call, _ string) (before, after int, err error) {
			_, err = s.sessions.Update(ctx, c.Key, func(x *session.Session) error { x.Compactions++; return nil })
			return 2, 1, err
		},
		Problems: func(context.Context) []string { return nil },
		Channels: func() []commands.Channel { return nil },
		Clock:    s.clock.Clock(), Zone: func(string) *time.Location { return time.UTC }, Log: s.log,
		Version: "drill", Started: s.sc.start,
		Probe: func(ctx context.Context, agent string, ref llm.ModelRef) (answered, asked bool, err error) {
			return p.job.Ask(ctx, agent, ref)
		},
		NextProbe: func() time.Time { return p.nextJob },
	}
}

// selectable answers what can be selected in the drill.
type selectable struct{ s *stage }

// Agent implements commands.Models.
func (x selectable) Agent(id string) policy.Models { return x.s.config.Agent(id).Models }

// Resolve implements commands.Models.
func (x selectable) Resolve(ctx context.Context, agent, text string) (commands.Choice, error) {
	choice, err := x.s.config.Resolve(text, config.Known{
		Profile: func(id llm.ProfileID) bool { return x.ProfileExists(ctx, agent, id) }, Agent: agent,
	})
	switch {
	case errors.Is(err, config.ErrWrongProvider):
		return commands.Choice{}, errors.New("the profile belongs to another provider")
	case err != nil:
		return commands.Choice{}, fmt.Errorf("I don't know %q. Try /models", text)
	}
	return commands.Choice{Ref: choice.Ref, Profile: choice.Profile, Guessed: choice.Guessed}, nil
}

// ProfileExists implements commands.Models.
func (x selectable) ProfileExists(ctx context.Context, agent string, id llm.ProfileID) bool {
	if p, _, ok := x.s.models.Virtual(id.Provider()); ok && p.ID == id {
		return true
	}
	snap, err := x.s.auth[agent].Snapshot(ctx)
	return err == nil && slices.ContainsFunc(snap.Profiles, func(p policy.Profile) bool { return p.ID == id })
}

// Kind implements commands.Models.
func (x selectable) Kind(id llm.ProfileID) llm.CredentialKind {
	if p, _, ok := x.s.models.Virtual(id.Provider()); ok && p.ID == id {
		return p.Kind
	}
	return ""
}

// Allowed implements commands.Models.
func (x selectable) Allowed(ref llm.ModelRef) bool { return x.s.config.Allowed(ref) }

// Known implements commands.Models.
func (x selectable) Known(context.Context, string) []llm.ModelRef { return x.s.config.Configured() }

// Provider implements commands.Models.
func (x selectable) Provider(id string) bool {
	return slices.ContainsFunc(x.s.config.Configured(), func(ref llm.ModelRef) bool { return ref.Provider == id })
}

// Alias implements commands.Models.
func (x selectable) Alias(ref llm.ModelRef) string { return x.s.config.Alias(ref) }

// Info implements commands.Models.
func (x selectable) Info(ref llm.ModelRef) commands.Info {
	return commands.Info{ContextWindow: x.s.models.Info(ref).ContextWindow}
}

// Profiles implements commands.Models.
func (x selectable) Profiles(ctx context.Context, agent string, ref llm.ModelRef) []llm.ProfileID {
	snap, err := x.s.auth[agent].Snapshot(ctx)
	if err != nil {
		return nil
	}
	pool := x.s.config.Pool(ref.Provider)
	pool.Override = snap.Orders[ref.Provider]
	for _, p := range snap.Profiles {
		if p.ID.Provider() == ref.Provider {
			pool.Stored = append(pool.Stored, p)
		}
	}
	if p, _, ok := x.s.models.Virtual(ref.Provider); ok {
		pool.Virtual = &p
	}
	return policy.Order(pool, snap.Health, ref.Model, x.s.clock.Now()).Profiles
}
