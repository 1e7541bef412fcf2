package reply

import (
	"context"
	"slices"

	"understudy/chat"
	"understudy/failover"
	"understudy/llm"
	"understudy/notices"
)

// The methods of failover.Host.

// Text streams a piece of the answer. An internal turn has nobody who watches.
func (t *turn) Text(delta string) bool {
	t.progress()
	if t.req.internal() {
		return false
	}
	if t.gap {
		t.gap = false
		t.stream("\n\n")
	}
	t.stream(delta)
	return t.out.Committed()
}

// Forget takes the streamed text of a failed candidate back; what earlier steps of the turn said
// stays.
func (t *turn) Forget() {
	t.progress()
	if t.req.internal() {
		return
	}
	said := t.visible()
	t.gap = said != ""
	t.restream(said)
}

// StillRetrying tells the user that the turn goes on.
func (t *turn) StillRetrying() { t.out.Notify(t.outbound(chat.Progress, notices.StillRetrying)) }

// Switched returns the plan for a selection that was made while the turn ran (spec §8.7).
func (t *turn) Switched(ctx context.Context) (failover.Plan, bool) {
	if t.req.Selection != nil {
		return failover.Plan{}, false // an internal turn asks for its own model
	}
	s, pending, err := t.r.deps.Sessions.TakeSwitch(ctx, t.req.Key)
	if err != nil {
		t.log.WarnContext(ctx, "live_switch_not_read", "error", err.Error())
		return failover.Plan{}, false
	}
	if !pending {
		return failover.Plan{}, false
	}
	if t.sess, err = t.inherit(ctx, s); err != nil {
		t.log.WarnContext(ctx, "live_switch_not_read", "error", err.Error())
		return failover.Plan{}, false
	}
	return t.plan(t.sess), true
}

// Compact shortens the conversation after an overflow (spec/chat.md §1.8). What belongs to others is
// shown in part only. Where nothing older can go, the results of tools are shown shortened.
func (t *turn) Compact(ctx context.Context, ref llm.ModelRef) ([]llm.Message, bool) {
	switch {
	case t.req.guest():
		if !t.forgetOlder(ref) {
			return nil, false
		}
	case t.compact(ctx, ref) != nil && !t.tighten():
		return nil, false
	}
	t.request = t.prompt()
	return t.request.Messages, true
}

// tighten shows every large result shortened from now on. It reports whether that gains anything.
func (t *turn) tighten() bool {
	if t.tight || !slices.ContainsFunc(t.messages(), isLarge) {
		return false
	}
	t.tight = true
	return true
}

var _ failover.Host = (*turn)(nil)
