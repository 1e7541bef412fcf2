package app

import (
	"log/slog"

	"understudy/config"
	"understudy/cron"
)

// newScheduler makes a scheduler of a configuration. One that is not run can still read schedules and
// say when tasks are due.
func newScheduler(cfg *config.Config, jobs *cron.Store, deps cron.Deps) (*cron.Scheduler, error) {
	deps.Store = jobs
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	if deps.Home = cfg.Agent("").Timezone; cfg.Agents.Defaults.UserTimezone != "" {
		deps.HomeNamed = true
	}
	return cron.New(cfg.Cron, deps)
}
