package reply

import (
	"context"
	"log/slog"
	"time"

	"understudy/chat"
	"understudy/failover"
	"understudy/failover/policy"
	"understudy/internal/clock"
	"understudy/llm"
	"understudy/notices"
	"understudy/session"
)

// Kind is what started a turn.
type Kind uint8

// The kinds of turns.
const (
	Message   Kind = iota // somebody wrote
	Cron                  // a scheduled task fired
	Heartbeat             // a heartbeat fired
)

// Request is one turn to run.
type Request struct {
	// ID names the turn in logs, the outbox and the transcript. It is the same when the turn is run
	// again after a crash.
	ID     string
	Agent  string
	Key    string // session key
	Kind   Kind
	To     chat.Address
	Parent string        // key whose settings the session inherits; "" = none
	In     *chat.Inbound // the message; nil for internal turns
	Text   string        // what the model is asked
	// More are further messages that this turn answers, after In (queue mode collect).
	More []Said
	// History is what was said in a group since the bot last answered there; Digests are lines of
	// messages that gave way in a full queue. Both are context, shown once (spec/chat.md §1.5, §1.7).
	History []HistoryLine
	Digests []string
	// Selection replaces the session's own (cron, heartbeat, one-off); nil = the session's.
	Selection *policy.Selection
}

// Said is a message beside the one that began the turn.
type Said struct {
	In   *chat.Inbound
	Text string // what the model is asked; often In.Text
}

// HistoryLine is what somebody said in a group without addressing the bot.
type HistoryLine struct {
	Sender string
	Text   string
	At     time.Time
}

// internal reports whether the turn answers nobody: its fallbacks show in the run log only.
func (q Request) internal() bool { return q.Kind != Message }

func (q Request) class() chat.Class {
	switch q.Kind {
	case Cron:
		return chat.Cron
	case Heartbeat:
		return chat.Heartbeat
	}
	return chat.Assistant
}

// Status says how a turn ended.
type Status uint8

// The ways a turn ends.
const (
	Answered    Status = iota + 1
	Silent             // the model chose to say nothing
	Failed             // the user was told why
	Stopped            // by its user, or by a newer message
	Interrupted        // by a shutdown: run it again
)

// Outcome is what came of a turn.
type Outcome struct {
	Status  Status
	Reason  llm.Reason   // of a failure
	Model   llm.ModelRef // who answered
	Text    string       // the answer, or the error text
	RetryAt time.Time    // of a failure: when trying again is worth it; zero = unknown
	Usage   llm.Usage
	Trail   []failover.Record
	// Steered is how many messages the turn took over while it ran (Deps.Steer): they are answered,
	// or failed, with it.
	Steered int
}

// Agent is what a turn needs to know of its agent's configuration.
type Agent struct {
	System     string
	Models     policy.Models
	ImageModel policy.Models // Primary is zero when none is configured
	Timeout    time.Duration // of a whole turn; 0 = none
	Zone       *time.Location
	Compaction Compaction
}

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

// Sessions is the memory of conversations (package session).
type Sessions interface {
	Ensure(ctx context.Context, seed session.Seed) (s session.Session, created bool, err error)
	Touch(ctx context.Context, key string, at time.Time) error
	// Selection returns the override in force: the session's own, else its parent's.
	Selection(ctx context.Context, s session.Session) (o session.Override, from string, err error)
	Load(ctx context.Context, sessionID string) ([]session.Entry, error)
	TakeSwitch(ctx context.Context, key string) (s session.Session, pending bool, err error)
	Update(ctx context.Context, key string, change func(*session.Session) error) (session.Session, error)
	// FinishTurn writes everything a turn leaves behind in one transaction.
	FinishTurn(ctx context.Context, key string, t session.Turn) error
	// Compact adds a summary to a transcript and counts the compaction.
	Compact(ctx context.Context, key, sessionID string, summary session.Entry) (session.Session, error)
}

// Delivery is one turn's way to its channel (package delivery).
type Delivery interface {
	Stream(text string)
	// Committed reports whether streamed text left in a way that cannot be replaced.
	Committed() bool
	// Restart takes the streamed text back.
	Restart()
	Notify(chat.Outbound)
	// Finish says the turn's answer or error; it returns once that is durable.
	Finish(context.Context, chat.Outbound) error
	// Cancel ends the turn without a word.
	Cancel()
}

// Summarizer shortens a conversation. It returns the summary of the older messages.
type Summarizer interface {
	Summarize(ctx context.Context, job SummaryJob) (string, error)
}

// SummaryJob is what a Summarizer works on.
type SummaryJob struct {
	Ref   llm.ModelRef // whose context overflowed
	Model llm.ModelRef // that the operator chose for summaries; zero = none
	Plan  failover.Plan
	Older []llm.Message // to be summarised; empty = there is no older part
	Bytes int           // size of the whole conversation, the part that stays included
	Focus string        // what to keep in mind; "" = nothing in particular
}

// Deps are what a Runner works with.
type Deps struct {
	Failover *failover.Runner
	Sessions Sessions
	// Begin opens the way to the turn's place.
	Begin   func(to chat.Address, in *chat.Inbound, turnID string) Delivery
	Agent   func(id string) Agent
	Models  func() failover.Models
	Notices func() notices.Config
	// Fetch downloads an attachment of an authorised message.
	Fetch func(ctx context.Context, in *chat.Inbound, a chat.Attachment) ([]byte, error)
	Tools []Tool
	// Steer hands over messages that wait for the session and that the running turn may answer too.
	// Whoever takes them owns them. It is asked at tool steps only. nil = none ever.
	Steer   func(key string) []Said
	Compact Summarizer // nil = ask the model that overflowed
	Clock   clock.Clock
	Log     *slog.Logger
	// IsSilent reports whether a text asks not to be sent; Clean drops leaked scaffolding.
	IsSilent func(text string) bool
	Clean    func(text string) string
}

// Runner runs turns. It is safe for concurrent use; the turns of one session key must come one
// after the other.
type Runner struct{ deps Deps }

// New returns a Runner.
func New(deps Deps) *Runner {
	r := &Runner{deps: deps}
	if r.deps.Compact == nil {
		r.deps.Compact = modelSummarizer{r}
	}
	if r.deps.Steer == nil {
		r.deps.Steer = func(string) []Said { return nil }
	}
	if r.deps.IsSilent == nil {
		r.deps.IsSilent = func(string) bool { return false }
	}
	if r.deps.Clean == nil {
		r.deps.Clean = func(s string) string { return s }
	}
	return r
}
