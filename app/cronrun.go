package app

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"understudy/chat"
	"understudy/config"
	"understudy/cron"
	"understudy/failover"
	"understudy/heartbeat"
	"understudy/llm"
	"understudy/reply"
	"understudy/session"
)

// currentTail is how many turns of a conversation a task is shown that runs in it (spec/chat.md §5.5).
const currentTail = 12

// runner does the work of scheduled tasks.
type runner struct{ a *App }

var _ cron.Runner = runner{}

// Run implements cron.Runner.
func (r runner) Run(ctx context.Context, t cron.Task) (cron.Result, error) {
	a, p := r.a, t.Job.Payload
	switch {
	case p.Kind == cron.Saying:
		return cron.Result{Text: p.Message}, nil
	case p.Kind == cron.SystemEvent:
		err := a.pulse.Notice(ctx, t.Job.Agent, heartbeat.Event{ID: t.RunID, Text: p.Message}, t.Job.Wake != cron.WakeNextHeartbeat)
		return cron.Result{}, err
	case t.Trigger != cron.ByHand && a.purse.BackgroundSpent(ctx):
		return cron.Result{}, &cron.Skip{Reason: cron.ReasonBudget}
	}
	if _, known := a.agentOf(t.Job.Agent); !known {
		return cron.Result{}, &cron.Error{Reason: cron.ReasonSession, Detail: fmt.Sprintf("there is no agent %s any more", t.Job.Agent)}
	}
	var res cron.Result
	err := a.inLane(ctx, a.jobKey(t.Job), "cron:"+t.Job.ID, func(ctx context.Context) (err error) {
		res, err = r.turn(ctx, t)
		return err
	})
	return res, runError(err)
}

// runError says what the end of a run means. What the scheduler's own context decides it knows better.
func runError(err error) error {
	var failed *cron.Error
	var skip *cron.Skip
	switch {
	case err == nil, errors.As(err, &failed), errors.As(err, &skip):
		return err
	case errors.Is(err, errBusyLane), errors.Is(err, session.ErrFull):
		return &cron.Skip{Reason: cron.ReasonBusy}
	case errors.Is(err, llm.ErrShutdown):
		return &cron.Error{Reason: cron.ReasonInterrupted, Err: err}
	case errors.Is(err, llm.ErrStopped):
		return &cron.Error{Reason: cron.ReasonStopped, Err: err}
	case errors.Is(err, errCrashedRun):
		return &cron.Error{Reason: cron.ReasonPanic, Err: err}
	}
	return err
}

// agentOf returns an agent's configuration; known is false where there is none of that name.
func (a *App) agentOf(id string) (x config.Agent, known bool) {
	for _, name := range a.cfg().AgentIDs() {
		if name == id {
			return a.cfg().Agent(id), true
		}
	}
	return config.Agent{}, false
}

// jobKey is the key of the session that a task runs in (spec/chat.md §1.1).
func (a *App) jobKey(j cron.Job) string {
	switch name := j.Target.Session(); {
	case name != "":
		return sessionKey(j.Agent, "session", name)
	case j.Target == cron.Main:
		return session.MainKey(j.Agent, a.cfg().Session)
	case j.Target == cron.Current:
		return j.Session
	}
	return sessionKey(j.Agent, "cron", j.ID)
}

// sessionKey is the key of a session that belongs to no conversation.
func sessionKey(agent, kind, name string) string {
	return strings.ToLower("agent:" + agent + ":" + kind + ":" + name)
}

// turn runs an agent's turn; the lane is ours.
func (r runner) turn(ctx context.Context, t cron.Task) (cron.Result, error) {
	a, job := r.a, t.Job
	key := a.jobKey(job)
	s, to, err := a.stageFor(ctx, key, job)
	if err != nil {
		return cron.Result{}, &cron.Error{Reason: cron.ReasonSession, Err: err}
	}
	agent := a.cfg().Agent(job.Agent)
	chosen, _, err := a.sessions.Selection(ctx, s)
	if err != nil {
		return cron.Result{}, &cron.Error{Reason: cron.ReasonSession, Err: err}
	}
	sel, err := job.Payload.Selection(chosen, agent.Models, a.jobModel)
	if err != nil {
		return cron.Result{}, noModel(err)
	}
	res := cron.Result{Requested: sel.Ref}
	q := reply.Request{
		ID: t.RunID, Agent: job.Agent, Key: key, Kind: reply.Cron, To: to, Text: job.Payload.Message, Selection: &sel,
		Timeout: job.Payload.Timeout(), Light: job.Payload.LightContext, Think: job.Payload.Thinking,
	}
	if job.Target == cron.Current || job.Target == cron.Main {
		q.Tail = currentTail
	}
	if !a.reachableModel(ctx, sel, agent.Models) {
		return res, &cron.Skip{Reason: cron.ReasonUnreachable}
	}
	p, o, err := a.backstage.perform(ctx, q, job.Delivery.To)
	if err != nil {
		return res, err
	}
	a.countUnasked(o, "cron", job.Delivery.To.Channel)
	res.Model, res.Usage, res.Acted, res.Said = o.Model, o.Usage, o.Acted || p.sent.Load() > 0, p.spoke.Load()
	res.FallbackUsed = !o.Model.IsZero() && o.Model != sel.Ref
	if res.FallbackUsed {
		res.FallbackReason = whyNot(o.Trail, sel.Ref)
	}
	if o.CostUSD != nil {
		micros := int64(math.Round(*o.CostUSD * 1e6))
		res.CostMicros = &micros
	}
	switch o.Status {
	case reply.Answered:
		res.Text, res.Media = p.said.Markdown, p.said.Media
		return res, nil
	case reply.Silent:
		return res, nil
	case reply.Stopped:
		return res, llm.ErrStopped
	case reply.Interrupted:
		return res, llm.ErrShutdown
	}
	return res, &cron.Error{Reason: cron.ReasonOf(o.Reason), Err: errors.New(o.Text)}
}

// stageFor prepares the session of a run and returns it with the place that the turn belongs to. A
// session of others keeps its address; of an isolated one the last run is forgotten, but what a person
// chose for it stays (spec/chat.md §5.5).
func (a *App) stageFor(ctx context.Context, key string, job cron.Job) (session.Session, chat.Address, error) {
	s, err := a.sessions.Get(ctx, key)
	switch {
	case errors.Is(err, session.ErrNotFound):
		s, _, err = a.sessions.Ensure(ctx, session.Seed{Key: key, AgentID: job.Agent, Address: stageOf(job)})
	case err == nil && job.Target == cron.Isolated:
		if s, err = a.sessions.Reset(ctx, key); err == nil {
			s, _, err = a.sessions.Ensure(ctx, session.Seed{Key: key, AgentID: job.Agent, Address: stageOf(job)})
		}
	}
	return s, s.Address, err
}

// stageOf is the place that a run belongs to: where its result goes, if people are there.
func stageOf(job cron.Job) chat.Address {
	switch to := job.Delivery.To; {
	case job.Target == cron.Current, to.Channel == cron.WebhookChannel && job.Origin != chat.Address{}:
		return job.Origin
	case to.Channel != "" && to.Channel != cron.WebhookChannel:
		return to
	}
	return chat.Address{Kind: chat.Direct} // nobody listens
}

// errNotAllowed tells that people may not select a model.
var errNotAllowed = errors.New("agents.defaults.modelPolicy.allow does not allow it")

// errNoModel tells that a text names no model.
var errNoModel = errors.New("there is no such model; bot models list shows what there is")

// jobModel reads a model of a task. Nothing is guessed: a task runs when nobody looks.
func (a *App) jobModel(text string) (llm.ModelRef, error) {
	snap := a.current.Load()
	choice, err := snap.cfg.Resolve(text, config.Known{})
	if err != nil || choice.Guessed || choice.Profile != "" {
		return llm.ModelRef{}, errNoModel
	}
	if _, err := snap.Client(choice.Ref.Provider); err != nil {
		return llm.ModelRef{}, errNoModel
	}
	if !snap.cfg.Allowed(choice.Ref) && !configured(snap.cfg, choice.Ref) {
		return llm.ModelRef{}, errNotAllowed
	}
	return choice.Ref, nil
}

// configured reports whether the operator named a model: the policy limits what people select, not that.
func configured(cfg *config.Config, ref llm.ModelRef) bool {
	for _, id := range cfg.AgentIDs() {
		m := cfg.Agent(id).Models
		if m.Primary == ref {
			return true
		}
		for _, f := range m.Fallbacks {
			if f == ref {
				return true
			}
		}
	}
	return false
}

// noModel is the failure of a run whose model went away since the task was made.
func noModel(err error) error {
	reason := cron.ReasonModelUnknown
	if errors.Is(err, errNotAllowed) {
		reason = cron.ReasonModelRefused
	}
	return &cron.Error{Reason: reason, Detail: err.Error(), Err: err}
}

// whyNot says why a model did not answer: its last failure or skip.
func whyNot(trail []failover.Record, ref llm.ModelRef) llm.Reason {
	for i := len(trail) - 1; i >= 0; i-- {
		if trail[i].Ref() == ref && trail[i].Reason != "" {
			return trail[i].Reason
		}
	}
	return llm.ReasonRefusal // the provider let another model answer
}
