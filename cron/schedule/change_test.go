package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/cron/schedule"
)

func compile(t testing.TB, spec schedule.Spec) schedule.Schedule {
	t.Helper()
	s, err := spec.Compile(time.UTC, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func expression(t testing.TB, expr, tz string) schedule.Schedule {
	t.Helper()
	return compile(t, schedule.Spec{Kind: schedule.Cron, Expr: expr, TZ: tz})
}

// TestChangesOfClocks shows the runs around days on which clocks are changed.
func TestChangesOfClocks(t *testing.T) {
	for _, x := range []struct {
		name, tz, expr string
		from           string // local day at 00:00
		want           string // times of the runs, day and offset where they tell something
	}{
		{"New York, spring, the hour that is left out", "America/New_York", "30 2 * * *", "2026-03-07", "07T02:30-05 08T03:00-04 09T02:30-04"},
		{"New York, spring, many in the hour that is left out", "America/New_York", "*/20 2 * * *", "2026-03-08", "08T03:00-04 09T02:00-04 09T02:20-04"},
		{"New York, spring, left out and next hour are one run", "America/New_York", "0 2,3 * * *", "2026-03-08", "08T03:00-04 09T02:00-04 09T03:00-04"},
		{"New York, autumn, the hour that comes twice", "America/New_York", "30 1 * * *", "2026-10-31", "31T01:30-04 01T01:30-04 02T01:30-05"},
		{"New York, autumn, many in the hour that comes twice", "America/New_York", "0,30 1 * * *", "2026-11-01", "01T01:00-04 01T01:30-04 02T01:00-05"},
		{"New York, autumn, intervals go on", "America/New_York", "*/30 * * * *", "2026-11-01", "01T00:30-04 01T01:00-04 01T01:30-04 01T01:00-05 01T01:30-05 01T02:00-05"},
		{"New York, spring, intervals go on", "America/New_York", "*/30 * * * *", "2026-03-08", "08T00:30-05 08T01:00-05 08T01:30-05 08T03:00-04 08T03:30-04"},
		{"Berlin, spring", "Europe/Berlin", "15 2 * * *", "2026-03-28", "28T02:15+01 29T03:00+02 30T02:15+02"},
		{"Berlin, autumn", "Europe/Berlin", "15 2 * * *", "2026-10-24", "24T02:15+02 25T02:15+02 26T02:15+01"},
		{"Berlin, the time after the gap is not moved", "Europe/Berlin", "0 3 * * *", "2026-03-29", "29T03:00+02 30T03:00+02"},
		{"Lord Howe, spring, half an hour", "Australia/Lord_Howe", "15 2 * * *", "2026-10-03", "03T02:15+1030 04T02:30+11 05T02:15+11"},
		{"Lord Howe, autumn, half an hour", "Australia/Lord_Howe", "45 1 * * *", "2026-04-04", "04T01:45+11 05T01:45+11 06T01:45+1030"},
		{"Lord Howe, autumn, intervals go on", "Australia/Lord_Howe", "0 */2 * * *", "2026-04-05", "05T02:00+1030 05T04:00+1030"},
		{"Cairo, midnight that is left out does not move a weekday", "Africa/Cairo", "0 */12 * * 4", "2026-04-22", "23T00:00+02 23T12:00+02 30T00:00+03"},
		{"São Paulo, midnight that is left out", "America/Sao_Paulo", "0 0 * * *", "2018-11-02", "03T00:00-03 04T01:00-02 05T00:00-02"},
		{"São Paulo, the hour before midnight that comes twice", "America/Sao_Paulo", "30 23 * * *", "2018-02-16", "16T23:30-02 17T23:30-02 18T23:30-03"},
		{"São Paulo, today without changes", "America/Sao_Paulo", "0 21 * * *", "2026-11-01", "01T21:00-03 02T21:00-03"},
		{"Apia, a day that is left out", "Pacific/Apia", "0 9 * * *", "2011-12-29", "29T09:00-10 31T00:00+14 31T09:00+14"},
		{"Kolkata, half an hour and no changes", "Asia/Kolkata", "30 2 * * *", "2026-03-28", "28T02:30+0530 29T02:30+0530"},
		{"Kathmandu, quarters", "Asia/Kathmandu", "0 6 * * *", "2026-03-28", "28T06:00+0545 29T06:00+0545"},
		{"UTC", "UTC", "30 2 * * *", "2026-03-28", "28T02:30Z 29T02:30Z"},
		{"leap day", "UTC", "0 9 29 2 *", "2026-01-01", "29T09:00Z 29T09:00Z"},
		{"leap day over the turn of a century", "UTC", "0 9 29 2 *", "2096-03-01", "29T09:00Z"},
	} {
		t.Run(x.name, func(t *testing.T) {
			from, err := time.ParseInLocation(time.DateOnly, x.from, zone(t, x.tz))
			if err != nil {
				t.Fatal(err)
			}
			s := expression(t, x.expr, x.tz)
			var got []string
			for _, n := range s.Upcoming(from, len(strings.Fields(x.want))) {
				got = append(got, strings.ReplaceAll(n.Format("02T15:04Z0700"), "00 ", " "))
			}
			for i, g := range got {
				if len(g) == len("02T15:04-0500") {
					got[i] = strings.TrimSuffix(g, "00")
				}
			}
			if diff := cmp.Diff(x.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestIntervalsNeitherDriftNorBurst(t *testing.T) {
	anchor := time.Date(2026, 1, 1, 10, 7, 3, 0, time.UTC)
	s := compile(t, schedule.Spec{Kind: schedule.Every, EveryMs: (15 * time.Minute).Milliseconds(), AnchorMs: anchor.UnixMilli()})
	for _, x := range []struct{ after, want time.Duration }{
		{0, 15 * time.Minute},
		{15*time.Minute - 1, 15 * time.Minute},
		{15 * time.Minute, 30 * time.Minute},
		{15*time.Minute + 40*time.Second, 30 * time.Minute}, // a late run moves nothing
		{100*24*time.Hour + time.Second, 100*24*time.Hour + 15*time.Minute},
		{-time.Hour, 15 * time.Minute}, // a clock that was set back
	} {
		got, ok := s.Next(anchor.Add(x.after))
		if !ok || got.Sub(anchor) != x.want {
			t.Errorf("after %s: %s, want %s", x.after, got.Sub(anchor), x.want)
		}
	}
}

func TestAMomentComesOnce(t *testing.T) {
	at := time.Date(2026, 6, 1, 8, 0, 0, 0, time.UTC)
	s := compile(t, schedule.Spec{Kind: schedule.At, At: at})
	if got, ok := s.Next(at.Add(-1)); !ok || !got.Equal(at) || !s.Once() {
		t.Errorf("%s %v", got, ok)
	}
	if _, ok := s.Next(at); ok {
		t.Error("it came again")
	}
	if _, ok := (schedule.Schedule{}).Next(at); ok {
		t.Error("the zero schedule has a time")
	}
}

func TestFullHoursAreSpread(t *testing.T) {
	s := expression(t, "0 * * * *", "UTC")
	seen := map[int64]bool{}
	for _, id := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
		staggered := s.Staggered(id)
		ms := staggered.Spec().StaggerMs
		if ms < 0 || ms > schedule.MaxStagger.Milliseconds() || ms != s.Staggered(id).Spec().StaggerMs {
			t.Errorf("%s: %d ms", id, ms)
		}
		seen[ms] = true
		full := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
		if got, _ := staggered.Next(full.Add(-50 * time.Minute)); !got.Equal(full.Add(time.Duration(ms) * time.Millisecond)) {
			t.Errorf("%s: %s", id, got)
		}
	}
	if len(seen) < 20 {
		t.Errorf("26 jobs have %d different offsets", len(seen))
	}
	for _, expr := range []string{"0 9 * * *", "5 * * * *", "*/10 * * * *", "30 0 * * * *"} {
		if ms := expression(t, expr, "UTC").Staggered("id").Spec().StaggerMs; ms != 0 {
			t.Errorf("%s is moved by %d ms", expr, ms)
		}
	}
	if ms := expression(t, "0 */2 * * *", "UTC").Staggered("x").Spec().StaggerMs; ms == 0 {
		t.Error("every second hour is not spread")
	}
}
