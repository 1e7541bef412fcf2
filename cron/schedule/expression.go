package schedule

import (
	"fmt"
	"math/bits"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// horizon is how many years ahead the library looks in one go.
const horizon = 5

// starBit marks, in the library's bit sets, a field that restricts nothing.
const starBit = 1 << 63

// expression is a cron expression ready to be asked. The library searches clock faces only; what a
// change of clocks means is decided here (spec/chat.md §5.2, §9.4).
type expression struct {
	text      string
	fields    []string // six: with seconds
	zone      *time.Location
	set       *cron.SpecSchedule
	wall      bool // the hours are fixed
	fullHours bool // minute 0 of wildcard hours
}

// parseExpression reads five or six fields. Its error is an *Error.
func parseExpression(text string, zone *time.Location) (expression, error) {
	normal, err := normalise(text)
	if err != nil {
		return expression{}, err
	}
	e := expression{text: strings.Join(normal, " "), fields: normal, zone: zone}
	if len(normal) == 5 {
		e.fields = append([]string{"0"}, normal...)
	}
	if e.set, err = library(e.text); err != nil {
		return expression{}, err
	}
	if bits.OnesCount64(e.set.Second&^starBit) != 1 {
		return expression{}, &Error{
			Input: text, Where: "second", What: "would run more than once a minute, and the shortest interval is one minute",
			Fix: "give one second between 0 and 59, or leave the field out",
		}
	}
	hours := e.fields[2]
	e.wall = !strings.ContainsAny(hours, "*?/")
	e.fullHours = e.fields[0] == "0" && e.fields[1] == "0" && strings.ContainsAny(hours, "*?")
	e.set.Location = time.UTC // it only ever sees clock faces
	if !e.possible() {
		return expression{}, &Error{
			Input: text, Where: "day-of-month", What: "never happens: no such month has such a day",
			Fix: "look at the day and the month",
		}
	}
	return e, nil
}

// possible reports whether any time matches. The calendar repeats itself every 400 years, and what
// does not come between two centuries' leap days comes never.
func (e expression) possible() bool {
	_, ok := e.search(time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC))
	return ok
}

// library has robfig/cron read an expression. It has panicked on strange input before.
func library(text string) (set *cron.SpecSchedule, err error) {
	defer func() {
		if r := recover(); r != nil {
			set, err = nil, &Error{Input: text, What: "is not a cron expression", Fix: cronFix}
		}
	}()
	parser := cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	s, err := parser.Parse(text)
	if err != nil {
		return nil, &Error{Input: text, What: "is not a cron expression", Fix: cronFix}
	}
	set, ok := s.(*cron.SpecSchedule)
	if !ok {
		return nil, &Error{Input: text, What: "is not a cron expression", Fix: cronFix}
	}
	return set, nil
}

// next returns the first time after the given one.
func (e expression) next(after time.Time) (time.Time, bool) {
	if e.wall {
		return e.nextWall(after)
	}
	return e.nextMoment(after)
}

// nextWall reckons on the clock's face and goes back to time. Several wall times may be one moment
// (those of a gap), and a wall time that comes twice lies in the past the second time.
func (e expression) nextWall(after time.Time) (time.Time, bool) {
	for wall := wallOf(after, e.zone); ; {
		w, ok := e.search(wall)
		if !ok {
			return time.Time{}, false
		}
		if t := momentOf(w, e.zone); t.After(after) {
			return t, true
		}
		wall = w
	}
}

// nextMoment finds the first moment at which clocks show what the expression asks for: none in a gap,
// two where clocks are set back. It goes from one change of clocks to the next; the library's own
// steps over a change lead to wrong days where midnight is left out and lose runs where clocks move by
// half an hour.
func (e expression) nextMoment(after time.Time) (time.Time, bool) {
	from := after.In(e.zone)
	for {
		_, change := from.ZoneBounds()
		ahead := time.Duration(offset(from)) * time.Second
		w, ok := e.search(wallOf(from, e.zone))
		if !ok {
			return time.Time{}, false
		}
		if t := w.Add(-ahead).In(e.zone); change.IsZero() || t.Before(change) {
			return t, true
		}
		// The change itself may be due: look from just before it, with the clocks that follow.
		first := wallOf(change, e.zone)
		if w, ok := e.search(first.Add(-time.Nanosecond)); ok && w.Equal(first) {
			return change.In(e.zone), true
		}
		from = change.In(e.zone)
	}
}

// search asks the library for a clock face (in UTC's clothes) later than the given one. It gives up
// after five years, and 29 February may be eight years away.
func (e expression) search(from time.Time) (time.Time, bool) {
	for range 2 {
		if t := e.set.Next(from); !t.IsZero() {
			return t, true
		}
		from = time.Date(from.Year()+horizon, 12, 31, 23, 59, 59, 0, time.UTC)
	}
	return time.Time{}, false
}

const cronFix = "a cron expression has five fields: minute hour day-of-month month day-of-week, such as 0 9 * * 1-5"

// normalise splits an expression into its fields, checks each, and rewrites what the library does
// not understand though everybody else does.
func normalise(text string) ([]string, error) {
	if strings.Contains(strings.ToUpper(text), "TZ=") {
		return nil, &Error{Input: text, What: "names a time zone inside the expression", Fix: "give the zone as the job's own setting (tz)"}
	}
	fields := strings.Fields(strings.ToLower(text))
	if n := len(fields); n != 5 && n != 6 {
		return nil, &Error{Input: text, What: fmt.Sprintf("has %s", count(n, "field")), Fix: cronFix}
	}
	kinds := fieldKinds()[6-len(fields):]
	for i, f := range fields {
		checked, err := kinds[i].normalise(f)
		if err != nil {
			err.What += fmt.Sprintf(" (field %d of %q)", i+1, clip(text))
			return nil, err
		}
		fields[i] = checked
	}
	return fields, nil
}
