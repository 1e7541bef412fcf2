package session

import (
	"fmt"
	"time"

	"understudy/chat"
)

// ResetMode says when a session begins anew by itself (spec/chat.md §1.3).
type ResetMode string

// The modes. Idle minutes may stand beside a daily reset; the first that is due counts.
const (
	ResetNone  ResetMode = "none"
	ResetDaily ResetMode = "daily"
	ResetIdle  ResetMode = "idle"
)

const defaultResetHour = 4

// ResetConfig is when sessions begin anew.
type ResetConfig struct {
	Mode        ResetMode `yaml:"mode"`
	AtHour      *int      `yaml:"atHour"` // daily; nil = 4
	IdleMinutes int       `yaml:"idleMinutes"`
}

// Validate names the first value that makes no sense.
func (r ResetConfig) Validate() error {
	switch r.Mode {
	case "", ResetNone, ResetDaily:
	case ResetIdle:
		if r.IdleMinutes == 0 {
			return fmt.Errorf("mode idle needs idleMinutes")
		}
	default:
		return fmt.Errorf("mode: %q is not one of none, daily, idle", r.Mode)
	}
	if r.AtHour != nil && (*r.AtHour < 0 || *r.AtHour > 23) {
		return fmt.Errorf("atHour must be between 0 and 23")
	}
	if r.IdleMinutes < 0 {
		return fmt.Errorf("idleMinutes must be 0 or more")
	}
	return nil
}

// ResetFor returns the rule of an address: its channel's own, else its type's, else the general.
func (c Config) ResetFor(a chat.Address) ResetConfig {
	if r, ok := c.ResetByChannel[a.Channel]; ok {
		return r
	}
	kind := "group"
	switch {
	case a.Thread != "" && threaded(a):
		kind = "thread"
	case a.Kind == chat.Direct:
		kind = "direct"
	}
	if r, ok := c.ResetByType[kind]; ok {
		return r
	}
	return c.Reset
}

// Due reports whether a session must begin anew before its next message. The daily hour is that of
// now's location. Only what people write moves the times it looks at; the silence before a reset does not
// count against the session that the reset began.
func (r ResetConfig) Due(s Session, now time.Time) bool {
	if r.Mode == "" || r.Mode == ResetNone {
		return false
	}
	since := s.LastInteractionAt
	if s.StartedAt.After(since) {
		since = s.StartedAt
	}
	if r.IdleMinutes > 0 && !s.LastInteractionAt.IsZero() && now.Sub(since) > time.Duration(r.IdleMinutes)*time.Minute {
		return true
	}
	return r.Mode == ResetDaily && s.StartedAt.Before(r.boundary(now))
}

// boundary is the latest moment of the daily hour that is not after now.
func (r ResetConfig) boundary(now time.Time) time.Time {
	hour := defaultResetHour
	if r.AtHour != nil {
		hour = *r.AtHour
	}
	at := time.Date(now.Year(), now.Month(), now.Day(), hour, 0, 0, 0, now.Location())
	if at.After(now) {
		at = time.Date(now.Year(), now.Month(), now.Day()-1, hour, 0, 0, 0, now.Location())
	}
	return at
}
