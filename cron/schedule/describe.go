package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Describe says in words when the schedule is due, such as "every weekday at 09:00 Europe/Berlin". A
// cron expression that words would only make longer is quoted. It is for reading, not for Parse.
func (s Schedule) Describe() string {
	switch s.spec.Kind {
	case At:
		layout := "2006-01-02 15:04"
		if s.spec.At.Second() != 0 {
			layout += ":05"
		}
		return "once at " + s.spec.At.In(s.zone).Format(layout) + " " + zoneName(s.zone)
	case Every:
		return "every " + words(time.Duration(s.spec.EveryMs)*time.Millisecond)
	case Cron:
		text := s.expr.describe() + " " + zoneName(s.zone)
		if s.spec.StaggerMs > 0 {
			text += " (+" + (time.Duration(s.spec.StaggerMs) * time.Millisecond).String() + ")"
		}
		return text
	}
	return "never"
}

func zoneName(zone *time.Location) string {
	if name := zone.String(); name != "Local" {
		return name
	}
	return "server time"
}

// words writes a length of time: "15 minutes", "1 hour 30 minutes", "day".
func words(d time.Duration) string {
	units := []struct {
		name string
		size time.Duration
	}{{"week", 7 * 24 * time.Hour}, {"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second}, {"millisecond", time.Millisecond}}
	var parts []string
	for _, u := range units {
		n := int(d / u.size)
		if u.name == "week" && d%u.size != 0 {
			continue // "10 days", not "1 week 3 days"
		}
		if n > 0 {
			parts = append(parts, count(n, u.name))
			d -= time.Duration(n) * u.size
		}
	}
	if len(parts) == 0 {
		return "0 seconds"
	}
	if len(parts) == 1 {
		return strings.TrimPrefix(parts[0], "1 ")
	}
	return strings.Join(parts, " ")
}

// describe says when an expression is due.
func (e expression) describe() string {
	second, minute, hour := e.fields[0], e.fields[1], e.fields[2]
	days, ok := e.days()
	if !ok || second != "0" {
		return strconv.Quote(e.text)
	}
	if times, fixed := timesOfDay(minute, hour); fixed {
		return days + " at " + times
	}
	if days != "every day" {
		days = ", " + days
	} else {
		days = ""
	}
	switch {
	case minute == "*" && hour == "*":
		return "every minute" + days
	case step(minute) > 0 && hour == "*" && 60%step(minute) == 0:
		return "every " + words(time.Duration(step(minute))*time.Minute) + days
	case minute == "0" && hour == "*":
		return "every hour on the hour" + days
	case plain(minute) && hour == "*":
		return "every hour at minute " + minute + days
	case minute == "0" && step(hour) > 0 && 24%step(hour) == 0:
		return "every " + words(time.Duration(step(hour))*time.Hour) + " on the hour" + days
	}
	return strconv.Quote(e.text)
}

// days says on which days; false when it takes more than a few words. Day-of-month and day-of-week
// together mean either (spec/chat.md §5.2), which surprises people, so it is said.
func (e expression) days() (string, bool) {
	dom, month, dow := star(e.fields[3]), star(e.fields[4]), star(e.fields[5])
	weekdays, named := weekdayNames(dow)
	switch {
	case dom == "*" && month == "*" && dow == "*":
		return "every day", true
	case dom == "*" && month == "*" && named:
		return weekdays, true
	case plain(dom) && month == "*" && dow == "*":
		return "on day " + dom + " of every month", true
	case plain(dom) && month == "*" && named:
		return "on day " + dom + " of every month and also " + weekdays, true
	case plain(dom) && plain(month) && dow == "*":
		m, _ := strconv.Atoi(month)
		return "every year on " + dom + " " + time.Month(m).String(), true
	}
	return "", false
}

func weekdayNames(dow string) (string, bool) {
	switch dow {
	case "1-5", "mon-fri":
		return "every weekday", true
	case "0,6", "6,0", "sat,sun":
		return "every Saturday and Sunday", true
	}
	var names []string
	for _, d := range strings.Split(dow, ",") {
		day, ok := weekday(d)
		if n, err := strconv.Atoi(d); err == nil && n <= 6 {
			day, ok = time.Weekday(n), true
		}
		if !ok {
			return "", false
		}
		names = append(names, day.String())
	}
	if len(names) == 7 {
		return "every day", true
	}
	if names[0] == time.Sunday.String() {
		names = append(names[1:], names[0]) // weeks are read from Monday on
	}
	return "every " + enumerate(names), true
}

// timesOfDay writes fixed hours and one fixed minute as times.
func timesOfDay(minute, hour string) (string, bool) {
	m, err := strconv.Atoi(minute)
	if err != nil {
		return "", false
	}
	var times []string
	for _, h := range strings.Split(hour, ",") {
		n, err := strconv.Atoi(h)
		if err != nil {
			return "", false
		}
		times = append(times, fmt.Sprintf("%02d:%02d", n, m))
	}
	return enumerate(times), true
}

func enumerate(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

func star(field string) string {
	if field == "?" {
		return "*"
	}
	return field
}

func plain(field string) bool { return field != "" && strings.Trim(field, "0123456789") == "" }

// step returns n of */n, else 0.
func step(field string) int {
	s, ok := strings.CutPrefix(field, "*/")
	if !ok {
		return 0
	}
	n, _ := strconv.Atoi(s)
	return n
}
