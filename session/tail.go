package session

import (
	"slices"

	"understudy/llm"
)

// ofTurn marks entries as what one turn left, but for those that name another one.
func ofTurn(id string, entries []Entry) []Entry {
	entries = slices.Clone(entries)
	for i := range entries {
		if entries[i].Turn == "" {
			entries[i].Turn = id
		}
	}
	return entries
}

// TurnStarts returns where the turns of a transcript begin, rising: with the first thing that was said in
// each. Further messages that one turn answered, collected before it or steered into it, begin none; in
// entries that do not name their turn these are the ones behind another message or behind a result.
func TurnStarts(entries []Entry) []int {
	var starts []int
	var before *Entry
	for i := range entries {
		e := &entries[i]
		if e.Kind == KindNote {
			continue
		}
		if e.Kind == KindMessage && e.Message.Role == llm.RoleUser && (before == nil || !joins(*before, *e)) {
			starts = append(starts, i)
		}
		before = e
	}
	return starts
}

// joins reports whether what somebody said belongs to the turn of the entry before it.
func joins(before, e Entry) bool {
	switch {
	case before.Kind != KindMessage:
		return false
	case before.Turn != "" || e.Turn != "":
		return before.Turn == e.Turn
	}
	return before.Message.Role == llm.RoleUser || before.Message.Role == llm.RoleTool
}

// Tail returns the last n turns of a transcript, whole; all of it if there are no more.
func Tail(entries []Entry, n int) []Entry {
	starts := TurnStarts(entries)
	if len(starts) < n || n <= 0 {
		return entries
	}
	return entries[starts[len(starts)-n]:]
}
