package reply

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"understudy/failover"
	"understudy/failover/policy"
	"understudy/llm"
)

var update = flag.Bool("update", false, "write the golden file")

// reasons are all of spec/failover.md §6, and the two of ours.
var reasons = []llm.Reason{
	llm.ReasonAuth, llm.ReasonAuthPermanent, llm.ReasonBilling, llm.ReasonRateLimit, llm.ReasonOverloaded, llm.ReasonTimeout,
	llm.ReasonFormat, llm.ReasonContextOverflow, llm.ReasonModelNotFound, llm.ReasonSessionExpired, llm.ReasonRefusal,
	llm.ReasonAborted, llm.ReasonEmptyResponse, llm.ReasonNoErrorDetails, llm.ReasonUnclassified, llm.ReasonCapability, llm.ReasonInternal,
}

// raw is what must never be seen.
const raw = `<html>RAW {"error":"sk-secret"}`

func failed(reason llm.Reason, change ...func(*failover.AttemptError)) *failover.AttemptError {
	e := &failover.AttemptError{
		Record: failover.Record{
			Provider: "alpha", Model: "a1", Profile: "alpha:me@example.com", Reason: reason, Error: raw, Code: raw,
		},
		Failure: llm.Failure{Reason: reason, Code: raw, Message: raw},
		Err:     errors.New(raw),
	}
	for _, f := range change {
		f(e)
	}
	e.Detail, e.Status = e.Failure.Detail, e.Failure.Status
	return e
}

func detail(d llm.Detail, status int) func(*failover.AttemptError) {
	return func(e *failover.AttemptError) { e.Failure.Detail, e.Failure.Status = d, status }
}

func backIn(d time.Duration) func(*failover.AttemptError) {
	return func(e *failover.AttemptError) { e.Until = start.Add(d) }
}

// all returns a summary of the given reasons, one candidate each.
func all(soonest time.Duration, rs ...llm.Reason) error {
	e := &failover.FallbackSummaryError{}
	for i, r := range rs {
		x := failed(r)
		x.Model = fmt.Sprintf("a%d", i+1)
		e.Attempts, e.Cause = append(e.Attempts, x.Record), x
	}
	if soonest > 0 {
		e.SoonestExpiry = start.Add(soonest)
		if slices.ContainsFunc(rs, func(r llm.Reason) bool { return !policy.NeedsHelp(r) }) {
			e.SoonestPassing = e.SoonestExpiry
		}
	}
	return e
}

// bare returns the summary of a chain for which nothing is stored.
func bare() error {
	e := all(0, llm.ReasonAuth, llm.ReasonAuth).(*failover.FallbackSummaryError)
	for i := range e.Attempts {
		e.Attempts[i].Skipped, e.Attempts[i].Profile, e.Attempts[i].Why = true, "", policy.WhyNoProfile
	}
	e.Attempts[1].Provider = "beta"
	return e
}

// errorCases are all the texts there are.
func errorCases() (names []string, errs map[string]error) {
	errs = map[string]error{}
	add := func(name string, err error) {
		names = append(names, name)
		errs[name] = err
	}
	for _, r := range reasons {
		add(string(r), failed(r))
	}
	add("auth, no credential", failed(llm.ReasonAuth, func(e *failover.AttemptError) { e.Skipped, e.Profile, e.Why = true, "", policy.WhyNoProfile }))
	for _, r := range []llm.Reason{llm.ReasonBilling, llm.ReasonRateLimit, llm.ReasonOverloaded, llm.ReasonTimeout} {
		add(string(r)+", end known", failed(r, backIn(5*time.Minute)))
	}
	add("rate_limit until tomorrow", failed(llm.ReasonRateLimit, backIn(26*time.Hour)))
	add("timeout, server", failed(llm.ReasonTimeout, detail(llm.DetailServerError, 502)))
	add("timeout, network", failed(llm.ReasonTimeout, detail(llm.DetailNetwork, 0)))
	add("timeout, deadline", failed(llm.ReasonTimeout, detail(llm.DetailDeadline, 0)))
	add("timeout of the turn", failed(llm.ReasonTimeout, func(e *failover.AttemptError) { e.Err = llm.ErrTurnTimeout }))
	add("timeout of the turn, nobody asked", llm.ErrTurnTimeout)
	add("format with a status", failed(llm.ReasonFormat, detail("", 422)))
	add("after work", failed(llm.ReasonRateLimit, func(e *failover.AttemptError) { e.Work = true }))
	add("all rate-limited", all(4*time.Minute, llm.ReasonRateLimit, llm.ReasonRateLimit))
	add("all rate-limited, end unknown", all(0, llm.ReasonRateLimit, llm.ReasonRateLimit))
	add("all overloaded", all(0, llm.ReasonOverloaded, llm.ReasonOverloaded, llm.ReasonOverloaded))
	add("mixed", all(30*time.Second, llm.ReasonRateLimit, llm.ReasonTimeout, llm.ReasonEmptyResponse))
	add("mixed with credentials", all(0, llm.ReasonAuth, llm.ReasonBilling, llm.ReasonUnclassified))
	add("every key refused", all(30*time.Second, llm.ReasonAuth, llm.ReasonAuthPermanent))
	add("every account unpaid", all(5*time.Hour, llm.ReasonBilling, llm.ReasonBilling))
	add("no credential at all", bare())
	add("eight of them", all(time.Hour, llm.ReasonAuth, llm.ReasonBilling, llm.ReasonOverloaded, llm.ReasonRateLimit, llm.ReasonTimeout, llm.ReasonModelNotFound, llm.ReasonCapability, llm.ReasonSessionExpired))
	add("switched too often", fmt.Errorf("turn: %w", failed(llm.ReasonRateLimit, func(e *failover.AttemptError) { e.Err = failover.ErrSwitchedTooOften })))
	add("too many tool calls", errTooManySteps)
	add("empty message", errEmptyMessage)
	add("a fault of ours", errors.New(raw))
	return names, errs
}

func TestErrorTexts(t *testing.T) {
	v := view{selected: llm.ModelRef{Provider: "alpha", Model: "a1"}, now: start, zone: time.UTC, reference: "turn-17"}
	var b strings.Builder
	names, errs := errorCases()
	for _, name := range names {
		text, _ := errorText(errs[name], v)
		fmt.Fprintf(&b, "== %s\n%s\n", name, text)
		v.strict = true
		if strict, _ := errorText(errs[name], v); strict != text {
			fmt.Fprintf(&b, "-- the user chose the model\n%s\n", strict)
		}
		v.strict = false
	}
	const golden = "testdata/errortexts.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("the texts changed; look at them, then go test -update (-want +got):\n%s", diff)
	}
}

// What spec/failover.md §11 demands of every text.
func TestErrorTextsKeepTheRules(t *testing.T) {
	long := strings.Repeat("very-long-name-", 60)
	names, errs := errorCases()
	for _, name := range names {
		for _, model := range []string{"a1", long} {
			if e := (*failover.AttemptError)(nil); errors.As(errs[name], &e) {
				e.Model = model
			}
			if e := (*failover.FallbackSummaryError)(nil); errors.As(errs[name], &e) {
				for i := range e.Attempts {
					e.Attempts[i].Model = fmt.Sprint(model, i)
				}
			}
			for _, strict := range []bool{false, true} {
				text, _ := errorText(errs[name], view{selected: llm.ModelRef{Provider: "alpha", Model: model}, strict: strict, now: start, reference: "turn-17"})
				if n := utf8.RuneCountInString(text); n == 0 || n > maxErrorText {
					t.Errorf("%s: %d characters", name, n)
				}
				for _, bad := range []string{"RAW", "<html", "sk-secret", "me@example.com", "{", "goroutine"} {
					if strings.Contains(text, bad) {
						t.Errorf("%s tells %q: %s", name, bad, text)
					}
				}
			}
		}
	}
}

func TestSummaryKeepsItsAdviceWithLongNames(t *testing.T) {
	e := all(time.Minute, llm.ReasonAuth, llm.ReasonBilling, llm.ReasonTimeout, llm.ReasonTimeout, llm.ReasonTimeout, llm.ReasonTimeout)
	var many *failover.FallbackSummaryError
	errors.As(e, &many)
	for i := range many.Attempts {
		many.Attempts[i].Model = fmt.Sprint(strings.Repeat("name", 50), i)
	}
	text, at := errorText(e, view{now: start})
	if !strings.HasSuffix(text, "The operator can look with `bot auth status`.") || !at.Equal(start.Add(time.Minute)) {
		t.Errorf("%s", text)
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Millisecond: "1 second", 90 * time.Second: "90 seconds", 91 * time.Second: "2 minutes", 90 * time.Minute: "90 minutes",
		91 * time.Minute: "2 hours", 48 * time.Hour: "48 hours", 49 * time.Hour: "3 days",
	} {
		if got := span(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}
