package notices

import "understudy/llm"

// Pair is what a session was last told about: who was selected and who answered instead. The zero
// value means that the selected model answers.
type Pair struct {
	Selected llm.ModelRef
	Active   llm.ModelRef
	Reason   string // in the words of Because
}

// IsZero reports whether nothing stands in.
func (p Pair) IsZero() bool { return p.Selected.IsZero() && p.Active.IsZero() }

// Change is what an answered turn does to the stored pair.
type Change uint8

// The changes.
const (
	Unchanged Change = iota // nothing to say; the pair may hold a new reason
	Engaged                 // another model answers than the session was told
	Cleared                 // the selected model answers again
)

// Next returns the pair after a turn in which active answered while selected was wanted, and what
// changed. because says why selected did not answer. Turns that failed, were stopped or internal
// must not come here: they leave the state as it is.
func Next(stored Pair, selected, active llm.ModelRef, because string) (Pair, Change) {
	if stored.Selected != selected {
		stored = Pair{} // the selection changed since: an older pair is dropped silently
	}
	switch {
	case active == selected && stored.IsZero():
		return Pair{}, Unchanged
	case active == selected:
		return Pair{}, Cleared
	case active == stored.Active:
		return Pair{Selected: selected, Active: active, Reason: because}, Unchanged
	default:
		return Pair{Selected: selected, Active: active, Reason: because}, Engaged
	}
}
