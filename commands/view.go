package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"understudy/failover/policy"
	"understudy/llm"
	"understudy/session"
)

// view is what a command looks at: a session with the choice that is in force there, and the health
// of the agent's credentials at one moment.
type view struct {
	r      *Registry
	call   Call
	s      session.Session // its Override is the one in force
	from   string          // key of the session the override stands in
	models policy.Models
	sel    policy.Selection
	health policy.Snapshot
	blind  bool // health could not be read
	now    time.Time
}

// look returns the view of a call. A conversation that has no session yet gets one, since its sender
// is admitted. Credentials that cannot be read only make the view blind: Deps.Problems tells.
func (r *Registry) look(ctx context.Context, c Call) (view, error) {
	v := view{r: r, call: c, models: r.deps.Models.Agent(c.Agent), now: r.deps.Clock.Now()}
	var err error
	if v.s, err = r.ensure(ctx, c); err != nil {
		return v, err
	}
	if v.s.Override, v.from, err = r.deps.Sessions.Selection(ctx, v.s); err != nil {
		return v, err
	}
	v.sel = policy.Select(policy.Override{Ref: v.s.Override.Model, Source: v.s.Override.Source, Origin: v.s.Override.Origin}, v.models)
	if v.health, err = r.deps.Health(ctx, c.Agent); err != nil {
		v.health, v.blind = policy.Snapshot{}, true
	}
	return v, nil
}

// ensure returns the session row of a call.
func (r *Registry) ensure(ctx context.Context, c Call) (session.Session, error) {
	s, _, err := r.deps.Sessions.Ensure(ctx, session.Seed{Key: c.Key, AgentID: c.Agent, Parent: c.Parent, Address: c.To})
	return s, err
}

// inherited reports whether the choice comes from the conversation that this thread belongs to.
func (v view) inherited() bool { return v.s.Override.User() && v.from != v.s.Key }

// profiles returns the profiles that may serve ref here, in order: a locked one alone.
func (v view) profiles(ctx context.Context, ref llm.ModelRef) []llm.ProfileID {
	list := v.r.deps.Models.Profiles(ctx, v.call.Agent, ref)
	if v.s.Pin.Profile.Provider() != ref.Provider {
		return list
	}
	pin := policy.Pin{Profile: v.s.Pin.Profile, User: v.s.Pin.Source == session.SourceUser}
	list, _ = pin.Apply(list, v.health.Health, ref.Model, v.now)
	return list
}

// blocked says until when no profile can serve a model here, "" when one can.
func (v view) blocked(ctx context.Context, ref llm.ModelRef) string {
	profiles := v.profiles(ctx, ref)
	if len(profiles) == 0 {
		return "no credential"
	}
	var first policy.Window
	for _, p := range profiles {
		w, blocked := v.health.Health.Block(p, ref.Model, v.now)
		if !blocked {
			return ""
		}
		if first.Until.IsZero() || w.Until.Before(first.Until) {
			first = w
		}
	}
	return "cooldown until " + v.when(first.Until)
}

// choices is the numbered list: the configured chain, then everything else that may be selected. What is
// selected here and is none of them stands at the end, where it moves no number.
func (r *Registry) choices(ctx context.Context, c Call) []llm.ModelRef {
	m := r.deps.Models.Agent(c.Agent)
	var list []llm.ModelRef
	seen := map[llm.ModelRef]bool{{}: true}
	for _, ref := range slices.Concat([]llm.ModelRef{m.Primary}, m.Fallbacks, r.deps.Models.Known(ctx, c.Agent)) {
		if !seen[ref] && (ref == m.Primary || r.deps.Models.Allowed(ref)) {
			list = append(list, ref)
		}
		seen[ref] = true
	}
	if ref := r.selected(ctx, c); !ref.IsZero() && !slices.Contains(list, ref) {
		list = append(list, ref)
	}
	return list
}

// selected is the model that a conversation is set to, also by the one it belongs to; zero = none, or it
// cannot be read.
func (r *Registry) selected(ctx context.Context, c Call) llm.ModelRef {
	s, err := r.deps.Sessions.Get(ctx, c.Key)
	if errors.Is(err, session.ErrNotFound) {
		s, err = session.Session{Key: c.Key, Parent: c.Parent}, nil
	}
	var o session.Override
	if err == nil {
		o, _, err = r.deps.Sessions.Selection(ctx, s)
	}
	if err != nil {
		r.deps.Log.WarnContext(ctx, "selection_not_read", "session", c.Key, "error", err.Error())
	}
	return o.Model
}

// window is one thing that keeps a profile from serving.
type window struct {
	key policy.Key
	policy.Window
	disabled bool
}

// unhealthy lists the active windows, in a fixed order.
func (v view) unhealthy() []window {
	var out []window
	for k, row := range v.health.Health {
		if row.Disabled.Active(v.now) {
			out = append(out, window{k, row.Disabled, true})
		}
		if row.Cooldown.Active(v.now) {
			out = append(out, window{k, row.Cooldown, false})
		}
	}
	slices.SortFunc(out, func(a, b window) int {
		return cmp.Or(
			cmp.Compare(a.key.Profile, b.key.Profile), cmp.Compare(a.key.Model, b.key.Model),
			a.Until.Compare(b.Until), cmp.Compare(a.Reason, b.Reason),
		)
	})
	return out
}

// text says what a window is, without the profile.
func (v view) text(w window) string {
	what := "cooling"
	if w.disabled {
		what = "disabled"
	}
	text := fmt.Sprintf("%s (%s) until %s", what, words(w.Reason, w.Detail), v.when(w.Until))
	if w.key.Model != "" {
		text += " for " + w.key.Model
	}
	return text
}

// when renders a moment: "14:05 (in 3 min)".
func (v view) when(t time.Time) string {
	return moment(t, v.now, v.r.deps.Zone(v.call.Agent))
}
