package app

import (
	"context"
	"errors"

	"understudy/session"
)

// renew begins the session anew when its reset rule says so (spec/chat.md §1.3), the hour being that of
// the agent's time zone. It runs in the lane,
// before the turn; if it fails, the conversation simply goes on.
func (j *job) renew(ctx context.Context) {
	cfg := j.a.cfg()
	rule, zone := cfg.Session.ResetFor(j.in.Address), cfg.Agent(j.agent).Timezone
	s, err := j.a.sessions.Get(ctx, j.key)
	if err == nil && rule.Due(s, j.a.opts.Clock.Now().In(zone)) {
		_, err = j.a.sessions.Reset(ctx, j.key)
	}
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		j.a.log.ErrorContext(ctx, "session_not_reset", "turn", j.turn, "error", err.Error())
	}
}
