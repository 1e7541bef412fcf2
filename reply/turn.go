package reply

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"understudy/chat"
	"understudy/failover"
	"understudy/llm"
	"understudy/session"
)

// maxSteps bounds the model requests of one turn: a model that calls tools for ever is stopped.
const maxSteps = 25

// turn is one Request being answered.
type turn struct {
	r    *Runner
	req  Request
	log  *slog.Logger
	cfg  Agent
	sess session.Session
	// inherited is the choice that a thread takes over from its parent; zero = none.
	inherited session.Override
	out       Delivery
	run       *failover.Run

	entries []session.Entry // the conversation before this turn
	fresh   []session.Entry // what this turn adds to it
	request llm.Request
	began   time.Time
	usage   llm.Usage
	focus   string // of a compaction that the user asked for
	gap     bool   // text of an earlier step was streamed: the next piece begins a paragraph
	// steered are messages that came while a tool ran and that the next step is to see.
	steered  []Said
	nSteered int
	// summarised tells that a compaction happened in this turn.
	summarised bool
}

// Run answers one request. Everything a person should see has been handed to delivery when it
// returns; its error is a fault of ours that kept even that from happening.
func (r *Runner) Run(ctx context.Context, q Request) (Outcome, error) {
	t := r.begin(q)
	t.out = r.deps.Begin(q.To, q.In, q.ID)
	defer t.out.Cancel() // for the ways out that say nothing
	if err := t.open(ctx); err != nil {
		return t.fail(ctx, fmt.Errorf("open session: %w", err))
	}
	if t.cfg.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = r.deps.Clock.WithTimeout(ctx, t.cfg.Timeout-r.deps.Clock.Since(t.began), llm.ErrTurnTimeout)
		defer cancel()
	}
	answer, err := t.work(ctx)
	if err != nil {
		return t.fail(ctx, err)
	}
	return t.answered(ctx, answer)
}

// work gets the answer. A crash in it is a failure of this turn only.
func (t *turn) work(ctx context.Context) (a failover.Answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			t.log.ErrorContext(ctx, "turn_panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = errCrashed
		}
	}()
	if err := t.said(ctx); err != nil {
		return a, err
	}
	plan := t.prepare(ctx)
	t.run = t.r.deps.Failover.Begin(ctx, plan, t)
	defer t.run.Finish()
	t.dropLostPin(ctx)
	return t.loop(ctx)
}

// begin makes the turn of a request.
func (r *Runner) begin(q Request) *turn {
	t := &turn{r: r, req: q, cfg: r.deps.Agent(q.Agent), began: r.deps.Clock.Now()}
	t.cfg.Compaction = t.cfg.Compaction.withDefaults()
	t.log = r.deps.Log.With("agent", q.Agent, "session", q.Key, "turn", q.ID)
	return t
}

// errCrashed ends a turn that met a fault of ours; the log has its stack.
var errCrashed = errors.New("the turn crashed")

// add puts a message into the conversation.
func (t *turn) add(m llm.Message, by llm.ModelRef, usage *llm.Usage) {
	t.fresh = append(t.fresh, session.Entry{
		Kind: session.KindMessage, Message: m, Model: by, Usage: usage, At: t.r.deps.Clock.Now(),
	})
}

// prepare builds the first request, shortens the conversation if it will hardly fit, and returns the
// plan. A compaction moves an automatic pin, so the plan is made after it.
func (t *turn) prepare(ctx context.Context) failover.Plan {
	plan := t.plan(t.sess)
	t.request = t.prompt()
	if t.tooLong(plan.Chain[0]) && t.compact(ctx, plan.Chain[0]) == nil {
		t.request = t.prompt()
		plan = t.plan(t.sess)
	}
	plan.Tokens = estimate(t.request)
	return plan
}

// open loads the session and what was said in it.
func (t *turn) open(ctx context.Context) error {
	sessions := t.r.deps.Sessions
	s, _, err := sessions.Ensure(ctx, session.Seed{Key: t.req.Key, AgentID: t.req.Agent, Parent: t.req.Parent, Address: t.req.To})
	if err != nil {
		return err
	}
	if !t.req.internal() {
		if err := sessions.Touch(ctx, s.Key, t.began); err != nil {
			return err
		}
	}
	if s.SwitchPending { // the choice is read now; nothing is left to switch to
		if s, _, err = sessions.TakeSwitch(ctx, s.Key); err != nil {
			return err
		}
	}
	if t.sess, err = t.inherit(ctx, s); err != nil {
		return err
	}
	t.entries, err = sessions.Load(ctx, s.ID)
	return err
}

// inherit gives a thread without a choice of its own that of its parent.
func (t *turn) inherit(ctx context.Context, s session.Session) (session.Session, error) {
	o, from, err := t.r.deps.Sessions.Selection(ctx, s)
	s.Override, t.inherited = o, session.Override{}
	if from != s.Key {
		t.inherited = o
	}
	return s, err
}

// loop asks the models until one answers without calling a tool.
func (t *turn) loop(ctx context.Context) (failover.Answer, error) {
	for range maxSteps {
		a, err := t.run.Ask(ctx, t.request)
		if err != nil {
			return a, err
		}
		t.usage = t.usage.Add(a.Usage)
		t.add(a.Message, a.Served, &a.Usage)
		if len(a.Calls) == 0 {
			return a, nil
		}
		t.gap = t.visible() != ""
		t.add(t.runTools(ctx, a.Calls), llm.ModelRef{}, nil)
		if err := t.hear(ctx); err != nil {
			return a, err
		}
		t.request = t.prompt()
		if ctx.Err() != nil {
			return a, context.Cause(ctx)
		}
	}
	return failover.Answer{}, errTooManySteps
}

var errTooManySteps = errors.New("the model kept calling tools")

// answered remembers and delivers an answer. What the model said on the way to its tools belongs to
// it, but whether anything is said at all is decided by its last word.
func (t *turn) answered(ctx context.Context, a failover.Answer) (Outcome, error) {
	ctx = context.WithoutCancel(ctx) // an answer is not lost to a stop that came too late
	o := Outcome{Status: Answered, Model: a.Served, Usage: t.usage, Trail: t.run.Trail(), Steered: t.nSteered}
	last := strings.TrimSpace(t.r.deps.Clean(a.Message.PlainText()))
	if o.Text = strings.TrimSpace(t.r.deps.Clean(t.visible())); o.Text == "" || t.r.deps.IsSilent(last) {
		o.Status, o.Text = Silent, ""
	}
	if notice := t.settle(ctx, o, a); notice != "" {
		t.out.Notify(t.outbound(chat.Notice, notice))
	}
	t.log.InfoContext(ctx, "turn_answered", "status", o.Status.String(), "model", a.Served.String(), "profile", string(a.Profile),
		"seconds", t.r.deps.Clock.Since(t.began).Seconds(), "input_tokens", t.usage.Input, "output_tokens", t.usage.Output)
	if o.Status == Silent {
		t.out.Cancel()
		return o, nil
	}
	if err := t.out.Finish(ctx, t.outbound(t.req.class(), o.Text)); err != nil {
		return o, fmt.Errorf("deliver the answer: %w", err)
	}
	return o, nil
}

// visible joins what the model said in this turn.
func (t *turn) visible() string {
	var parts []string
	for _, e := range t.fresh {
		if e.Message.Role != llm.RoleAssistant {
			continue
		}
		if s := strings.TrimSpace(e.Message.PlainText()); s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, "\n\n")
}

// fail ends a turn that has no answer: silently when it was stopped, else with a text that stands
// where the answer would.
func (t *turn) fail(ctx context.Context, err error) (Outcome, error) {
	cause := context.Cause(ctx)
	ctx = context.WithoutCancel(ctx)
	if errors.Is(cause, llm.ErrTurnTimeout) && !errors.Is(err, llm.ErrTurnTimeout) && failover.ReasonOf(err) != llm.ReasonTimeout {
		err = fmt.Errorf("%w (%s)", cause, err.Error()) // what the limit cut short is no failure of its own
	}
	o := Outcome{Status: Failed, Reason: reasonOf(err), Usage: t.usage, Steered: t.nSteered}
	selected, strict := llm.ModelRef{}, false
	if t.run != nil {
		o.Trail = t.run.Trail()
		selected, strict = t.run.Plan().Selected, t.run.Plan().Strict
	}
	switch {
	case errors.Is(cause, llm.ErrShutdown):
		o.Status, o.Reason = Interrupted, llm.ReasonAborted
		t.out.Cancel()
		return o, nil
	case cause != nil && !errors.Is(cause, llm.ErrTurnTimeout):
		o.Status, o.Reason = Stopped, llm.ReasonAborted
		t.conclude(ctx, o, err)
		t.out.Cancel()
		return o, nil
	}
	o.Text, o.RetryAt = errorText(err, view{
		selected: selected, strict: strict, now: t.r.deps.Clock.Now(), zone: t.cfg.Zone, reference: t.req.ID,
	})
	t.log.WarnContext(ctx, "turn_failed", "reason", string(o.Reason), "error", err.Error(), "reference", t.req.ID)
	t.conclude(ctx, o, err)
	if e := t.out.Finish(ctx, t.outbound(chat.Error, o.Text)); e != nil {
		return o, fmt.Errorf("deliver the error text: %w", e)
	}
	return o, nil
}

// reasonOf is failover.ReasonOf for the errors of this package too.
func reasonOf(err error) llm.Reason {
	if r := failover.ReasonOf(err); r != llm.ReasonInternal || !errors.Is(err, llm.ErrTurnTimeout) {
		return r
	}
	return llm.ReasonTimeout
}

// outbound addresses a text to the turn's place.
func (t *turn) outbound(class chat.Class, text string) chat.Outbound {
	o := chat.Outbound{To: t.req.To, Class: class, Markdown: text, TurnID: t.req.ID}
	if t.req.In != nil {
		o.ReplyTo = t.req.In.ID
	}
	return o
}

// plannedNow returns the plan in force, or an empty one when the turn never got so far.
func (t *turn) plannedNow() failover.Plan {
	if t.run == nil {
		return failover.Plan{}
	}
	return t.run.Plan()
}
