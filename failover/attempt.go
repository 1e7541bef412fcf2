package failover

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"understudy/failover/policy"
	"understudy/internal/clock"
	"understudy/llm"
)

// Answer is what a candidate said to one request.
type Answer struct {
	Ref     llm.ModelRef // the candidate
	Served  llm.ModelRef // who really answered; differs after a provider's own fallback
	Profile llm.ProfileID
	Message llm.Message
	Calls   []llm.ToolCall
	Stop    llm.StopReason
	Usage   llm.Usage
}

// attempt makes one request. failed is why it brought no answer; err is not nil only when the turn
// itself cannot go on.
func (run *Run) attempt(ctx context.Context, x policy.Try, req *llm.Request) (a Answer, failed *llm.Error, err error) {
	c := run.state.Chain[x.Index]
	rec := Record{
		Provider: c.Ref.Provider, Model: c.Ref.Model, Profile: x.Profile, Why: x.Why,
		StartedAt: run.clock().Now(), Position: x.Index, Pass: run.pass,
	}
	if x.Why == policy.WhyProbe || x.Why == policy.WhySibling || x.Why == policy.WhyLastResort {
		run.logProbe(ctx, x)
	}
	run.doing(rec, time.Time{})
	defer run.doing(Record{}, time.Time{})
	called := false
	cred, failed := run.credential(ctx, x.Profile)
	if failed == nil {
		r := *req
		r.Model, r.Strict = c.Ref, run.plan.Strict
		r.Stateless = r.Stateless || x.Why == policy.WhyStateless
		r.Repair = r.Repair || x.Why == policy.WhyRepair
		called = true
		a, failed = run.request(ctx, x, cred, r)
	}
	if x.Throttled && !called && run.store != nil {
		if e := run.store.ReleaseProbe(context.WithoutCancel(ctx), c.Ref.Provider, run.claimed); e != nil {
			run.log(ctx).WarnContext(ctx, "auth_profile_bookkeeping_dropped", "what", "probe_throttle", "error", e.Error())
		}
	}
	rec.Duration = run.clock().Now().Sub(rec.StartedAt)
	step := policy.Step{Kind: policy.StepAnswered, Index: x.Index, Profile: x.Profile, Why: x.Why}
	if failed != nil {
		run.host.Forget()
		failed = discreet(failed, req.Messages)
		step.Kind, step.Failure = policy.StepFailed, failed.Failure
		rec.Reason, rec.Detail, rec.Status, rec.Code = failed.Reason, failed.Detail, failed.Status, failed.Code
		if !called {
			rec.Status = 0 // of the sign-in server, not of the model's
		}
		rec.Error = preview(failed)
	}
	run.state.Record(step)
	run.note(rec)
	if o := run.runner.deps.Observer; o != nil {
		o.Attempted(run.plan.Ref, rec)
	}
	run.settle(ctx, c.Ref, x, failed)
	run.maybeStillRetrying()
	if failed == nil {
		run.logAnswered(ctx, x, rec)
		return a, nil, nil
	}
	if x.Index > run.state.From && run.settings.SkipTTL > 0 &&
		(failed.Reason == llm.ReasonAuth || failed.Reason == llm.ReasonAuthPermanent) {
		run.runner.cache.put(run.plan.Session, c.Ref, run.clock().Now(), run.settings.SkipTTL)
	}
	return Answer{}, failed, nil
}

// credential returns what the profile authenticates with.
func (run *Run) credential(ctx context.Context, id llm.ProfileID) (llm.Credential, *llm.Error) {
	if p, cred, ok := run.runner.deps.Models().Virtual(id.Provider()); ok && p.ID == id {
		return cred, nil
	}
	if cred, ok := run.settings.key(id); ok {
		return cred, nil
	}
	if run.store == nil {
		return llm.Credential{}, &llm.Error{Failure: llm.Failure{Reason: llm.ReasonInternal}, Err: errors.New("credential store unavailable")}
	}
	cred, err := run.store.Credential(ctx, id)
	if err == nil {
		return cred, nil
	}
	if ctx.Err() != nil {
		return cred, contextFailure(ctx)
	}
	var refused *llm.Error
	if errors.As(err, &refused) {
		return cred, refused
	}
	// A lock time-out or a busy store says nothing about the profile: try the next one (spec §13).
	return cred, &llm.Error{Failure: llm.Failure{
		Reason: llm.ReasonTimeout, Detail: llm.DetailNetwork, NotSent: true, Message: "credential not available in time",
	}, Err: err}
}

// settle writes what the attempt says about the profile's health. It never fails the request.
func (run *Run) settle(ctx context.Context, ref llm.ModelRef, x policy.Try, failed *llm.Error) {
	if run.store == nil {
		return
	}
	a := policy.Attempt{Profile: x.Profile, Model: ref.Model, At: run.clock().Now(), Background: x.Why == policy.WhyBackground}
	if failed != nil {
		if cost, _ := policy.CostOf(failed.Failure); cost == policy.CostNone {
			return
		}
		a.Failure = &failed.Failure
	}
	changed, err := run.store.Settle(context.WithoutCancel(ctx), run.settings.Rules, a)
	if err != nil {
		run.log(ctx).WarnContext(ctx, "auth_profile_bookkeeping_dropped",
			"what", "health", "profile", string(x.Profile), "error", err.Error())
	}
	if o := run.runner.deps.Observer; o != nil && len(changed) > 0 {
		o.Settled(run.plan.Agent, changed)
	}
}

// request streams one answer under the time limits of spec §8.4.
func (run *Run) request(ctx context.Context, x policy.Try, cred llm.Credential, req llm.Request) (Answer, *llm.Error) {
	models := run.runner.deps.Models()
	client, err := models.Client(req.Model.Provider)
	if err != nil {
		return Answer{}, &llm.Error{Failure: llm.Failure{Reason: llm.ReasonModelNotFound}, Err: err}
	}
	idle := models.IdleTimeout(req.Model.Provider)
	if idle <= 0 {
		idle = noLimit
	}
	first := idle
	if !run.plan.Deadline.IsZero() {
		share := run.plan.Deadline.Sub(run.clock().Now()) / time.Duration(max(x.Share, 1))
		first = min(first, max(share, time.Millisecond))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := newWatchdog(run.clock(), first, idle, cancel)
	defer watch.stop()

	b := builder{ref: req.Model}
	for ev, err := range client.Stream(ctx, cred, req) {
		if err != nil {
			return Answer{}, asFailure(ctx, err)
		}
		watch.feed()
		if ev.Text != "" && run.host.Text(ev.Text) {
			run.state.Work, run.state.Said = true, true
		}
		b.add(ev)
	}
	if ctx.Err() != nil && b.done == nil {
		return Answer{}, contextFailure(ctx)
	}
	if x.Why == policy.WhyBackground && b.done != nil {
		return Answer{Ref: req.Model, Usage: b.done.Usage}, nil // a probe wants to know that somebody answers, not what
	}
	a, failed := b.finish()
	a.Profile = cred.Profile
	return a, failed
}

// noLimit stands for "for ever" where a timer wants a number.
const noLimit = 100 * 365 * 24 * time.Hour

// asFailure returns err as the provider classified it, unless our own context decided first.
func asFailure(ctx context.Context, err error) *llm.Error {
	if ctx.Err() != nil {
		f := contextFailure(ctx)
		f.Err = err
		return f
	}
	return llm.AsError(err)
}

// contextFailure says what the end of our own context means (spec §6, principle 1).
func contextFailure(ctx context.Context) *llm.Error {
	cause := context.Cause(ctx)
	f := llm.Failure{Reason: llm.ReasonAborted, Message: cause.Error()}
	for _, t := range [...]error{llm.ErrIdle, llm.ErrFirstByte, llm.ErrTurnTimeout, context.DeadlineExceeded} {
		if errors.Is(cause, t) {
			f.Reason, f.Detail = llm.ReasonTimeout, llm.DetailDeadline
		}
	}
	return &llm.Error{Failure: f, Err: cause}
}

// watchdog ends an attempt that brings no content in time: first until the first event, then
// between events. One timer serves the whole stream.
type watchdog struct {
	clk    clock.Clock
	idle   time.Duration
	cancel context.CancelCauseFunc
	last   atomic.Int64 // unix milliseconds of the last event; 0 = none yet
	timer  atomic.Pointer[clock.Timer]
	ended  atomic.Bool
}

func newWatchdog(clk clock.Clock, first, idle time.Duration, cancel context.CancelCauseFunc) *watchdog {
	w := &watchdog{clk: clk, idle: idle, cancel: cancel}
	w.timer.Store(clk.AfterFunc(first, w.fire))
	return w
}

func (w *watchdog) feed() {
	if w.last.Swap(w.clk.Now().UnixMilli()) == 0 && w.timer.Load().Stop() {
		w.timer.Store(w.clk.AfterFunc(w.idle, w.fire))
	}
}

func (w *watchdog) fire() {
	last := w.last.Load()
	switch {
	case w.ended.Load():
	case last == 0:
		w.cancel(llm.ErrFirstByte)
	default:
		if left := w.idle - w.clk.Since(time.UnixMilli(last)); left > 0 {
			w.timer.Store(w.clk.AfterFunc(left, w.fire))
			if w.ended.Load() {
				w.timer.Load().Stop()
			}
			return
		}
		w.cancel(llm.ErrIdle)
	}
}

func (w *watchdog) stop() {
	w.ended.Store(true)
	w.timer.Load().Stop()
}

// builder puts an answer together from its events.
type builder struct {
	ref   llm.ModelRef
	parts []llm.Part
	text  strings.Builder
	calls []llm.ToolCall
	done  *llm.Done
}

func (b *builder) add(ev llm.Event) {
	switch {
	case ev.Text != "":
		b.text.WriteString(ev.Text)
	case ev.Reasoning != nil:
		b.flush()
		b.parts = append(b.parts, llm.Part{Reasoning: ev.Reasoning})
	case ev.ToolCall != nil:
		b.flush()
		call := *ev.ToolCall
		b.calls = append(b.calls, call)
		b.parts = append(b.parts, llm.Part{ToolCall: &call})
	case ev.Done != nil:
		b.flush()
		b.done = ev.Done
	}
}

func (b *builder) flush() {
	if b.text.Len() > 0 {
		b.parts = append(b.parts, llm.Part{Text: b.text.String()})
		b.text.Reset()
	}
}

// finish applies the two rules that no API applies itself: a stream without a terminal event has
// failed, and a success without text and call is none.
func (b *builder) finish() (Answer, *llm.Error) {
	if b.done == nil {
		return Answer{}, &llm.Error{Failure: llm.Failure{
			Reason: llm.ReasonTimeout, Detail: llm.DetailNetwork, Message: "the stream ended early",
		}}
	}
	m := llm.Message{Role: llm.RoleAssistant, Parts: b.parts}
	if len(b.calls) == 0 && strings.TrimSpace(m.PlainText()) == "" {
		return Answer{}, &llm.Error{Failure: llm.Failure{Reason: llm.ReasonEmptyResponse, Message: "no text and no tool call"}}
	}
	a := Answer{Ref: b.ref, Served: b.ref, Message: m, Calls: b.calls, Stop: b.done.Stop, Usage: b.done.Usage}
	if b.done.Served != "" {
		a.Served.Model = b.done.Served
	}
	return a, nil
}
