package policy

import (
	"slices"

	"understudy/llm"
)

// Source is how a selection arose; it decides which fallbacks are allowed (spec §3).
type Source string

// The sources.
const (
	SourceDefault   Source = "default"
	SourceAgent     Source = "agent"
	SourceUser      Source = "user" // a stored override without a source counts as one
	SourceAuto      Source = "auto" // legacy
	SourceCron      Source = "cron"
	SourceHeartbeat Source = "heartbeat"
	SourceOneOff    Source = "one-off"
)

// Models is what an agent is configured with: `agents.defaults.model`, or the agent's own model
// object, which inherits nothing.
type Models struct {
	Primary   llm.ModelRef
	Fallbacks []llm.ModelRef
	// Own tells that the agent has a model of its own; then it is strict unless Fallbacks is
	// non-nil (an empty list is strict too).
	Own bool
}

// Selection is the model a turn is asked for.
type Selection struct {
	Ref    llm.ModelRef
	Source Source
	// Fallbacks is the caller's own list (cron); nil = none given, empty = strict.
	Fallbacks []llm.ModelRef
}

// Chain returns the candidates of a turn, the requested model first, without duplicates (spec §4).
func Chain(sel Selection, cfg Models) []llm.ModelRef {
	chain := []llm.ModelRef{sel.Ref}
	add := func(refs ...llm.ModelRef) {
		for _, r := range refs {
			if !r.IsZero() && !slices.Contains(chain, r) {
				chain = append(chain, r)
			}
		}
	}
	switch {
	case sel.Source == SourceUser, sel.Source == SourceOneOff:
	case sel.Fallbacks != nil:
		add(sel.Fallbacks...)
	case sel.Source == SourceAgent:
		add(cfg.Fallbacks...)
	default:
		add(cfg.Fallbacks...)
		add(cfg.Primary)
	}
	return chain
}

// Strict reports whether only the selected model may answer. A default selection whose chain
// happens to have one member is not strict in words, but behaves so.
func Strict(sel Selection, cfg Models) bool {
	switch sel.Source {
	case SourceUser, SourceOneOff:
		return true
	case SourceAgent:
		return len(cfg.Fallbacks) == 0
	case SourceCron:
		return sel.Fallbacks != nil && len(sel.Fallbacks) == 0
	}
	return false
}

// Override is a session's stored model choice.
type Override struct {
	Ref    llm.ModelRef
	Source string       // "user", "auto", or "" (legacy: the user's)
	Origin llm.ModelRef // of an automatic one: what it stands in for
}

// Select returns the selection of a session (spec §3). An automatic override that does not say what
// it stands in for cannot be probed and is ignored.
func Select(o Override, cfg Models) Selection {
	switch {
	case o.Ref.IsZero(), o.Source == string(SourceAuto) && o.Origin.IsZero():
	case o.Source == string(SourceAuto):
		return Selection{Ref: o.Ref, Source: SourceAuto}
	default:
		return Selection{Ref: o.Ref, Source: SourceUser}
	}
	if cfg.Own {
		return Selection{Ref: cfg.Primary, Source: SourceAgent}
	}
	return Selection{Ref: cfg.Primary, Source: SourceDefault}
}
