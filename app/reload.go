package app

import (
	"context"
	"reflect"

	"understudy/config"
)

// reload reads the configuration again at once, for the control socket.
func (a *App) reload(ctx context.Context) error { return a.watcher.Now(ctx) }

// replace swaps the configuration, whole or not at all: a bad one keeps the old one and says why in
// the log and in /status (spec/failover.md §2). The watcher calls it, one change after the other.
func (a *App) replace(c config.Change) error {
	ctx := context.Background()
	err := c.Err
	var snap *snapshot
	if err == nil {
		a.hide.Add(c.Config.Secrets()...)
		snap, err = a.newSnapshot(ctx, c.Config)
	}
	var old *snapshot
	if err == nil {
		a.reloading.Lock()
		if err = a.inbound.Reload(a.access(snap.cfg)); err == nil {
			old = a.current.Swap(snap)
		}
		a.reloading.Unlock()
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
	a.reloaded.Store(nil)
	a.auth.retry()
	a.metrics.Configured(refStrings(snap.known()))
	a.log.InfoContext(ctx, "config_reloaded", "file", snap.cfg.Path)
	if what := needsRestart(a.booted, snap.cfg); what != "" {
		a.log.WarnContext(ctx, "config_needs_restart", "what", what)
	}
	if err := a.mcp.Reload(snap.cfg.MCP); err != nil { // it was checked with the rest
		a.log.ErrorContext(ctx, "tool_servers_not_reloaded", "error", err.Error())
	}
	a.reloadUnasked(ctx)
	a.reloadSpeech(ctx, snap.cfg)
	a.reconcile(ctx, a.plans(snap.cfg))
	a.mountWebhooks()
	old.registry.Close()
	return nil
}

// needsRestart names what of a configuration differs from the one that the process began with and takes
// effect at the next start only.
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
	}
	return ""
}

// reloadProblem is the reason why the newest configuration is not in use; "" = it is.
func (a *App) reloadProblem() string {
	if p := a.reloaded.Load(); p != nil {
		return *p
	}
	return ""
}
