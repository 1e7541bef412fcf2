package schedule

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxQuoted bounds how much of an input an error repeats, in bytes.
const maxQuoted = 80

// Error says what is wrong with a schedule, where, and what to write instead. It is written for the
// person who typed the schedule.
type Error struct {
	Input string // what was typed, or the part that is wrong
	Where string // the field or part, such as "hour"; "" = the whole
	What  string // what is wrong with it
	Fix   string // what to do; "" = it follows from What
}

// Error is one line: where, the input, what is wrong; what to do.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Where != "" {
		b.WriteString(e.Where + ": ")
	}
	if e.Input != "" {
		fmt.Fprintf(&b, "%q ", clip(e.Input))
	}
	b.WriteString(e.What)
	if e.Fix != "" {
		b.WriteString("; " + e.Fix)
	}
	return b.String()
}

// Public is the same text: it repeats only what its reader typed.
func (e *Error) Public() string { return e.Error() }

func clip(s string) string {
	if len(s) <= maxQuoted {
		return s
	}
	cut := maxQuoted
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
