package faults

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An expectation is one line of a scenario's `expect` part:
//
//	[scope …] subject [argument] operator value
//
// Scopes pick a part of the trace; without one the whole of it counts:
//
//	turn 2 | session dm | from 30s | until 1m      (by the time at which things were finished, ends included)
//
// Subjects are lists:
//
//	calls            requests as model@profile                    a1@p1 a1@p2 b1@env
//	requests         the same in full                             alpha/a1@alpha:p1
//	outcomes         requests with what came of them              a1@p1=rate_limit b1@env=ok
//	times            when the requests started                    0s 31s
//	skips            candidates passed over, with the reason      a1=billing
//	endings          how turns ended                              b1 failed:billing stopped
//	waits            pauses                                       2.5s 5s
//	windows ROW      lengths of the blocks a health row went through
//	health ROW       the row's last state in scope: `rate_limit until 30s step 1`, `disabled billing until 5h step 1`,
//	                 `healthy`, or `unchanged` when nothing became of it
//	ended            when the last turn in scope ended
//	retry            when a failed turn says that trying again is worth it
//	notices, answers, failures, replies                           the texts of that kind
//	said             everything a person saw, with its kind       notice:… answer:…
//
// Operators: == and != compare the list written with blanks between its members (texts: with " | ");
// contains and lacks look for a piece of it; ~ is a regular expression; <= and >= compare durations,
// or the length of the list when the subject is preceded by `count` (an optional pattern after it
// picks members: `count calls a1@* <= 8`; count knows == too).
type expectation struct {
	text     string
	turn     int
	session  string
	from, to time.Duration
	count    bool
	subject  string
	argument string
	operator string
	value    string
}

var operators = []string{"==", "!=", "contains", "lacks", "~", "<=", ">="}

const never = time.Duration(1<<63 - 1)

// parseExpectations reads an `expect` part; empty lines and those that begin with # mean nothing.
func parseExpectations(text string) ([]expectation, error) {
	var list []expectation
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		x, err := parseExpectation(line)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
		list = append(list, x)
	}
	if len(list) == 0 {
		return nil, errors.New("nothing is expected")
	}
	return list, nil
}

func parseExpectation(line string) (expectation, error) {
	x := expectation{text: line, to: never}
	words := strings.Fields(line)
	at := slices.IndexFunc(words, func(w string) bool { return slices.Contains(operators, w) })
	if at < 0 {
		return x, errors.New("there is no operator")
	}
	x.operator = words[at]
	_, value, _ := strings.Cut(line, " "+x.operator)
	x.value = strings.TrimSpace(value)
	if strings.HasPrefix(x.value, `"`) {
		v, err := strconv.Unquote(x.value)
		if err != nil {
			return x, fmt.Errorf("value %s: %w", x.value, err)
		}
		x.value = v
	}
	rest, err := x.scope(words[:at])
	if err != nil {
		return x, err
	}
	if len(rest) > 0 && rest[0] == "count" {
		x.count, rest = true, rest[1:]
	}
	if len(rest) == 0 || len(rest) > 2 {
		return x, errors.New("the subject is missing, or too long")
	}
	x.subject, x.argument = rest[0], strings.Join(rest[1:], "")
	return x, nil
}

// scope reads the scopes at the beginning of words and returns what follows them.
func (x *expectation) scope(words []string) ([]string, error) {
	for len(words) >= 2 {
		var err error
		switch words[0] {
		case "turn":
			x.turn, err = strconv.Atoi(words[1])
		case "session":
			x.session = words[1]
		case "from":
			x.from, err = time.ParseDuration(words[1])
		case "until":
			x.to, err = time.ParseDuration(words[1])
		default:
			return words, nil
		}
		if err != nil {
			return nil, err
		}
		words = words[2:]
	}
	return words, nil
}

// covers reports whether e is in scope. What belongs to no turn or session, such as health, is
// limited by time only.
func (x expectation) covers(e event) bool {
	t := time.Duration(e.T*1000+0.5) * time.Millisecond
	return t >= x.from && t <= x.to &&
		(x.turn == 0 || e.Turn == x.turn || e.Kind == "health") &&
		(x.session == "" || e.Session == x.session || e.Kind == "health")
}

// check returns why the story is not as expected, or nil.
func (x expectation) check(s story) error {
	var list []string
	for _, e := range s {
		if !x.covers(e) {
			continue
		}
		member, ok, err := x.member(e)
		if err != nil {
			return err
		}
		if ok {
			list = append(list, member)
		}
	}
	switch x.subject {
	case "health", "ended", "retry":
		if len(list) > 1 {
			list = list[len(list)-1:]
		}
		if len(list) == 0 && x.subject == "health" {
			list = []string{"unchanged"}
		}
	}
	if x.count {
		return x.compareCount(list)
	}
	return x.compare(list)
}

// member returns what e contributes to the subject.
func (x expectation) member(e event) (string, bool, error) {
	ends := e.Kind == "answer" || e.Kind == "failed" || e.Kind == "stopped"
	switch x.subject {
	case "calls":
		return e.call(), e.Kind == "attempt", nil
	case "requests":
		return e.request(), e.Kind == "attempt", nil
	case "outcomes":
		return e.call() + "=" + e.outcome(), e.Kind == "attempt", nil
	case "times":
		return span(e.T - e.Duration), e.Kind == "attempt", nil
	case "skips":
		return e.Model + "=" + e.Reason, e.Kind == "skip", nil
	case "endings":
		return ending(e), ends, nil
	case "waits":
		return span(e.Seconds), e.Kind == "wait", nil
	case "windows":
		return e.window(), e.Kind == "health" && e.row() == x.argument && e.window() != "", nil
	case "health":
		return e.health(), e.Kind == "health" && e.row() == x.argument, nil
	case "ended":
		return span(e.T), ends, nil
	case "retry":
		if e.RetryAt == nil {
			return "none", e.Kind == "failed", nil
		}
		return span(*e.RetryAt), e.Kind == "failed", nil
	case "notices":
		return e.Text, e.Kind == "notice", nil
	case "answers":
		return e.Text, e.Kind == "answer", nil
	case "failures":
		return e.Text, e.Kind == "failed", nil
	case "replies":
		return e.Text, e.Kind == "command", nil
	case "said":
		switch e.Kind {
		case "notice", "answer", "failed", "command":
			return e.Kind + ":" + e.Text, true, nil
		}
		return "", false, nil
	}
	return "", false, fmt.Errorf("there is no subject %q", x.subject)
}

func ending(e event) string {
	switch e.Kind {
	case "answer":
		return bare(e.Model)
	case "failed":
		return "failed:" + e.Reason
	}
	return e.Kind
}

func (x expectation) compareCount(list []string) error {
	n := 0
	for _, m := range list {
		if ok, err := path.Match(x.argument, m); err != nil {
			return err
		} else if ok || x.argument == "" {
			n++
		}
	}
	want, err := strconv.Atoi(x.value)
	if err != nil {
		return err
	}
	holds := false
	switch x.operator {
	case "==":
		holds = n == want
	case "<=":
		holds = n <= want
	case ">=":
		holds = n >= want
	default:
		return fmt.Errorf("a number is not compared with %s", x.operator)
	}
	if !holds {
		return fmt.Errorf("counted %d", n)
	}
	return nil
}

func (x expectation) compare(list []string) error {
	sep := " "
	switch x.subject {
	case "notices", "answers", "failures", "replies", "said":
		sep = " | "
	}
	got, holds := strings.Join(list, sep), false
	switch x.operator {
	case "==":
		holds = got == x.value
	case "!=":
		holds = got != x.value
	case "contains":
		holds = strings.Contains(got, x.value)
	case "lacks":
		holds = !strings.Contains(got, x.value)
	case "~":
		re, err := regexp.Compile(x.value)
		if err != nil {
			return err
		}
		holds = re.MatchString(got)
	case "<=", ">=":
		want, err := time.ParseDuration(x.value)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return errors.New("there is nothing to compare")
		}
		holds = true
		for _, m := range list {
			d, err := time.ParseDuration(m)
			if err != nil {
				return fmt.Errorf("%q is no duration: %w", m, err)
			}
			holds = holds && ((x.operator == "<=" && d <= want) || (x.operator == ">=" && d >= want))
		}
	}
	if !holds {
		return fmt.Errorf("got %q", got)
	}
	return nil
}
