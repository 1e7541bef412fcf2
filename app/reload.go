package app

import (
	"context"
	"reflect"

	"understudy/channels/telegram"
	"understudy/config"
)

// reload reads the configuration again at once, for the control socket.
func (a *App) reload(ctx context.Context) error {
	a.reloading.Lock() // an older file must not overtake a newer one
	defer a.reloading.Unlock()
	cfg, warnings, err := config.Load(loadOptions(a.opts))
	return a.replace(ctx, config.Change{Config: cfg, Warnings: warnings, Err: err})
}

// apply takes what the watcher found.
func (a *App) apply(c config.Change) {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	_ = a.replace(context.Background(), c) // it is logged and shown in /status
}

// replace swaps the configuration, whole or not at all: a bad one keeps the old one and says why in
// the log and in /status (spec/failover.md §2).
func (a *App) replace(ctx context.Context, c config.Change) error {
	err := c.Err
	var snap *snapshot
	if err == nil {
		a.hide.Add(c.Config.Secrets()...)
		snap, err = a.newSnapshot(ctx, c.Config)
	}
	if err == nil {
		err = a.inbound.Reload(a.access(snap.cfg))
	}
	if err != nil {
		text := err.Error()
		a.reloaded.Store(&text)
		a.log.ErrorContext(ctx, "config reload skipped (invalid config)", "error", text)
		return err
	}
	for _, w := range c.Warnings {
		a.log.WarnContext(ctx, "config_warning", "problem", w.String())
	}
	old := a.current.Swap(snap)
	a.reloaded.Store(nil)
	a.auth.retry()
	a.log.InfoContext(ctx, "config_reloaded", "file", snap.cfg.Path)
	if what := needsRestart(old.cfg, snap.cfg); what != "" {
		a.log.WarnContext(ctx, "config_needs_restart", "what", what)
	}
	old.registry.Close()
	return nil
}

// needsRestart names what of a new configuration takes effect at the next start only.
func needsRestart(old, cfg *config.Config) string {
	switch {
	case old.Env.StateDir != cfg.Env.StateDir:
		return "the state directory"
	case !reflect.DeepEqual(old.Gateway, cfg.Gateway):
		return "gateway"
	case old.Logging != cfg.Logging:
		return "logging"
	case old.Agents.Defaults.MaxConcurrent != cfg.Agents.Defaults.MaxConcurrent:
		return "agents.defaults.maxConcurrent"
	case !sameAccounts(old, cfg):
		return "channels.telegram"
	}
	return ""
}

// sameAccounts reports whether the channel accounts connect in the same way.
func sameAccounts(old, cfg *config.Config) bool {
	a, b := old.TelegramAccounts(), cfg.TelegramAccounts()
	if len(a) != len(b) {
		return false
	}
	for id, x := range a {
		y, ok := b[id]
		if !ok || !reflect.DeepEqual(withoutAccess(x), withoutAccess(y)) {
			return false
		}
	}
	return true
}

// withoutAccess is what of an account takes effect when it connects: all but who may talk to it.
func withoutAccess(c telegram.Config) telegram.Config {
	c.DMPolicy, c.AllowFrom = "", nil
	c.GroupPolicy, c.GroupAllowFrom, c.Groups, c.RequireMention = "", nil, nil, nil
	return c
}

// reloadProblem is the reason why the newest configuration is not in use; "" = it is.
func (a *App) reloadProblem() string {
	if p := a.reloaded.Load(); p != nil {
		return *p
	}
	return ""
}
