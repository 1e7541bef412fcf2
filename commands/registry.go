package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"understudy/chat"
	"understudy/failover/policy"
	"understudy/internal/clock"
	"understudy/llm"
	"understudy/session"
)

// Call is one use of a command: who, where, in which session.
type Call struct {
	Agent       string
	Key, Parent string // session keys
	To          chat.Address
	In          chat.Inbound
	Owner       bool
}

// group reports whether others than the sender read the reply.
func (c Call) group() bool { return c.To.Kind != chat.Direct }

// details reports whether the reply may name profiles and other things of the operator.
func (c Call) details() bool { return c.Owner || !c.group() }

// Reply is what a command says.
type Reply struct {
	Text    string
	Buttons []chat.Button
	// Follow is a text to be answered as a message, such as the rest of "/new hello".
	Follow string
}

// Spec describes a command. It is the source of help, menus and documentation.
type Spec struct {
	Name    string
	Aliases []string
	Usage   string // of the arguments; "" = none
	Help    string // one line, without a full stop
	Group   string
	Owner   bool // the owner's alone
	Lane    bool // runs in the session's lane, at its front
	Hidden  bool // works, but is in no menu
	// Long allows arguments of several lines or more than 4 KB.
	Long bool

	run func(r *Registry, ctx context.Context, c Call, args string) (Reply, error)
}

// Invocation is a text recognised as a command.
type Invocation struct {
	Spec Spec
	Args string
}

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
	Models   Models
	// Health returns what is known about an agent's credentials.
	Health func(ctx context.Context, agent string) (policy.Snapshot, error)
	// Compact shortens a conversation; focus may be "". It returns tokens before and after; equal
	// numbers mean that nothing could be gained.
	Compact func(ctx context.Context, c Call, focus string) (before, after int, err error)
	// Sim steers the offline models; nil where there are none.
	Sim func(args string) (string, error)
	// Problems lists what the operator should know: a reload that failed, a store that cannot be
	// read.
	Problems func(ctx context.Context) []string
	Channels func() []Channel
	Clock    clock.Clock
	Zone     func(agent string) *time.Location
	Log      *slog.Logger
	Version  string
	Started  time.Time
}

// Registry is the set of commands. It is safe for concurrent use.
type Registry struct {
	deps   Deps
	specs  []Spec
	byName map[string]int
}

// New returns the registry.
func New(deps Deps) *Registry {
	r := &Registry{deps: deps, specs: catalogue(deps.Sim != nil), byName: map[string]int{}}
	for i, s := range r.specs {
		for _, name := range append([]string{s.Name}, s.Aliases...) {
			r.byName[name] = i
		}
	}
	return r
}

// Specs returns all commands in the order of help.
func (r *Registry) Specs() []Spec { return slices.Clone(r.specs) }

// maxArgs bounds the arguments of commands that are not Long, in bytes.
const maxArgs = 4 << 10

// Match recognises a command: a text that begins with a slash and a known name, perhaps followed by
// a colon. Anything else is an ordinary message.
func (r *Registry) Match(text string) (Invocation, bool) {
	text = strings.TrimSpace(text)
	rest, ok := strings.CutPrefix(text, "/")
	if !ok {
		return Invocation{}, false
	}
	end := strings.IndexAny(rest, ": \t\r\n")
	name, args := rest, ""
	if end >= 0 {
		name, args = rest[:end], strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(rest[end:]), ":"))
	}
	i, ok := r.byName[strings.ToLower(name)]
	if !ok {
		return Invocation{}, false
	}
	s := r.specs[i]
	if !s.Long && (len(args) > maxArgs || strings.ContainsAny(args, "\r\n")) {
		return Invocation{}, false
	}
	return Invocation{Spec: s, Args: args}, true
}

// Run carries a command out. It always replies; what went wrong on our side is logged and named by
// nothing but a hint.
func (r *Registry) Run(ctx context.Context, inv Invocation, c Call) Reply {
	if inv.Spec.Owner && !c.Owner {
		return Reply{Text: fmt.Sprintf("Only the bot owner can use /%s.", inv.Spec.Name)}
	}
	reply, err := inv.Spec.run(r, ctx, c, inv.Args)
	if err != nil {
		r.deps.Log.ErrorContext(ctx, "command_failed", "command", inv.Spec.Name, "session", c.Key, "error", err.Error())
		return Reply{Text: fmt.Sprintf("⚠️ /%s did not work; the log says why. Nothing was changed.", inv.Spec.Name)}
	}
	return reply
}

// session returns the row of a call with the override in force; a conversation that has none yet
// gets one, since its sender is admitted.
func (r *Registry) session(ctx context.Context, c Call) (s session.Session, inherited string, err error) {
	s, _, err = r.deps.Sessions.Ensure(ctx, session.Seed{Key: c.Key, AgentID: c.Agent, Parent: c.Parent, Address: c.To})
	if err != nil {
		return s, "", err
	}
	o, from, err := r.deps.Sessions.Selection(ctx, s)
	s.Override = o
	return s, from, err
}

func (r *Registry) selection(s session.Session, agent string) policy.Selection {
	return policy.Select(policy.Override{Ref: s.Override.Model, Source: s.Override.Source, Origin: s.Override.Origin}, r.deps.Models.Agent(agent))
}

// when renders a moment: "14:05 (in 3 minutes)".
func (r *Registry) when(agent string, t time.Time) string {
	now := r.deps.Clock.Now()
	zone := time.UTC
	if r.deps.Zone != nil {
		if z := r.deps.Zone(agent); z != nil {
			zone = z
		}
	}
	layout := "15:04"
	if d := t.Sub(now); d > 20*time.Hour || d < -20*time.Hour {
		layout = "Mon 2 Jan 15:04"
	}
	if t.After(now) {
		return fmt.Sprintf("%s (in %s)", t.In(zone).Format(layout), span(t.Sub(now)))
	}
	return t.In(zone).Format(layout)
}

// span renders a duration in the two largest units that matter.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int((d+time.Second-1)/time.Second))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int((d+time.Minute-1)/time.Minute))
	case d < 48*time.Hour:
		h, m := int(d/time.Hour), int(d%time.Hour/time.Minute)
		if m == 0 {
			return fmt.Sprintf("%d h", h)
		}
		return fmt.Sprintf("%d h %d min", h, m)
	}
	return fmt.Sprintf("%d days", int(d/(24*time.Hour)))
}

// Tool is a function for the model, in the shape that package reply wants.
type Tool struct {
	Name, Description string
	Schema            json.RawMessage
	Run               func(ctx context.Context, agent, key string, input json.RawMessage) (string, error)
}
