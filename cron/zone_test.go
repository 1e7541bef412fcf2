package cron

import (
	"testing"
	"time"
)

// rezoned gives the running scheduler another zone.
func (w *world) rezoned(name string) {
	w.t.Helper()
	w.cfg.Timezone = name
	if err := w.s.Reload(w.cfg, Home{Zone: time.UTC, Named: true}); err != nil {
		w.t.Fatal(err)
	}
	w.pass(time.Second)
}

func TestJobsFollowAnotherZoneAtOnce(t *testing.T) {
	for name, change := range map[string]func(w *world, zone string){
		"by a reload":            (*world).rezoned,
		"while nobody was there": func(w *world, zone string) { w.cfg.Timezone = zone; w.reboot(time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.slowly(time.Hour)
				daily, noon := w.add("0 9 * * *"), w.add("0 12 * * *")
				own := w.add("0 9 * * *", func(d *Draft) { d.Zone = "UTC" })
				interval, single := w.add("every 7h"), w.add("1999-12-31T23:00:00-12:00") // 11:00 UTC
				w.pass(9*time.Hour + 10*time.Minute)
				change(w, "America/New_York") // 04:10 there
				w.pass(4 * time.Hour)
				change(w, "Asia/Tokyo") // 22:10 there: noon was left out
				w.pass(26 * time.Hour)
				// Nine o'clock of the first was taken in UTC and is not repeated in New York; noon is made up for
				// when clocks jump over it; from then on both are Tokyo's.
				expect(t, w.log(daily.ID), "01T09:00:00 schedule ok succeeded", "02T00:00:00 schedule ok succeeded")
				if log := w.log(noon.ID); len(log) != 2 || log[0][:5] != "01T13" || log[1] != "02T03:00:00 schedule ok succeeded" {
					t.Errorf("%v", log)
				}
				expect(t, w.log(own.ID), "01T09:00:00 schedule ok succeeded", "02T09:00:00 schedule ok succeeded")
				if n := len(w.log(interval.ID)); n != 5 {
					t.Errorf("%v", w.log(interval.ID))
				}
				expect(t, w.log(single.ID), "01T11:00:00 schedule ok succeeded")
				if twice := w.doubled(); len(twice) > 0 {
					t.Errorf("twice: %v", twice)
				}
			})
		})
	}
}

func TestARunWhoseTimeHasComeKeepsItInAnotherZone(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.work = takes(20 * time.Second)
		var ids []string
		for range 6 { // two of them wait for a place in the lane
			ids = append(ids, w.add("0 1 * * *").ID)
		}
		w.pass(time.Hour + time.Second)
		w.rezoned("America/New_York") // 20:00 of the day before
		w.pass(time.Minute)
		for _, id := range ids {
			expect(t, w.log(id), "01T01:00:00 schedule ok succeeded")
			if next := w.get(id).State.NextRunAt.UTC().Format("02T15:04"); next != "02T06:00" {
				t.Errorf("%s is next on %s", id, next)
			}
		}
	})
}

func TestAZoneThatStaysMovesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.add("0 5 * * *")
		before := w.get(c.ID)
		w.rezoned("UTC")
		w.rezoned("")
		if after := w.get(c.ID); after.Revision != before.Revision || !after.State.NextRunAt.Equal(before.State.NextRunAt) {
			t.Errorf("%+v became %+v", before.State, after.State)
		}
	})
}
