package commands

import (
	"fmt"
	"strings"
	"time"

	"understudy/failover/policy"
	"understudy/llm"
)

// moment renders a time as people read it now: "14:05", with the date when it is far away, and with
// the distance when it is still to come.
func moment(t, now time.Time, zone *time.Location) string {
	if zone == nil {
		zone = time.UTC
	}
	layout := "15:04"
	if d := t.Sub(now); d > 20*time.Hour || d < -20*time.Hour {
		layout = "Mon 2 Jan 15:04"
	}
	text := t.In(zone).Format(layout)
	if t.After(now) {
		text += fmt.Sprintf(" (in %s)", span(t.Sub(now)))
	}
	return text
}

// span renders a duration in the largest unit or two that matter, rounded up.
func span(d time.Duration) string {
	minutes := int((d + time.Minute - 1) / time.Minute)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int((d+time.Second-1)/time.Second))
	case minutes < 60:
		return fmt.Sprintf("%d min", minutes)
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", int(d/(24*time.Hour)))
	case minutes%60 == 0:
		return fmt.Sprintf("%d h", minutes/60)
	}
	return fmt.Sprintf("%d h %d min", minutes/60, minutes%60)
}

// countdown renders a time that is to come as minutes and seconds, m:ss, rounded up.
func countdown(d time.Duration) string {
	s := int((d + time.Second - 1) / time.Second)
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// maxQuote bounds what is repeated of a text somebody typed, in characters.
const maxQuote = 80

// quote repeats a piece of a message within a reply.
func quote(s string) string { return fmt.Sprintf("%q", clip(s, maxQuote)) }

// clip shortens a text to n characters.
func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// code shows an id literally: colons and underscores in it are no emoji and no emphasis.
func code(s string) string { return "`" + strings.ReplaceAll(s, "`", "'") + "`" }

// words says a reason as people do.
func words(reason llm.Reason, detail llm.Detail) string {
	switch reason {
	case llm.ReasonAuth:
		return "sign-in failed"
	case llm.ReasonAuthPermanent:
		return "credential revoked"
	case llm.ReasonRateLimit:
		return "rate limit"
	case llm.ReasonTimeout:
		switch detail {
		case llm.DetailServerError:
			return "server error"
		case llm.DetailNetwork:
			return "connection problem"
		}
	case llm.ReasonContextOverflow:
		return "conversation too long"
	case llm.ReasonModelNotFound:
		return "model not available"
	case llm.ReasonEmptyResponse:
		return "empty answer"
	case llm.ReasonUnclassified, llm.ReasonNoErrorDetails:
		return "unknown error"
	case llm.ReasonFormat:
		return "request rejected"
	case llm.ReasonRefusal:
		return "declined"
	case llm.ReasonAborted:
		return "stopped"
	case llm.ReasonCapability:
		return "cannot take this message"
	case llm.ReasonInternal:
		return "a fault of mine"
	}
	return strings.ReplaceAll(string(reason), "_", " ")
}

// tried says why an attempt was made, where that is not plain.
func tried(w policy.Why) string {
	switch w {
	case policy.WhyRotation:
		return "with the next profile"
	case policy.WhyProbe:
		return "to see whether it is back"
	case policy.WhySibling, policy.WhyLastResort:
		return "although it was cooling"
	case policy.WhyPassRetry:
		return "in another round"
	case policy.WhyStateless:
		return "once more without its session"
	case policy.WhyRepair:
		return "once more with a repaired transcript"
	case policy.WhyCompacted:
		return "once more after compaction"
	case policy.WhyAskAgain:
		return "after the wait it asked for"
	case policy.WhyContinue:
		return "next step"
	}
	return ""
}

// passed says why a candidate was skipped.
func passed(w policy.Why, reason llm.Reason, detail llm.Detail) string {
	switch w {
	case policy.WhyNoProfile:
		return "no credential"
	case policy.WhyUnknown:
		return "not configured"
	case policy.WhySkipCache:
		return "sign-in failed here a moment ago"
	case policy.WhyBudget:
		return "it costs money, and was not to stand in"
	case policy.WhyProviderLimit:
		return words(reason, detail) + ", and its provider had its chance in this round"
	case policy.WhyCooling:
		return "cooling after " + words(reason, detail)
	case policy.WhyDisabled:
		return "disabled after " + words(reason, detail)
	}
	return words(reason, detail)
}
