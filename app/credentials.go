package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"understudy/authstore"
	"understudy/authstore/imports"
	"understudy/authstore/signin"
	"understudy/config"
	"understudy/failover/policy"
	"understudy/internal/sqlite"
)

// importCommand is how a person takes over what waits to be imported.
const importCommand = "bot doctor --fix"

// renewer renews sign-ins as the configuration of the moment says.
type renewer struct{ a *App }

// Refresh implements authstore.Refresher.
func (r renewer) Refresh(ctx context.Context, p authstore.Profile) (authstore.Tokens, error) {
	return r.a.current.Load().signIns.Refresh(ctx, p)
}

// openAuth opens the credential store of an agent. The default agent reads the shared sign-ins of
// credentials/oauth.json at its first use (spec/imports.md).
func (a *App) openAuth(ctx context.Context, agent string, base *authstore.Store) (*authstore.Store, error) {
	store, err := authstore.Open(ctx, authstore.Path(a.state, agent), authstore.Deps{
		Clock: a.opts.Clock, Default: base, Log: a.log, BusyTimeout: a.opts.BusyTimeout,
		Refresher: renewer{a}, Getenv: a.opts.getenv, Hide: a.hide.Add,
	})
	if err != nil || agent != a.auth.main {
		return store, err
	}
	o := imports.Options{StateDir: a.state, Main: agent, Rules: policy.DefaultRules(), Now: a.opts.Clock.Now}
	firstUse(ctx, store, o, a.log)
	for _, r := range imports.Pending(ctx, o) {
		a.log.WarnContext(ctx, "credentials_to_import", "file", r.Source, "state", string(r.Status), "problem", r.Error, "command", importCommand)
	}
	return store, nil
}

// firstUse takes over credentials/oauth.json and logs what came of it.
func firstUse(ctx context.Context, store *authstore.Store, o imports.Options, log *slog.Logger) {
	r, ok := imports.FirstUse(ctx, store, o)
	switch {
	case !ok:
	case r.Error != "":
		log.WarnContext(ctx, "shared_sign_ins_not_imported", "file", r.Source, "problem", r.Error)
	default:
		log.InfoContext(ctx, "shared_sign_ins_imported", "file", r.Source, "added", len(r.Added), "kept", len(r.Kept), "unusable", len(r.Problems))
	}
}

// importProblems tells what waits to be imported, for /status and the page.
func (a *App) importProblems(ctx context.Context) []string {
	var list []string
	for _, r := range imports.Pending(ctx, imports.Options{StateDir: a.state, Main: a.auth.main, Rules: policy.DefaultRules(), Now: a.opts.Clock.Now}) {
		switch r.Status {
		case imports.Waiting:
			list = append(list, fmt.Sprintf("Credentials wait to be imported: %s. Run: %s", r.Source, importCommand))
		case imports.Damaged:
			list = append(list, fmt.Sprintf("%s cannot be imported: %s", r.Source, r.Error))
		}
	}
	return list
}

// newSignIns builds the client of the sign-in servers that a configuration knows.
func newSignIns(cfg *config.Config, o Options) (*authstore.OAuthClient, error) {
	return authstore.NewOAuthClient(signin.Endpoints(cfg.Auth.Providers), o.SignIn, o.Clock)
}

// keyring opens stores beside a bot that may be running, for the verbs.
type keyring struct {
	cfg    *config.Config
	deps   authstore.Deps
	log    *slog.Logger
	opened map[string]*authstore.Store
}

func newKeyring(o Options, cfg *config.Config) (*keyring, error) {
	if cfg.Env.StateDir == "" {
		return nil, errNoState
	}
	signIns, err := newSignIns(cfg, o)
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.DiscardHandler)
	return &keyring{cfg: cfg, log: log, opened: map[string]*authstore.Store{}, deps: authstore.Deps{
		Clock: o.Clock, Log: log, Refresher: signIns, Getenv: o.getenv, BusyTimeout: o.BusyTimeout,
	}}, nil
}

// importing are the options of an import into this state directory.
func (k *keyring) importing() imports.Options {
	return imports.Options{
		StateDir: k.cfg.Env.StateDir, Main: k.cfg.DefaultAgent(), Rules: k.cfg.Rules(), Now: time.Now,
		Open: func(ctx context.Context, agent string) (imports.Store, error) { return k.plain(ctx, agent) },
	}
}

// plain opens the store of an agent without reading through to another.
func (k *keyring) plain(ctx context.Context, agent string) (*authstore.Store, error) {
	if s, ok := k.opened[agent]; ok {
		return s, nil
	}
	s, err := authstore.Open(ctx, authstore.Path(k.cfg.Env.StateDir, agent), k.deps)
	if err == nil {
		k.opened[agent] = s
	}
	return s, err
}

// open opens the store of an agent as a turn uses it.
func (k *keyring) open(ctx context.Context, agent string) (*authstore.Store, error) {
	main, err := k.plain(ctx, k.cfg.DefaultAgent())
	if err != nil {
		return nil, err
	}
	firstUse(ctx, main, k.importing(), k.log)
	if agent == k.cfg.DefaultAgent() {
		return main, nil
	}
	if err := k.known(agent); err != nil {
		return nil, err
	}
	through := agent + " " // no agent is called that
	if s, ok := k.opened[through]; ok {
		return s, nil
	}
	deps := k.deps
	deps.Default = main
	s, err := authstore.Open(ctx, authstore.Path(k.cfg.Env.StateDir, agent), deps)
	if err == nil {
		k.opened[through] = s
	}
	return s, err
}

func (k *keyring) known(agent string) error {
	if !slices.Contains(k.cfg.AgentIDs(), agent) {
		return fmt.Errorf("there is no agent %q; agents: %s", agent, strings.Join(k.cfg.AgentIDs(), ", "))
	}
	return nil
}

// close closes every store, those that read through to another first.
func (k *keyring) close() error {
	var errs []error
	for _, through := range []bool{true, false} {
		for agent, s := range k.opened {
			if strings.HasSuffix(agent, " ") == through {
				errs = append(errs, s.Close())
			}
		}
	}
	k.opened = nil
	return errors.Join(errs...)
}

// foreignHint completes the error about another program's database by the way out.
func foreignHint(err error) string {
	var foreign *sqlite.ForeignError
	if errors.As(err, &foreign) {
		return foreign.Public()
	}
	var corrupt *sqlite.CorruptError
	if errors.As(err, &corrupt) {
		return corrupt.Public()
	}
	return err.Error()
}
