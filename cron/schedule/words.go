package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// wordList is a text in lower case, read word by word.
type wordList struct{ rest []string }

func newWords(s string) *wordList {
	// A comma separates words; "9,17" and "mon, wed" read alike.
	return &wordList{strings.Fields(strings.ReplaceAll(s, ",", " , "))}
}

func (w *wordList) done() bool { return len(w.rest) == 0 }

// peek returns the next word; "" at the end.
func (w *wordList) peek() string {
	if w.done() {
		return ""
	}
	return w.rest[0]
}

func (w *wordList) skip() { w.rest = w.rest[1:] }

// take skips the next word if it is one of those given.
func (w *wordList) take(any ...string) bool {
	for _, x := range any {
		if !w.done() && w.rest[0] == x {
			w.skip()
			return true
		}
	}
	return false
}

func (w *wordList) String() string { return strings.Join(w.rest, " ") }

// units are the words for lengths of time.
func unit(s string) (time.Duration, bool) {
	switch s {
	case "s", "sec", "secs", "second", "seconds":
		return time.Second, true
	case "m", "min", "mins", "minute", "minutes":
		return time.Minute, true
	case "h", "hr", "hrs", "hour", "hours":
		return time.Hour, true
	case "d", "day", "days":
		return 24 * time.Hour, true
	case "w", "week", "weeks":
		return 7 * 24 * time.Hour, true
	}
	return 0, false
}

// duration reads 20m, 2h30m, 1d, "2 hours and 30 minutes"; false (and nothing read) if there is none.
// What is longer than Longest is returned as more than that.
func (w *wordList) duration() (time.Duration, bool) {
	begin := w.rest
	var total time.Duration
	for found := false; ; found = true {
		if found {
			w.take("and", ",")
		}
		d, ok := w.amount()
		if !ok {
			if !found {
				w.rest = begin
			}
			return total, found
		}
		if total += d; total > Longest {
			total = Longest + 1
		}
	}
}

// amount reads one word such as 2h30m, or a number and a unit.
func (w *wordList) amount() (time.Duration, bool) {
	word := w.peek()
	digits := len(word) - len(strings.TrimLeft(word, "0123456789"))
	if digits == 0 {
		return 0, false
	}
	if digits == len(word) && len(w.rest) > 1 {
		d, ok := unit(w.rest[1])
		if !ok {
			return 0, false
		}
		w.skip()
		w.skip()
		return times(word, d), true
	}
	var total time.Duration
	for word != "" {
		digits := len(word) - len(strings.TrimLeft(word, "0123456789"))
		letters := len(word[digits:]) - len(strings.TrimLeft(word[digits:], "abcdefghijklmnopqrstuvwxyz"))
		d, ok := unit(word[digits : digits+letters])
		if digits == 0 || !ok {
			return 0, false
		}
		total = min(total+times(word[:digits], d), Longest+1)
		word = word[digits+letters:]
	}
	w.skip()
	return total, true
}

// times multiplies, at most to a little more than Longest.
func times(digits string, d time.Duration) time.Duration {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > int64(Longest/d) {
		return Longest + 1
	}
	return time.Duration(n) * d
}

// clockTime is a time of day.
type clockTime struct{ hour, minute int }

// timeOfDay reads 9:00, 9, 9am, "9:30 pm", noon, midnight. bare tells that it was a number alone,
// which is a time only where one is expected.
func (w *wordList) timeOfDay() (t clockTime, bare, ok bool) {
	begin := w.rest
	word := w.peek()
	switch word {
	case "noon":
		w.skip()
		return clockTime{12, 0}, false, true
	case "midnight":
		w.skip()
		return clockTime{0, 0}, false, true
	case "":
		return t, false, false
	}
	w.skip()
	half := ""
	for _, h := range []string{"am", "pm"} {
		if s, cut := strings.CutSuffix(word, h); cut {
			word, half = s, h
		} else if w.take(h) {
			half = h
		}
	}
	hour, minute, colon := strings.Cut(word, ":")
	t.hour, ok = number(hour, 2)
	if colon && ok {
		t.minute, ok = number(minute, 2)
		ok = ok && len(minute) == 2
	}
	if ok && half != "" {
		ok = t.hour >= 1 && t.hour <= 12
		t.hour %= 12
		if half == "pm" {
			t.hour += 12
		}
	}
	if !ok || t.hour > 23 || t.minute > 59 {
		w.rest = begin
		return clockTime{}, false, false
	}
	return t, !colon && half == "", true
}

func number(s string, most int) (int, bool) {
	if s == "" || len(s) > most || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// weekday reads the name of a day.
func weekday(s string) (time.Weekday, bool) {
	for d := time.Sunday; d <= time.Saturday; d++ {
		full := strings.ToLower(d.String())
		if s == full || s == full+"s" || len(s) >= 3 && len(s) <= 5 && strings.HasPrefix(full, s) {
			return d, true
		}
	}
	return 0, false
}

// count writes a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
