package reply

import (
	"context"
	"log/slog"
	"time"

	"understudy/chat"
	"understudy/failover"
	"understudy/internal/clock"
	"understudy/llm"
	"understudy/notices"
	"understudy/session"
)

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
	// AppendOnce writes what a guest leaves behind, once per run.
	AppendOnce(ctx context.Context, key, runID string, entries []session.Entry) error
	// Compact adds a summary to a transcript and counts the compaction.
	Compact(ctx context.Context, key, sessionID string, summary session.Entry) (session.Session, error)
	// AddSpend counts what was used outside of a turn that ends.
	AddSpend(ctx context.Context, spent ...session.Spend) error
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

// Holder is a Delivery that may keep streamed text from being seen until the answer is finished, where the
// sound of an answer comes before its text.
type Holder interface {
	// Hold tells that the answer is certain to be spoken. It is called before the first text.
	Hold()
}

// SpeechRequest is an answer that could be spoken (spec/chat.md §4.2).
type SpeechRequest struct {
	Session session.Session
	Agent   string
	To      chat.Address
	Voice   bool // somebody spoke instead of writing what it answers
	Class   chat.Class
	Text    string // the model's words, directives included; no prefix and no footer
}

// SpeechPlan is what becomes of an answer that could be spoken.
type SpeechPlan struct {
	Visible string       // without directives
	Speech  *chat.Speech // nil = it is not spoken
	AsVoice bool         // sound that is attached to the answer is to be a voice note
}

// Voice is what is known of the speech of a turn's answer before there is one.
type Voice struct {
	// Tagged tells that an answer is spoken if the model asks for that: the system prompt says how.
	Tagged bool
	// Certain tells that the answer is spoken whatever it says, so its text may wait for the sound.
	Certain bool
}

// Deps are what a Runner works with.
type Deps struct {
	Failover *failover.Runner
	Sessions Sessions
	// Begin opens the way to the turn's place.
	Begin func(to chat.Address, in *chat.Inbound, turnID string) Delivery
	Agent func(id string) Agent
	// AgentAt is Agent with what is configured for the place; nil = the same everywhere.
	AgentAt func(id string, to chat.Address) Agent
	Models  func() failover.Models
	Notices func() notices.Config
	// Fetch downloads an attachment of an authorised message, of at most so many bytes; a larger one is
	// ErrFileTooLarge.
	Fetch func(ctx context.Context, in *chat.Inbound, a chat.Attachment, most int64) ([]byte, error)

	Tools []Tool
	// ToolsFor returns the tools of one turn; it is asked once per turn. They do not depend on what began
	// it: requests begin with them, so a heartbeat with others would cost what the provider remembers of the
	// conversation. What a call may do is for its Run to say (Call.Kind). nil = Tools for all of them.
	ToolsFor func(agent string, to chat.Address) []Tool
	// Approve asks people whether a call may run, and waits for their word. It must return soon after
	// ctx ends. nil = nobody can be asked, so nothing that needs it runs.
	Approve func(ctx context.Context, a Approval) (ok bool, err error)
	// OfferTime reads when a model wants to remind somebody, and returns it in a form that means the same
	// later. Its error is told to the model. nil = what the model wrote stays as it is.
	OfferTime func(agent, when string) (string, error)
	// Steer hands over messages that wait for the session and that the running turn may answer too.
	// Whoever takes them owns them. It is asked at tool steps only. nil = none ever.
	Steer func(key string) []Said

	// Transcribe writes down what is said in a voice note, of which Data is set. nil = nobody can.
	Transcribe func(ctx context.Context, a chat.Attachment) (text string, err error)
	// Voice foresees how a turn's answer will be spoken; class and text of the request are not set. It
	// must not depend on who or what began the turn, but for Certain: Tagged is part of the system
	// prompt, which is the same for all turns of a session. nil = nothing is known.
	Voice func(SpeechRequest) Voice
	// Speak plans how an answer is spoken and returns what of it is shown. It is a pure function. nil =
	// texts are shown as they are, nothing is spoken.
	Speak func(SpeechRequest) SpeechPlan
	// Allowed reports whether somebody may use the bot where a message says: it has an address, a space,
	// a sender and roles, and nothing else (Agent.ContextVisibility). nil = everybody.
	Allowed func(who chat.Inbound) bool
	// Compacted is told how an attempt to shorten a conversation ended. nil = nobody.
	Compacted func(err error)
	// Cost is the price of a usage in US dollars; known is false where the price is not. nil = never.
	Cost func(ref llm.ModelRef, u llm.Usage) (usd float64, known bool)

	Compact Summarizer // nil = ask the model that overflowed
	Clock   clock.Clock
	Log     *slog.Logger
	// IsSilent reports whether a text asks not to be sent; Clean drops leaked scaffolding.
	IsSilent func(text string) bool
	Clean    func(text string) string
	// Redact takes secrets out of what /verbose shows of tools; nil = texts stay as they are.
	Redact func(text string) string
}

// Runner runs turns. It is safe for concurrent use; the turns of one session key must come one
// after the other.
type Runner struct {
	deps     Deps
	errors   told
	pictures darkroom
	shelf    *shelf
}

// New returns a Runner.
func New(deps Deps) *Runner {
	r := &Runner{deps: deps, pictures: newDarkroom(), shelf: newShelf(deps.Clock, mostShelved)}
	if r.deps.Compact == nil {
		r.deps.Compact = modelSummarizer{r}
	}
	if r.deps.AgentAt == nil {
		r.deps.AgentAt = func(id string, _ chat.Address) Agent { return r.deps.Agent(id) }
	}
	if r.deps.ToolsFor == nil {
		r.deps.ToolsFor = func(string, chat.Address) []Tool { return r.deps.Tools }
	}
	if r.deps.OfferTime == nil {
		r.deps.OfferTime = func(_, when string) (string, error) { return when, nil }
	}
	if r.deps.Steer == nil {
		r.deps.Steer = func(string) []Said { return nil }
	}
	if r.deps.Cost == nil {
		r.deps.Cost = func(llm.ModelRef, llm.Usage) (float64, bool) { return 0, false }
	}
	if r.deps.Allowed == nil {
		r.deps.Allowed = func(chat.Inbound) bool { return true }
	}
	if r.deps.Voice == nil {
		r.deps.Voice = func(SpeechRequest) Voice { return Voice{} }
	}
	if r.deps.IsSilent == nil {
		r.deps.IsSilent = func(string) bool { return false }
	}
	if r.deps.Clean == nil {
		r.deps.Clean = func(s string) string { return s }
	}
	if r.deps.Redact == nil {
		r.deps.Redact = func(s string) string { return s }
	}
	return r
}
