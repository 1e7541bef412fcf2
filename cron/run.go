package cron

import (
	"time"

	"understudy/llm"
)

// Status is how the execution of a run stands (spec/chat.md §5.6).
type Status string

// The statuses.
const (
	Running Status = "running"
	OK      Status = "ok"
	Failed  Status = "error"
	Skipped Status = "skipped"
)

// Completion is how the run as a whole stands: an execution that went well is incomplete until its
// result arrived.
type Completion string

// The completions. Skipped runs have none.
const (
	NoCompletion Completion = ""
	Pending      Completion = "pending" // the result is on its way
	Succeeded    Completion = "succeeded"
	Incomplete   Completion = "failed"
	Unknown      Completion = "unknown" // nobody can know: the run was interrupted, or the platform did not say
)

// Trigger is why a run began.
type Trigger string

// The triggers.
const (
	OnSchedule Trigger = "schedule"
	OnCatchUp  Trigger = "catch-up" // its slot passed while nobody was there
	OnRetry    Trigger = "retry"
	ByHand     Trigger = "manual"
)

// Reason says why a run failed, was skipped or is incomplete. It is a closed list: people read its
// text instead of a provider's words.
type Reason string

// Reasons of failed executions.
const (
	ReasonOverloaded   Reason = "overloaded"
	ReasonRateLimit    Reason = "rate-limit"
	ReasonUnavailable  Reason = "unavailable"
	ReasonBilling      Reason = "billing"
	ReasonAuth         Reason = "auth"
	ReasonModelUnknown Reason = "model-unknown"
	ReasonModelRefused Reason = "model-not-allowed"
	ReasonRefusal      Reason = "refusal"
	ReasonRequest      Reason = "request"
	ReasonEmpty        Reason = "empty-answer"
	ReasonTimeout      Reason = "timeout"
	ReasonInterrupted  Reason = "interrupted"
	ReasonStopped      Reason = "stopped"
	ReasonPanic        Reason = "panic"
	ReasonSession      Reason = "session"
	ReasonInternal     Reason = "internal"
	ReasonSchedule     Reason = "schedule"
)

// Reasons of skipped runs.
const (
	ReasonMissed       Reason = "missed"
	ReasonStillRunning Reason = "still-running"
	ReasonUnreachable  Reason = "unreachable"
	ReasonBudget       Reason = "budget"
	ReasonBusy         Reason = "busy"
)

// Reasons of incomplete runs.
const (
	ReasonRejected  Reason = "rejected"
	ReasonUnsettled Reason = "unsettled"
)

// Text says the reason in words, as the end of a sentence.
func (r Reason) Text() string {
	switch r {
	case ReasonOverloaded:
		return "the model is overloaded"
	case ReasonRateLimit:
		return "the model's rate limit was reached"
	case ReasonUnavailable:
		return "the model did not answer properly"
	case ReasonBilling:
		return "the provider account has no credit"
	case ReasonAuth:
		return "the provider refused the credentials"
	case ReasonModelUnknown:
		return "the job's model does not exist"
	case ReasonModelRefused:
		return "the job's model is not allowed"
	case ReasonRefusal:
		return "the model refused the task"
	case ReasonRequest:
		return "the model could not take the request"
	case ReasonEmpty:
		return "the model answered nothing"
	case ReasonTimeout:
		return "the run took longer than its time limit"
	case ReasonInterrupted:
		return "a restart interrupted the run"
	case ReasonStopped:
		return "the run was stopped"
	case ReasonPanic, ReasonInternal:
		return "an internal error; the log has the details"
	case ReasonSession:
		return "the job's session is gone"
	case ReasonSchedule:
		return "the schedule cannot be read any more"
	case ReasonMissed:
		return "nobody was there to run it"
	case ReasonStillRunning:
		return "the run before was still going on"
	case ReasonUnreachable:
		return "the local model cannot be reached"
	case ReasonBudget:
		return "the budget for background work is used up"
	case ReasonBusy:
		return "its conversation was busy all the time"
	case ReasonRejected:
		return "the platform rejected the message"
	case ReasonUnsettled:
		return "the platform never confirmed the message"
	}
	return "unknown"
}

// Passing reports whether the same run may go well a little later.
func (r Reason) Passing() bool {
	switch r {
	case ReasonOverloaded, ReasonRateLimit, ReasonUnavailable, ReasonEmpty, ReasonTimeout, ReasonInternal,
		ReasonUnreachable, ReasonBusy:
		return true
	}
	return false
}

// ReasonOf is the reason of a run whose last model failed.
func ReasonOf(r llm.Reason) Reason {
	switch r {
	case llm.ReasonOverloaded:
		return ReasonOverloaded
	case llm.ReasonRateLimit:
		return ReasonRateLimit
	case llm.ReasonBilling:
		return ReasonBilling
	case llm.ReasonAuth, llm.ReasonAuthPermanent:
		return ReasonAuth
	case llm.ReasonModelNotFound:
		return ReasonModelUnknown
	case llm.ReasonRefusal:
		return ReasonRefusal
	case llm.ReasonFormat, llm.ReasonContextOverflow, llm.ReasonCapability:
		return ReasonRequest
	case llm.ReasonEmptyResponse:
		return ReasonEmpty
	case llm.ReasonAborted:
		return ReasonStopped
	case llm.ReasonInternal:
		return ReasonInternal
	}
	return ReasonUnavailable
}

// Run is one line of the run log (spec/chat.md §5.8). Zero times mean not yet.
type Run struct {
	ID, JobID, JobName                 string
	Trigger                            Trigger
	ScheduledAt, StartedAt, FinishedAt time.Time
	Status                             Status
	Completion                         Completion
	Reason                             Reason // "" = nothing went wrong
	// Error is what the run itself said about its failure: for people, without a provider's words.
	Error string
	// Requested is the model the job asked for, Model the one that answered. FallbackReason is why they
	// differ.
	Requested, Model llm.ModelRef
	FallbackUsed     bool
	FallbackReason   llm.Reason
	Usage            llm.Usage
	CostMicros       *int64 // millionths of a dollar; nil = unknown
	Excerpt          string // the beginning of the result, at most 2 KB
	Receipts         []string
}

// Over reports whether the run is finished and its result has arrived or is given up.
func (r Run) Over() bool { return r.Status != Running && r.Completion != Pending }
