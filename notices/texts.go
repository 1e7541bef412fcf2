package notices

import (
	"fmt"

	"understudy/chat"
	"understudy/llm"
)

// StillRetrying is the one status of a turn that met nothing but overload for 30 seconds
// (spec/failover.md §9).
const StillRetrying = "The AI service is temporarily overloaded. I’m still retrying; this may take a few minutes."

// Fallback says that active answers while selected was wanted.
func Fallback(p Pair) string {
	return fmt.Sprintf("↪️ Model Fallback: %s (selected %s; %s)", p.Active, p.Selected, p.Reason)
}

// FallbackCleared says that the selected model answers again. was is the pair that ended.
func FallbackCleared(was Pair) string {
	return fmt.Sprintf("↪️ Model Fallback cleared: %s (was %s)", was.Selected, was.Active)
}

// PinDropped says that a profile the user had pinned does not exist any more.
func PinDropped(profile llm.ProfileID) string {
	return fmt.Sprintf("🔑 The pinned profile %s no longer exists; I’m using the usual order. Pin another with /model <model>@<profile>.", profile)
}

// Selected says that a model selected another one for its conversation with a tool, and how to undo it.
// isDefault tells that now is the configured default; before is what had been selected, zero = the default.
// It names no profile: it may stand in a shared room.
func Selected(now llm.ModelRef, isDefault bool, before llm.ModelRef) string {
	undo := "default"
	if !before.IsZero() {
		undo = before.String()
	}
	if isDefault {
		return fmt.Sprintf("🧠 The assistant went back to the configured default, %s. /model %s undoes it.", now, undo)
	}
	return fmt.Sprintf("🧠 The assistant selected %s for this session (strict - no fallbacks). /model %s undoes it.", now, undo)
}

// CredentialRevoked tells an owner that a credential is not taken any more, until when it is left out, and
// the command that stores another. It names the profile: it is for a private chat.
func CredentialRevoked(profile llm.ProfileID, until, command string) string {
	return fmt.Sprintf("🔑 %s was revoked or is not allowed there any more; I leave it out until %s and then try it again. A new one: `%s`. What is left shows `bot auth status`.",
		profile, until, command)
}

// CredentialUnpaid tells an owner that a provider wants money for a credential, until when it is left out,
// and the command that does not wait for that; see CredentialRevoked.
func CredentialUnpaid(profile llm.ProfileID, until, command string) string {
	return fmt.Sprintf("💳 %s does not answer for billing reasons: the account has no credit left or its plan does not cover this. I leave it out until %s; once that is settled, `%s` brings it back at once.",
		profile, until, command)
}

// CompactionStarted and CompactionDone frame an automatic compaction, where the operator wants
// that told (`compaction.notifyUser`).
const (
	CompactionStarted = "🧹 Compacting context…"
	CompactionDone    = "🧹 Compaction complete."
)

// Because says in a few words why a model did not answer. It names no profile, account or key:
// notices may stand in shared rooms.
func Because(r llm.Reason, d llm.Detail) string {
	switch r {
	case llm.ReasonAuth, llm.ReasonAuthPermanent:
		return "sign-in problem"
	case llm.ReasonBilling:
		return "billing"
	case llm.ReasonRateLimit:
		return "rate limit"
	case llm.ReasonOverloaded:
		return "overloaded"
	case llm.ReasonTimeout:
		switch d {
		case llm.DetailServerError:
			return "server error"
		case llm.DetailNetwork:
			return "connection problem"
		}
		return "timeout"
	case llm.ReasonModelNotFound:
		return "model not available"
	case llm.ReasonCapability:
		return "cannot take this message"
	case llm.ReasonRefusal:
		return "declined"
	case llm.ReasonEmptyResponse:
		return "empty answer"
	case llm.ReasonSessionExpired:
		return "session expired"
	case "":
		return "not asked"
	}
	return "unknown error"
}

// Config is `notices` in the configuration.
type Config struct {
	// Fallback says where fallback notices are shown: "all" (default), "direct" (private chats
	// only) or "off". The state is kept in any case, so /status tells.
	Fallback string `yaml:"fallback"`
}

// WithDefaults fills what is not set.
func (c Config) WithDefaults() Config {
	if c.Fallback == "" {
		c.Fallback = "all"
	}
	return c
}

// Validate rejects an unknown word.
func (c Config) Validate() error {
	switch c.Fallback {
	case "", "all", "direct", "off":
		return nil
	}
	return fmt.Errorf("fallback: %q is none of all, direct, off", c.Fallback)
}

// ShowsFallback reports whether fallback notices may be sent to a conversation of this kind.
func (c Config) ShowsFallback(k chat.Kind) bool {
	switch c.Fallback {
	case "off":
		return false
	case "direct":
		return k == chat.Direct
	}
	return true
}
