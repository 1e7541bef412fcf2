package failover

import (
	"context"

	"understudy/failover/policy"
	"understudy/llm"
)

// affordable reports whether the candidate of an attempt may be asked: one that stands in only if the
// purse allows it. One that may not is passed over from now on, for the reason for which it would have
// stood in: it is no failure of its own.
func (run *Run) affordable(ctx context.Context, x policy.Try) bool {
	purse, ref := run.runner.deps.Purse, run.state.Chain[x.Index].Ref
	if purse == nil || x.Index <= run.state.From || run.agreed[ref] {
		return true
	}
	if purse.MayStandIn(ctx, run.plan.Ref, ref, run.plan.Quiet) {
		if run.agreed == nil {
			run.agreed = map[llm.ModelRef]bool{}
		}
		run.agreed[ref] = true
		return ctx.Err() == nil
	}
	c := &run.state.Chain[x.Index]
	c.Unfit, c.UnfitWhy = llm.ReasonUnclassified, policy.WhyBudget
	if log := run.state.Log(); len(log) > 0 {
		last := log[len(log)-1].Failure
		c.Unfit, c.UnfitDetail = last.Reason, last.Detail
	}
	return false
}

// stoodIn has the purse count an answer of a stand-in.
func (run *Run) stoodIn(ctx context.Context, x policy.Try, a Answer) {
	if purse := run.runner.deps.Purse; purse != nil && x.Index > run.state.From {
		purse.StoodIn(context.WithoutCancel(ctx), a.Served, a.Usage)
	}
}
