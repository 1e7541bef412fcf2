package heartbeat

import (
	"time"

	"understudy/chat"
	"understudy/llm"
)

// Target says who hears of what a heartbeat finds.
type Target string

// The targets that are no channel.
const (
	TargetOwner Target = "owner" // the private chat with the bot's owner
	TargetLast  Target = "last"  // where somebody wrote last
	TargetNone  Target = "none"  // nobody: it stays in the session
)

// Show says what of heartbeats is to be seen on a channel.
type Show struct {
	OK        bool // that there was nothing to report
	Alerts    bool // what was found
	Indicator bool // the outcome, in /status
}

// Settings are an agent's heartbeat as configured (spec/chat.md §6.1).
type Settings struct {
	Every  time.Duration // 0 = off
	Hours  *Hours        // nil = always
	Target Target        // or the name of a channel, with To
	// To is where on that channel; zero for the other targets.
	To chat.Address
	// Implied tells that nobody chose the target.
	Implied bool
	// BlockDirect keeps what is found out of private chats.
	BlockDirect bool
	Model       llm.ModelRef // zero = the session's
	// NoFallbacks lets no other model answer than the first, and skips a heartbeat while that one rests.
	NoFallbacks bool
	// Light leaves the agent's files out; Isolated begins with a fresh memory every time.
	Light, Isolated bool
	// Session is the name of the session it runs in; "" = the agent's main one.
	Session string
	Prompt  string
	Timeout time.Duration // 0 = see Limit
	Show    Show
	// ShowOn replaces Show on some channels, by name.
	ShowOn map[string]Show
}

// DefaultPrompt is what an agent is asked.
const DefaultPrompt = "Look at the checklist below, if there is one. Do not repeat old topics from the chat. If nothing needs the user's attention, answer HEARTBEAT_OK."

// LongestTimeout bounds a heartbeat whose settings do not.
const LongestTimeout = 10 * time.Minute

// WithDefaults fills what is not set, except Every, Timeout and Show.
func (s Settings) WithDefaults() Settings {
	if s.Target == "" {
		s.Target, s.Implied = TargetOwner, true
	}
	if s.Prompt == "" {
		s.Prompt = DefaultPrompt
	}
	return s
}

// Limit is how long one heartbeat may take.
func (s Settings) Limit() time.Duration {
	switch {
	case s.Timeout > 0:
		return s.Timeout
	case s.Every > 0:
		return min(s.Every, LongestTimeout)
	}
	return LongestTimeout
}

// Shows is what is to be seen on a channel.
func (s Settings) Shows(channel string) Show {
	if x, ok := s.ShowOn[channel]; ok {
		return x
	}
	return s.Show
}
