package reply

import (
	"time"

	"understudy/failover/policy"
	"understudy/llm"
)

// Agent is what a turn needs to know of its agent's configuration.
type Agent struct {
	Name   string // for ResponsePrefix "auto"
	System string
	// Files are the operator's further texts for the system prompt, in order.
	Files      []File
	Models     policy.Models
	ImageModel policy.Models // Primary is zero when none is configured
	Timeout    time.Duration // of a whole turn; 0 = none
	Zone       *time.Location
	Compaction Compaction
	// HeartbeatModel is `heartbeat.model`; zero = none. It is only spoken of (spec/chat.md §1.8).
	HeartbeatModel llm.ModelRef

	// ResponsePrefix stands before every answer: a template with {model}, {modelFull}, {provider} and
	// {thinkingLevel}, or "auto" for [Name]. "" = nothing (spec/chat.md §2.1).
	ResponsePrefix    string
	ContextVisibility Visibility
	ErrorPolicy       ErrorPolicy
	MaxImageSide      int  // longest side of a picture in pixels; 0 = 1200
	VerboseInGroups   bool // whether /verbose shows tool calls in groups too
	// Commitments lets the model offer reminders.
	Commitments bool
}

// File is a text of the operator's.
type File struct{ Name, Text string }

// Visibility says whose words a model is shown beside those that are for it (spec/chat.md §1.7).
type Visibility string

// The visibilities; "" is VisibleAll.
const (
	VisibleAll            Visibility = "all"
	VisibleAllowed        Visibility = "allowlist"       // history and quotes of allowed senders only
	VisibleAllowedOrQuote Visibility = "allowlist_quote" // the same, but what somebody quotes is shown
)

// ErrorPolicy says whether people are told that a turn failed (spec/chat.md §2.1).
type ErrorPolicy string

// The policies; "" is ErrorsAlways.
const (
	ErrorsAlways ErrorPolicy = "always"
	ErrorsOnce   ErrorPolicy = "once" // one text until a turn succeeds again there
	ErrorsSilent ErrorPolicy = "silent"
)

// Compaction says how conversations are shortened (spec/chat.md §1.8). Zero numbers mean the
// defaults.
type Compaction struct {
	Model            llm.ModelRef // writes the summaries, without fallbacks; zero = the session's own
	ReserveTokens    int
	KeepRecentTokens int
	Notify           bool // tell the user when it begins and ends
}

func (c Compaction) withDefaults() Compaction {
	if c.ReserveTokens <= 0 {
		c.ReserveTokens = defaultReserveTokens
	}
	if c.KeepRecentTokens <= 0 {
		c.KeepRecentTokens = defaultKeepRecentTokens
	}
	return c
}
