package commands

import (
	"context"
	"errors"
	"time"

	"understudy/chat"
	"understudy/llm"
)

// public is an error that is fit for the person whose command it ends.
type public interface {
	error
	Public() string
}

// Refusal ends a command with a text for the person who gave it. What the interfaces below return
// may be one, or any other error with a method Public() string; every other error is a fault on our
// side, of which people are told nothing but that it happened.
type Refusal struct{ Text string }

// Error is the text.
func (e *Refusal) Error() string { return e.Text }

// Public is the text.
func (e *Refusal) Public() string { return e.Text }

// told is the text of an error that is fit for chat.
func told(err error) (string, bool) {
	var p public
	if errors.As(err, &p) {
		return p.Public(), true
	}
	return "", false
}

// Activations decides whether a group's messages need a mention of the bot (spec/chat.md §3.3). The
// choice lives as long as the process.
type Activations interface {
	// Activation returns "mention" or "always", and whether that is a choice made here.
	Activation(c Call) (mode string, chosen bool)
	SetActivation(c Call, mode string)
}

// Paired is somebody who was let in.
type Paired struct {
	Channel string
	Sender  chat.Sender
	Owner   bool // became the bot's owner by it
}

// Speech is the control of spoken answers (spec/chat.md §4.4). What a conversation chose for itself
// stands in its session, as "always" or "off".
type Speech interface {
	Status(ctx context.Context, c Call) (SpeechStatus, error)
	// SetAuto changes when answers are spoken, for all conversations without a choice of their own:
	// "always" or "off".
	SetAuto(ctx context.Context, c Call, auto string) error
	// SetProvider names the provider that is asked first; an unknown one is refused.
	SetProvider(ctx context.Context, c Call, provider string) error
	SetLimit(ctx context.Context, c Call, characters int) error
	Audio(ctx context.Context, c Call, text string) (chat.Attachment, error)
	// Latest speaks the last answer of the conversation, once; a second time is refused.
	Latest(ctx context.Context, c Call) (chat.Attachment, error)
}

// SpeechStatus is how answers are spoken in a conversation.
type SpeechStatus struct {
	Auto      string   // off, always, inbound, tagged: what counts in this conversation
	Provider  string   // asked first; "" = none is configured
	Providers []string // that can be chosen
	Voice     string   // "" = the provider's own
	Limit     int      // characters
	// Last is when something was spoken last, LastError what went wrong then, in words; zero = never.
	Last      time.Time
	LastError string
}

// Job is a scheduled task as people look at it. Its texts are fit for chat.
type Job struct {
	ID, Name string
	Agent    string
	Enabled  bool
	Schedule string      // in words
	Next     []time.Time // at most three, in the job's zone
	Prompt   string
	Model    string // its own; "" = the agent's
	Session  string // main, isolated, current, session:<name>
	Delivery string // where results go, in words; "" = nowhere

	Running    bool
	LastRun    time.Time // zero = never
	LastStatus string    // ok, error, skipped
	LastError  string    // in words
	Failures   int       // in a row
	OffBecause string    // why the scheduler switched it off; "" = it did not
	// StandIn answered its last run instead of the model it asked for; zero = none did.
	StandIn llm.ModelRef
}

// JobRun is one line of a task's run log.
type JobRun struct {
	ID        string
	Trigger   string
	Scheduled time.Time
	Started   time.Time
	Finished  time.Time // zero = not yet
	Status    string    // running, ok, error, skipped
	Reason    string    // in words; "" = nothing went wrong
	Model     llm.ModelRef
	StoodIn   bool // Model stood in for the one the task asked for
	Excerpt   string
}

// JobDraft is a task as somebody asks for it. Only Schedule and Prompt are required.
type JobDraft struct {
	Schedule, Zone, Prompt         string
	Name, Model, Thinking, Session string
	Timeout                        time.Duration // 0 = the default
	Exact, Quiet, Keep             bool
}

// JobPatch changes a task: what is nil stays as it is.
type JobPatch struct {
	Schedule, Zone, Prompt         *string
	Name, Model, Thinking, Session *string
	Timeout                        *time.Duration
	Exact, Quiet, Keep             *bool
}

// Cron is the scheduler (spec/chat.md §5.9). The result of a task that is added goes to where c is.
type Cron interface {
	// List returns the tasks in the order of their next run; with all also those that are off.
	List(ctx context.Context, all bool) ([]Job, error)
	// Summary returns how many tasks are on, and the one that runs next.
	Summary(ctx context.Context) (on int, next Job, err error)
	Add(ctx context.Context, c Call, d JobDraft) (Job, error)
	Edit(ctx context.Context, id string, p JobPatch) (Job, error)
	Enable(ctx context.Context, id string) (Job, error)
	Disable(ctx context.Context, id string) (Job, error)
	Remove(ctx context.Context, id string) error
	// Run runs a task at once, beside its schedule, and does not wait for it.
	Run(ctx context.Context, id string) error
	// Runs returns the last runs, the newest first.
	Runs(ctx context.Context, id string, limit int) ([]JobRun, error)
}

// Reminders reads what people want to be reminded of, such as "20m stretch" or "tomorrow 9:00 call
// Anna", and says it when the time comes. A reminder belongs to who asked for it, in that conversation;
// its Name is what to remind of.
type Reminders interface {
	Remind(ctx context.Context, c Call, text string) (Job, error)
	Reminders(ctx context.Context, c Call) ([]Job, error)
	Forget(ctx context.Context, c Call, id string) error
}

// Loops are tasks that repeat in the conversation they were begun in. The Name of one is the beginning of
// its text.
type Loops interface {
	Start(ctx context.Context, c Call, every time.Duration, prompt string) (Job, error)
	Loops(ctx context.Context, c Call) ([]Job, error)
	Stop(ctx context.Context, c Call, id string) error
}

// Heartbeat is the control of heartbeats (spec/chat.md §6). A switch lasts until the process ends.
type Heartbeat interface {
	State(ctx context.Context, agent string) (HeartbeatState, error)
	// Now begins a heartbeat beside the schedule and does not wait for it.
	Now(ctx context.Context, agent string) error
	Switch(ctx context.Context, agent string, on bool) error
}

// HeartbeatState is how heartbeats of an agent stand.
type HeartbeatState struct {
	On      bool
	Every   time.Duration // 0 = not configured
	Last    time.Time     // zero = none yet
	Outcome string        // of the last one: ok, alert, skipped, failed
	Reason  string        // of a skipped or failed one, in words
	Next    time.Time
}

// ContextReport is what a conversation's next request would be made of. Sizes are estimates in tokens.
type ContextReport struct {
	Model        llm.ModelRef // that would be asked first
	Window       int          // of that model; 0 = unknown
	Reserve      int          // kept free for the answer
	System       int          // the system prompt without files
	Files        []ContextFile
	Tools        int
	ToolCount    int
	Summary      int // of what was shortened; 0 = there is none
	Messages     int
	MessageCount int
	Total        int
	Reported     int // the last request as the provider counted it; 0 = unknown
	Compactions  int
}

// ContextFile is the size of one of the operator's files.
type ContextFile struct {
	Name   string
	Tokens int
}
