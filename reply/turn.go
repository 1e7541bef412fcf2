package reply

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	out  Delivery
	run  *failover.Run

	entries []session.Entry // the conversation before this turn
	fresh   []llm.Message   // what this turn adds to it
	request llm.Request
	began   time.Time
	usage   llm.Usage
	focus   string // of a compaction that the user asked for
	// summarised tells that a compaction happened in this turn.
	summarised bool
}

// Run answers one request. Everything a person should see has been handed to delivery when it
// returns; its error is a fault of ours that kept even that from happening.
func (r *Runner) Run(ctx context.Context, q Request) (Outcome, error) {
	t := &turn{r: r, req: q, cfg: r.deps.Agent(q.Agent), began: r.deps.Clock.Now()}
	t.cfg.Compaction = t.cfg.Compaction.withDefaults()
	t.log = r.deps.Log.With("agent", q.Agent, "session", q.Key, "turn", q.ID)
	t.out = r.deps.Begin(q.To, q.In, q.ID)
	if err := t.open(ctx); err != nil {
		return t.fail(ctx, fmt.Errorf("open session: %w", err))
	}
	if t.cfg.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = r.deps.Clock.WithTimeout(ctx, t.cfg.Timeout, llm.ErrTurnTimeout)
		defer cancel()
	}
	user, err := t.userMessage(ctx)
	if err != nil {
		return t.fail(ctx, err)
	}
	t.fresh = []llm.Message{user}
	plan := t.plan(t.sess)
	t.request = t.prompt()
	if t.tooLong(plan.Selected) {
		t.compact(ctx, plan.Selected)
		t.request = t.prompt()
	}
	plan.Tokens = estimate(t.request)
	t.run = r.deps.Failover.Begin(ctx, plan, t)
	defer t.run.Finish()
	t.dropLostPin(ctx)
	answer, err := t.loop(ctx)
	t.run.Finish()
	if err != nil {
		return t.fail(ctx, err)
	}
	return t.answered(ctx, answer)
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
	o, _, err := t.r.deps.Sessions.Selection(ctx, s)
	s.Override = o
	return s, err
}

// loop asks the models until one answers with text.
func (t *turn) loop(ctx context.Context) (failover.Answer, error) {
	for range maxSteps {
		a, err := t.run.Ask(ctx, t.request)
		if err != nil {
			return a, err
		}
		t.usage = t.usage.Add(a.Usage)
		t.fresh = append(t.fresh, a.Message)
		if len(a.Calls) == 0 {
			return a, nil
		}
		results := t.runTools(ctx, a.Calls)
		t.fresh = append(t.fresh, results)
		// The text before a tool call was a remark on the way, not the answer.
		t.request = t.prompt()
		if ctx.Err() != nil {
			return a, context.Cause(ctx)
		}
	}
	return failover.Answer{}, errTooManySteps
}

var errTooManySteps = errors.New("the model kept calling tools")

// answered remembers and delivers an answer.
func (t *turn) answered(ctx context.Context, a failover.Answer) (Outcome, error) {
	ctx = context.WithoutCancel(ctx) // an answer is not lost to a stop that came too late
	o := Outcome{Status: Answered, Model: a.Served, Usage: t.usage, Trail: t.run.Trail()}
	o.Text = strings.TrimSpace(t.r.deps.Clean(t.visible()))
	if notice := t.settle(ctx, o, a); notice != "" {
		t.out.Notify(t.outbound(chat.Notice, notice))
	}
	if o.Text == "" || t.r.deps.IsSilent(o.Text) {
		o.Status = Silent
		t.out.Cancel()
		return o, nil
	}
	if err := t.out.Finish(ctx, t.outbound(t.req.class(), o.Text)); err != nil {
		return o, fmt.Errorf("deliver the answer: %w", err)
	}
	t.log.InfoContext(ctx, "turn_answered", "model", a.Served.String(), "profile", string(a.Profile),
		"seconds", t.r.deps.Clock.Since(t.began).Seconds(), "input_tokens", t.usage.Input, "output_tokens", t.usage.Output)
	return o, nil
}

// visible joins what the model said in this turn.
func (t *turn) visible() string {
	var parts []string
	for _, m := range t.fresh {
		if m.Role != llm.RoleAssistant {
			continue
		}
		if s := strings.TrimSpace(m.PlainText()); s != "" {
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
	o := Outcome{Status: Failed, Reason: failover.ReasonOf(err), Usage: t.usage}
	selected, strict := llm.ModelRef{}, false
	if t.run != nil {
		o.Trail = t.run.Trail()
		selected, strict = t.run.Plan().Selected, t.run.Plan().Strict
	}
	switch {
	case errors.Is(cause, llm.ErrShutdown):
		o.Status = Interrupted
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
