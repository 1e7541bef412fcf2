package app

import (
	"context"
	"errors"
	"time"

	"understudy/budget"
	"understudy/channels/console"
	"understudy/channels/web"
	"understudy/cron"
	"understudy/cron/webhook"
	"understudy/failover"
	"understudy/gateway"
	"understudy/heartbeat"
	"understudy/llm"
	"understudy/reply"
	"understudy/session"
)

// unasked is what the bot does without being asked: scheduled tasks, heartbeats, probes. One scheduler
// begins all of it.
type unasked struct {
	jobs      *cron.Store
	cron      *cron.Scheduler
	beats     *heartbeat.Store
	pulse     *heartbeat.Pulse
	prober    *heartbeat.Prober
	purse     *budget.Purse
	backstage *backstage
	webhooks  *webhook.Poster
	directory directory
	reach     reach
	sent      sent
	connected chan struct{} // closed when the channels are connected
}

// openUnasked opens the scheduler and what it begins. The rooms that turns need are open.
func (a *App) openUnasked(ctx context.Context) (err error) {
	if a.jobs, err = cron.NewStore(ctx, a.db); err != nil {
		return err
	}
	if a.beats, err = heartbeat.NewStore(ctx, a.db); err != nil {
		return err
	}
	a.backstage = a.openBackstage()
	a.webhooks = webhook.New(a.opts.Webhooks)
	a.connected = make(chan struct{})
	a.prober = heartbeat.New(heartbeat.Deps{Sessions: a.sessions, Clock: a.opts.Clock, Log: a.log, Probe: a.probe})
	a.pulse = heartbeat.NewPulse(a.pulseDeps(), func() { a.cron.Wake() })
	a.cron, err = newScheduler(a.cfg(), a.jobs, cron.Deps{
		Runner: runner{a}, Announcer: announcer{a}, Owner: announcer{a}, Clock: a.opts.Clock, Log: a.log.With("subsystem", "cron"),
		Ready: a.connected, Alone: true, Metrics: cronCounters{a.metrics}, Chores: []cron.Chore{a.prober, a.pulse},
		CheckModel: func(_, text string) error { _, err := a.jobModel(text); return err },
	})
	return err
}

// runUnasked works until the returned function is called, which lets what runs go on until ctx ends, and
// then ends it. Delivery must run as long.
func (a *App) runUnasked(fail func(what string, err error)) (stop func(ctx context.Context)) {
	ctx, cancel := context.WithCancelCause(context.Background())
	ended := make(chan struct{})
	waiting, arrived := context.WithCancel(ctx)
	a.opts.Clock.Go(func() {
		a.awaitChannels(waiting)
		close(a.connected)
	})
	a.opts.Clock.Go(func() {
		defer close(ended)
		fail("scheduler", a.cron.Run(ctx))
	})
	_ = a.opts.Clock.Await(ctx, a.cron.Begun())
	return func(limit context.Context) {
		arrived()
		if err := errors.Join(a.cron.Drain(limit), a.pulse.Close(limit)); err != nil {
			a.log.Warn("tasks_not_drained", "error", err.Error())
		}
		cancel(llm.ErrShutdown)
		last, stop := a.opts.Clock.WithTimeout(context.Background(), pulseGrace, llm.ErrShutdown)
		defer stop()
		_ = a.pulse.Close(last) // its turns have ended with the lanes
		_ = a.opts.Clock.Await(context.Background(), ended)
	}
}

// mostUnasked bounds the turns that nobody asked for, over all of them; the scheduler has a limit of its
// own for tasks, and there is one heartbeat per agent.
const mostUnasked = 128

// pulseGrace is how long heartbeats may take to end once they were cancelled.
const pulseGrace = 15 * time.Second

// awaitChannels waits until every account of a platform is connected.
func (a *App) awaitChannels(ctx context.Context) {
	for _, x := range a.roster.all() {
		if !x.platform || x.adapter == nil || x.key.Channel == web.Channel || x.key.Channel == console.Channel {
			continue
		}
		if a.opts.Clock.Await(ctx, a.states.wait(x.key)) != nil {
			return
		}
	}
}

// reloadUnasked follows a new configuration.
func (a *App) reloadUnasked(ctx context.Context) {
	if err := a.cron.Reload(a.cfg().Cron, home(a.cfg())); err != nil { // it was checked with the rest
		a.log.ErrorContext(ctx, "cron_not_reloaded", "error", err.Error())
	}
	a.cron.Wake()
}

// probe asks a model whether it is back, and counts what that used.
func (a *App) probe(ctx context.Context, agent string, ref llm.ModelRef, onlyCooling bool) (answered, asked bool, err error) {
	if a.purse.BackgroundSpent(ctx) {
		return false, false, nil
	}
	result, usage, err := a.failover.Probe(ctx, agent, ref, onlyCooling)
	a.countUsage(ctx, agent, ref, session.PurposeProbe, usage)
	return result == failover.ProbeBack, result == failover.ProbeBack || result == failover.ProbeDown, err
}

// countUnasked counts a turn that nobody asked for; channel is where its result would go.
func (a *App) countUnasked(o reply.Outcome, trigger, channel string) {
	a.metrics.TurnEnded(gateway.Turn{Channel: channel, Model: blamed(o), Outcome: o.Status.String(), Trigger: trigger})
	a.countTokens(o.Model, o.Usage)
}

// cronCounters turns what the scheduler does into metrics.
type cronCounters struct{ m *gateway.Metrics }

// Ran implements cron.Metrics.
func (c cronCounters) Ran(status cron.Status, _ cron.Reason) { c.m.CronRun(string(status)) }

// beatCounters does the same for heartbeats.
type beatCounters struct{ m *gateway.Metrics }

// Beat implements heartbeat.Metrics.
func (c beatCounters) Beat(o heartbeat.Outcome, _ heartbeat.Why) { c.m.Heartbeat(string(o)) }
