package reply

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"understudy/failover"
	"understudy/llm"
	"understudy/notices"
)

// maxErrorText bounds what a person reads about a failure (spec/failover.md §11).
const maxErrorText = 600

// view is what an error text may depend on beside the error.
type view struct {
	selected  llm.ModelRef
	strict    bool // the user chose the model: nobody may step in
	now       time.Time
	zone      *time.Location
	reference string // id under which the log explains a generic failure
}

// errorText says in our own words why a turn has no answer, and when trying again is worth it
// (zero = unknown). It never holds provider text, profiles or keys.
func errorText(err error, v view) (text string, retryAt time.Time) {
	var many *failover.FallbackSummaryError
	var one *failover.AttemptError
	switch {
	case errors.Is(err, failover.ErrSwitchedTooOften):
		text = fmt.Sprintf("🔀 The model was switched several times while I was working. %s is selected now; please send your message again.", v.selected)
	case errors.As(err, &many) && many.Cause.Failure.Detail != llm.DetailDeadline:
		text, retryAt = summaryText(many, v), many.SoonestExpiry
	case errors.As(err, &one):
		text, retryAt = attemptText(one, v), one.Until
	default:
		text = fmt.Sprintf("⚠️ Something went wrong on my side; no model is to blame. Reference: %s.", v.reference)
	}
	return clip(text), retryAt
}

func attemptText(e *failover.AttemptError, v view) string {
	ref := e.Ref()
	s := causeText(e, ref, v)
	if e.Work {
		s += " Part of the work was already done, so I did not start over with another model."
	} else if v.strict && ref == v.selected && advisesSwitch(e.Failure.Reason) {
		s += " You selected this model, so no other one steps in; /model default returns to the usual order."
	}
	return s
}

func advisesSwitch(r llm.Reason) bool {
	switch r {
	case llm.ReasonAborted, llm.ReasonFormat, llm.ReasonContextOverflow, llm.ReasonInternal:
		return false
	}
	return true
}

// causeText is the sentence for one reason (spec/failover.md §6.1, last column).
func causeText(e *failover.AttemptError, ref llm.ModelRef, v view) string {
	switch e.Failure.Reason {
	case llm.ReasonAuth, llm.ReasonAuthPermanent:
		return authText(e, ref)
	case llm.ReasonBilling:
		return fmt.Sprintf("💳 %s does not answer for billing reasons: the %s account has no credit left or its plan does not cover this. Once that is settled, `bot auth enable %s` (or waiting) brings it back.",
			ref, ref.Provider, ref.Provider)
	case llm.ReasonRateLimit:
		return fmt.Sprintf("⏳ %s is rate-limited%s.", ref, until(e.Until, v))
	case llm.ReasonOverloaded:
		return fmt.Sprintf("🌊 %s is overloaded. I tried for a while; please try again in a few minutes.", ref)
	case llm.ReasonTimeout:
		return timeoutText(e, ref)
	case llm.ReasonModelNotFound:
		return fmt.Sprintf("🔍 %s is not available: the provider does not know this model, or it is not configured here. /models lists what is.", ref)
	case llm.ReasonFormat:
		return fmt.Sprintf("🧩 %s rejected the request as malformed (%s). Sending it elsewhere would not help; /new starts a clean conversation.", ref, statusWords(e))
	case llm.ReasonContextOverflow:
		return fmt.Sprintf("📚 This conversation no longer fits %s’s context window. Use /compact, /new, or a model with a larger window.", ref)
	case llm.ReasonSessionExpired:
		return fmt.Sprintf("🔁 %s no longer knows this conversation’s session. Please send your message again.", ref)
	case llm.ReasonRefusal:
		return fmt.Sprintf("🚫 %s declined to answer this for safety reasons.", ref)
	case llm.ReasonCapability:
		return fmt.Sprintf("🖼 %s cannot take this message: it accepts no images, or the conversation is too large for it. Choose another model with /model.", ref)
	case llm.ReasonEmptyResponse:
		return fmt.Sprintf("⚠️ %s sent an empty answer. Reference: %s.", ref, v.reference)
	}
	return fmt.Sprintf("⚠️ %s failed for a reason I do not know. Reference: %s.", ref, v.reference)
}

func authText(e *failover.AttemptError, ref llm.ModelRef) string {
	if e.Skipped && e.Profile == "" && e.Why == "no_profile" {
		return fmt.Sprintf("🔑 There is no usable credential for %s. The operator can add one: `bot auth add %s:default --type api_key`.", ref.Provider, ref.Provider)
	}
	fix := fmt.Sprintf("The operator can look with `bot auth status` and store a new one with `bot auth add %s:default --type api_key`.", ref.Provider)
	if e.Failure.Reason == llm.ReasonAuthPermanent {
		return fmt.Sprintf("🔑 The credential for %s was revoked or is not allowed there. %s", ref, fix)
	}
	return fmt.Sprintf("🔑 Signing in to %s failed, so %s cannot answer. %s", ref.Provider, ref.Model, fix)
}

func timeoutText(e *failover.AttemptError, ref llm.ModelRef) string {
	switch {
	case errors.Is(e.Err, llm.ErrTurnTimeout):
		return fmt.Sprintf("⌛ I ran out of time for this message; %s did not finish. Please try again.", ref)
	case e.Failure.NotSent || (e.Failure.Detail == llm.DetailNetwork && e.Failure.Status == 0):
		return fmt.Sprintf("🔌 I could not get an answer from %s: the connection failed. Please try again in a moment.", ref)
	case e.Failure.Detail == llm.DetailServerError:
		return fmt.Sprintf("🌩 %s’s server failed (%s). Please try again in a moment.", ref, statusWords(e))
	}
	return fmt.Sprintf("⌛ %s timed out. Please try again in a moment.", ref)
}

func statusWords(e *failover.AttemptError) string {
	if e.Failure.Status != 0 {
		return fmt.Sprintf("status %d", e.Failure.Status)
	}
	return "no details"
}

// summaryText names every candidate once, with the reason that came last.
func summaryText(e *failover.FallbackSummaryError, v view) string {
	type entry struct {
		ref llm.ModelRef
		why string
	}
	var list []entry
	reasons := make(map[llm.Reason]bool, 2)
	for _, a := range e.Attempts {
		x := entry{a.Ref(), notices.Because(a.Reason, a.Detail)}
		for i := range list {
			if list[i].ref == x.ref {
				list = append(list[:i], list[i+1:]...)
				break
			}
		}
		list = append(list, x)
	}
	for _, a := range e.Attempts {
		reasons[a.Reason] = true
	}
	var b strings.Builder
	switch {
	case len(reasons) == 1 && reasons[llm.ReasonRateLimit]:
		b.WriteString("⏳ All models are temporarily rate-limited")
	case len(reasons) == 1 && reasons[llm.ReasonOverloaded]:
		b.WriteString("🌊 All models are overloaded right now")
	default:
		b.WriteString("⚠️ None of the models could answer")
	}
	sep := ": "
	for _, x := range list {
		fmt.Fprintf(&b, "%s%s (%s)", sep, x.ref, x.why)
		sep = ", "
	}
	b.WriteString(".")
	if !e.SoonestExpiry.IsZero() {
		fmt.Fprintf(&b, " The first is expected back%s.", until(e.SoonestExpiry, v))
	} else if !reasons[llm.ReasonAuth] && !reasons[llm.ReasonAuthPermanent] && !reasons[llm.ReasonBilling] {
		b.WriteString(" Please try again in a few minutes.")
	}
	if reasons[llm.ReasonAuth] || reasons[llm.ReasonAuthPermanent] || reasons[llm.ReasonBilling] {
		b.WriteString(" The operator can look with `bot auth status`.")
	}
	return b.String()
}

// until says when, as a clock time and a rounded-up span: " at 14:05 (in about 4 minutes)".
func until(t time.Time, v view) string {
	if t.IsZero() || !t.After(v.now) {
		return ""
	}
	layout := "15:04"
	if t.Sub(v.now) >= 20*time.Hour {
		layout = "Mon 2 Jan 15:04"
	}
	zone := v.zone
	if zone == nil {
		zone = time.UTC
	}
	return fmt.Sprintf(" at %s (in about %s)", t.In(zone).Format(layout), span(t.Sub(v.now)))
}

// span rounds d up to a number people say.
func span(d time.Duration) string {
	unit := func(n int, name string) string {
		if n == 1 {
			return "1 " + name
		}
		return fmt.Sprintf("%d %ss", n, name)
	}
	up := func(u time.Duration) int { return int((d + u - 1) / u) }
	switch {
	case d <= 90*time.Second:
		return unit(up(time.Second), "second")
	case d <= 90*time.Minute:
		return unit(up(time.Minute), "minute")
	case d <= 48*time.Hour:
		return unit(up(time.Hour), "hour")
	}
	return unit(up(24*time.Hour), "day")
}

// clip keeps a text within maxErrorText characters.
func clip(s string) string {
	if utf8.RuneCountInString(s) <= maxErrorText {
		return s
	}
	r := []rune(s)
	return string(r[:maxErrorText-1]) + "…"
}
