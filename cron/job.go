package cron

import (
	"strings"
	"time"

	"understudy/chat"
	"understudy/cron/schedule"
	"understudy/llm"
)

// Bounds of jobs.
const (
	MaxJobs    = 10_000
	maxName    = 100       // bytes
	maxMessage = 32 * 1024 // bytes
	// DefaultTimeout bounds a run of a job that does not say otherwise (spec/chat.md §5.5).
	DefaultTimeout = 10 * time.Minute
	longestTimeout = 24 * time.Hour
)

// Target says in which session a job runs (spec/chat.md §5.1).
type Target string

// The targets; SessionTarget makes the others.
const (
	Main     Target = "main"     // the agent's main session
	Isolated Target = "isolated" // a fresh one for every run
	Current  Target = "current"  // the conversation the job was made in

	namedTarget = "session:"
)

// SessionTarget is the session of that name.
func SessionTarget(name string) Target { return Target(namedTarget + name) }

// Session returns the name of a named session; "" for the other targets.
func (t Target) Session() string {
	name, ok := strings.CutPrefix(string(t), namedTarget)
	if !ok {
		return ""
	}
	return name
}

// PayloadKind is what kind of work a job is.
type PayloadKind string

// The kinds of work.
const (
	AgentTurn   PayloadKind = "agentTurn"   // a turn of the agent
	SystemEvent PayloadKind = "systemEvent" // a text for the main session
	Saying      PayloadKind = "say"         // the text itself; no model is asked
)

// Payload is the work of a job. Every try gets all of it.
type Payload struct {
	Kind    PayloadKind `json:"kind"`
	Message string      `json:"message"`
	// Model is the job's own primary, never a choice for the session it runs in; "" = the session's or
	// the agent's. Fallbacks replace the configured chain; nil = the configured chain, empty = none.
	Model     string    `json:"model,omitempty"`
	Fallbacks *[]string `json:"fallbacks,omitempty"`
	Thinking  string    `json:"thinking,omitempty"`
	// TimeoutSeconds bounds one run; 0 = DefaultTimeout.
	TimeoutSeconds int  `json:"timeoutSeconds,omitempty"`
	LightContext   bool `json:"lightContext,omitempty"`
}

// Timeout bounds one run.
func (p Payload) Timeout() time.Duration {
	if p.TimeoutSeconds <= 0 {
		return DefaultTimeout
	}
	return time.Duration(p.TimeoutSeconds) * time.Second
}

// Mode says what becomes of a result.
type Mode string

// The modes.
const (
	Announce Mode = "announce" // the final text is sent
	Quiet    Mode = "none"     // it stays in the run log
	Webhook  Mode = "webhook"  // it is posted to a URL
)

// WebhookChannel is the channel of an address whose conversation is the URL of a webhook. Such an
// address belongs to no platform.
const WebhookChannel = "webhook"

// Delivery says where results go: always there, wherever people have been writing meanwhile.
type Delivery struct {
	Mode Mode         `json:"mode"`
	To   chat.Address `json:"to,omitzero"`
	// BestEffort lets a run count as complete although its result could not be delivered.
	BestEffort bool `json:"bestEffort,omitempty"`
}

// Wake says when a systemEvent is noticed.
type Wake string

// The ways to wake.
const (
	WakeNow           Wake = "now"
	WakeNextHeartbeat Wake = "next-heartbeat"
)

// Job is a scheduled task (spec/chat.md §5.1).
type Job struct {
	ID       string
	Revision int64 // counts edits
	Enabled  bool
	Definition
	CreatedAt, UpdatedAt time.Time
	State                State
}

// Definition is what people decide about a job.
type Definition struct {
	Name      string `json:"name"`
	Agent     string `json:"agentId"`
	CreatedBy string `json:"createdBy,omitempty"`
	// Tag tells apart what people made in other ways than as a task: reminders, loops; "" = a task.
	Tag      string        `json:"tag,omitempty"`
	Schedule schedule.Spec `json:"schedule"`
	Exact    bool          `json:"exact,omitempty"` // full hours are not spread
	Target   Target        `json:"target"`
	// Origin is the conversation the job was made in and Session the key of its session; zero for jobs
	// made elsewhere.
	Origin         chat.Address `json:"origin,omitzero"`
	Session        string       `json:"session,omitempty"`
	Payload        Payload      `json:"payload"`
	Delivery       Delivery     `json:"delivery"`
	DeleteAfterRun bool         `json:"deleteAfterRun,omitempty"`
	Wake           Wake         `json:"wake,omitempty"`
	FailureAlert   Alert        `json:"failureAlert,omitzero"`
}

// State is what the scheduler knows of a job. Zero times mean never, or nothing.
type State struct {
	NextRunAt time.Time // zero = the job waits for nothing
	SlotAt    time.Time // the slot that NextRunAt stands for; earlier when it is a retry
	planZone  string    // as in crondb.Plan

	RunningSince time.Time
	RunID        string // of the run that is under way

	Runs                   int64
	Tries                  int // of a single job, so far
	LastSlotAt             time.Time
	LastRunAt              time.Time
	LastStatus             Status
	LastCompletion         Completion
	LastError              string
	LastModel              llm.ModelRef
	LastFallback           bool // LastModel stood in for another
	ConsecutiveErrors      int
	ConsecutiveSkips       int
	ConsecutiveUndelivered int
	ScheduleErrors         int
	AlertedAt              time.Time
	DisabledReason         string // why the scheduler switched the job off; "" = it did not
	DisabledAt             time.Time
}

// Running reports whether a run is under way.
func (s State) Running() bool { return !s.RunningSince.IsZero() }

// once reports whether the job has a single slot.
func (j Job) once() bool { return j.Schedule.Kind == schedule.At }
