package app

import (
	"context"

	"understudy/session"
)

// Bounds of what a thread takes over from the conversation around it: turns, and bytes as they are stored.
const (
	inheritedTurns = 20
	inheritedBytes = 64 << 10
)

// inherit lets the conversation of a thread begin with the last turns of the one it belongs to, where the
// account wants that (`thread.inheritParent`, spec/chat.md §1.1): once, with the first thing a person says
// there. Without it the turn goes on.
func (r *running) inherit(ctx context.Context) {
	j := r.jobs[0]
	x, ok := r.a.roster.of(j.in.Address)
	if !ok || j.parent == "" {
		return
	}
	if p := x.plan.Load(); p == nil || !p.inherit {
		return
	}
	err := j.ensure(ctx)
	if err == nil {
		err = r.a.sessions.Inherit(ctx, j.key, session.Bequest{From: j.parent, Turns: inheritedTurns, Bytes: inheritedBytes})
	}
	if err != nil {
		r.a.log.WarnContext(ctx, "thread_not_inherited", "turn", j.turn, "error", err.Error())
	}
}
