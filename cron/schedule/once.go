package schedule

import (
	"fmt"
	"strings"
	"time"
)

// isoDate reads 2026-12-24 18:00 and RFC 3339; false when the text does not begin with a date.
func isoDate(text string, f *Frame) (Spec, bool, error) {
	if len(text) < 10 || text[4] != '-' || text[7] != '-' || strings.Trim(text[:4]+text[5:7]+text[8:10], "0123456789") != "" {
		return Spec{}, false, nil
	}
	if _, err := time.Parse(time.DateOnly, text[:10]); err != nil {
		return Spec{}, true, &Error{Input: text[:10], Where: "date", What: "is not a day of the calendar"}
	}
	if strings.TrimRight(text[10:], "Tt ") == "" {
		return Spec{}, true, &Error{Input: text, What: "gives no time of day", Fix: "write for example " + text[:10] + " 18:00"}
	}
	upper := strings.ToUpper(text)
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04Z07:00", "2006-01-02 15:04Z07:00"} {
		if t, err := time.Parse(layout, upper); err == nil {
			return Spec{Kind: At, At: t.Truncate(time.Millisecond), TZ: f.tz()}, true, nil
		}
	}
	words, err := f.takeZone(text)
	if err != nil {
		return Spec{}, true, err
	}
	zone := time.UTC
	if f.Named {
		zone = f.Zone
	}
	clock := strings.TrimLeft(words[10:], "t ")
	for _, layout := range []string{"15:04", "15:04:05"} {
		if t, err := time.Parse(layout, clock); err == nil {
			day, _ := time.Parse(time.DateOnly, words[:10])
			wall := day.Add(time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute + time.Duration(t.Second())*time.Second)
			return Spec{Kind: At, At: momentOf(wall, zone).UTC(), TZ: f.tz()}, true, nil
		}
	}
	w := newWords(clock)
	w.take("at")
	if t, _, ok := w.timeOfDay(); ok && w.done() {
		day, _ := time.Parse(time.DateOnly, words[:10])
		return Spec{Kind: At, At: momentOf(t.on(day), zone).UTC(), TZ: f.tz()}, true, nil
	}
	return Spec{}, true, &Error{Input: clock, Where: "time", What: "is not a time of day", Fix: "write for example " + text[:10] + " 18:00"}
}

// on is the wall time on a day, both in UTC's clothes.
func (t clockTime) on(day time.Time) time.Time {
	return time.Date(day.Year(), day.Month(), day.Day(), t.hour, t.minute, 0, 0, time.UTC)
}

// dayAndTime reads "tomorrow 9:00", "monday at 9", "18:30", "9pm today".
func dayAndTime(w *wordList, text string, f *Frame) (Spec, error) {
	bad := func(what, fix string) (Spec, error) { return Spec{}, &Error{Input: text, What: what, Fix: fix} }
	day, named := w.day(f)
	if w.take("at") && w.done() {
		return bad("gives no time of day", "write for example tomorrow at 9:00")
	}
	at := text != "" && strings.HasPrefix(strings.ToLower(text), "at ")
	t, bare, ok := w.timeOfDay()
	if ok && !named {
		day, named = w.day(f)
		if !named {
			day = dayWish{}
		}
	}
	switch {
	case !ok && named && w.done():
		return bad("gives no time of day", "write for example "+strings.ToLower(text)+" 9:00")
	case !ok && named:
		return Spec{}, &Error{Input: w.String(), Where: "time", What: "is not a time of day", Fix: "write for example 9:00, 18:30 or 9pm"}
	case !ok:
		return bad("is not a schedule", tryThese)
	case !w.done():
		return Spec{}, &Error{Input: w.String(), What: "was not expected after the time", Fix: tryThese}
	case bare && !named && !at:
		return bad("could be an hour or a number of minutes", fmt.Sprintf("write for example %d:00 or %dm", t.hour, t.hour))
	}
	return Spec{Kind: At, At: day.at(t, f).UTC(), TZ: f.tz()}, nil
}

// dayWish is which day somebody means.
type dayWish struct {
	fixed   bool         // day is it
	day     time.Time    // midnight, in UTC's clothes
	weekly  bool         // the next such weekday
	weekday time.Weekday //
	notNow  bool         // but not today
}

// day reads today, tomorrow, a weekday.
func (w *wordList) day(f *Frame) (dayWish, bool) {
	w.take("on")
	today := clockTime{}.on(wallOf(f.Now, f.Zone))
	switch {
	case w.take("today", "tonight"):
		return dayWish{fixed: true, day: today}, true
	case w.take("tomorrow"):
		return dayWish{fixed: true, day: today.AddDate(0, 0, 1)}, true
	}
	begin := w.rest
	next := w.take("next")
	if d, ok := weekday(w.peek()); ok {
		w.skip()
		return dayWish{weekly: true, weekday: d, notNow: next}, true
	}
	w.rest = begin
	return dayWish{}, false
}

// at is the moment somebody means: on the fixed day, or else the first one in the future.
func (d dayWish) at(t clockTime, f *Frame) time.Time {
	if d.fixed {
		return momentOf(t.on(d.day), f.Zone)
	}
	day := clockTime{}.on(wallOf(f.Now, f.Zone))
	if d.notNow {
		day = day.AddDate(0, 0, 1)
	}
	for {
		at := momentOf(t.on(day), f.Zone)
		if at.After(f.Now) && (!d.weekly || day.Weekday() == d.weekday) {
			return at
		}
		day = day.AddDate(0, 0, 1)
	}
}
