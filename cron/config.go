package cron

import (
	"errors"
	"fmt"
	"time"

	"understudy/cron/schedule"
	"understudy/internal/secret"
)

// CatchUp says what becomes of a recurring job's slot that passed while nobody was there to run it.
type CatchUp string

// The ways (spec/chat.md §5.4).
const (
	CatchUpSkip CatchUp = "skip" // it is recorded as missed; the next slot is the next one
	CatchUpOnce CatchUp = "once" // one run stands for all that was missed
)

// Defaults of Config.
const (
	defaultConcurrent = 4
	defaultGrace      = 24 * time.Hour
	defaultAlertAfter = 2
	defaultCooldown   = time.Hour
)

// mostConcurrent bounds maxConcurrentRuns.
const mostConcurrent = 64

// Config is the `cron` section of the configuration. All of it takes effect on a reload.
type Config struct {
	// Enabled switches the schedule off where it is false; jobs can still be looked at, edited and run by
	// hand.
	Enabled *bool `yaml:"enabled"`
	// Timezone is the zone of jobs without one of their own; "" = Home.
	Timezone string `yaml:"timezone"`
	// MaxConcurrentRuns is how many jobs run side by side; 0 = 4.
	MaxConcurrentRuns int `yaml:"maxConcurrentRuns"`
	// CatchUp is for recurring jobs, MissedAtGrace for single ones: those that are overdue by less are
	// run, the others are given up. Default 24h.
	CatchUp       CatchUp       `yaml:"catchUp"`
	MissedAtGrace time.Duration `yaml:"missedAtGrace"`
	FailureAlert  Alert         `yaml:"failureAlert"`
	// WebhookToken is sent to webhooks, as a bearer token; empty = none is.
	WebhookToken secret.String `yaml:"webhookToken"`
}

// Alert says when somebody is told about a failing job. The zero value of a field in a job is the
// configured value.
type Alert struct {
	// Off silences alerts. That a job was switched off is told all the same.
	Off bool `yaml:"off,omitempty" json:"off,omitempty"`
	// After is from which failure in a row on; default 2.
	After int `yaml:"after,omitempty" json:"after,omitempty"`
	// Cooldown is the least time between two alerts of one job; default 1h.
	Cooldown time.Duration `yaml:"cooldown,omitempty" json:"cooldown,omitempty"`
	// Channel and To name the place, as in Destination; "" = where the job's results go.
	Channel string `yaml:"channel,omitempty" json:"channel,omitempty"`
	To      string `yaml:"to,omitempty" json:"to,omitempty"`
	// IncludeSkipped counts runs that were skipped as failures.
	IncludeSkipped bool `yaml:"includeSkipped,omitempty" json:"includeSkipped,omitempty"`
}

// WithDefaults fills what is not set.
func (c Config) WithDefaults() Config {
	if c.Enabled == nil {
		on := true
		c.Enabled = &on
	}
	if c.MaxConcurrentRuns == 0 {
		c.MaxConcurrentRuns = defaultConcurrent
	}
	if c.CatchUp == "" {
		c.CatchUp = CatchUpSkip
	}
	if c.MissedAtGrace == 0 {
		c.MissedAtGrace = defaultGrace
	}
	c.FailureAlert = c.FailureAlert.over(Alert{After: defaultAlertAfter, Cooldown: defaultCooldown})
	return c
}

// Validate names every value that makes no sense.
func (c Config) Validate() error {
	var errs []error
	if c.Timezone != "" {
		if _, err := schedule.Zone(c.Timezone, nil); err != nil {
			errs = append(errs, fmt.Errorf("timezone: %w", err))
		}
	}
	if c.MaxConcurrentRuns < 0 || c.MaxConcurrentRuns > mostConcurrent {
		errs = append(errs, fmt.Errorf("maxConcurrentRuns: must be between 1 and %d", mostConcurrent))
	}
	if c.CatchUp != "" && c.CatchUp != CatchUpSkip && c.CatchUp != CatchUpOnce {
		errs = append(errs, fmt.Errorf("catchUp: %q is none of skip, once", c.CatchUp))
	}
	if c.MissedAtGrace < 0 {
		errs = append(errs, errors.New("missedAtGrace: must not be negative"))
	}
	if err := c.FailureAlert.validate(); err != nil {
		errs = append(errs, fmt.Errorf("failureAlert.%w", err))
	}
	return errors.Join(errs...)
}

func (a Alert) validate() error {
	switch {
	case a.After < 0 || a.After > 1000:
		return errors.New("after: must be between 1 and 1000")
	case a.Cooldown < 0 || a.Cooldown > 30*24*time.Hour:
		return errors.New("cooldown: must be between 0 and 30 days")
	case (a.Channel == "") != (a.To == ""):
		return errors.New("to: channel and to belong together")
	}
	if a.Channel == "" {
		return nil
	}
	if _, err := Destination(a.Channel, a.To, "", ""); err != nil {
		return fmt.Errorf("to: %w", err)
	}
	return nil
}

// over fills what a job does not say from what is configured.
func (a Alert) over(base Alert) Alert {
	a.Off = a.Off || base.Off
	a.IncludeSkipped = a.IncludeSkipped || base.IncludeSkipped
	if a.After == 0 {
		a.After = base.After
	}
	if a.Cooldown == 0 {
		a.Cooldown = base.Cooldown
	}
	if a.Channel == "" {
		a.Channel, a.To = base.Channel, base.To
	}
	return a
}
