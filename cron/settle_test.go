package cron

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"understudy/llm"
)

func TestDeliverable(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "",
		"  \n":                             "",
		"HEARTBEAT_OK":                     "",
		"NO_REPLY":                         "",
		" **HEARTBEAT_OK**\n":              "",
		"`NO_REPLY`":                       "",
		"HEARTBEAT_OK NO_REPLY":            "",
		"HEARTBEAT_OK — all quiet":         "all quiet",
		"Two disks are full. HEARTBEAT_OK": "Two disks are full.",
		"The word HEARTBEAT_OK in between": "The word HEARTBEAT_OK in between",
		"HEARTBEAT_OKAY":                   "HEARTBEAT_OKAY",
		"MY_HEARTBEAT_OK":                  "MY_HEARTBEAT_OK",
		"**bold** stays":                   "**bold** stays",
	} {
		if got := Deliverable(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestDeliverableIsStable(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		parts := rapid.SliceOf(rapid.OneOf(rapid.SampledFrom([]string{"HEARTBEAT_OK", "NO_REPLY", " ", "\n", "*", "_", "x", ": "}), rapid.String()))
		text := strings.Join(parts.Draw(rt, "text"), "")
		once := Deliverable(text)
		if twice := Deliverable(once); twice != once {
			rt.Errorf("%q: %q, then %q", text, once, twice)
		}
	})
}

func TestVerdicts(t *testing.T) {
	for _, x := range []struct {
		err    error
		status Status
		reason Reason
		detail string
	}{
		{nil, OK, "", ""},
		{fmt.Errorf("wrapped: %w", &Error{Reason: ReasonBilling, Err: errors.New("sk-secret")}), Failed, ReasonBilling, "the provider account has no credit"},
		{&Error{Reason: ReasonModelUnknown, Detail: "there is no model gamma/g9"}, Failed, ReasonModelUnknown, "there is no model gamma/g9"},
		{&Skip{ReasonBudget}, Skipped, ReasonBudget, "the budget for background work is used up"},
		{errors.New("sk-secret"), Failed, ReasonInternal, "an internal error; the log has the details"},
	} {
		if v := verdictOf(Result{}, x.err); v.status != x.status || v.reason != x.reason || v.detail != x.detail {
			t.Errorf("%v: %+v", x.err, v)
		}
	}
}

// reasons are all of them.
var reasons = []Reason{
	ReasonOverloaded, ReasonRateLimit, ReasonUnavailable, ReasonBilling, ReasonAuth, ReasonModelUnknown, ReasonModelRefused, ReasonRefusal,
	ReasonRequest, ReasonEmpty, ReasonTimeout, ReasonInterrupted, ReasonStopped, ReasonPanic, ReasonSession, ReasonInternal, ReasonSchedule,
	ReasonMissed, ReasonStillRunning, ReasonUnreachable, ReasonBudget, ReasonBusy, ReasonRejected, ReasonUnsettled,
}

func TestEveryReasonHasWords(t *testing.T) {
	for _, r := range reasons {
		if r.Text() == Reason("").Text() {
			t.Errorf("%s says nothing", r)
		}
	}
	for _, r := range []llm.Reason{
		llm.ReasonAuth, llm.ReasonAuthPermanent, llm.ReasonBilling, llm.ReasonRateLimit, llm.ReasonOverloaded, llm.ReasonTimeout,
		llm.ReasonFormat, llm.ReasonContextOverflow, llm.ReasonModelNotFound, llm.ReasonSessionExpired, llm.ReasonRefusal,
		llm.ReasonAborted, llm.ReasonEmptyResponse, llm.ReasonNoErrorDetails, llm.ReasonUnclassified, llm.ReasonCapability, llm.ReasonInternal,
	} {
		if !slices.Contains(reasons, ReasonOf(r)) {
			t.Errorf("%s becomes %q", r, ReasonOf(r))
		}
	}
	for _, r := range []llm.Reason{llm.ReasonAuth, llm.ReasonBilling, llm.ReasonModelNotFound, llm.ReasonFormat} {
		if ReasonOf(r).Passing() {
			t.Errorf("%s would be tried again", r)
		}
	}
}

func TestLongResultsAreClippedInTheLog(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.add("every 1m")
		long := strings.Repeat("ä", 9000)
		w.work = func(_ context.Context, _ Task) (Result, error) { return Result{Text: long}, nil }
		w.pass(61 * time.Second)
		runs, err := w.s.store.Runs(t.Context(), c.ID, 1)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(runs[0].Excerpt); n > excerpts || n < excerpts-4 || !utf8.ValidString(runs[0].Excerpt) {
			t.Errorf("%d bytes", n)
		}
		if w.order[0].Text != long {
			t.Error("what is said is clipped, too")
		}
	})
}
