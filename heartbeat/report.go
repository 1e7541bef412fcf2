package heartbeat

import (
	"time"

	"understudy/chat"
	"understudy/llm"
)

// Outcome is what came of a heartbeat.
type Outcome string

// The outcomes.
const (
	OK      Outcome = "ok"      // there was nothing to report
	Alert   Outcome = "alert"   // something was found
	Skipped Outcome = "skipped" // it did not happen
	Failed  Outcome = "failed"  // no model answered
)

// Report is how one heartbeat went. Its texts are ours, but for Excerpt.
type Report struct {
	ID      string     `json:"id,omitempty"`
	At      time.Time  `json:"at"`
	Trigger string     `json:"trigger,omitempty"` // schedule, manual, event
	Outcome Outcome    `json:"outcome"`
	Why     Why        `json:"why,omitempty"`    // of a skipped one
	Reason  llm.Reason `json:"reason,omitempty"` // of a failed one
	Detail  string     `json:"detail,omitempty"` // of a failed one, in words
	// Requested is the model that was asked first, Model the one that answered.
	Requested llm.ModelRef  `json:"requested,omitzero"`
	Model     llm.ModelRef  `json:"model,omitzero"`
	Took      time.Duration `json:"took,omitempty"`
	Usage     llm.Usage     `json:"usage,omitzero"`
	To        chat.Address  `json:"to,omitzero"`
	Excerpt   string        `json:"excerpt,omitempty"` // of what was found
}

// Text says the reason of a skipped or failed one in words; "" for the others.
func (r Report) Text() string {
	switch r.Outcome {
	case Skipped:
		return r.Why.Text()
	case Failed:
		return r.Detail
	}
	return ""
}

// Letter is what a heartbeat found, until it is in safe hands.
type Letter struct {
	Key   string            `json:"key"`
	Agent string            `json:"agent,omitempty"`
	To    chat.Address      `json:"to"`
	Text  string            `json:"text"` // may be empty beside Media
	Media []chat.Attachment `json:"media,omitempty"`
}

// Turn is one heartbeat for whoever runs turns.
type Turn struct {
	ID       string
	Agent    string
	Settings Settings
	Text     string // what the model is asked
	To       chat.Address
	// Manual is one that somebody asked for.
	Manual bool
}

// Result is what came of a Turn.
type Result struct {
	Outcome Outcome // OK, Alert, Failed; Skipped with WhyBusy when it gave way to people
	Text    string  // what was found; may be empty beside Media
	Media   []chat.Attachment
	Reason  llm.Reason
	Detail  string
	// Requested and Model as in Report.
	Requested, Model llm.ModelRef
	Usage            llm.Usage
}
