package reply

import (
	"context"

	"understudy/chat"
	"understudy/failover"
	"understudy/llm"
	"understudy/notices"
)

// The methods of failover.Host.

// Text streams a piece of the answer. An internal turn has nobody who watches.
func (t *turn) Text(delta string) bool {
	if t.req.internal() {
		return false
	}
	if t.gap {
		t.gap = false
		t.out.Stream("\n\n")
	}
	t.out.Stream(delta)
	return t.out.Committed()
}

// Forget takes the streamed text of a failed candidate back; what earlier steps of the turn said
// stays.
func (t *turn) Forget() {
	if t.req.internal() {
		return
	}
	t.out.Restart()
	said := t.visible()
	t.gap = said != ""
	t.out.Stream(said)
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

// Compact shortens the conversation after an overflow (spec/chat.md §1.8).
func (t *turn) Compact(ctx context.Context, ref llm.ModelRef) ([]llm.Message, bool) {
	if t.compact(ctx, ref) != nil {
		return nil, false
	}
	t.request = t.prompt()
	return t.request.Messages, true
}

var _ failover.Host = (*turn)(nil)
