package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"understudy/authstore"
	"understudy/authstore/imports"
	"understudy/authstore/signin"
	"understudy/failover/policy"
	"understudy/llm"
	"understudy/provider/sim"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// adoptHint says what taking over sign-ins means.
const adoptHint = "stop the other program for good, then run the same with --adopt-oauth; two owners of one sign-in log each other out"

// imports takes over what waits, with Fix, or tells that it waits.
func (d *doctor) imports(ctx context.Context) {
	if d.keys == nil {
		if d.do.Fix {
			d.bad("import", "put the configuration right first", "nothing was imported")
		}
		return
	}
	o := d.keys.importing()
	if !d.do.Fix {
		results := imports.Pending(ctx, o)
		for i := range results {
			d.imported(&results[i])
		}
		return
	}
	d.take(ctx, o)
	if d.do.From != "" {
		o.From, o.AdoptOAuth = d.do.From, d.do.AdoptOAuth
		d.take(ctx, o)
	}
}

func (d *doctor) take(ctx context.Context, o imports.Options) {
	results, err := imports.Run(ctx, o)
	switch {
	case errors.Is(err, imports.ErrSameDirectory), errors.Is(err, fs.ErrNotExist):
		d.bad("import", "name the state directory of the other program", "%s", err)
		return
	case err != nil:
		d.bad("import", "", "%s", err)
		return
	}
	for i := range results {
		d.imported(&results[i])
	}
	if text := imports.Snippet(results); text != "" {
		d.warn("import", "add this to the configuration:\n"+text, "some entries hold no secret but name a credential chain")
	}
	if o.From != "" && len(results) == 0 {
		d.warn("import", "", "there is nothing to import in %s", o.From)
	}
}

// imported tells what became of one source.
func (d *doctor) imported(r *imports.Result) {
	f := finding{Check: "import", Level: levelOK, Import: r}
	switch r.Status {
	case imports.Waiting:
		f.Level, f.Text, f.Fix = levelWarn, fmt.Sprintf("credentials wait to be imported: %s", r.Source), importCommand
	case imports.Damaged:
		f.Level, f.Text = levelError, fmt.Sprintf("%s was left alone: %s", r.Source, r.Error)
		f.Fix = "put it right or move it away, then run " + importCommand + " again"
	case imports.Failed:
		f.Level, f.Text = levelError, fmt.Sprintf("%s could not be imported and was left alone: %s", r.Source, r.Error)
	case imports.Empty:
		f.Text = fmt.Sprintf("%s holds no credentials", r.Source)
	case imports.Unchanged:
		f.Text = fmt.Sprintf("%s was imported before", r.Source)
	case imports.Imported:
		f.Text = fmt.Sprintf("%s was imported for agent %s: %s", r.Source, r.Agent, tally(r))
	}
	if r.Archived != "" {
		f.Text += "; it is kept as " + r.Archived
	}
	d.findings = append(d.findings, f)
	if r.Error != "" && (r.Status == imports.Imported || r.Status == imports.Unchanged) {
		d.warn("import", "move it away yourself", "%s: %s", r.Source, r.Error)
	}
	if r.Status != imports.Waiting {
		for _, p := range r.Problems {
			d.warn("import", "store it again: bot auth add", "%s: the entry %s cannot be used: %s", r.Source, p.Entry, p.Reason)
		}
	}
	if len(r.Withheld) > 0 && r.Status == imports.Imported {
		d.warn("import", adoptHint, "%s: not taken over: %s", r.Source, idList(r.Withheld))
	}
	if r.InUse && r.Status == imports.Imported {
		d.warn("import", "stop it before both use the same credentials", "the program of %s may be running", r.Source)
	}
}

func tally(r *imports.Result) string {
	var parts []string
	for _, x := range [...]struct {
		what string
		ids  []llm.ProfileID
	}{{"new", r.Added}, {"already here", r.Kept}, {"shared with the default agent", r.Shared}} {
		if len(x.ids) > 0 {
			parts = append(parts, x.what+": "+idList(x.ids))
		}
	}
	if len(parts) == 0 {
		return "no new credentials"
	}
	return strings.Join(parts, "; ")
}

func idList(ids []llm.ProfileID) string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = string(id)
	}
	return strings.Join(list, ", ")
}

// secrets checks references and secrets in the configuration.
func (d *doctor) secrets() {
	for _, u := range d.cfg.Unavailable {
		d.bad("secrets", "set it, or remove the reference", "%s", u.Problem.String())
	}
	for _, key := range d.cfg.Plaintext() {
		d.warn("secrets", "refer to it: ${NAME} or file:/path", "%s is written in the configuration itself", key)
	}
	if len(d.cfg.Unavailable)+len(d.cfg.Plaintext()) == 0 {
		d.ok("secrets", "every reference to a secret resolves")
	}
}

// credentials checks that every model has somebody to ask with.
func (d *doctor) credentials(ctx context.Context) {
	if d.keys == nil {
		return
	}
	world, err := d.keys.world(ctx, d.opts)
	if err != nil {
		d.bad("models", "", "%s", err)
		return
	}
	for _, agent := range world.cfg.AgentIDs() {
		d.agent(ctx, world, agent)
	}
	for _, ref := range world.cfg.Configured() {
		if ref.Provider != sim.Provider && !world.registry.Model(ref).Known && ref.Provider != "ollama" {
			d.warn("models", "is it spelled right? /models lists what is known", "nothing is known about %s; its context window and prices are guessed", ref)
		}
	}
}

func (d *doctor) agent(ctx context.Context, world *snapshot, agent string) {
	var health policy.Snapshot
	var store *authstore.Store
	if _, err := os.Stat(authstore.Path(d.state, d.cfg.DefaultAgent())); err == nil {
		if store, err = d.keys.open(ctx, agent); err != nil {
			d.bad("credentials", "", "agent %s: %s", agent, foreignHint(err))
		} else if health, err = store.Snapshot(ctx); err != nil {
			d.bad("credentials", "", "agent %s: %s", agent, err)
		}
	}
	missing := world.unusable(agent, health, d.now)
	for _, text := range missing {
		d.warn("models", "", "agent %s: %s", agent, text)
	}
	if len(missing) == 0 {
		d.ok("models", "agent %s: every model has a credential", agent)
	}
	for _, p := range health.Profiles {
		d.profile(ctx, world, store, agent, p, health)
	}
}

// profile checks one stored credential.
func (d *doctor) profile(ctx context.Context, world *snapshot, store *authstore.Store, agent string, p policy.Profile, health policy.Snapshot) {
	const check = "credentials"
	expired := !p.Expires.IsZero() && !d.now.Before(p.Expires)
	_, renewable := signin.Endpoints(d.cfg.Auth.Providers)[p.ID.Provider()]
	known, hint := d.cfg.KnownProvider(p.ID.Provider())
	switch {
	case !known:
		d.warn(check, hint+"; if it is a slip, store the key anew and: bot auth remove "+string(p.ID), "agent %s: %s is used by nothing: there is no provider %q", agent, p.ID, p.ID.Provider())
	case !p.HasSecret && !p.HasRefresh:
		d.warn(check, "set the environment variable it refers to", "agent %s: the secret of %s is not there", agent, p.ID)
	case p.Kind == llm.KindOAuth && p.HasRefresh && !renewable:
		d.warn(check, fmt.Sprintf("describe it under auth.providers.%s", p.ID.Provider()), "agent %s: %s cannot be renewed: I know no tokenUrl of its provider", agent, p.ID)
	case expired && !p.HasRefresh:
		d.warn(check, "bot auth login "+string(p.ID), "agent %s: %s has expired", agent, p.ID)
	}
	row := health.Health[policy.Key{Profile: p.ID}]
	if row.Disabled.Active(d.now) {
		d.warn(check, "put it right at the provider, then: bot auth enable "+string(p.ID), "agent %s: %s is disabled (%s) until %s",
			agent, p.ID, row.Disabled.Reason, row.Disabled.Until.Local().Format(time.DateTime))
	}
	if order := health.Orders[p.ID.Provider()]; order != nil && !slices.Contains(order, p.ID) {
		d.warn(check, "bot auth order set "+p.ID.Provider()+" …", "agent %s: the stored order leaves %s out", agent, p.ID)
	}
	if d.do.Probe && store != nil {
		v := askWith(ctx, world, store, p.ID)
		if v.OK {
			d.ok(check, "agent %s: %s: %s", agent, p.ID, v.Text)
		} else {
			d.bad(check, "", "agent %s: %s: %s", agent, p.ID, v.Text)
		}
	}
}
