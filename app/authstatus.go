package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"understudy/authstore"
	"understudy/failover/policy"
	"understudy/llm"
	"understudy/provider/sim"
)

// probeTime is how long one credential may take to prove itself.
const probeTime = 30 * time.Second

// StatusOptions say what `bot auth status` looks at.
type StatusOptions struct {
	Agent string
	JSON  bool
	// Probe sends one minimal request with every profile. It changes no health.
	Probe bool
	// Check fails when a model of the agent has no credential that could be used now.
	Check bool
}

// errUnusable is the verdict of --check; what is wrong was printed.
var errUnusable = errors.New("some models have no usable credential")

// AuthStatus is `bot auth list` and `bot auth status`: profiles with their health, never a secret.
func AuthStatus(ctx context.Context, o Options, std Std, so StatusOptions) int {
	return withKeys(ctx, o, std, func(k *keyring) error {
		if so.Agent == "" {
			so.Agent = k.cfg.DefaultAgent()
		}
		store, err := k.open(ctx, so.Agent)
		if err != nil {
			return err
		}
		snap, err := store.Snapshot(ctx)
		if err != nil {
			return err
		}
		report := statusReport{Agent: so.Agent, Profiles: profileViews(snap, o.Clock.Now())}
		if so.Probe || so.Check {
			world, err := k.world(ctx, o)
			if err != nil {
				return err
			}
			if so.Probe {
				report.probe(ctx, world, store)
			}
			if so.Check {
				report.Missing = world.unusable(so.Agent, snap, o.Clock.Now())
			}
		}
		if err := report.print(std, so); err != nil {
			return err
		}
		if len(report.Missing) > 0 {
			return errUnusable
		}
		return nil
	})
}

// world is what the bot would make of the configuration, without a bot.
func (k *keyring) world(ctx context.Context, o Options) (*snapshot, error) {
	a := &App{opts: o, sim: o.Sim}
	if a.sim == nil {
		a.sim = sim.New(sim.Config{Clock: o.Clock})
	}
	a.auth = stores{main: k.cfg.DefaultAgent(), open: func(ctx context.Context, agent string, _ *authstore.Store) (*authstore.Store, error) {
		if _, err := os.Stat(authstore.Path(k.cfg.Env.StateDir, agent)); err != nil {
			return nil, err // looking must not make anything
		}
		return k.plain(ctx, agent)
	}}
	return a.newSnapshot(ctx, k.cfg)
}

// statusReport is what `bot auth status --json` prints.
type statusReport struct {
	Agent    string        `json:"agent"`
	Profiles []profileView `json:"profiles"`
	// Missing lists the models that no credential could serve now, with the reason (--check).
	Missing []string `json:"missing,omitempty"`
}

func (r statusReport) print(std Std, so StatusOptions) error {
	if so.JSON {
		if r.Profiles == nil {
			r.Profiles = []profileView{}
		}
		return printJSON(std.Out, r)
	}
	if !slices.ContainsFunc(r.Profiles, func(v profileView) bool { return v.Type != kindUnstored }) {
		fmt.Fprintln(std.Out, "No credentials are stored. Add one: bot auth add openai:default")
	}
	if len(r.Profiles) > 0 {
		w := tabwriter.NewWriter(std.Out, 0, 4, 2, ' ', 0)
		fmt.Fprintln(w, "PROFILE\tTYPE\tSTATE")
		for _, v := range r.Profiles {
			state := v.State
			if v.Probe != nil {
				state += "; asked: " + v.Probe.Text
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", v.ID, v.Type, state)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	for _, m := range r.Missing {
		fmt.Fprintln(std.Out, "unusable:", m)
	}
	return nil
}

// unusable lists the models of an agent that nothing could serve now.
func (s *snapshot) unusable(agent string, health policy.Snapshot, now time.Time) (list []string) {
	for _, ref := range s.chain(agent) {
		text := s.lacks(ref, health, now)
		if text == "" {
			if w, blocked := health.Health.Block(s.profiles(health, ref, now)[0], ref.Model, now); blocked {
				text = fmt.Sprintf("%s rests (%s) until %s", ref, restReason(w), shownUntil(w.Until))
			}
		}
		if text != "" {
			list = append(list, text)
		}
	}
	return list
}

// unserved lists the models of an agent for which there is no credential at all.
func (s *snapshot) unserved(agent string, health policy.Snapshot, now time.Time) (list []string) {
	for _, ref := range s.chain(agent) {
		if text := s.lacks(ref, health, now); text != "" {
			list = append(list, text)
		}
	}
	return list
}

// lacks says why a model has no credential, and what helps; "" = it has one.
func (s *snapshot) lacks(ref llm.ModelRef, health policy.Snapshot, now time.Time) string {
	switch {
	case s.pool(health, ref.Provider).Closed():
		return fmt.Sprintf("%s may use no credential: the order of %s is empty", ref, ref.Provider)
	case len(s.profiles(health, ref, now)) == 0:
		return fmt.Sprintf("%s has no credential: bot auth add %s:default", ref, ref.Provider)
	}
	return ""
}

// chain is who an agent may ask, in order.
func (s *snapshot) chain(agent string) (list []llm.ModelRef) {
	m := s.cfg.Agent(agent).Models
	for _, ref := range append([]llm.ModelRef{m.Primary}, m.Fallbacks...) {
		if !ref.IsZero() {
			list = append(list, ref)
		}
	}
	return list
}

// probeView is what a minimal request with a credential brought.
type probeView struct {
	OK     bool       `json:"ok"`
	Model  string     `json:"model,omitempty"`
	Reason llm.Reason `json:"reason,omitempty"`
	Text   string     `json:"text"`
}

// probe asks with every stored profile.
func (r *statusReport) probe(ctx context.Context, world *snapshot, store *authstore.Store) {
	for i := range r.Profiles {
		v := &r.Profiles[i]
		if v.Type == kindUnstored {
			continue
		}
		p := askWith(ctx, world, store, v.ID)
		v.Probe = &p
	}
}

// askWith sends the smallest request with one profile: to the first configured model of its
// provider.
func askWith(ctx context.Context, world *snapshot, store *authstore.Store, id llm.ProfileID) probeView {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	cred, err := store.Credential(ctx, id)
	if err != nil {
		return refusedProbe("", err)
	}
	known := world.known()
	i := slices.IndexFunc(known, func(ref llm.ModelRef) bool { return ref.Provider == id.Provider() })
	if i < 0 {
		return probeView{OK: true, Text: "it is there; no configured model of the provider to ask"}
	}
	ref := known[i]
	client, err := world.Client(ref.Provider)
	if err != nil {
		return refusedProbe(ref.String(), err)
	}
	req := llm.Request{Model: ref, MaxTokens: 16, Thinking: "off", Messages: []llm.Message{llm.Text(llm.RoleUser, "Say ok.")}}
	for _, err := range client.Stream(ctx, cred, req) {
		if err != nil {
			return refusedProbe(ref.String(), err)
		}
	}
	return probeView{OK: true, Model: ref.String(), Text: "it works"}
}

func refusedProbe(model string, err error) probeView {
	v := probeView{Model: model, Reason: llm.ReasonUnclassified, Text: "it could not be asked"}
	var e *llm.Error
	switch {
	case errors.As(err, &e):
		v.Reason, v.Text = e.Reason, string(e.Reason)
		if e.Reason == llm.ReasonAuth || e.Reason == llm.ReasonAuthPermanent {
			v.Text += "; sign in again or store a new key"
		}
	case errors.Is(err, authstore.ErrRefreshLocked):
		v.Text = "another process renews it at this moment"
	}
	return v
}

// profileView is a profile in the documented shape of `bot auth status --json`; times are epoch
// milliseconds, 0 = none.
type profileView struct {
	ID       llm.ProfileID        `json:"id"`
	Provider string               `json:"provider"`
	Type     llm.CredentialKind   `json:"type"`
	Expires  int64                `json:"expires,omitempty"`
	State    string               `json:"state"`
	Usage    usageView            `json:"usageStats"`
	PerModel map[string]usageView `json:"models,omitempty"`
	Probe    *probeView           `json:"probe,omitempty"`
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
	for _, p := range append(slices.Clone(snap.Profiles), unstored(snap)...) {
		var rests []restView
		v := profileView{ID: p.ID, Provider: p.ID.Provider(), Type: p.Kind, Expires: unixMilli(p.Expires), State: stateOf(p, now)}
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
			rests = note(rests, k.Model, row, now)
		}
		if len(rests) > 0 {
			v.State = restText(rests)
		}
		v.mergeModelWindow(now)
		list = append(list, v)
	}
	return list
}

// kindUnstored is shown as the type of a profile that stands for a key of the environment or of the
// configuration, or for a provider that needs none.
const kindUnstored llm.CredentialKind = "not stored"

// unstored returns the profiles of which only the health is known (spec/failover.md §5.1), in order.
func unstored(snap policy.Snapshot) []policy.Profile {
	var list []policy.Profile
	for k := range snap.Health {
		same := func(p policy.Profile) bool { return p.ID == k.Profile }
		if !slices.ContainsFunc(snap.Profiles, same) && !slices.ContainsFunc(list, same) {
			list = append(list, policy.Profile{ID: k.Profile, Kind: kindUnstored})
		}
	}
	slices.SortFunc(list, func(a, b policy.Profile) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return list
}

// stateOf tells whether a credential could be used, apart from its health.
func stateOf(p policy.Profile, now time.Time) string {
	switch expired := !p.Expires.IsZero() && !now.Before(p.Expires); {
	case p.Kind == kindUnstored:
	case !p.HasSecret && !p.HasRefresh:
		return "the secret it refers to is not there"
	case expired && !p.HasRefresh:
		return "expired; sign in again"
	case expired:
		return "ok; it is renewed when it is used"
	}
	return "ok"
}

// restView is a rest of a profile, with the models it is for.
type restView struct {
	what   string
	until  time.Time
	models []string // none = all
}

// note adds the active windows of a row. Those that say the same of several models are one rest.
func note(rests []restView, model string, row policy.Row, now time.Time) []restView {
	add := func(what string, w policy.Window) {
		if !w.Active(now) {
			return
		}
		r := restView{what: fmt.Sprintf("%s (%s)", what, restReason(w)), until: w.Until}
		if model != "" {
			r.models = []string{model}
		}
		for i, x := range rests {
			if x.what == r.what && shownUntil(x.until) == shownUntil(r.until) && len(x.models) > 0 && model != "" {
				rests[i].models = append(rests[i].models, model)
				return
			}
		}
		rests = append(rests, r)
	}
	add("disabled", row.Disabled)
	add("cooling", row.Cooldown)
	return rests
}

// restReason is why a window is there: not every timeout was a matter of time.
func restReason(w policy.Window) string {
	if w.Detail == llm.DetailServerError || w.Detail == llm.DetailNetwork {
		return string(w.Reason) + ": " + string(w.Detail)
	}
	return string(w.Reason)
}

func shownUntil(t time.Time) string { return t.Local().Format(time.DateTime) }

// restText is what a person reads of the rests of a profile.
func restText(rests []restView) string {
	parts := make([]string, len(rests))
	for i, r := range rests {
		parts[i] = fmt.Sprintf("%s until %s", r.what, shownUntil(r.until))
		if len(r.models) > 0 {
			parts[i] += " for " + strings.Join(r.models, ", ")
		}
	}
	return strings.Join(parts, "; ")
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
