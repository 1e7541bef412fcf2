package schedule

import "time"

// Kind is the kind of a schedule.
type Kind string

// The kinds (spec/chat.md §5.1).
const (
	At    Kind = "at"    // once
	Every Kind = "every" // anchored intervals
	Cron  Kind = "cron"  // a cron expression
)

// Bounds of schedules.
const (
	// Shortest is the least time between two runs of one job.
	Shortest = time.Minute
	// Longest is the greatest interval, and how far ahead a single run may be.
	Longest = 10 * 366 * 24 * time.Hour
	// MaxStagger is the spread of jobs that would all run at the full hour.
	MaxStagger = 5 * time.Minute
)

// Spec is a schedule as it is stored. Only Compile makes it useful, and tells what is wrong with it.
type Spec struct {
	Kind Kind      `json:"kind"`
	At   time.Time `json:"at,omitzero"`
	// EveryMs is the interval and AnchorMs, Unix time, where counting begins: runs are at
	// anchor + n*every with n > 0. Milliseconds.
	EveryMs  int64 `json:"everyMs,omitempty"`
	AnchorMs int64 `json:"anchorMs,omitempty"`
	// Expr is a cron expression of five or six fields.
	Expr string `json:"expr,omitempty"`
	// TZ is the time zone by its name in the zone database; "" = the one that Compile is given.
	TZ string `json:"tz,omitempty"`
	// StaggerMs is added to every time of Expr, in milliseconds.
	StaggerMs int64 `json:"staggerMs,omitempty"`
}

// Zones finds a time zone by its name. Loading one reads a file, so whoever compiles many schedules
// brings a Zones that remembers.
type Zones func(name string) (*time.Location, error)

// Compile checks a stored schedule. home is the zone of schedules without one of their own; nil
// zones are time.LoadLocation. Its error is an *Error.
func (s Spec) Compile(home *time.Location, zones Zones) (Schedule, error) {
	zone, err := s.zone(home, zones)
	if err != nil {
		return Schedule{}, err
	}
	c := Schedule{spec: s, zone: zone}
	switch s.Kind {
	case At:
		if s.At.IsZero() {
			return Schedule{}, &Error{Where: "at", What: "the time is missing"}
		}
		c.spec.At = s.At.Truncate(time.Millisecond)
	case Every:
		every := time.Duration(s.EveryMs) * time.Millisecond
		if s.EveryMs > Longest.Milliseconds() || every < Shortest || every > Longest {
			return Schedule{}, &Error{Where: "every", What: "the interval must be between one minute and ten years"}
		}
	case Cron:
		if c.expr, err = parseExpression(s.Expr, zone); err != nil {
			return Schedule{}, err
		}
		c.spec.Expr = c.expr.text
		if s.StaggerMs < 0 || s.StaggerMs > MaxStagger.Milliseconds() {
			return Schedule{}, &Error{Where: "stagger", What: "must be between 0 and five minutes"}
		}
	default:
		return Schedule{}, &Error{Input: string(s.Kind), Where: "kind", What: "is none of at, every, cron"}
	}
	return c, nil
}

func (s Spec) zone(home *time.Location, zones Zones) (*time.Location, error) {
	if s.TZ == "" {
		if home == nil {
			home = time.UTC
		}
		return home, nil
	}
	return Zone(s.TZ, zones)
}

// Zone finds a time zone by its name. Its error is an *Error that says what such names look like.
func Zone(name string, zones Zones) (*time.Location, error) {
	if zones == nil {
		zones = time.LoadLocation
	}
	// "Local" would be another zone on another machine.
	if name == "" || name == "Local" || len(name) > 64 {
		return nil, &Error{Input: name, Where: "time zone", What: "is not a name of a time zone", Fix: zoneFix}
	}
	loc, err := zones(name)
	if err != nil {
		return nil, &Error{Input: name, Where: "time zone", What: "is not known here", Fix: zoneFix}
	}
	return loc, nil
}

const zoneFix = "use a name such as Europe/Berlin, America/New_York or UTC"
