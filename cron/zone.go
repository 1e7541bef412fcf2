package cron

import (
	"context"
	"time"

	"understudy/cron/schedule"
)

// Home is where people are whose jobs say no zone, as far as cron.timezone does not say it.
type Home struct {
	Zone *time.Location // nil = the host's
	// Named tells that somebody chose it (`agents.defaults.userTimezone`).
	Named bool
}

// setup is a configuration with what follows from it.
type setup struct {
	Config
	zone  *time.Location // of jobs without one of their own
	named bool           // somebody chose it
}

// configure puts a valid configuration in place.
func (s *Scheduler) configure(cfg Config, home Home) error {
	x := setup{Config: cfg.WithDefaults(), zone: home.Zone, named: home.Named}
	if cfg.Timezone != "" {
		zone, err := schedule.Zone(cfg.Timezone, s.zones.find)
		if err != nil {
			return err
		}
		x.zone, x.named = zone, true
	}
	if x.zone == nil {
		x.zone, x.named = time.Local, false
	}
	s.cfg.Store(&x)
	return nil
}

// planZone names the zone in which a job's next run is reckoned, if that is the configured one and
// matters; "" = it does not follow the configuration.
func planZone(job Job, sched schedule.Schedule) string {
	if job.Schedule.Kind != schedule.Cron || job.Schedule.TZ != "" || sched.Zone() == nil {
		return ""
	}
	return sched.Zone().String()
}

// follow reckons the jobs anew whose next run was reckoned in another zone than the configured one, after
// a reload or while the bot was down. A run whose time has come keeps it.
func (s *Scheduler) follow(ctx context.Context, now time.Time) error {
	for n := batch; n == batch; {
		err := s.commit(ctx, func(ctx context.Context, p *page) error {
			rows, err := p.Misplaced(ctx, s.cfg.Load().zone.String(), now.UnixMilli(), batch)
			if err != nil {
				return err
			}
			n = len(rows)
			for _, row := range rows {
				job, err := jobOf(row)
				if err != nil {
					return err
				}
				s.rezone(&job, now)
				if row, err = rowOf(job); err != nil {
					return err
				}
				if err := p.Place(ctx, row); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if n > 0 {
			s.log.Info("tasks follow another time zone", "zone", s.cfg.Load().zone.String(), "tasks", n)
		}
	}
	return nil
}

// rezone reckons a job's next run in the configured zone.
func (s *Scheduler) rezone(job *Job, now time.Time) {
	sched, err := s.compile(*job)
	old := s.planned(*job)
	job.State.planZone = planZone(*job, sched)
	if err != nil || old == nil {
		return // what is wrong with it is found when its time comes
	}
	next, ok := sched.Rezone(old, job.State.LastSlotAt, job.State.NextRunAt, now)
	if !ok {
		next = time.Time{}
	}
	job.State.NextRunAt, job.State.SlotAt = next, next
}

// planned is the zone in which a job's next run was reckoned; nil = it is not known here any more.
func (s *Scheduler) planned(job Job) *time.Location {
	if job.State.planZone == "Local" {
		return time.Local
	}
	zone, err := s.zones.find(job.State.planZone)
	if err != nil {
		return nil
	}
	return zone
}

// after returns when a job is due next once its present slot is taken; zero = never. If the zone was
// changed while the slot waited to be taken, the change is made up for here.
func (s *Scheduler) after(job Job, sched schedule.Schedule, now time.Time) time.Time {
	next, ok := sched.Next(now)
	if was := job.State.planZone; was != "" && was != planZone(job, sched) {
		if old := s.planned(job); old != nil {
			if before, err := job.Schedule.Compile(old, s.zones.find); err == nil {
				planned, _ := before.Next(now)
				next, ok = sched.Rezone(old, job.State.NextRunAt, planned, now)
			}
		}
	}
	if !ok {
		return time.Time{}
	}
	return next
}
