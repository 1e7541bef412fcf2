package cron

import (
	"context"
	"fmt"
	"time"

	"understudy/chat"
	"understudy/llm"
)

// Task is one run of a job, for a Runner.
type Task struct {
	RunID     string // the same for nothing else; makes what the run writes idempotent
	Job       Job
	Trigger   Trigger
	Scheduled time.Time // the slot
}

// Result is what came of a Task. What is known is set also beside an error.
type Result struct {
	Text string // the final text
	// Media are files that go with it, also without words. A webhook is not sent any.
	Media []chat.Attachment
	// Requested, Model, FallbackReason: see Run. FallbackUsed tells that Model stood in.
	Requested, Model llm.ModelRef
	FallbackUsed     bool
	FallbackReason   llm.Reason
	Usage            llm.Usage
	CostMicros       *int64 // nil = unknown
	// Said tells that the agent itself has sent to the job's destination: the final text is not sent too.
	Said bool
	// Acted tells that something was done that must not be done twice: the run is never repeated.
	Acted bool
}

// Runner does the work of jobs.
type Runner interface {
	// Run does one task and nothing that outlives ctx. Every call is given the whole task. context.Cause
	// tells why ctx ended. A failure is an *Error or, where the run never began, a *Skip; anything else
	// counts as ReasonInternal and goes to the log.
	Run(ctx context.Context, t Task) (Result, error)
}

// Error is a failed run.
type Error struct {
	Reason Reason
	// Detail is for people who look at the run: no provider text, no secret. "" = Reason.Text.
	Detail string
	Err    error // for the log
}

// Error implements error.
func (e *Error) Error() string {
	if e.Err == nil {
		return string(e.Reason)
	}
	return fmt.Sprintf("%s: %v", e.Reason, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Skip is a run that did not begin.
type Skip struct{ Reason Reason }

// Error implements error.
func (e *Skip) Error() string { return "skipped: " + string(e.Reason) }

// Announcement is something to say.
type Announcement struct {
	// Key is the same when the same thing is said again, also after a crash.
	Key  string
	To   chat.Address
	Text string // Markdown; may be empty beside Media
	// Media are files that go with the text.
	Media []chat.Attachment
	// Alert tells that it is about operations and not the result of a job.
	Alert bool
	// Job and Run are what it belongs to.
	Job, Run string
}

// Arrival says how an announcement stands.
type Arrival uint8

// The arrivals.
const (
	OnItsWay  Arrival = iota + 1 // it is in safe hands; asking again with the same key tells more
	Arrived                      // the platform has it
	Rejected                     // the platform does not take it, or there is no such place: never
	Uncertain                    // it perhaps arrived and will not be repeated
)

// Announcer says things to people.
type Announcer interface {
	// Announce says a once for each key, however often it is called, and tells how that stands and the
	// ids of the messages. It may wait a little for the platform, not longer than ctx. An error means
	// that it is not known to be in safe hands: the call is repeated later.
	Announce(ctx context.Context, a Announcement) (Arrival, []string, error)
}

// Owner is whoever operates the bot.
type Owner interface {
	// Tell says a text to the owner, once for each key. An error means: again later.
	Tell(ctx context.Context, key, text string) error
}
