package simulate

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// writeTimeline is the emitter for people.
func writeTimeline(w io.Writer) func(line) {
	return func(l line) {
		if l.kind == "summary" {
			writeSummary(w, l)
			return
		}
		where := l.session
		if l.turn > 0 {
			where = fmt.Sprintf("%s #%d", l.session, l.turn)
		}
		fmt.Fprintf(w, "%10s  %-12s  %s\n", offsetText(l.t), where, l.words())
	}
}

// words says what happened.
func (l line) words() string {
	switch l.kind {
	case "attempt":
		outcome := "✓ answered"
		if l.reason != "" {
			outcome = "✗ " + l.reason
			if l.status != 0 {
				outcome += fmt.Sprintf(" (status %d)", l.status)
			}
		}
		probe := ""
		if l.probe {
			probe = ", although cooling"
		}
		return fmt.Sprintf("→ %s/%s with %s: %s after %s%s", l.provider, l.model, l.profile, outcome, l.duration, probe)
	case "skip":
		return fmt.Sprintf("⤼ %s/%s passed over: %s (%s)", l.provider, l.model, l.reason, l.why)
	case "wait":
		return fmt.Sprintf("… waited %s (%s)", l.duration, l.why)
	case "notice":
		return "ℹ " + l.text
	case "answer":
		return fmt.Sprintf("💬 %s   [%s]", l.text, l.model)
	case "command":
		return "⌘ " + strings.ReplaceAll(l.text, "\n", "\n"+strings.Repeat(" ", 28))
	case "failed":
		return "✖ " + l.text
	case "stopped":
		return "⏹ stopped"
	case "health":
		return l.healthWords()
	}
	return l.kind
}

func (l line) healthWords() string {
	who := string(l.profile)
	if l.model != "" {
		who += " for " + l.model
	}
	switch {
	case l.disabled != nil:
		return fmt.Sprintf("♥ %s disabled (%s) until %s, step %d", who, l.reason, fromStart(*l.disabled), l.errorCount)
	case l.cooldown != nil:
		return fmt.Sprintf("♥ %s cooling (%s) until %s, step %d", who, l.reason, fromStart(*l.cooldown), l.errorCount)
	}
	return fmt.Sprintf("♥ %s healthy again", who)
}

func fromStart(s float64) string { return offsetText(time.Duration(s * float64(time.Second))) }

// offsetText renders a time from the start: "+1h02m03.5s".
func offsetText(d time.Duration) string { return "+" + d.Round(100*time.Millisecond).String() }

func writeSummary(w io.Writer, l line) {
	s := l.summary
	fmt.Fprintf(w, "\n%d turns: %d answered, %d failed. %d requests, %d of them failed. %d notices. Waited %.1f s in all; the slowest turn took %.1f s.\n",
		s.Turns, s.Answered, s.Failed, s.Calls, s.FailedCalls, s.Notices, s.WaitedSeconds, s.Slowest)
	for _, ref := range sortedKeys(s.ByModel) {
		fmt.Fprintf(w, "  %-40s %d\n", ref, s.ByModel[ref])
	}
}
