package app

import (
	"context"
	"errors"

	"understudy/commands"
	"understudy/heartbeat"
)

// beatDesk is the control of heartbeats as the commands of a chat see it.
type beatDesk struct{ a *App }

var _ commands.Heartbeat = beatDesk{}

// State implements commands.Heartbeat.
func (d beatDesk) State(ctx context.Context, agent string) (commands.HeartbeatState, error) {
	st, err := d.a.pulse.State(ctx, agent)
	if err != nil {
		return commands.HeartbeatState{}, err
	}
	out := commands.HeartbeatState{On: st.On, Every: st.Every, Next: st.Next}
	if settings := d.a.cfg().Agent(agent).Heartbeat; settings.Shows(st.Last.To.Channel).Indicator {
		out.Last, out.Outcome, out.Reason = st.Last.At, string(st.Last.Outcome), st.Last.Text()
		if st.Last.Outcome == heartbeat.Skipped {
			out.Reason = string(st.Last.Why)
		}
	}
	return out, nil
}

// Now implements commands.Heartbeat.
func (d beatDesk) Now(ctx context.Context, agent string) error {
	ctx = context.WithoutCancel(ctx)
	st, err := d.a.pulse.State(ctx, agent)
	if err != nil {
		return err
	}
	if st.Beating {
		return &commands.Refusal{Text: "A heartbeat is under way."}
	}
	d.a.work.Go(func() {
		if _, err := d.a.pulse.Now(ctx, agent); err != nil && !errors.Is(err, heartbeat.ErrRunning) {
			d.a.log.WarnContext(ctx, "heartbeat_not_begun", "agent", agent, "error", err.Error())
		}
	})
	return nil
}

// Switch implements commands.Heartbeat.
func (d beatDesk) Switch(_ context.Context, agent string, on bool) error {
	if on && d.a.cfg().Agent(agent).Heartbeat.Every <= 0 {
		return &commands.Refusal{Text: "No interval is configured: set heartbeat.every in the configuration."}
	}
	return d.a.pulse.Switch(agent, on)
}
