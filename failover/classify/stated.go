package classify

import (
	"strconv"
	"strings"
	"time"
)

// waitMarkers are the words before a stated wait, in lower case.
var waitMarkers = [...]string{
	"try again in", "try again after", "retry in", "retry after", "retry again in", "retry again after", "resets in", "reset in", "reset after", "resets after",
	"available in", "replenished in", "refreshed in", "wait ", "wait for", "again in about", "expires in", "retrying in",
}

// statedWait returns the wait that a message names: "try again in 7m12s", "请在 30 秒后重试".
func statedWait(text string) time.Duration {
	for _, m := range waitMarkers {
		for at := 0; ; {
			i := strings.Index(text[at:], m)
			if i < 0 {
				break
			}
			at += i + len(m)
			if d := spelledDuration(text[at:]); d > 0 {
				return d
			}
		}
	}
	for _, u := range [...]struct {
		word string
		unit time.Duration
	}{{"秒后", time.Second}, {"分钟后", time.Minute}, {"小时后", time.Hour}, {"天后", 24 * time.Hour}, {"秒 后", time.Second}} {
		if i := strings.Index(text, u.word); i > 0 {
			digits := strings.TrimRight(text[:i], " ")
			start := len(digits)
			for start > 0 && (isDigit(digits[start-1]) || digits[start-1] == '.') {
				start--
			}
			if f, err := strconv.ParseFloat(digits[start:], 64); err == nil && f < 1e7 {
				return time.Duration(f * float64(u.unit))
			}
		}
	}
	return 0
}

// spelledDuration reads "4.77s", "9h22m20s", "5 days 22 hours 11 minutes", "60 seconds" at the start
// of text. A number without a unit is nothing.
func spelledDuration(text string) time.Duration {
	var sum time.Duration
	text = strings.TrimLeft(text, " :~")
	text = strings.TrimPrefix(strings.TrimPrefix(text, "about "), "approximately ")
	if d := clockDuration(text); d > 0 {
		return d
	}
	for {
		n := 0
		for n < len(text) && (isDigit(text[n]) || text[n] == '.') {
			n++
		}
		f, err := strconv.ParseFloat(strings.TrimRight(text[:n], "."), 64)
		if err != nil || f > 1e9 {
			return sum
		}
		rest := strings.TrimLeft(text[n:], " ")
		w := 0
		for w < len(rest) && rest[w] >= 'a' && rest[w] <= 'z' {
			w++
		}
		unit := unitOf(rest[:w])
		if unit == 0 {
			return sum
		}
		sum += time.Duration(f * float64(unit))
		text = strings.TrimLeft(rest[w:], " ,")
		text = strings.TrimPrefix(text, "and ")
	}
}

// clockDuration reads "01:34:11" at the start of text.
func clockDuration(text string) (d time.Duration) {
	for i, unit := range [...]time.Duration{time.Hour, time.Minute, time.Second} {
		n := len(leadingDigits(text))
		v, err := strconv.Atoi(text[:n])
		if err != nil || n > 3 || i > 0 && (n != 2 || v > 59) {
			return 0
		}
		d += time.Duration(v) * unit
		if text = text[n:]; i < 2 {
			if !strings.HasPrefix(text, ":") {
				return 0
			}
			text = text[1:]
		}
	}
	return d
}

func unitOf(word string) time.Duration {
	switch word {
	case "ms", "millisecond", "milliseconds":
		return time.Millisecond
	case "s", "sec", "secs", "second", "seconds":
		return time.Second
	case "m", "min", "mins", "minute", "minutes":
		return time.Minute
	case "h", "hr", "hrs", "hour", "hours":
		return time.Hour
	case "d", "day", "days":
		return 24 * time.Hour
	}
	return 0
}

// statedReset returns the moment that a message names as a window's end. A time without a zone is
// none, and so is a date in a message that speaks of no end.
func statedReset(text string) time.Time {
	if _, after, ok := strings.Cut(text, "limit reached|"); ok { // Claude's subscription wording
		if t, ok := instant(leadingDigits(after)); ok {
			return t
		}
	}
	spoken := false
	for _, w := range [...]string{"reset", "regain", "until", "try again", "available", "renew", "refresh", "重置", "恢复", "刷新"} {
		spoken = spoken || strings.Contains(text, w)
	}
	if !spoken {
		return time.Time{}
	}
	for i := 0; i+16 <= len(text); i++ {
		if text[i] == '2' && text[i+4] == '-' && text[i+7] == '-' && (i == 0 || text[i-1] != '-' && !isWordByte(text[i-1])) {
			if t, ok := zonedTime(text[i:]); ok {
				return t
			}
		}
	}
	return time.Time{}
}

func leadingDigits(s string) string {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return s[:n]
}

// zonedTime reads "2026-05-15t15:00:00z", "2026-03-16 14:37:37 +0800 cst", "2026-04-01 at 00:00 utc".
func zonedTime(text string) (time.Time, bool) {
	date, rest := text[:10], text[10:]
	switch {
	case strings.HasPrefix(rest, " at "):
		rest = rest[4:]
	case rest[0] == 't' || rest[0] == ' ':
		rest = rest[1:]
	default:
		return time.Time{}, false
	}
	n := 0
	for n < len(rest) && (isDigit(rest[n]) || rest[n] == ':' || rest[n] == '.') {
		n++
	}
	clock, zone := strings.TrimRight(rest[:n], "."), strings.TrimLeft(rest[n:], " (")
	if strings.Count(clock, ":") == 1 {
		clock += ":00"
	}
	offset := ""
	switch {
	case strings.HasPrefix(zone, "z"), strings.HasPrefix(zone, "utc"), strings.HasPrefix(zone, "gmt"):
		offset = "Z"
	case len(zone) >= 6 && (zone[0] == '+' || zone[0] == '-') && zone[3] == ':':
		offset = zone[:6]
	case len(zone) >= 5 && (zone[0] == '+' || zone[0] == '-'):
		offset = zone[:3] + ":" + zone[3:5]
	default:
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339, date+"T"+clock+offset)
	return t.UTC(), err == nil
}
