package schedule

import "time"

// Rezone returns when a schedule is due next that follows the configured zone, once that is another one:
// s is compiled for the new zone, old is the one before, planned the next time there (later than now),
// and last the last time that was taken; zero = none. For fixed hours the move is a change of clocks: what
// it leaves out is due at once, and what comes twice and was taken is not due again. Everything else
// simply goes on. False when there is no time any more.
func (s Schedule) Rezone(old *time.Location, last, planned, now time.Time) (time.Time, bool) {
	next, ok := s.Next(now)
	if s.spec.Kind != Cron || !s.expr.wall {
		return next, ok
	}
	if !wallOf(planned, old).After(wallOf(now, s.zone)) {
		return now.In(s.zone), true
	}
	if last.IsZero() {
		return next, ok
	}
	if last.After(now) {
		last = now // a clock was wrong
	}
	for taken := wallOf(last, old); ok && !wallOf(next, s.zone).After(taken); {
		next, ok = s.Next(next)
	}
	return next, ok
}
