package reply

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"understudy/failover"
	"understudy/failover/policy"
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
	reference string       // id under which the log explains a generic failure
	bleed     llm.ModelRef // the heartbeat's model, if it answered last here; zero = no
}

// errorText says in our own words why a turn has no answer, and when trying again is worth it
// (zero = unknown). It never holds provider text, profiles or keys.
func errorText(err error, v view) (text string, retryAt time.Time) {
	var many *failover.FallbackSummaryError
	var one *failover.AttemptError
	switch {
	case errors.Is(err, errRestarted):
		text = "⚠️ I was restarted while answering. Part of the work was already done, so I did not start over; please look at what is there before you ask again."
	case errors.Is(err, failover.ErrSwitchedTooOften):
		text = fmt.Sprintf("🔀 The model was switched several times while I was working. %s is selected now; please send your message again.", v.selected)
	case errors.As(err, &many) && !errors.Is(err, llm.ErrTurnTimeout):
		text, retryAt = summaryText(many, v), many.SoonestExpiry
	case errors.As(err, &one):
		text, retryAt = attemptText(one, v), one.Until
	case errors.Is(err, llm.ErrTurnTimeout):
		text = "⌛ I ran out of time for this message. Please try again, or ask for less at once."
	case errors.Is(err, errTooManySteps):
		text = fmt.Sprintf("🔁 The model called tools %d times without coming to an answer, so I stopped it. Please ask again in other words.", maxSteps)
	case errors.Is(err, errEmptyMessage):
		text = "📭 Your message holds nothing that I can read. Please send text, a picture or a text file."
	default:
		text = internalText(v)
	}
	return clip(text), retryAt
}

func attemptText(e *failover.AttemptError, v view) string {
	ref := e.Ref()
	s := causeText(e, ref, v)
	if e.Failure.Reason == llm.ReasonContextOverflow && !v.bleed.IsZero() {
		s += fmt.Sprintf(" The last turn here ran on the heartbeat's model %s; if that is not meant to be, look at heartbeat.model or send /model default.", v.bleed)
	}
	if e.Work {
		s += " Part of the work was already done, so I did not start over with another model."
	} else if v.strict && ref == v.selected && advisesSwitch(e.Failure.Reason) {
		s += " You selected this model, so no other one steps in; /model default returns to the usual order."
	}
	return s
}

// advisesSwitch reports whether another model could help.
func advisesSwitch(r llm.Reason) bool {
	switch r {
	case llm.ReasonAborted, llm.ReasonFormat, llm.ReasonContextOverflow, llm.ReasonRefusal, llm.ReasonInternal:
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
		return fmt.Sprintf("💳 %s does not answer for billing reasons: the %s account has no credit left or its plan does not cover this.%s Once that is settled, the operator can bring it back at once with `bot auth enable %s`.",
			ref, ref.Provider, again(" I try it again", e.Until, v), ref.Provider)
	case llm.ReasonRateLimit:
		if when := until(e.Until, v); when != "" {
			return fmt.Sprintf("⏳ %s is rate-limited; it is expected back%s.", ref, when)
		}
		return fmt.Sprintf("⏳ %s is rate-limited. Please try again in a minute.", ref)
	case llm.ReasonOverloaded:
		if when := until(e.Until, v); when != "" {
			return fmt.Sprintf("🌊 %s is overloaded. Please try again%s.", ref, when)
		}
		return fmt.Sprintf("🌊 %s is overloaded. Please try again in a few minutes.", ref)
	case llm.ReasonTimeout:
		return timeoutText(e, ref, v)
	case llm.ReasonModelNotFound:
		return fmt.Sprintf("🔍 %s is not available: the provider does not know this model, or it is not configured here. /models lists what is.", ref)
	case llm.ReasonFormat:
		return fmt.Sprintf("🧩 %s rejected the request as malformed (%s). Sending it elsewhere would not help; /new starts a clean conversation.", ref, statusWords(e))
	case llm.ReasonContextOverflow:
		return fmt.Sprintf("⚠️ This conversation no longer fits %s's context window. Use /compact, /new, or a model with a larger window.", ref)
	case llm.ReasonSessionExpired:
		return fmt.Sprintf("🔁 %s no longer knows this conversation. Please send your message again.", ref)
	case llm.ReasonRefusal:
		return fmt.Sprintf("🚫 %s declined to answer this for safety reasons. Please put it in other words, or choose another model with /model.", ref)
	case llm.ReasonCapability:
		return fmt.Sprintf("🖼 %s cannot take this message: it accepts no images, or the conversation is too large for it. Choose another model with /model.", ref)
	case llm.ReasonEmptyResponse:
		return fmt.Sprintf("⚠️ %s sent an empty answer. Please try again. Reference: %s.", ref, v.reference)
	case llm.ReasonNoErrorDetails:
		return fmt.Sprintf("⚠️ %s failed and gave no details. Please try again. Reference: %s.", ref, v.reference)
	case llm.ReasonInternal:
		return internalText(v)
	}
	return fmt.Sprintf("⚠️ %s failed for a reason I do not know. Please try again. Reference: %s.", ref, v.reference)
}

func internalText(v view) string {
	return fmt.Sprintf("⚠️ Something went wrong on my side; no model is to blame. Please try again. Reference: %s.", v.reference)
}

// again says when something is tried again, if that is known.
func again(what string, t time.Time, v view) string {
	if when := until(t, v); when != "" {
		return what + when + "."
	}
	return ""
}

func authText(e *failover.AttemptError, ref llm.ModelRef) string {
	if e.Skipped && e.Profile == "" && e.Why == policy.WhyNoProfile {
		return fmt.Sprintf("🔑 There is no usable credential for %s. The operator can add one: `bot auth add %s:default --type api_key`.", ref.Provider, ref.Provider)
	}
	fix := fmt.Sprintf("The operator can look with `bot auth status` and store a new one with `bot auth add %s:default --type api_key`.", ref.Provider)
	if e.Failure.Reason == llm.ReasonAuthPermanent {
		return fmt.Sprintf("🔑 The credential for %s was revoked or is not allowed there. %s", ref, fix)
	}
	return fmt.Sprintf("🔑 Signing in to %s failed, so %s cannot answer. %s", ref.Provider, ref.Model, fix)
}

func timeoutText(e *failover.AttemptError, ref llm.ModelRef, v view) string {
	retry := "Please try again in a moment."
	if when := until(e.Until, v); when != "" {
		retry = "Please try again" + when + "."
	}
	switch {
	case errors.Is(e.Err, llm.ErrTurnTimeout):
		return fmt.Sprintf("⌛ I ran out of time for this message; %s did not finish. Please try again.", ref)
	case e.Failure.NotSent || e.Failure.Detail == llm.DetailNetwork && e.Failure.Status < 400:
		return fmt.Sprintf("🔌 I could not get an answer from %s: the connection failed. %s", ref, retry)
	case e.Failure.Detail == llm.DetailServerError:
		return fmt.Sprintf("🌩 %s’s server failed (%s). %s", ref, statusWords(e), retry)
	}
	return fmt.Sprintf("⌛ %s timed out. %s", ref, retry)
}

func statusWords(e *failover.AttemptError) string {
	if e.Failure.Status != 0 {
		return fmt.Sprintf("status %d", e.Failure.Status)
	}
	return "no details"
}

// maxNamed is how many candidates a summary names; a longer list says how many more there were.
const maxNamed = 5

// summaryText names the candidates, each with the reason that came last, and says what to do.
func summaryText(e *failover.FallbackSummaryError, v view) string {
	t := tally{reasons: make(map[llm.Reason]bool, 2), last: make(map[llm.ModelRef]string, len(e.Attempts))}
	for _, a := range e.Attempts {
		t.add(a)
	}
	var b strings.Builder
	switch {
	case len(t.reasons) == 1 && t.reasons[llm.ReasonRateLimit]:
		b.WriteString("⏳ All models are temporarily rate-limited")
	case len(t.reasons) == 1 && t.reasons[llm.ReasonOverloaded]:
		b.WriteString("🌊 All models are overloaded right now")
	default:
		b.WriteString("⚠️ None of the models could answer")
	}
	sep := ": "
	for i, ref := range t.order {
		if i == maxNamed {
			fmt.Fprintf(&b, " and %d more", len(t.order)-i)
			break
		}
		fmt.Fprintf(&b, "%s%s (%s)", sep, shortRef(ref), t.last[ref])
		sep = ", "
	}
	b.WriteString("." + t.again(e, v) + t.remedy())
	return b.String()
}

// tally is what happened to the candidates of a turn that nobody answered.
type tally struct {
	reasons map[llm.Reason]bool
	last    map[llm.ModelRef]string // what became of each, in words
	order   []llm.ModelRef          // by last appearance
	bare    []string                // providers without any credential
	refused bool                    // a credential was not taken, or its account is unpaid
	kept    bool                    // a stand-in was not asked because of what it costs
}

// add takes in one attempt or skip.
func (t *tally) add(a failover.Record) {
	ref := a.Ref()
	t.reasons[a.Reason] = true
	t.last[ref] = notices.Because(a.Reason, a.Detail)
	switch {
	case a.Why == policy.WhyBudget:
		t.last[ref], t.kept = becauseMoney, true
	case a.Why == policy.WhyNoProfile:
		t.last[ref] = "no credential"
		if !slices.Contains(t.bare, ref.Provider) {
			t.bare = append(t.bare, ref.Provider)
		}
	case policy.NeedsHelp(a.Reason):
		t.refused = true
	}
	t.order = slices.DeleteFunc(t.order, func(r llm.ModelRef) bool { return r == ref })
	t.order = append(t.order, ref)
}

// again says when trying again is worth it, as far as waiting helps at all: a wrong key or an unpaid
// account is not back when its rest ends.
func (t *tally) again(e *failover.FallbackSummaryError, v view) string {
	switch {
	case onlyUnfit(t.reasons):
		return " Choose another one with /model; /models lists what there is."
	case until(e.SoonestPassing, v) != "":
		return fmt.Sprintf(" The first is expected back%s.", until(e.SoonestPassing, v))
	case !t.onlyHelp():
		return " Please try again in a few minutes."
	case len(t.reasons) == 1 && t.reasons[llm.ReasonBilling]:
		return again(" I try again", e.SoonestExpiry, v)
	}
	return ""
}

// onlyHelp reports whether nothing passes by itself.
func (t *tally) onlyHelp() bool {
	for r := range t.reasons {
		if !policy.NeedsHelp(r) && r != llm.ReasonCapability && r != llm.ReasonModelNotFound {
			return false
		}
	}
	return true
}

// remedy names the commands that help.
func (t *tally) remedy() string {
	text := ""
	if t.refused {
		text = " The operator can look with `bot auth status`."
	}
	if len(t.bare) > 0 {
		text += fmt.Sprintf(" The operator can add a credential: `bot auth add %s:default`.", t.bare[0])
	}
	if t.kept {
		text += " Models that cost money may stand in only within the budget, or when you agree."
	}
	return text
}

// becauseMoney is why a stand-in that costs money was not asked.
const becauseMoney = "not asked because of what it costs"

// shortRef keeps a long model name from pushing the advice out of the text.
func shortRef(ref llm.ModelRef) string {
	const most = 60
	r := []rune(ref.String())
	if len(r) <= most {
		return string(r)
	}
	return string(r[:most-1]) + "…"
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

// onlyUnfit reports whether waiting cannot help: no model can take the message, or is there at all.
func onlyUnfit(reasons map[llm.Reason]bool) bool {
	for r := range reasons {
		if r != llm.ReasonCapability && r != llm.ReasonModelNotFound {
			return false
		}
	}
	return len(reasons) > 0
}
