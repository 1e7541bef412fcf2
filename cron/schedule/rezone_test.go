package schedule_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"understudy/cron/schedule"
)

// in compiles an expression without a zone of its own for a zone.
func in(t *testing.T, expr string, z *time.Location) schedule.Schedule {
	t.Helper()
	s, err := schedule.Spec{Kind: schedule.Cron, Expr: expr}.Compile(z, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAMoveToAnotherZoneIsAChangeOfClocks(t *testing.T) {
	berlin, newYork, tokyo := zone(t, "Europe/Berlin"), zone(t, "America/New_York"), zone(t, "Asia/Tokyo")
	for _, x := range []struct {
		name, expr string
		old, zone  *time.Location
		last, now  string // in the old zone; "" = never
		want       string // in the new zone
		atOnce     bool
	}{
		{"westwards, taken today", "0 9 * * *", berlin, newYork, "2026-03-02 09:00", "2026-03-02 10:00", "2026-03-03 09:00", false},
		{"westwards, never taken", "0 9 * * *", berlin, newYork, "", "2026-03-02 10:00", "2026-03-02 09:00", false},
		{"westwards, still to come", "0 9 * * *", berlin, newYork, "2026-03-01 09:00", "2026-03-02 08:00", "2026-03-02 09:00", false},
		{"eastwards over it", "0 9 * * *", newYork, berlin, "2026-03-01 09:00", "2026-03-02 08:00", "2026-03-02 14:00", true},
		{"eastwards, taken today", "0 9 * * *", newYork, berlin, "2026-03-02 09:00", "2026-03-02 10:00", "2026-03-03 09:00", false},
		{"eastwards, still to come", "0 21 * * *", newYork, tokyo, "2026-03-01 21:00", "2026-03-02 01:00", "2026-03-02 21:00", false},
		{"every hour goes on", "30 * * * *", berlin, newYork, "2026-03-02 09:30", "2026-03-02 10:00", "2026-03-02 04:30", false},
	} {
		t.Run(x.name, func(t *testing.T) {
			at := func(text string, z *time.Location) time.Time {
				if text == "" {
					return time.Time{}
				}
				m, err := time.ParseInLocation("2006-01-02 15:04", text, z)
				if err != nil {
					t.Fatal(err)
				}
				return m
			}
			now := at(x.now, x.old)
			planned, _ := in(t, x.expr, x.old).Next(now)
			next, ok := in(t, x.expr, x.zone).Rezone(x.old, at(x.last, x.old), planned, now)
			if !ok || !next.Equal(at(x.want, x.zone)) || next.Equal(now) != x.atOnce {
				t.Errorf("next %s, want %s", next, at(x.want, x.zone))
			}
		})
	}
}

// TestAMoveLosesAndDoublesNothing: between the slot that was taken last and the one that comes next, by
// the clock on the wall, there is no slot; and what clocks skip is due now.
func TestAMoveLosesAndDoublesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(name string) *time.Location {
			return time.FixedZone(name, 60*rapid.IntRange(-12*60, 14*60).Draw(rt, name))
		}
		old, moved := draw("old"), draw("new")
		hours := rapid.SampledFrom([]string{"9", "0,12", "6-8", "23"}).Draw(rt, "hours")
		expr := drawExpression(rt, rapid.Just(hours))
		before, err := schedule.Spec{Kind: schedule.Cron, Expr: expr}.Compile(old, nil)
		if err != nil {
			rt.Skip("impossible")
		}
		after, err := schedule.Spec{Kind: schedule.Cron, Expr: expr}.Compile(moved, nil)
		if err != nil {
			rt.Fatal(err)
		}
		last, ok := before.Next(time.Unix(rapid.Int64Range(1_767_225_600, 1_830_297_600).Draw(rt, "unix"), 0))
		if !ok {
			rt.Skip("no time")
		}
		planned, _ := before.Next(last)
		now := last.Add(time.Duration(rapid.Int64Range(0, int64(planned.Sub(last)/time.Second)-1).Draw(rt, "seconds")) * time.Second)
		next, ok := after.Rezone(old, last, planned, now)
		if !ok || next.Before(now) {
			rt.Fatalf("next %s (%v), now %s", next, ok, now)
		}
		face := func(m time.Time, z *time.Location) time.Time { // what clocks show, as if they were UTC's
			_, o := m.In(z).Zone()
			return m.UTC().Add(time.Duration(o) * time.Second)
		}
		due := face(planned, old) // the first slot after the one that was taken
		if skipped := !due.After(face(now, moved)); skipped != next.Equal(now) && !face(next, moved).Equal(due) {
			rt.Errorf("%s: taken %s, clocks jump from %s to %s, next at %s", expr, face(last, old), face(now, old), face(now, moved), face(next, moved))
		}
		if got := face(next, moved); !next.Equal(now) && !got.Equal(due) {
			rt.Errorf("%s: the slot after %s is %s, not %s", expr, face(last, old), due, got)
		}
	})
}
