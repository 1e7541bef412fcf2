package heartbeat

import (
	"strings"
	"time"

	"understudy/chat"
)

// Why says why a heartbeat did not happen. It is a closed list, in the order in which it is looked at
// (spec/chat.md §6.2).
type Why string

// The reasons.
const (
	WhyDisabled    Why = "disabled"
	WhyQuietHours  Why = "quiet-hours"
	WhyHidden      Why = "alerts-disabled"
	WhyNoRoute     Why = "no-route"
	WhyDirect      Why = "dm-blocked"
	WhyNothingToDo Why = "empty-heartbeat-file"
	WhyBusy        Why = "busy"
	WhyTooSoon     Why = "too-soon"
	WhyResting     Why = "primary-cooldown"
	WhyBudget      Why = "budget"
)

// Text says a reason in words.
func (w Why) Text() string {
	switch w {
	case WhyDisabled:
		return "heartbeats are off"
	case WhyQuietHours:
		return "it is outside the active hours"
	case WhyHidden:
		return "nothing of it would be shown"
	case WhyNoRoute:
		return "nobody is known who could be told"
	case WhyDirect:
		return "private messages are blocked for it"
	case WhyNothingToDo:
		return "the checklist is empty"
	case WhyBusy:
		return "other work was going on"
	case WhyTooSoon:
		return "the one before is too recent"
	case WhyResting:
		return "its model rests, and no other one may answer"
	case WhyBudget:
		return "the day's budget for background work is used up"
	}
	return string(w)
}

// Moment is all that decides whether a heartbeat happens.
type Moment struct {
	Now      time.Time
	Settings Settings
	// Off: scheduled work, or heartbeats, are switched off.
	Off bool
	// Manual is one that somebody asked for now; Event one that a scheduled task woke.
	Manual, Event bool
	// To is where alerts go, if Routed; a target of none needs no route.
	To     chat.Address
	Routed bool
	// Scratch is the checklist, if there is one; Pending tells that events wait to be noticed.
	Scratch    string
	HasScratch bool
	Pending    bool
	// LaneBusy: a turn runs or waits in the session. AgentBusy: some turn of the agent runs, or scheduled
	// work does.
	LaneBusy, AgentBusy bool
	LastRun             time.Time // zero = none yet
	// Resting: the model that is asked first rests. Spent: the budget is used up.
	Resting, Spent bool
}

// Decide says whether a heartbeat happens: "" = it does (spec/chat.md §6.2). It is pure.
func Decide(m Moment) Why {
	s := m.Settings
	unasked := !m.Manual && !m.Event
	switch show := s.Shows(m.To.Channel); {
	case m.Off || s.Every <= 0 && unasked:
		return WhyDisabled
	case unasked && s.Hours != nil && !s.Hours.Contain(m.Now):
		return WhyQuietHours
	case show == Show{}:
		return WhyHidden
	case s.Target != TargetNone && !m.Routed:
		return WhyNoRoute
	case s.Target != TargetNone && s.BlockDirect && m.To.Kind == chat.Direct:
		return WhyDirect
	case m.HasScratch && !m.Pending && idle(m.Scratch):
		return WhyNothingToDo
	case m.LaneBusy, unasked && m.AgentBusy:
		return WhyBusy
	case unasked && !m.LastRun.IsZero() && m.Now.Sub(m.LastRun) < s.Every/2:
		return WhyTooSoon
	case m.Spent:
		return WhyBudget
	case s.NoFallbacks && m.Resting:
		return WhyResting
	}
	return ""
}

// idle reports whether a checklist holds nothing to do: blank lines, headings, comments, bullets and
// check boxes without words.
func idle(text string) bool {
	open := false // inside a comment
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(withoutComments(line, &open))
		if strings.HasPrefix(line, "#") || strings.Trim(line, "-*_=") == "" {
			continue
		}
		for _, mark := range []string{"- ", "* ", "+ "} {
			line = strings.TrimPrefix(line, mark)
		}
		line = strings.TrimSpace(line)
		for _, box := range []string{"[ ]", "[]", "[x]", "[X]"} {
			line = strings.TrimPrefix(line, box)
		}
		if strings.TrimSpace(line) != "" && line != "+" {
			return false
		}
	}
	return true
}

// withoutComments takes <!-- … --> out of a line; open tells that one goes on over its end.
func withoutComments(line string, open *bool) string {
	var b strings.Builder
	for {
		if *open {
			_, rest, ok := strings.Cut(line, "-->")
			if !ok {
				return b.String()
			}
			*open, line = false, rest
		}
		before, rest, ok := strings.Cut(line, "<!--")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		*open, line = true, rest
	}
}
