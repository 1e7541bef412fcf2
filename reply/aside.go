package reply

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"understudy/failover"
	"understudy/llm"
	"understudy/session"
)

// asideSteps bounds the requests of a question aside: a model that insists on tools is asked again.
const asideSteps = 3

// textNoTools is the result of every call in a question aside.
const textNoTools = "No tools here: answer from what you know."

// Aside answers a question beside the conversation (/btw): with a picture of it, without tools, and
// nothing of it is remembered. It says nothing to anybody; Outcome.Text is the answer, or why there is
// none. Unlike other turns it may run while one of its session does.
func (r *Runner) Aside(ctx context.Context, q Request) (Outcome, error) {
	t := r.begin(q)
	t.out = quiet{}
	s, _, err := r.deps.Sessions.Ensure(ctx, t.seed())
	if err != nil {
		return Outcome{}, fmt.Errorf("open session: %w", err)
	}
	if err := t.read(ctx, s); err != nil {
		return Outcome{}, fmt.Errorf("open session: %w", err)
	}
	if t.cfg.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = r.deps.Clock.WithTimeout(ctx, t.cfg.Timeout, llm.ErrTurnTimeout)
		defer cancel()
	}
	defer t.bill(ctx)
	a, err := t.aside(ctx)
	if err == nil {
		o := t.outcome(Answered)
		o.Model, o.Text = a.Served, t.compose(a).Markdown
		if o.Text == "" {
			o.Status = Silent
		}
		return o, nil
	}
	o := t.outcome(Failed)
	o.Reason = reasonOf(err)
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), llm.ErrTurnTimeout) {
		o.Status, o.Reason = Stopped, llm.ReasonAborted
		return o, nil
	}
	plan := t.plannedNow()
	o.Text, o.RetryAt = errorText(err, view{
		selected: plan.Selected, strict: plan.Strict, now: r.deps.Clock.Now(), zone: t.cfg.Zone, reference: q.ID,
	})
	t.log.WarnContext(ctx, "aside_failed", "reason", string(o.Reason), "error", err.Error(), "reference", q.ID)
	return o, nil
}

// aside gets the answer.
func (t *turn) aside(ctx context.Context) (a failover.Answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			t.log.ErrorContext(ctx, "turn_panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = errCrashed
		}
	}()
	if err := t.said(ctx); err != nil {
		return a, err
	}
	plan := t.plan(t.sess)
	plan.Quiet = true
	if t.request = t.prompt(); t.tooLong(plan.Chain[0]) {
		t.forgetOlder(plan.Chain[0])
	}
	plan.Tokens = estimate(t.request)
	t.run = t.r.deps.Failover.Begin(ctx, plan, deaf{})
	defer t.run.Finish()
	for range asideSteps {
		if a, err = t.run.Ask(ctx, t.request); err != nil {
			return a, err
		}
		t.usage = t.usage.Add(a.Usage)
		t.spend(a.Served, session.PurposeMessage, a.Usage)
		t.add(a.Message, a.Served, nil)
		if len(a.Calls) == 0 {
			return a, nil
		}
		results := llm.Message{Role: llm.RoleTool}
		for _, c := range a.Calls {
			results.Parts = append(results.Parts, llm.Part{ToolResult: t.result(c, false, textNoTools, nil)})
		}
		t.add(results, llm.ModelRef{}, nil)
		t.request = t.prompt()
	}
	return a, errTooManySteps
}

// ContextReport is what a session's next request would be made of (/context). Sizes are estimates in
// tokens.
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
	// Reported is the size of the last request as the provider counted it; 0 = unknown.
	Reported    int
	Compactions int
}

// ContextFile is the size of one of the operator's files.
type ContextFile struct {
	Name   string
	Tokens int
}

// Context measures what the next request of a session would be made of. It asks nobody and changes
// nothing; the session must exist.
func (r *Runner) Context(ctx context.Context, q Request) (ContextReport, error) {
	t := r.begin(q)
	s, _, err := r.deps.Sessions.Ensure(ctx, t.seed())
	if err != nil {
		return ContextReport{}, fmt.Errorf("open session: %w", err)
	}
	if err := t.read(ctx, s); err != nil {
		return ContextReport{}, fmt.Errorf("open session: %w", err)
	}
	t.request = t.prompt()
	c := ContextReport{
		Model: t.plan(t.sess).Chain[0], Tools: toolWeight(t.request.Tools) / bytesPerToken, ToolCount: len(t.tools),
		Total: estimate(t.request), Reported: int(s.TokensContext), Compactions: s.Compactions, System: len(t.request.System),
	}
	if most, ok := t.limit(c.Model); ok {
		c.Window = r.deps.Models().Info(c.Model).ContextWindow
		c.Reserve = c.Window - most
	}
	for _, f := range t.operatorFiles() {
		size := len(section(f))
		c.System -= size
		c.Files = append(c.Files, ContextFile{Name: oneLine(f.Name), Tokens: size / bytesPerToken})
	}
	c.System /= bytesPerToken
	for _, e := range pruned(false, t.entries) {
		if e.Kind == session.KindCompaction {
			c.Summary = weight(e.Message) / bytesPerToken
			continue
		}
		c.Messages += weight(e.Message)
		c.MessageCount++
	}
	c.Messages /= bytesPerToken
	return c, nil
}
