package schedule

import (
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxInput bounds what Parse reads, in bytes.
const maxInput = 200

// Frame is what the words of a person are relative to.
type Frame struct {
	Now time.Time
	// Zone is where the person's clocks are; nil = UTC.
	Zone *time.Location
	// Named tells that somebody chose Zone, for the job or in the configuration. A date without an
	// offset is otherwise UTC: the zone of a server says nothing about its users.
	Named bool
	// Own tells that Zone was chosen for this schedule alone. Only then it is stored with it; any other
	// schedule lives in the zone that Compile is given.
	Own bool
}

// Parse reads what people type:
//
//	20m   2h30m   1d   in 2 hours
//	today 18:30   tomorrow 9:00   monday 9   18:30   at 9pm
//	2026-12-24 18:00   2026-12-24T18:00:00+01:00
//	every 15m   every day at 9   every weekday at 9:30   every mon, wed and fri at 9 and 17
//	0 9 * * 1-5   30 0 9 * * *   @daily   @every 2h
//
// Times of day may be followed by a zone, as in "every day at 9 Europe/Berlin". A moment that has
// passed and a schedule that never happens are refused. The error is an *Error.
func Parse(text string, f Frame) (Schedule, error) {
	if f.Zone == nil {
		f.Zone = time.UTC
	}
	if len(text) > maxInput {
		return Schedule{}, &Error{Input: text, What: "is too long for a schedule", Fix: tryThese}
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, strange) {
		return Schedule{}, &Error{Input: strings.ToValidUTF8(strings.Map(visible, text), "?"), What: "holds characters that cannot be read", Fix: tryThese}
	}
	text = strings.Join(strings.Fields(text), " ")
	spec, err := read(text, &f)
	if err != nil {
		return Schedule{}, err
	}
	s, err := spec.Compile(f.Zone, nil)
	if err != nil {
		return Schedule{}, err
	}
	return s, s.ahead(text, f)
}

const tryThese = `write for example 20m, tomorrow 9:00, every 15m, every weekday at 9, or a cron expression such as 0 9 * * 1-5`

// ahead refuses a schedule without a future, or with one too far away.
func (s Schedule) ahead(text string, f Frame) error {
	next, ok := s.Next(f.Now)
	switch {
	case !ok && s.Once():
		return &Error{
			Input: text, What: "is over: it is " + f.Now.In(s.zone).Format("2006-01-02 15:04") + " " + zoneName(s.zone),
			Fix: "give a later time",
		}
	case !ok:
		return &Error{Input: text, What: "never happens"}
	case next.Sub(f.Now) > Longest:
		return &Error{Input: text, What: "is more than ten years away"}
	}
	return nil
}

// read finds out which form a text has. It changes the frame when the text ends with a zone.
func read(text string, f *Frame) (Spec, error) {
	low := strings.ToLower(text)
	switch {
	case low == "":
		return Spec{}, &Error{What: "the schedule is empty", Fix: tryThese}
	case strings.Contains(low, "tz="):
		_, err := normalise(low)
		return Spec{}, err
	case low[0] == '@':
		return descriptor(low, f)
	}
	if spec, isISO, err := isoDate(text, f); isISO {
		return spec, err
	}
	if looksLikeCron(low) {
		return Spec{Kind: Cron, Expr: low, TZ: f.tz()}, nil
	}
	low, err := f.takeZone(text)
	if err != nil {
		return Spec{}, err
	}
	w := newWords(low)
	if spec, ok, err := recurring(w, f); ok {
		return spec, err
	}
	w = newWords(low)
	w.take("in")
	if d, ok := w.duration(); ok && w.done() {
		if d <= 0 || d > Longest {
			return Spec{}, &Error{Input: text, What: "must be between one second and ten years"}
		}
		return Spec{Kind: At, At: f.Now.Add(d), TZ: f.tz()}, nil
	}
	return dayAndTime(newWords(low), text, f)
}

// tz is how the frame's zone is stored: "" where the schedule has none of its own, and for the host's,
// which has no name.
func (f *Frame) tz() string {
	if name := f.Zone.String(); f.Own && name != "Local" {
		return name
	}
	return ""
}

// takeZone takes a zone off the end of a text and returns the rest in lower case.
func (f *Frame) takeZone(text string) (string, error) {
	rest, last, ok := cutLast(text)
	if !ok || last != "UTC" && !zoneShape.MatchString(last) {
		return strings.ToLower(text), nil
	}
	zone, err := Zone(last, nil)
	if err != nil {
		return "", err
	}
	f.Zone, f.Named, f.Own = zone, true, true
	return strings.ToLower(rest), nil
}

var zoneShape = regexp.MustCompile(`^[A-Z][A-Za-z_]+(/[A-Za-z0-9_+\-]+)+$`)

func cutLast(s string) (before, last string, ok bool) {
	i := strings.LastIndexByte(s, ' ')
	if i < 0 {
		return "", s, false
	}
	return s[:i], s[i+1:], true
}

// looksLikeCron tells an expression, right or wrong, from words.
func looksLikeCron(s string) bool {
	fields := strings.Fields(s)
	for _, f := range fields {
		if f[0] == '*' || f == "?" || strings.Contains(f, "#") {
			return true
		}
	}
	return len(fields) >= 4 && numeric(fields[0]) && numeric(fields[1])
}

func numeric(field string) bool {
	return field[0] >= '0' && field[0] <= '9' && strings.Trim(field, "0123456789,-/") == ""
}

// descriptor reads @daily and its kin.
func descriptor(s string, f *Frame) (Spec, error) {
	if d, ok := strings.CutPrefix(s, "@every "); ok {
		w := newWords(d)
		every, ok := w.duration()
		if !ok || !w.done() {
			return Spec{}, &Error{Input: s, What: "gives no interval", Fix: "write for example @every 2h"}
		}
		return interval(every, s, f)
	}
	expr, ok := map[string]string{
		"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
		"@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
	}[s]
	if !ok {
		return Spec{}, &Error{Input: s, What: "is not known", Fix: "there are @hourly, @daily, @weekly, @monthly, @yearly and @every <interval>"}
	}
	return Spec{Kind: Cron, Expr: expr, TZ: f.tz()}, nil
}

// interval makes a schedule of intervals that begin now.
func interval(every time.Duration, text string, f *Frame) (Spec, error) {
	if every < Shortest {
		return Spec{}, &Error{Input: text, What: "is too often", Fix: "the shortest interval is one minute"}
	}
	if every > Longest {
		return Spec{}, &Error{Input: text, What: "is too long an interval", Fix: "the longest is ten years"}
	}
	return Spec{Kind: Every, EveryMs: every.Milliseconds(), AnchorMs: f.Now.UnixMilli(), TZ: f.tz()}, nil
}

func strange(r rune) bool {
	return unicode.IsControl(r) && !unicode.IsSpace(r) || unicode.Is(unicode.Cf, r)
}

func visible(r rune) rune {
	if strange(r) {
		return '?'
	}
	return r
}
