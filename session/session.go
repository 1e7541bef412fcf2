package session

import (
	"encoding/json"
	"time"

	"understudy/chat"
	"understudy/llm"
)

// Session is the row of one key. A copy of it is a picture of a moment: changes go through
// Store.Update or one of the narrow methods.
type Session struct {
	Key     string
	ID      string // of the present transcript
	AgentID string
	Parent  string // key whose settings a thread inherits; "" = none
	Address chat.Address

	StartedAt         time.Time // of the present transcript
	LastInteractionAt time.Time // of the last thing a person wrote; zero = nothing yet
	UpdatedAt         time.Time // bookkeeping

	Override Override
	Pin      Pin
	Notice   Pair
	// NoticeSince is since when the two of Notice differ; zero = they do not, or it is not known. The
	// store keeps it: whoever changes Notice need not.
	NoticeSince time.Time
	// SwitchPending tells a running turn that its user changed the selection (spec/failover.md
	// §8.7).
	SwitchPending bool

	Think, Verbose, UsageMode, TTSAuto string
	Queue                              json.RawMessage // stored /queue options; nil = none

	Compactions                        int
	TokensIn, TokensOut, TokensContext int64
	Status                             string
	LastTurn                           LastTurn
	// LastModel answered the last turn. UsageSince is when TokensIn and TokensOut began anew because
	// somebody asked for it; zero = with the transcript.
	LastModel  llm.ModelRef
	UsageSince time.Time
}

// LastTurn is what the last turn of the present transcript used that a model answered or was paid for;
// the zero value means that nothing is known of it. Heartbeats are none (Turn.NoTotals).
type LastTurn struct {
	In, Out int64 // tokens; cached input counts as input
	// CostMicros is the price in millionths of a US dollar. It counts only if Priced: an unknown price
	// is unknown, never 0.
	CostMicros int64
	Priced     bool
}

// Sources of an override or a pin. A stored override without one counts as the user's
// (spec/failover.md §3).
const (
	SourceUser = "user"
	SourceAuto = "auto" // override: legacy; pin: the profile that gave the first answer
	// SourceDefault marks an override without a model: a thread that was set back to the configured
	// default, so that the choice of its parent does not count there.
	SourceDefault = "default"
)

// Override is the model a session is set to; the zero value is the configured default.
type Override struct {
	Model  llm.ModelRef
	Source string
	Origin llm.ModelRef // of a legacy automatic one: what it stood in for
}

// Auto reports whether it is a legacy automatic override.
func (o Override) Auto() bool { return !o.Model.IsZero() && o.Source == SourceAuto }

// User reports whether a person chose it.
func (o Override) User() bool { return !o.Model.IsZero() && o.Source != SourceAuto }

// Pin ties a session to a profile (spec/failover.md §5.3).
type Pin struct {
	Profile     llm.ProfileID
	Source      string
	Compactions int // the session's count when it was set
}

// Pair is the state of the fallback notice (spec/failover.md §10); the zero value is none.
type Pair struct {
	Selected, Active llm.ModelRef
	Reason           string
}

// Select sets the session to a model a user chose, with a locked profile or "" (spec/failover.md
// §3). running tells that a turn is under way, which then has to switch.
func (s *Session) Select(model llm.ModelRef, profile llm.ProfileID, running bool) {
	s.Override = Override{Model: model, Source: SourceUser}
	s.chosen(profile, running)
}

// SelectDefault removes the override; a profile, if given, is locked for the default model. A thread
// no longer takes the choice of its parent.
func (s *Session) SelectDefault(profile llm.ProfileID, running bool) {
	s.Override = Override{}
	if s.Parent != "" {
		s.Override.Source = SourceDefault
	}
	s.chosen(profile, running)
}

func (s *Session) chosen(profile llm.ProfileID, running bool) {
	s.Pin, s.Notice = Pin{}, Pair{}
	if profile != "" {
		s.Pin = Pin{Profile: profile, Source: SourceUser, Compactions: s.Compactions}
	}
	s.SwitchPending = s.SwitchPending || running
}

// reset starts the next transcript. What a person chose stays; what the system did by itself, and
// the profile pin, ends (spec/failover.md §3).
func (s *Session) reset(id string, now time.Time) {
	if s.Override.Auto() {
		s.Override = Override{}
	}
	s.ID, s.StartedAt = id, now
	s.Pin, s.Notice, s.NoticeSince, s.SwitchPending = Pin{}, Pair{}, time.Time{}, false
	s.Compactions, s.TokensIn, s.TokensOut, s.TokensContext, s.Status = 0, 0, 0, 0, ""
	s.LastModel, s.LastTurn, s.UsageSince = llm.ModelRef{}, LastTurn{}, time.Time{}
}
