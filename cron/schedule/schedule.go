package schedule

import (
	"hash/fnv"
	"time"
)

// Schedule is a compiled Spec: it can be asked for times. It is a value and never changes. The zero
// Schedule has no times.
type Schedule struct {
	spec Spec
	zone *time.Location
	expr expression
}

// Spec returns the schedule as it is stored.
func (s Schedule) Spec() Spec { return s.spec }

// Zone returns the zone in which the schedule is meant; nil for the zero Schedule.
func (s Schedule) Zone() *time.Location { return s.zone }

// Once reports whether there is only one time.
func (s Schedule) Once() bool { return s.spec.Kind == At }

// Next returns the first time after the given one, in the schedule's zone; false when there is none.
// Asked again with its own answer it goes strictly forward.
func (s Schedule) Next(after time.Time) (time.Time, bool) {
	switch s.spec.Kind {
	case At:
		return s.spec.At.In(s.zone), s.spec.At.After(after)
	case Every:
		return time.UnixMilli(s.nextInterval(after)).In(s.zone), true
	case Cron:
		stagger := time.Duration(s.spec.StaggerMs) * time.Millisecond
		t, ok := s.expr.next(after.Add(-stagger))
		return t.Add(stagger), ok
	}
	return time.Time{}, false
}

// nextInterval is the smallest anchor + n*every, n > 0, that is later than after; the product has no
// rounding in it, so the times never drift.
func (s Schedule) nextInterval(after time.Time) int64 {
	at, anchor, every := after.UnixMilli(), s.spec.AnchorMs, s.spec.EveryMs
	if at < anchor {
		return anchor + every
	}
	return anchor + ((at-anchor)/every+1)*every
}

// Upcoming returns the next n times after the given one; fewer when there are fewer.
func (s Schedule) Upcoming(after time.Time, n int) []time.Time {
	var out []time.Time
	for range n {
		t, ok := s.Next(after)
		if !ok {
			break
		}
		out = append(out, t)
		after = t
	}
	return out
}

// Staggered spreads jobs that would all run at the full hour: minute 0 of a wildcard hour is moved by
// up to five minutes, always the same for the same id. Every other schedule is returned as it is.
func (s Schedule) Staggered(id string) Schedule {
	if s.spec.Kind == Cron && s.expr.fullHours {
		h := fnv.New64a()
		_, _ = h.Write([]byte(id))
		// Whole seconds, so that a person who reads the times sees round ones.
		s.spec.StaggerMs = int64(h.Sum64()%uint64(MaxStagger/time.Second+1)) * 1000
	}
	return s
}
