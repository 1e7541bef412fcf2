package config

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/goccy/go-yaml/ast"

	"understudy/cron"
	"understudy/heartbeat"
)

// Heartbeat is the `heartbeat` section of an agent (spec/chat.md §6.1). An agent's own section starts
// from the one of the defaults, key by key.
type Heartbeat struct {
	Model string `yaml:"model"`
	// Every is the interval; nil = 30 minutes, 0 = off. A bare number counts minutes.
	Every       *Minutes     `yaml:"every"`
	ActiveHours *ActiveHours `yaml:"activeHours"`
	// Target is owner, last, none, or the name of a channel; then To, and perhaps AccountID and ThreadID,
	// name the place.
	Target    string `yaml:"target"`
	To        string `yaml:"to"`
	AccountID string `yaml:"accountId"`
	ThreadID  string `yaml:"threadId"`
	// DirectPolicy block keeps alerts out of private chats.
	DirectPolicy string `yaml:"directPolicy" enum:"allow|block"`
	// AllowFallbacks false lets no stand-in answer; nil = true.
	AllowFallbacks  *bool `yaml:"allowFallbacks"`
	LightContext    *bool `yaml:"lightContext"`
	IsolatedSession *bool `yaml:"isolatedSession"`
	// Session is the name of the session that heartbeats run in; main = the agent's main one.
	Session string `yaml:"session"`
	Prompt  string `yaml:"prompt"`
	// TimeoutSeconds bounds one heartbeat; 0 = the interval, at most 600.
	TimeoutSeconds int `yaml:"timeoutSeconds"`
	HeartbeatShow  `yaml:",inline"`
	// ByChannel says it for some channels.
	ByChannel map[string]HeartbeatShow `yaml:"byChannel"`
}

// HeartbeatShow says what of heartbeats is to be seen.
type HeartbeatShow struct {
	ShowOK       *bool `yaml:"showOk"`       // nil = false
	ShowAlerts   *bool `yaml:"showAlerts"`   // nil = true
	UseIndicator *bool `yaml:"useIndicator"` // nil = true
}

// ActiveHours are times of day, the end not included.
type ActiveHours struct {
	Start string `yaml:"start" required:"true"`
	End   string `yaml:"end" required:"true"`
	// Timezone is an IANA name; "" = agents.defaults.userTimezone.
	Timezone string `yaml:"timezone"`
}

// Minutes is a duration for which a bare number counts minutes.
type Minutes time.Duration

// decodeNode reads 30m, 2h or a number of minutes.
func (m *Minutes) decodeNode(d *decoder, n ast.Node, path string) {
	if dur, ok := d.duration(n, path, time.Minute); ok {
		*m = Minutes(dur)
	}
}

const defaultHeartbeatEvery = 30 * time.Minute

// heartbeat completes a section; base is what it starts from, nil = nothing.
func (c *Config) heartbeat(d *decoder, h Heartbeat, base *heartbeat.Settings, zone *time.Location, at string) heartbeat.Settings {
	out := heartbeat.Settings{Every: defaultHeartbeatEvery, Show: heartbeat.Show{Alerts: true, Indicator: true}}
	if base != nil {
		out = *base
	}
	if h.Model != "" {
		out.Model = c.primary(d, h.Model, at+".model")
	}
	if h.Every != nil {
		out.Every = time.Duration(*h.Every)
		if out.Every != 0 && (out.Every < time.Minute || out.Every > longestSpan) {
			d.fail(at+".every", fmt.Sprintf("%s is too short or too long for a heartbeat", out.Every), "at least 1m; 0 = off")
		}
	}
	if h.ActiveHours != nil {
		out.Hours = activeHours(d, *h.ActiveHours, zone, at+".activeHours")
	}
	heartbeatTarget(d, h, &out, at)
	for _, x := range []struct {
		from *bool
		to   *bool
		not  bool
	}{
		{h.AllowFallbacks, &out.NoFallbacks, true}, {h.LightContext, &out.Light, false}, {h.IsolatedSession, &out.Isolated, false},
	} {
		if x.from != nil {
			*x.to = *x.from != x.not
		}
	}
	if h.Session != "" {
		out.Session = h.Session
		if h.Session != "main" && !validAgentID(h.Session) {
			d.fail(at+".session", fmt.Sprintf("%s cannot be the name of a session", quote(h.Session)), "lower-case letters, digits, - and _, at most 64; or main")
		}
	}
	if h.Prompt != "" {
		out.Prompt = h.Prompt
	}
	if h.TimeoutSeconds != 0 {
		if out.Timeout = time.Duration(h.TimeoutSeconds) * time.Second; h.TimeoutSeconds < 0 || out.Timeout > 24*time.Hour {
			d.fail(at+".timeoutSeconds", fmt.Sprintf("%d is not a sensible number of seconds", h.TimeoutSeconds), "")
		}
	}
	out.Show = h.over(out.Show)
	for _, channel := range slices.Sorted(maps.Keys(h.ByChannel)) {
		if out.ShowOn == nil {
			out.ShowOn = map[string]heartbeat.Show{}
		}
		out.ShowOn[channel] = h.ByChannel[channel].over(out.Show)
	}
	return out.WithDefaults()
}

// heartbeatTarget reads who hears of heartbeats.
func heartbeatTarget(d *decoder, h Heartbeat, out *heartbeat.Settings, at string) {
	switch h.DirectPolicy {
	case "allow":
		out.BlockDirect = false
	case "block":
		out.BlockDirect = true
	}
	if h.Target == "" {
		if h.To != "" {
			d.fail(at+".to", "a place without a channel", "add target: slack, discord or telegram")
		}
		return
	}
	out.Target, out.Implied = heartbeat.Target(h.Target), false
	switch out.Target {
	case heartbeat.TargetOwner, heartbeat.TargetLast, heartbeat.TargetNone:
		if h.To != "" {
			d.fail(at+".to", fmt.Sprintf("the target %s needs no place", h.Target), "")
		}
		return
	}
	to, err := cron.Destination(h.Target, h.To, h.ThreadID, accountSegment(h.AccountID))
	if err != nil {
		d.fail(at+".target", err.Error(), "owner, last, none, or a channel with to")
	}
	out.To = to
}

// accountSegment is how an account is called in addresses.
func accountSegment(id string) string {
	if id == DefaultAccount {
		return ""
	}
	return id
}

func activeHours(d *decoder, h ActiveHours, zone *time.Location, at string) *heartbeat.Hours {
	if h.Timezone != "" {
		zone = d.zone(h.Timezone, at+".timezone")
	}
	hours, err := heartbeat.ParseHours(h.Start, h.End, zone)
	if err != nil {
		d.fail(at, err.Error(), "start is included, end is not; 24:00 is allowed")
	}
	if err == nil && hours.Start == hours.End {
		d.warn(at, "start and end are the same, so there is no heartbeat at all", "")
	}
	return &hours
}

// over fills what is not said from base.
func (s HeartbeatShow) over(base heartbeat.Show) heartbeat.Show {
	for _, x := range []struct{ from, to *bool }{{s.ShowOK, &base.OK}, {s.ShowAlerts, &base.Alerts}, {s.UseIndicator, &base.Indicator}} {
		if x.from != nil {
			*x.to = *x.from
		}
	}
	return base
}
