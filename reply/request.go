package reply

import (
	"time"

	"understudy/chat"
	"understudy/failover"
	"understudy/failover/policy"
	"understudy/llm"
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
	// Think and Verbose hold for this turn instead of what the session says, and are not stored: what
	// /think and /verbose take, "default" being the model's own level; "" = the session's.
	Think, Verbose string
	// Program tells that a program wrote the message in a conversation of people: the time of their last
	// word stays (spec/chat.md §1.3).
	Program bool
	// Timeout replaces the agent's limit of a whole turn; 0 = the agent's.
	Timeout time.Duration
	// Light leaves the agent's files out (`lightContext`).
	Light bool
	// Tail bounds how many turns of the conversation the turn is shown; 0 = the whole conversation. An
	// internal turn with it is a guest there: its result is written into the transcript once per ID, and
	// nothing is shortened for it.
	Tail int
}

// Said is a message beside the one that began the turn.
type Said struct {
	In   *chat.Inbound
	Text string // what the model is asked; often In.Text
	// Digests is Request.Digests of a message that comes while the turn runs.
	Digests []string
}

// HistoryLine is what somebody said in a group without addressing the bot.
type HistoryLine struct {
	Sender   string   // how they are called
	SenderID string   // for Agent.ContextVisibility; "" = unknown
	Roles    []string // of the sender, for the same
	Text     string
	At       time.Time
}

// wordDefault takes the session's level of thinking back for one turn.
const wordDefault = "default"

// think is how hard the model is to think, "" = as it does by itself.
func (t *turn) think() string {
	switch t.req.Think {
	case "":
		return t.sess.Think
	case wordDefault:
		return ""
	}
	return t.req.Think
}

// internal reports whether the turn answers nobody: its fallbacks show in the run log only.
func (q Request) internal() bool { return q.Kind != Message }

// guest reports whether the turn runs in a conversation that belongs to others: it must leave their
// transcript's length and their model alone (spec/chat.md §5.5, §6.4).
func (q Request) guest() bool { return q.Kind == Heartbeat || q.internal() && q.Tail > 0 }

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
	Failed             // the user was told why, unless Outcome.Quiet
	Stopped            // by its user, or by a newer message
	Interrupted        // by a shutdown: run it again
)

// String returns the status as kept in the decision history.
func (s Status) String() string {
	switch s {
	case Answered:
		return "answered"
	case Silent:
		return "silent"
	case Failed:
		return "failed"
	case Stopped:
		return "stopped"
	case Interrupted:
		return "interrupted"
	}
	return "unknown"
}

// Outcome is what came of a turn.
type Outcome struct {
	Status Status
	Reason llm.Reason   // of a failure
	Model  llm.ModelRef // who answered
	// Selected is who was to answer; zero when the turn did not get so far.
	Selected llm.ModelRef
	Text     string    // the answer without prefix and footer, or the error text
	RetryAt  time.Time // of a failure: when trying again is worth it; zero = unknown
	Usage    llm.Usage
	CostUSD  *float64 // of the whole turn; nil = a price is not known
	Trail    []failover.Record
	// Steered is how many messages the turn took over while it ran (Deps.Steer): they are answered,
	// or failed, with it.
	Steered int
	// Left is how many messages the turn took over last and gives back, because a shutdown ended it
	// before anything was done for them: the next start answers them. They are not among Steered.
	Left int
	// Returned are messages of others than the one who stopped the turn (session.StoppedBy): nothing was done
	// for them and the conversation does not hold them, so that they can wait for another turn. They are not
	// among Steered.
	Returned []*chat.Inbound
	// Acted tells that a tool ran: what it did is done, whatever came after.
	Acted bool
	// Quiet tells that nobody was told of the failure, because of Agent.ErrorPolicy.
	Quiet bool
	// Offer is a reminder that the model offers; a person has to accept it. nil = none.
	Offer *Offer
}

// Offer is a reminder that the model would like to set (built-in tool offer_reminder).
type Offer struct {
	Text string // of what to remind; plain, bounded
	When string // as Deps.OfferTime returned it
}
