package simulate

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// margin is where the words of the timeline begin.
const margin = 26

// writeTimeline is the emitter for people: the time since the start, the conversation with the
// number of the turn, and what happens. A turn's first line has an empty one above it.
func writeTimeline(w io.Writer) func(line) {
	first := true
	return func(l line) {
		if l.kind == "summary" {
			writeSummary(w, l)
			return
		}
		where := l.session
		if l.turn > 0 {
			where = fmt.Sprintf("%s #%d", l.session, l.turn)
		}
		if l.kind == kindEvent && !first {
			fmt.Fprintln(w)
		}
		first = false
		words := strings.ReplaceAll(l.words(), "\n", "\n"+strings.Repeat(" ", margin+2))
		fmt.Fprintf(w, "%11s  %-*s %s\n", offsetText(l.t), margin-14, where, words)
	}
}

// words says what happened.
func (l line) words() string {
	switch l.kind {
	case kindEvent:
		return "▶ " + l.text
	case "attempt":
		return l.attemptWords()
	case "skip":
		return fmt.Sprintf("⤼ %s/%s passed over: %s%s", l.provider, l.model, l.reason, whySkipped[l.why])
	case "wait":
		return fmt.Sprintf("⏳ waited %s%s", spanText(l.duration), whyWaited[l.why])
	case "notice":
		return "ℹ " + l.text
	case "answer":
		if l.text == "" {
			return fmt.Sprintf("💬 (nothing to say)   [%s]", l.model)
		}
		return fmt.Sprintf("💬 %s   [%s]", l.text, l.model)
	case "command":
		return "⌘ " + l.text
	case "failed":
		return "✖ " + l.text
	case "stopped":
		return "⏹ stopped"
	case "health":
		return l.healthWords()
	}
	return l.kind
}

// whySkipped and whyWaited say the reasons of the policy in words; they are the Whys of a Skip and of
// a Wait.
var (
	whySkipped = map[string]string{
		"cooling": ", every credential rests", "disabled": ", every credential is disabled", "no_profile": ", no usable credential",
		"capability": "", "unknown_model": ", not configured", "skip_cache": ", it failed to sign in here a moment ago",
		"provider_limit": ", its provider had its second chance", "budget": ", and it may not cost anything",
	}
	whyWaited = map[string]string{
		"backoff": " before the next credential", "overloaded": ", then everybody is asked again", "server_error": ", then everybody is asked again",
		"retry_after": " as the provider asked",
	}
)

func (l line) attemptWords() string {
	outcome, mark := "answered", "✓"
	if l.reason != "" {
		outcome, mark = l.reason, "✗"
	}
	if l.status != 0 {
		outcome += fmt.Sprintf(" (status %d)", l.status)
	}
	if l.duration > 0 {
		outcome += " after " + spanText(l.duration)
	}
	if l.probe {
		outcome += ", a probe of a resting credential"
	}
	return fmt.Sprintf("%s %s/%s with %s: %s", mark, l.provider, l.model, l.profile, outcome)
}

func (l line) healthWords() string {
	who := string(l.profile)
	if l.model != "" {
		who += " for " + l.model
	}
	switch {
	case l.disabled != nil:
		return fmt.Sprintf("♥ %s is disabled until %s (%s, step %d)", who, fromStart(*l.disabled), l.reason, l.errorCount)
	case l.cooldown != nil:
		return fmt.Sprintf("♥ %s rests until %s (%s, step %d)", who, fromStart(*l.cooldown), l.reason, l.errorCount)
	}
	return fmt.Sprintf("♥ %s is well again", who)
}

func fromStart(s float64) string { return offsetText(time.Duration(s * float64(time.Second))) }

// offsetText renders a time from the start: "+1h2m3.5s", "+30s".
func offsetText(d time.Duration) string { return "+" + spanText(d) }

// spanText renders a duration without its zero parts: "5m", "1h30m", "200ms".
func spanText(d time.Duration) string {
	if d >= time.Second {
		d = d.Round(100 * time.Millisecond)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func writeSummary(w io.Writer, l line) {
	s := l.summary
	fmt.Fprintf(w, "\n%s: %d answered, %d failed · %s, %d failed · %s",
		counted(s.Turns, "turn"), s.Answered, s.Failed, counted(s.Calls, "request"), s.FailedCalls, counted(s.Notices, "notice"))
	if s.WaitedSeconds > 0 {
		fmt.Fprintf(w, " · waited %s", spanText(time.Duration(s.WaitedSeconds*float64(time.Second))))
	}
	fmt.Fprintf(w, " · slowest turn %s\n", spanText(time.Duration(s.Slowest*float64(time.Second))))
	for _, ref := range sortedKeys(s.ByModel) {
		fmt.Fprintf(w, "  %-36s %s\n", ref, counted(s.ByModel[ref], "answer"))
	}
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
