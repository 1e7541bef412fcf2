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
	deps.Home = home(cfg)
	return cron.New(cfg.Cron, deps)
}

// home is where the people are who make tasks.
func home(cfg *config.Config) cron.Home {
	return cron.Home{Zone: cfg.Agent("").Timezone, Named: cfg.Agents.Defaults.UserTimezone != ""}
}
