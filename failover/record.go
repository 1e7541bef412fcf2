package failover

import (
	"time"

	"understudy/failover/policy"
	"understudy/llm"
)

// Record is one attempt or skip, as kept for /why, the log and the summary (spec §15).
type Record struct {
	Provider  string        `json:"provider"`
	Model     string        `json:"model"`
	Profile   llm.ProfileID `json:"profile,omitempty"`
	Skipped   bool          `json:"skipped,omitempty"`
	Why       policy.Why    `json:"why"`
	Reason    llm.Reason    `json:"reason,omitempty"` // "" = answered
	Detail    llm.Detail    `json:"detail,omitempty"`
	Status    int           `json:"status,omitempty"`
	Code      string        `json:"code,omitempty"`
	Error     string        `json:"error,omitempty"` // redacted preview, for operators
	StartedAt time.Time     `json:"startedAt"`
	Duration  time.Duration `json:"duration"`
	Until     time.Time     `json:"until,omitzero"` // of a skip: when its window ends
	Position  int           `json:"position"`       // in the chain, from 0
	Pass      int           `json:"pass"`           // from 1
	RequestID string        `json:"requestId,omitempty"`
}

// Ref returns the model the record is about.
func (r Record) Ref() llm.ModelRef { return llm.ModelRef{Provider: r.Provider, Model: r.Model} }

// Probe reports whether the attempt was made although the profile was cooling.
func (r Record) Probe() bool {
	switch r.Why {
	case policy.WhyProbe, policy.WhySibling, policy.WhyLastResort, policy.WhyBackground:
		return !r.Skipped
	}
	return false
}
