package schedule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxTimes bounds the times of day in one sentence.
const maxTimes = 24

// recurring reads "every 15m", "every day at 9", "weekdays at 9:30"; false when the words are about
// something else.
func recurring(w *wordList, f *Frame) (Spec, bool, error) {
	text := w.String()
	every := w.take("every", "each")
	if every {
		if spec, ok, err := everyInterval(w, text, f); ok {
			return spec, true, err
		}
	}
	days, ok := w.days(every)
	if !ok {
		if !every {
			return Spec{}, false, nil
		}
		return Spec{}, true, &Error{Input: w.String(), Where: "every", What: "is neither an interval nor a day", Fix: "write for example every 15m, every day at 9, every monday and friday at 9:30"}
	}
	w.take("at", "@")
	if w.done() {
		return Spec{}, true, &Error{Input: text, What: "gives no time of day", Fix: "write for example " + strings.TrimSuffix(text, " at") + " at 9:00"}
	}
	minute, hours, err := w.times()
	if err != nil {
		return Spec{}, true, err
	}
	return Spec{Kind: Cron, Expr: fmt.Sprintf("%d %s * * %s", minute, hours, days), TZ: f.tz()}, true, nil
}

// everyInterval reads "15m", "2 hours", "hour".
func everyInterval(w *wordList, text string, f *Frame) (Spec, bool, error) {
	begin := w.rest
	d, ok := w.duration()
	if u, single := unit(w.peek()); !ok && single && len(w.peek()) > 3 && len(w.rest) == 1 && u != 24*time.Hour {
		d, ok = u, true
		w.skip()
	}
	if !ok {
		return Spec{}, false, nil
	}
	if !w.done() {
		if w.peek() == "at" {
			return Spec{}, true, &Error{
				Input: text, What: "gives an interval and a time of day",
				Fix: "write every day at 9, or a cron expression such as 0 9 */2 * * for every second day of the month",
			}
		}
		w.rest = begin
		return Spec{}, false, nil
	}
	spec, err := interval(d, text, f)
	return spec, true, err
}

// days reads which days of the week are meant, as a cron field.
func (w *wordList) days(every bool) (string, bool) {
	switch {
	case w.take("daily"), every && w.take("day"):
		return "*", true
	case w.take("weekdays"), every && w.take("weekday", "workday"):
		return "1-5", true
	case w.take("weekends"), every && w.take("weekend"):
		return "0,6", true
	}
	begin := w.rest
	plural := strings.HasSuffix(w.peek(), "days")
	var list []int
	for {
		d, ok := weekday(w.peek())
		if !ok {
			break
		}
		w.skip()
		if !slices.Contains(list, int(d)) {
			list = append(list, int(d))
		}
		w.take(",")
		w.take("and")
	}
	if len(list) == 0 || !every && !plural {
		w.rest = begin
		return "", false
	}
	slices.Sort(list)
	return join(list), true
}

// times reads one or several times of day with the same minute.
func (w *wordList) times() (minute int, hours string, err error) {
	var list []int
	for {
		t, _, ok := w.timeOfDay()
		switch {
		case !ok && w.done():
			return 0, "", &Error{Where: "time", What: "a time of day is missing", Fix: timeFix}
		case !ok:
			return 0, "", &Error{Input: w.String(), Where: "time", What: "is not a time of day", Fix: timeFix}
		case len(list) > 0 && t.minute != minute:
			return 0, "", &Error{
				Where: "time", What: "the times differ in their minutes", Fix: "make one job for each, or use times such as 9:30 and 17:30",
			}
		case len(list) == maxTimes:
			return 0, "", &Error{Where: "time", What: "there are too many times"}
		}
		minute = t.minute
		if !slices.Contains(list, t.hour) {
			list = append(list, t.hour)
		}
		if w.done() {
			slices.Sort(list)
			return minute, join(list), nil
		}
		comma, and := w.take(","), w.take("and")
		w.take("at")
		if !comma && !and {
			return 0, "", &Error{Input: w.String(), What: "was not expected after the time", Fix: tryThese}
		}
	}
}

const timeFix = "write for example 9:00, 18:30 or 9pm"

func join(list []int) string {
	texts := make([]string, len(list))
	for i, n := range list {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, ",")
}
