package schedule

import "time"

// wallOf returns what the clocks of a zone show at t, as if they were UTC's.
func wallOf(t time.Time, zone *time.Location) time.Time {
	t = t.In(zone)
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// momentOf returns the first moment at which the clocks of a zone show the given wall time (in UTC's
// clothes). A wall time that the clocks leave out becomes the first moment after the gap.
func momentOf(wall time.Time, zone *time.Location) time.Time {
	near := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), wall.Nanosecond(), zone)
	begin, end := near.ZoneBounds()
	offsets := []int{offset(near)}
	if !begin.IsZero() {
		offsets = append(offsets, offset(begin.Add(-1)))
	}
	if !end.IsZero() {
		offsets = append(offsets, offset(end))
	}
	var first time.Time
	for _, o := range offsets {
		t := wall.Add(-time.Duration(o) * time.Second).In(zone)
		if offset(t) == o && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	if !first.IsZero() {
		return first
	}
	// No clock ever shows it: near is beside the change that leaves it out.
	for _, change := range []time.Time{begin, end} {
		if !change.IsZero() && !wallOf(change.Add(-1), zone).After(wall) && wallOf(change, zone).After(wall) {
			return change.In(zone)
		}
	}
	return near
}

// offset is how far a zone is ahead of UTC at t, in seconds.
func offset(t time.Time) int {
	_, o := t.Zone()
	return o
}
