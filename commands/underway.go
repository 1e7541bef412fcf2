package commands

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"understudy/llm"
)

// Underway is what the turn that runs in a conversation has tried so far.
type Underway struct {
	Began    time.Time
	Selected llm.ModelRef
	Records  []Record // what was tried or skipped, in order
	// Asked is the candidate that is being waited for; zero = none is.
	Asked Record
	// Pause is until when the turn waits before it asks again; zero = it does not.
	Pause time.Time
}

// waiting says what is being waited for, and since when; "" = for nothing that a model does.
func (u Underway) waiting(t trail) string {
	switch {
	case !u.Pause.IsZero():
		return "waiting until " + t.clock(u.Pause) + " before it asks again"
	case u.Asked.Model != "":
		return fmt.Sprintf("waiting for %s since %s", u.Asked.named(t), t.clock(u.Asked.StartedAt))
	}
	return ""
}

// lines is the part of /why about the turn that runs.
func (u Underway) lines(t trail) []string {
	head := fmt.Sprintf("⏳ This turn, since %s", t.clock(u.Began))
	if w := u.waiting(t); w != "" {
		head += ": " + w
	}
	return append([]string{head}, t.steps(u.Records)...)
}

// short is the part of /status: who is waited for, and which models failed before it.
func (u Underway) short(t trail) string {
	t.brief = true
	var parts, failed []string
	if w := u.waiting(t); w != "" {
		parts = append(parts, w)
	}
	last := map[string]string{}
	for _, x := range u.Records {
		ref := x.Provider + "/" + x.Model
		if x.Reason == "" {
			continue
		}
		if last[ref] == "" {
			failed = append(failed, ref)
		}
		last[ref] = words(x.Reason, x.Detail)
	}
	for i, ref := range slices.Clone(failed) {
		failed[i] = fmt.Sprintf("%s (%s)", ref, last[ref])
	}
	if len(failed) > maxTold {
		failed = append(failed[:maxTold], fmt.Sprintf("and %d more", len(failed)-maxTold))
	}
	if len(failed) > 0 {
		parts = append(parts, "before that "+strings.Join(failed, ", "))
	}
	return strings.Join(parts, "; ")
}

// maxTold bounds the failed models that /status names of a running turn.
const maxTold = 4
