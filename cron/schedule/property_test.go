package schedule_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"understudy/cron/schedule"
)

var zones = []string{
	"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kolkata", "Asia/Kathmandu",
	"Africa/Cairo", "America/St_Johns", "Pacific/Chatham", "Antarctica/Troll",
}

// field draws one field of an expression; the reference below reads everything it draws.
func field(low, high int) *rapid.Generator[string] {
	value := rapid.IntRange(low, high)
	return rapid.OneOf(
		rapid.Map(value, strconv.Itoa),
		rapid.Custom(func(t *rapid.T) string {
			a, b := value.Draw(t, "a"), value.Draw(t, "b")
			if a > b {
				a, b = b, a
			}
			return fmt.Sprintf("%d-%d/%d", a, b, rapid.IntRange(1, 7).Draw(t, "step"))
		}),
		rapid.Map(rapid.SliceOfN(value, 1, 4), func(list []int) string {
			return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(list)), ","), "[]")
		}),
		rapid.Map(rapid.IntRange(2, 20), func(n int) string { return "*/" + strconv.Itoa(n) }),
		rapid.Just("*"),
	)
}

func drawExpression(t *rapid.T, hours *rapid.Generator[string]) string {
	return strings.Join([]string{
		field(0, 59).Draw(t, "minute"), hours.Draw(t, "hour"), rapid.OneOf(rapid.Just("*"), field(1, 28)).Draw(t, "dom"),
		rapid.OneOf(rapid.Just("*"), field(1, 12)).Draw(t, "month"), rapid.OneOf(rapid.Just("*"), field(0, 7)).Draw(t, "dow"),
	}, " ")
}

// set reads a field in the plainest way.
func set(field string, low, high int) map[int]bool {
	out := map[int]bool{}
	for _, e := range strings.Split(field, ",") {
		base, stepText, stepped := strings.Cut(e, "/")
		step := 1
		if stepped {
			step, _ = strconv.Atoi(stepText)
		}
		from, to := low, high
		if base != "*" {
			a, b, ranged := strings.Cut(base, "-")
			from, _ = strconv.Atoi(a)
			to = from
			if ranged {
				to, _ = strconv.Atoi(b)
			}
		}
		for n := from; n <= to; n += step {
			out[n] = true
		}
	}
	return out
}

// matcher tells whether a wall time fits an expression.
func matcher(expr string) func(time.Time) bool {
	f := strings.Fields(expr)
	minutes, hours, doms, months, dows := set(f[0], 0, 59), set(f[1], 0, 23), set(f[2], 1, 31), set(f[3], 1, 12), set(f[4], 0, 6)
	return func(t time.Time) bool {
		dom := doms[t.Day()]
		dow := dows[int(t.Weekday())] || t.Weekday() == time.Sunday && dows[7]
		day := dom || dow
		if f[2] == "*" || f[4] == "*" {
			day = dom && dow
		}
		return day && minutes[t.Minute()] && hours[t.Hour()] && months[int(t.Month())] && t.Second() == 0
	}
}

// nearChanges draws a moment, often one close to a change of clocks.
func nearChanges(t *rapid.T, z *time.Location) time.Time {
	at := time.Unix(rapid.Int64Range(1_767_225_600, 1_830_297_600).Draw(t, "unix"), 0).In(z) // 2026 and 2027
	if rapid.Bool().Draw(t, "near a change") {
		if _, end := at.ZoneBounds(); !end.IsZero() && end.Year() < 2030 {
			at = end.Add(time.Duration(rapid.IntRange(-180, 180).Draw(t, "minutes")) * time.Minute)
		}
	}
	return at
}

// wall is what clocks show.
func wall(t time.Time) string { return t.Format("2006-01-02 15:04") }

// reference steps through time minute by minute and returns the first moment after the given one
// that is due under the rules for fixed hours, within a few days.
func reference(match func(time.Time) bool, after time.Time) (time.Time, bool) {
	for t, n := after.Truncate(time.Minute).Add(time.Minute), 0; n < 3*24*60; t, n = t.Add(time.Minute), n+1 {
		before := t.Add(-time.Minute)
		_, o := t.Zone()
		_, was := before.Zone()
		if o > was { // clocks went forward: what they leave out is due now
			gap := time.Duration(o-was) * time.Second
			for m := time.Duration(0); m < gap; m += time.Minute {
				left := before.In(time.FixedZone("", was)).Add(time.Minute + m)
				if match(left) {
					return t, true
				}
			}
		}
		if match(t) && !seenBefore(t) {
			return t, true
		}
	}
	return time.Time{}, false
}

// seenBefore reports whether clocks showed the same in the last hours.
func seenBefore(t time.Time) bool {
	for m := 1; m <= 180; m++ {
		if wall(t.Add(-time.Duration(m)*time.Minute)) == wall(t) {
			return true
		}
	}
	return false
}

func TestFixedHoursFollowTheReference(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tz := rapid.SampledFrom(zones).Draw(rt, "zone")
		z := zone(t, tz)
		hours := rapid.OneOf(rapid.Map(rapid.IntRange(0, 4), strconv.Itoa), rapid.Map(rapid.IntRange(0, 23), strconv.Itoa), rapid.Just("1,2,3"), rapid.Just("0-5"), rapid.Just("22-23"))
		expr := drawExpression(rt, hours)
		s, err := schedule.Spec{Kind: schedule.Cron, Expr: expr, TZ: tz}.Compile(nil, nil)
		if err != nil {
			rt.Skip("impossible")
		}
		after := nearChanges(rt, z)
		want, ok := reference(matcher(expr), after)
		got, _ := s.Next(after)
		if ok && !got.Equal(want) || !ok && got.Sub(after) < 3*24*time.Hour-time.Hour {
			rt.Errorf("%s in %s after %s: %s, want %s (%v)", expr, tz, after, got, want, ok)
		}
	})
}

func TestWildcardHoursFollowTheReference(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tz := rapid.SampledFrom(zones).Draw(rt, "zone")
		z := zone(t, tz)
		expr := drawExpression(rt, rapid.OneOf(rapid.Just("*"), rapid.Just("*/2"), rapid.Just("*/5"), rapid.Just("1-20/3")))
		s, err := schedule.Spec{Kind: schedule.Cron, Expr: expr, TZ: tz}.Compile(nil, nil)
		if err != nil {
			rt.Skip("impossible")
		}
		after, match := nearChanges(rt, z), matcher(expr)
		want := after.Truncate(time.Minute).Add(time.Minute)
		for limit := after.Add(72 * time.Hour); !match(want) && want.Before(limit); {
			want = want.Add(time.Minute)
		}
		got, _ := s.Next(after)
		if match(want) && !got.Equal(want) || !match(want) && got.Before(want) || !match(got.In(z)) {
			rt.Fatalf("%s in %s after %s: %s, want %s", expr, tz, after, got, want)
		}
	})
}

// A year of any schedule goes strictly forward, never faster than once a minute for what a person
// can make, and asking from between two runs gives the same answer as asking from the earlier one.
func TestAYearGoesForward(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tz := rapid.SampledFrom(zones).Draw(rt, "zone")
		s := drawSchedule(rt, tz)
		at := nearChanges(rt, zone(t, tz))
		end, n := at.AddDate(1, 0, 0), 0
		for n < 2000 {
			next, ok := s.Next(at)
			if !ok || next.After(end) {
				break
			}
			if !next.After(at) {
				rt.Fatalf("%s: %s after %s", s.Describe(), next, at)
			}
			between := at.Add(time.Duration(rapid.Int64Range(0, int64(next.Sub(at))-1).Draw(rt, "between")))
			if again, _ := s.Next(between); !again.Equal(next) {
				rt.Fatalf("%s: after %s comes %s, but after %s comes %s", s.Describe(), at, next, between, again)
			}
			at = next
			n++
			if n > 50 {
				at = at.Add(time.Duration(rapid.Int64Range(0, int64(20*24*time.Hour)).Draw(rt, "leap")))
			}
		}
	})
}

func drawSchedule(t *rapid.T, tz string) schedule.Schedule {
	spec := schedule.Spec{Kind: schedule.Cron, TZ: tz}
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		spec = schedule.Spec{Kind: schedule.Every, EveryMs: rapid.Int64Range(60_000, 40*24*3600_000).Draw(t, "every"), AnchorMs: rapid.Int64Range(0, 2_000_000_000_000).Draw(t, "anchor")}
	case 1:
		spec.Expr = drawExpression(t, field(0, 23))
	default:
		spec.Expr = drawExpression(t, rapid.Just("*"))
	}
	s, err := spec.Compile(nil, nil)
	if err != nil {
		t.Skip("impossible")
	}
	if rapid.Bool().Draw(t, "stagger") {
		s = s.Staggered(rapid.String().Draw(t, "id"))
	}
	return s
}
