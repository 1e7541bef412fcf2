package app

import (
	"context"
	"errors"
	"slices"
	"time"

	"understudy/chat"
	"understudy/cron"
	"understudy/failover/policy"
	"understudy/heartbeat"
	"understudy/llm"
	"understudy/reply"
	"understudy/session"
)

// pulseDeps says what heartbeats work with.
func (a *App) pulseDeps() heartbeat.PulseDeps {
	return heartbeat.PulseDeps{
		Store: a.beats,
		Agents: func() []heartbeat.Agent {
			var list []heartbeat.Agent
			for _, id := range a.cfg().AgentIDs() {
				list = append(list, heartbeat.Agent{ID: id, Settings: a.cfg().Agent(id).Heartbeat})
			}
			return list
		},
		Enabled: func() bool { on := a.cfg().Cron.Enabled; return on == nil || *on },
		Route:   a.beatRoute, Load: a.beatLoad, Resting: a.beatResting, Turn: a.beat,
		Spent: a.purse.BackgroundSpent, Renewed: a.mainRenewed,
		Say: func(ctx context.Context, l heartbeat.Letter) error {
			return a.sayUnasked(ctx, l.Agent, chat.Outbound{To: l.To, Class: chat.Heartbeat, Markdown: l.Text, Media: l.Media, TurnID: l.Key})
		},
		Tell:  announcer{a}.Tell,
		Clock: a.opts.Clock, Log: a.log.With("subsystem", "heartbeat"), Metrics: beatCounters{a.metrics},
	}
}

// beatKey is the key of the session that a heartbeat runs in, and of the one whose stale override it
// clears (spec/chat.md §6.1, spec/failover.md §12).
func (a *App) beatKey(agent string, s heartbeat.Settings) (key, main string) {
	main = session.MainKey(agent, a.cfg().Session)
	if s.Session != "" && s.Session != "main" {
		main = sessionKey(agent, "session", s.Session)
	}
	if s.Isolated {
		return "agent:" + agent + ":heartbeat", main
	}
	return main, main
}

// mainRenewed returns when an agent's main session began anew last; zero = never.
func (a *App) mainRenewed(ctx context.Context, agent string) (time.Time, error) {
	list, err := a.sessions.Archive(ctx, session.MainKey(agent, a.cfg().Session), 1)
	if err != nil || len(list) == 0 {
		return time.Time{}, err
	}
	return list[0].EndedAt, nil
}

// beatRoute finds out where an agent's alerts go.
func (a *App) beatRoute(ctx context.Context, agent string, s heartbeat.Settings) (chat.Address, bool) {
	switch s.Target {
	case heartbeat.TargetNone:
		return chat.Address{}, false
	case heartbeat.TargetLast:
		return a.lastPlace(ctx, agent)
	case heartbeat.TargetOwner:
		if to, ok := a.ownerPlace(ctx); ok {
			return to, true
		}
		return a.guestPlace(ctx)
	}
	to, err := a.directory.place(ctx, a, s.To)
	return to, err == nil && a.reachable(to, chat.Address{})
}

// guestPlace is the private chat with the first person that an allowlist names.
func (a *App) guestPlace(ctx context.Context) (chat.Address, bool) {
	for _, p := range a.plans(a.cfg()) {
		for _, id := range p.access.AllowFrom {
			if to, ok := a.personPlace(ctx, p.key.Channel+":"+id); ok {
				return to, true
			}
		}
	}
	return chat.Address{}, false
}

// lastPlace is where somebody wrote to an agent last.
func (a *App) lastPlace(ctx context.Context, agent string) (to chat.Address, ok bool) {
	list, err := a.sessions.List(ctx, session.Filter{AgentID: agent, Limit: mostListed})
	if err != nil {
		a.log.WarnContext(ctx, "sessions_not_read", "error", err.Error())
		return to, false
	}
	var at time.Time
	for _, s := range list {
		if s.LastInteractionAt.After(at) && s.Address.Channel != "" && a.reachable(s.Address, chat.Address{}) {
			to, at, ok = s.Address, s.LastInteractionAt, true
		}
	}
	return to, ok
}

// beatLoad tells what goes on beside a heartbeat.
func (a *App) beatLoad(agent string, s heartbeat.Settings) heartbeat.Load {
	key, _ := a.beatKey(agent, s)
	st := a.lanes.State(key)
	load := heartbeat.Load{Lane: st.Active || st.Queued > 0, Agent: a.cron.Active() > 0}
	a.turns.byKey.Range(func(_, v any) bool {
		load.Agent = load.Agent || v.(*running).agent == agent
		return !load.Agent
	})
	return load
}

// beatResting reports whether the model that a heartbeat asks first is known not to answer now.
func (a *App) beatResting(ctx context.Context, agent string, s heartbeat.Settings) bool {
	sel, _, err := a.beatSelection(ctx, agent, s)
	if err != nil {
		return false
	}
	health, err := a.health(ctx, agent)
	if err != nil {
		return false
	}
	now := a.opts.Clock.Now()
	profiles := a.current.Load().profiles(health, sel.Ref, now)
	return len(profiles) > 0 && !slices.ContainsFunc(profiles, func(p llm.ProfileID) bool {
		_, blocked := health.Health.Block(p, sel.Ref.Model, now)
		return !blocked
	})
}

// beatSelection is what a heartbeat asks for, and the session with the override that has to go first.
func (a *App) beatSelection(ctx context.Context, agent string, s heartbeat.Settings) (sel policy.Selection, stale session.Session, err error) {
	_, main := a.beatKey(agent, s)
	row, err := a.sessions.Get(ctx, main)
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		return sel, stale, err
	}
	sel, clear := heartbeat.Selection(row, s.Model, a.cfg().Agent(agent).Models)
	if clear != (session.Override{}) {
		stale = row
	}
	if s.NoFallbacks {
		sel.Fallbacks = []llm.ModelRef{}
	}
	return sel, stale, nil
}

// beat runs one heartbeat.
func (a *App) beat(ctx context.Context, t heartbeat.Turn) (res heartbeat.Result, err error) {
	key, _ := a.beatKey(t.Agent, t.Settings)
	err = a.inLane(ctx, key, "heartbeat:"+t.Agent, func(ctx context.Context) (err error) {
		ctx, yielded, cancel := a.yielding(ctx, key)
		defer cancel()
		res, err = a.beatTurn(ctx, key, t)
		if yielded() {
			res = heartbeat.Result{Outcome: heartbeat.Skipped}
		}
		return err
	})
	switch {
	case errors.Is(err, errBusyLane), errors.Is(err, session.ErrFull):
		return heartbeat.Result{Outcome: heartbeat.Skipped}, nil
	case errors.Is(err, llm.ErrStopped), errors.Is(err, llm.ErrShutdown):
		return heartbeat.Result{Outcome: heartbeat.Failed, Reason: llm.ReasonAborted, Detail: "it was stopped"}, nil
	}
	return res, err
}

// peopleLook is how often a heartbeat looks whether somebody waits for its session.
const peopleLook = time.Second

// yielding returns a context that ends when somebody waits in the lane: people do not wait for what
// nobody asked for. yielded reports whether that was so.
func (a *App) yielding(ctx context.Context, key string) (own context.Context, yielded func() bool, cancel func()) {
	own, stop := context.WithCancelCause(ctx)
	a.opts.Clock.Go(func() {
		for a.opts.Clock.Sleep(own, peopleLook) == nil {
			if a.lanes.State(key).Queued > 0 {
				stop(llm.ErrInterrupted)
			}
		}
	})
	return own, func() bool { return errors.Is(context.Cause(own), llm.ErrInterrupted) }, func() { stop(context.Canceled) }
}

// beatTurn asks the model; the lane is ours.
func (a *App) beatTurn(ctx context.Context, key string, t heartbeat.Turn) (heartbeat.Result, error) {
	sel, stale, err := a.beatSelection(ctx, t.Agent, t.Settings)
	if err != nil {
		return heartbeat.Result{}, err
	}
	if stale.Key != "" {
		if _, err := a.sessions.ClearAuto(ctx, stale.Key, stale.Override); err != nil {
			return heartbeat.Result{}, err
		}
	}
	to := t.To
	row, err := a.sessions.Get(ctx, key)
	switch {
	case errors.Is(err, session.ErrNotFound):
	case err != nil:
		return heartbeat.Result{}, err
	case t.Settings.Isolated:
		if _, err := a.sessions.Reset(ctx, key); err != nil {
			return heartbeat.Result{}, err
		}
	default:
		to = row.Address // a session is not where its heartbeats are told
	}
	p, o, err := a.backstage.perform(ctx, reply.Request{
		ID: t.ID, Agent: t.Agent, Key: key, Kind: reply.Heartbeat, To: to, Text: t.Text, Selection: &sel,
		Timeout: t.Settings.Limit(), Light: t.Settings.Light,
	}, t.To)
	if err != nil {
		return heartbeat.Result{}, err
	}
	a.countUnasked(o, "heartbeat", t.To.Channel)
	res := heartbeat.Result{Outcome: heartbeat.OK, Requested: sel.Ref, Model: o.Model, Usage: o.Usage}
	switch o.Status {
	case reply.Answered:
		if res.Text, res.Media = p.said.Markdown, p.said.Media; p.spoke.Load() {
			res.Text = "" // it was told during the turn; the files were not
		}
		if res.Text != "" || len(res.Media) > 0 {
			res.Outcome = heartbeat.Alert
		}
	case reply.Failed:
		res.Outcome, res.Reason, res.Detail = heartbeat.Failed, o.Reason, cron.ReasonOf(o.Reason).Text()
	case reply.Stopped, reply.Interrupted:
		res.Outcome, res.Reason, res.Detail = heartbeat.Failed, llm.ReasonAborted, "it was stopped"
	}
	return res, nil
}
