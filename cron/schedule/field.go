package schedule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// fieldKind is what one of the fields of an expression may hold.
type fieldKind struct {
	name     string
	min, max int
	names    []string // of the values from min on
}

func fieldKinds() []fieldKind {
	return []fieldKind{
		{"second", 0, 59, nil},
		{"minute", 0, 59, nil},
		{"hour", 0, 23, nil},
		{"day-of-month", 1, 31, nil},
		{"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
		{dayOfWeek, 0, 7, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
	}
}

const dayOfWeek = "day-of-week"

// normalise checks one field and returns it as the library reads it.
func (k fieldKind) normalise(field string) (string, *Error) {
	if err := k.foreign(field); err != nil {
		return "", err
	}
	elements := strings.Split(field, ",")
	for i, e := range elements {
		normal, err := k.element(e)
		if err != nil {
			return "", err
		}
		elements[i] = normal
	}
	return strings.Join(elements, ","), nil
}

// foreign finds what other schedulers know and this one does not.
func (k fieldKind) foreign(field string) *Error {
	bad := func(what, fix string) *Error { return &Error{Input: field, Where: k.name, What: what, Fix: fix} }
	switch {
	case strings.Contains(field, "#"):
		return bad("uses #, the n-th such day of a month, which is not supported", "name the days it can fall on, such as 8-14 for the second week")
	case strings.Contains(field, "+"):
		return bad("uses +, which is not supported", "when day-of-month and day-of-week are both given, either is enough")
	}
	for _, e := range strings.Split(field, ",") {
		digits := strings.Trim(e, "0123456789-")
		switch {
		case digits == "l" || k.name == dayOfWeek && len(e) == 4 && e[3] == 'l':
			return bad("uses L, the last day, which is not supported", "use day 28, or the first day of the next month")
		case digits == "w" || digits == "lw":
			return bad("uses W, the nearest weekday, which is not supported", "use day-of-week 1-5")
		}
	}
	return nil
}

// element checks a value, a range or a star, each perhaps with a step.
func (k fieldKind) element(e string) (string, *Error) {
	bad := func(what, fix string) *Error { return &Error{Input: e, Where: k.name, What: what, Fix: fix} }
	base, step, stepped := strings.Cut(e, "/")
	if e == "" {
		return "", bad("a value is missing beside a comma", "")
	}
	if stepped {
		if n, err := strconv.Atoi(step); err != nil || n < 1 || len(step) > 3 {
			return "", bad(fmt.Sprintf("has the step %q, which is not a number from 1 on", clip(step)), "")
		}
	}
	if base == "*" || base == "?" {
		return e, nil
	}
	low, high, ranged := strings.Cut(base, "-")
	from, err := k.value(low, e)
	if err != nil {
		return "", err
	}
	to := from
	switch {
	case ranged:
		if to, err = k.value(high, e); err != nil {
			return "", err
		}
	case stepped:
		to = k.max
		if k.name == dayOfWeek {
			to = 6
		}
	}
	if from > to {
		return "", bad("runs backwards", fmt.Sprintf("write two ranges, such as %d-%d,%d-%d", from, k.last(), k.min, to))
	}
	if k.name == dayOfWeek && to == 7 {
		return sundays(from, step), nil
	}
	return e, nil
}

// last is the greatest value that is not another name for a smaller one.
func (k fieldKind) last() int {
	if k.name == dayOfWeek {
		return 6
	}
	return k.max
}

// sundays writes out a range that ends with day 7, Sunday, which the library only knows as 0.
func sundays(from int, step string) string {
	by := 1
	if n, err := strconv.Atoi(step); err == nil {
		by = n
	}
	var days []int
	for d := from; d <= 7; d += by {
		if !slices.Contains(days, d%7) {
			days = append(days, d%7)
		}
	}
	slices.Sort(days)
	texts := make([]string, len(days))
	for i, d := range days {
		texts[i] = strconv.Itoa(d)
	}
	return strings.Join(texts, ",")
}

// value reads a number or a name.
func (k fieldKind) value(s, element string) (int, *Error) {
	if i := slices.Index(k.names, s); i >= 0 {
		return k.min + i, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || s[0] == '+' || s[0] == '-' {
		what := fmt.Sprintf("%q is not a number", clip(s))
		if s == "" {
			what = "lacks a value"
		}
		if k.names != nil {
			what += " or a name such as " + k.names[1]
		}
		if s == element {
			what = strings.TrimPrefix(what, fmt.Sprintf("%q ", clip(s)))
		}
		return 0, &Error{Input: element, Where: k.name, What: what}
	}
	if n < k.min || n > k.max {
		return 0, &Error{Input: element, Where: k.name, What: fmt.Sprintf("is not between %d and %d", k.min, k.max)}
	}
	return n, nil
}
