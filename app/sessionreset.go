package app

import (
	"context"
	"errors"

	"understudy/chat"
	"understudy/commands"
	"understudy/session"
)

// renew begins the session of a message anew when its reset rule says so; see App.renew.
func (j *job) renew(ctx context.Context) { j.a.renew(ctx, j.turn, j.agent, j.key, j.in.Address) }

// renewFor is renew for commands that write what ends with a session, so that the next message does not
// undo them. Where a turn runs the session is that of the turn, which renewed it.
func (j *job) renewFor(ctx context.Context, list ...commands.Invocation) {
	for _, inv := range list {
		if inv.Spec.Renews && (inv.Spec.Lane || !j.a.lanes.State(j.key).Active) {
			j.renew(ctx)
			return
		}
	}
}

// renew begins a session anew when the reset rule of its place says so (spec/chat.md §1.3), the hour being
// that of the agent's time zone. If it fails, the conversation simply goes on.
func (a *App) renew(ctx context.Context, turn, agent, key string, at chat.Address) {
	cfg := a.cfg()
	rule, zone := cfg.Session.ResetFor(at), cfg.Agent(agent).Timezone
	err := a.sessions.Renew(ctx, key, func(s session.Session) bool { return rule.Due(s, a.opts.Clock.Now().In(zone)) })
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		a.log.ErrorContext(ctx, "session_not_reset", "turn", turn, "error", err.Error())
	}
}
