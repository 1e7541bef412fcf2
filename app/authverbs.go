package app

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"understudy/authstore"
	"understudy/config"
	"understudy/failover/policy"
	"understudy/internal/secret"
	"understudy/llm"
)

// maxSecret bounds a key or token that is read, in bytes.
const maxSecret = 64 << 10

// NewCredential is what `bot auth add` stores.
type NewCredential struct{ Agent, Profile, Type, FromEnv string }

// NewOrder is what `bot auth order` sets. Without profiles and Clear it only shows.
type NewOrder struct {
	Agent, Provider string
	Profiles        []string
	Clear           bool
}

// withStore opens an agent's credential store beside a bot that may be running.
func withStore(ctx context.Context, o Options, std Std, agent string, f func(*authstore.Store) error) int {
	cfg, _, err := config.Load(loadOptions(o))
	if err != nil {
		return fail(std, err)
	}
	if agent == "" {
		agent = cfg.DefaultAgent()
	}
	if !slices.Contains(cfg.AgentIDs(), agent) {
		return fail(std, fmt.Errorf("there is no agent %q; agents: %s", agent, strings.Join(cfg.AgentIDs(), ", ")))
	}
	store, err := authstore.Open(ctx, authstore.Path(cfg.Env.StateDir, agent), authstore.Deps{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fail(std, err)
	}
	if err := errors.Join(f(store), store.Close()); err != nil {
		return fail(std, err)
	}
	return ExitOK
}

// AuthAdd is `bot auth add`. The secret never comes from an argument: those stand in the shell's
// history and in process lists.
func AuthAdd(ctx context.Context, o Options, std Std, n NewCredential) int {
	id := llm.ProfileID(n.Profile)
	if id.Provider() == "" || id.Name() == "" {
		return fail(std, fmt.Errorf("%q is not a profile id: write provider:name, for example openai:work", n.Profile))
	}
	text, err := readSecret(o, std, n)
	if err != nil {
		return fail(std, err)
	}
	return withStore(ctx, o, std, n.Agent, func(s *authstore.Store) error {
		p := authstore.Profile{ID: id, Kind: llm.CredentialKind(n.Type), Secret: text}
		if err := s.Put(ctx, p); err != nil {
			return err
		}
		fmt.Fprintf(std.Out, "Stored %s (%s). A running bot uses it from now on.\n", id, n.Type)
		return nil
	})
}

func readSecret(o Options, std Std, n NewCredential) (secret.String, error) {
	if n.FromEnv != "" {
		s := secret.New(o.getenv(n.FromEnv))
		if s.IsZero() {
			return s, fmt.Errorf("the environment variable %s is not set", n.FromEnv)
		}
		return s, nil
	}
	var raw []byte
	var err error
	if fd := int(std.In.Fd()); term.IsTerminal(fd) {
		fmt.Fprintf(std.Err, "Secret of %s (it is not shown): ", n.Profile)
		raw, err = term.ReadPassword(fd)
		fmt.Fprintln(std.Err)
	} else {
		raw, err = io.ReadAll(io.LimitReader(bufio.NewReader(std.In), maxSecret+1))
	}
	switch s := secret.New(string(raw)); {
	case err != nil:
		return s, err
	case s.IsZero():
		return s, errors.New("no secret was given; nothing was changed")
	case len(raw) > maxSecret:
		return s, errors.New("the secret is longer than 64 KB; nothing was changed")
	default:
		return s, nil
	}
}

// AuthStatus is `bot auth list` and `bot auth status`: profiles with their health, never a secret.
func AuthStatus(ctx context.Context, o Options, std Std, agent string, asJSON bool) int {
	return withStore(ctx, o, std, agent, func(s *authstore.Store) error {
		snap, err := s.Snapshot(ctx)
		if err != nil {
			return err
		}
		if asJSON {
			return json.NewEncoder(std.Out).Encode(map[string]any{"profiles": profileViews(snap, time.Now())})
		}
		if len(snap.Profiles) == 0 {
			fmt.Fprintln(std.Out, "No credentials are stored. Add one: bot auth add openai:default")
			return nil
		}
		w := tabwriter.NewWriter(std.Out, 0, 4, 2, ' ', 0)
		fmt.Fprintln(w, "PROFILE\tTYPE\tSTATE")
		for _, v := range profileViews(snap, time.Now()) {
			fmt.Fprintf(w, "%s\t%s\t%s\n", v.ID, v.Type, v.State)
		}
		return w.Flush()
	})
}

// profileView is a profile in the documented shape of `bot auth status --json`; times are epoch
// milliseconds, 0 = none.
type profileView struct {
	ID        llm.ProfileID        `json:"id"`
	Provider  string               `json:"provider"`
	Type      llm.CredentialKind   `json:"type"`
	Expires   int64                `json:"expires,omitempty"`
	State     string               `json:"state"`
	Usage     usageView            `json:"usageStats"`
	PerModel  map[string]usageView `json:"models,omitempty"`
	soonestAt time.Time
}

type usageView struct {
	LastUsed       int64              `json:"lastUsed,omitempty"`
	ErrorCount     int                `json:"errorCount"`
	FailureCounts  map[llm.Reason]int `json:"failureCounts,omitempty"`
	LastFailureAt  int64              `json:"lastFailureAt,omitempty"`
	CooldownUntil  int64              `json:"cooldownUntil,omitempty"`
	CooldownReason llm.Reason         `json:"cooldownReason,omitempty"`
	CooldownModel  string             `json:"cooldownModel,omitempty"`
	CooldownStated bool               `json:"cooldownStated,omitempty"`
	DisabledUntil  int64              `json:"disabledUntil,omitempty"`
	DisabledReason llm.Reason         `json:"disabledReason,omitempty"`
}

func profileViews(snap policy.Snapshot, now time.Time) []profileView {
	var list []profileView
	for _, p := range snap.Profiles {
		v := profileView{ID: p.ID, Provider: p.ID.Provider(), Type: p.Kind, Expires: unixMilli(p.Expires), State: "ok"}
		for _, k := range slices.SortedFunc(maps.Keys(snap.Health), func(a, b policy.Key) int { return strings.Compare(a.Model, b.Model) }) {
			row := snap.Health[k]
			if k.Profile != p.ID {
				continue
			}
			u := usageOf(row, now)
			if k.Model == "" {
				v.Usage = u
			} else {
				if v.PerModel == nil {
					v.PerModel = map[string]usageView{}
				}
				v.PerModel[k.Model] = u
			}
			v.note(k.Model, row, now)
		}
		v.mergeModelWindow(now)
		list = append(list, v)
	}
	return list
}

// note keeps the window that blocks longest as the profile's state.
func (v *profileView) note(model string, row policy.Row, now time.Time) {
	for what, w := range map[string]policy.Window{"cooling": row.Cooldown, "disabled": row.Disabled} {
		if !w.Active(now) || !w.Until.After(v.soonestAt) {
			continue
		}
		v.soonestAt = w.Until
		v.State = fmt.Sprintf("%s (%s) until %s", what, w.Reason, w.Until.Local().Format("2006-01-02 15:04:05"))
		if model != "" {
			v.State += " for " + model
		}
	}
}

// mergeModelWindow shows the model's window as the profile's where it has none of its own: the view
// that cooldownModel stands for (spec/failover.md §7).
func (v *profileView) mergeModelWindow(now time.Time) {
	if v.Usage.CooldownUntil > now.UnixMilli() {
		return
	}
	for _, model := range slices.Sorted(maps.Keys(v.PerModel)) {
		u := v.PerModel[model]
		if u.CooldownUntil <= now.UnixMilli() {
			continue
		}
		v.Usage.CooldownUntil, v.Usage.CooldownReason, v.Usage.CooldownModel, v.Usage.CooldownStated = u.CooldownUntil, u.CooldownReason, model, u.CooldownStated
		v.Usage.ErrorCount = max(v.Usage.ErrorCount, u.ErrorCount)
		return
	}
}

func usageOf(r policy.Row, now time.Time) usageView {
	u := usageView{
		LastUsed: unixMilli(r.LastUsed), ErrorCount: r.Step(now), FailureCounts: r.FailureCounts, LastFailureAt: unixMilli(r.LastFailureAt),
	}
	if r.Cooldown.Active(now) {
		u.CooldownUntil, u.CooldownReason, u.CooldownStated = unixMilli(r.Cooldown.Until), r.Cooldown.Reason, r.Cooldown.Stated
	}
	if r.Disabled.Active(now) {
		u.DisabledUntil, u.DisabledReason = unixMilli(r.Disabled.Until), r.Disabled.Reason
	}
	return u
}

func unixMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// AuthOrder is `bot auth order`.
func AuthOrder(ctx context.Context, o Options, std Std, n NewOrder) int {
	provider := llm.NormalizeProvider(n.Provider)
	return withStore(ctx, o, std, n.Agent, func(s *authstore.Store) error {
		var ids []llm.ProfileID
		for _, p := range n.Profiles {
			if llm.ProfileID(p).Provider() != provider {
				return fmt.Errorf("%s is not a profile of %s", p, provider)
			}
			ids = append(ids, llm.ProfileID(p))
		}
		switch {
		case n.Clear:
			return s.ClearOrder(ctx, provider)
		case len(ids) > 0:
			return s.SetOrder(ctx, provider, ids)
		}
		orders, err := s.Orders(ctx)
		if err != nil {
			return err
		}
		if orders[provider] == nil {
			fmt.Fprintf(std.Out, "%s has no stored order; auth.order or the usual one counts.\n", provider)
			return nil
		}
		for i, id := range orders[provider] {
			fmt.Fprintf(std.Out, "%d. %s\n", i+1, id)
		}
		return nil
	})
}

// AuthEnable is `bot auth enable`: it clears what keeps a profile, or all of a provider, from use.
func AuthEnable(ctx context.Context, o Options, std Std, agent, what string) int {
	return withStore(ctx, o, std, agent, func(s *authstore.Store) error {
		snap, err := s.Snapshot(ctx)
		if err != nil {
			return err
		}
		ids := map[llm.ProfileID]bool{}
		for k := range snap.Health {
			if string(k.Profile) == what || k.Profile.Provider() == llm.NormalizeProvider(what) {
				ids[k.Profile] = true
			}
		}
		if len(ids) == 0 {
			fmt.Fprintf(std.Out, "Nothing is recorded against %s.\n", what)
			return nil
		}
		for _, id := range slices.Sorted(maps.Keys(ids)) {
			if err := s.ClearHealth(ctx, id); err != nil {
				return err
			}
			fmt.Fprintf(std.Out, "%s is in use again.\n", id)
		}
		return nil
	})
}

// AuthRemove is `bot auth remove`.
func AuthRemove(ctx context.Context, o Options, std Std, agent, profile string) int {
	return withStore(ctx, o, std, agent, func(s *authstore.Store) error {
		if err := s.Remove(ctx, llm.ProfileID(profile)); err != nil {
			return err
		}
		fmt.Fprintf(std.Out, "Removed %s.\n", profile)
		return nil
	})
}
