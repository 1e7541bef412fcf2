package failover

import (
	"context"
	"errors"
	"log/slog"
	"unicode/utf8"

	"understudy/failover/policy"
	"understudy/internal/clock"
	"understudy/llm"
)

// maxTrail bounds the records of a turn; a pass retried ten times over a long chain stays below it.
const maxTrail = 512

func (run *Run) clock() clock.Clock { return run.runner.deps.Clock }

func (run *Run) log(context.Context) *slog.Logger {
	log := run.runner.deps.Log.With("agent", run.plan.Agent)
	if run.plan.Turn == "" && run.plan.Session == "" {
		return log // a probe between turns
	}
	return log.With("session", run.plan.Session, "turn", run.plan.Turn)
}

// note keeps a record.
func (run *Run) note(r Record) {
	run.mu.Lock()
	defer run.mu.Unlock()
	if len(run.trail) < maxTrail {
		run.trail = append(run.trail, r)
		return
	}
	run.trail[maxTrail-1] = r
}

// skip records a candidate that was passed over.
func (run *Run) skip(_ context.Context, x policy.Skip) {
	ref := run.state.Chain[x.Index].Ref
	rec := Record{
		Provider: ref.Provider, Model: ref.Model, Skipped: true, Why: x.Why, Reason: x.Reason, Detail: x.Detail,
		StartedAt: run.clock().Now(), Until: x.Until, Position: x.Index, Pass: run.pass,
	}
	run.state.Record(policy.Step{
		Kind: policy.StepSkipped, Index: x.Index, Why: x.Why,
		Failure: llm.Failure{Reason: x.Reason, Detail: x.Detail},
	})
	run.note(rec)
	if o := run.runner.deps.Observer; o != nil {
		o.Skipped(run.plan.Ref, rec)
	}
	run.maybeStillRetrying()
}

// summary is the error of a turn nobody answered.
func (run *Run) summary(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != nil {
		return run.ended(ctx, cause)
	}
	return run.wrap(run.lastError(ctx))
}

// failed is the error of a turn that ends for another cause than its last attempt.
func (run *Run) failed(ctx context.Context, cause error) error {
	e := run.lastError(ctx)
	e.Err = cause
	return run.wrap(e)
}

// lastError returns the failure that decides the turn's reason: the last request, or the last skip
// when nothing was asked (spec §8.5).
func (run *Run) lastError(ctx context.Context) *AttemptError {
	now := run.clock().Now()
	run.refresh(context.WithoutCancel(ctx), now)
	e := &AttemptError{Work: run.state.Work}
	trail := run.Trail()
	for i := len(trail) - 1; i >= 0; i-- {
		if r := trail[i]; !r.Skipped || e.Record == (Record{}) {
			e.Record = r
			if !r.Skipped {
				break
			}
		}
	}
	e.Failure = llm.Failure{
		Reason: e.Reason, Detail: e.Detail, Status: e.Status, Code: e.Code, Message: e.Record.Error,
	}
	if e.Record == (Record{}) {
		e.Provider, e.Model = run.plan.Selected.Provider, run.plan.Selected.Model
	}
	for _, c := range run.state.Chain {
		if c.Ref == e.Ref() {
			e.Until = policy.SoonestExpiry([]policy.Candidate{c}, run.state.Health, now)
		}
	}
	return e
}

// wrap returns e itself when one candidate was concerned, else the summary of all.
func (run *Run) wrap(e *AttemptError) error {
	trail := run.Trail()
	one := true
	for _, r := range trail {
		one = one && r.Ref() == trail[0].Ref()
	}
	if one || e.Work || policy.Terminal(e.Failure.Reason) && e.Failure.Reason != llm.ReasonInternal {
		return e
	}
	chain, now := run.state.Chain[run.state.From:], run.clock().Now()
	return &FallbackSummaryError{
		Attempts:       trail,
		SoonestExpiry:  policy.SoonestExpiry(chain, run.state.Health, now),
		SoonestPassing: policy.SoonestPassing(chain, run.state.Health, now),
		Cause:          e,
	}
}

// decision is one `model_fallback_decision` record (spec §15).
func (run *Run) decision(ctx context.Context, level slog.Level, name string, index int, attrs ...slog.Attr) {
	c := run.state.Chain[index].Ref
	base := []slog.Attr{
		slog.String("decision", name),
		slog.String("requested", run.plan.Selected.String()),
		slog.String("candidate", c.String()),
		slog.Int("position", index),
		slog.Int("pass", run.pass),
	}
	run.log(ctx).LogAttrs(ctx, level, "model_fallback_decision", append(base, attrs...)...)
}

// step returns the flat fields from which the way through the chain can be rebuilt.
func (run *Run) step(from int, reason llm.Reason, detail llm.Detail, next policy.Decision) []slog.Attr {
	ref := run.state.Chain[from].Ref
	var to llm.ModelRef
	switch x := next.(type) {
	case policy.Try:
		to = run.state.Chain[x.Index].Ref
	case policy.Skip:
		to = run.state.Chain[x.Index].Ref
	case policy.Wait:
		to = run.state.Chain[run.state.From].Ref
	}
	outcome := "next_fallback"
	if to.IsZero() {
		outcome = "chain_exhausted"
	}
	if o := run.runner.deps.Observer; o != nil && !to.IsZero() && to != ref {
		o.Fell(run.plan.Ref, ref, to, reason)
	}
	return []slog.Attr{
		slog.String("fallbackStepFromModel", ref.String()),
		slog.String("fallbackStepToModel", to.String()),
		slog.String("fallbackStepFromFailureReason", string(reason)),
		slog.String("fallbackStepFromFailureDetail", string(detail)),
		slog.String("fallbackStepFinalOutcome", outcome),
	}
}

func (run *Run) logSkip(ctx context.Context, x policy.Skip, next policy.Decision) {
	attrs := append(run.step(x.Index, x.Reason, x.Detail, next),
		slog.String("reason", string(x.Reason)), slog.String("why", string(x.Why)))
	run.decision(ctx, slog.LevelInfo, "skip_candidate", x.Index, attrs...)
}

func (run *Run) logProbe(ctx context.Context, x policy.Try) {
	run.decision(ctx, slog.LevelInfo, "probe_cooldown_candidate", x.Index,
		slog.String("profile", string(x.Profile)), slog.String("why", string(x.Why)))
}

func (run *Run) logFailed(ctx context.Context, x policy.Try, f *llm.Error, next policy.Decision) {
	attrs := append(run.step(x.Index, f.Reason, f.Detail, next),
		slog.String("reason", string(f.Reason)), slog.Int("status", f.Status), slog.String("code", f.Code),
		slog.String("preview", preview(f)), slog.String("profile", string(x.Profile)), slog.String("why", string(x.Why)))
	run.decision(ctx, slog.LevelWarn, "candidate_failed", x.Index, attrs...)
}

func (run *Run) logAnswered(ctx context.Context, x policy.Try, rec Record) {
	from, reason, detail := "", llm.Reason(""), llm.Detail("")
	for _, r := range run.Trail() {
		if r.Position != x.Index && r.Reason != "" {
			from, reason, detail = r.Ref().String(), r.Reason, r.Detail
		}
	}
	run.decision(ctx, slog.LevelInfo, "candidate_succeeded", x.Index,
		slog.String("profile", string(x.Profile)), slog.String("why", string(x.Why)),
		slog.Float64("seconds", rec.Duration.Seconds()),
		slog.String("fallbackStepFromModel", from),
		slog.String("fallbackStepToModel", rec.Ref().String()),
		slog.String("fallbackStepFromFailureReason", string(reason)),
		slog.String("fallbackStepFromFailureDetail", string(detail)),
		slog.String("fallbackStepFinalOutcome", "succeeded"))
}

// preview returns a short text about a failure for operators: the provider's message, which
// classification has redacted, or the kind of our own error.
func preview(e *llm.Error) string {
	s := e.Message
	if s == "" && e.Err != nil && !errors.Is(e.Err, context.Canceled) {
		s = e.Err.Error()
	}
	const most = 200
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
