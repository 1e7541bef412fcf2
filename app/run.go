package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"understudy/channels"
	"understudy/commands"
	"understudy/failover"
	"understudy/heartbeat"
	"understudy/llm"
)

// Run serves until ctx ends, then stops in order: no new messages, turns may finish for
// shutdown.drain, deliveries are flushed. What was accepted and not answered is answered by the
// next start. It returns nil after an orderly stop.
func (a *App) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	doors, closeDoors := context.WithCancel(context.WithoutCancel(ctx))
	defer closeDoors()
	out, stopOut := context.WithCancel(context.WithoutCancel(ctx))
	defer stopOut()

	var outer, inner sync.WaitGroup // doors and delivery; channels and watchers
	fail := func(what string, err error) {
		if err != nil && ctx.Err() == nil {
			cancel(fmt.Errorf("%s: %w", what, err))
		}
	}
	if err := a.recover(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // stopped before it began
		}
		return err
	}
	outer.Go(func() { fail("delivery", a.delivery.Run(out)) })
	if a.control != nil {
		outer.Go(func() { fail("control socket", a.control.Run(doors)) })
	}
	if a.gateway != nil {
		outer.Go(func() { fail("gateway", a.gateway.Run(doors)) })
	}
	for _, x := range a.accounts {
		inner.Go(func() { a.runChannel(ctx, x) })
	}
	inner.Go(func() { a.watcher.Run(ctx, a.apply) })
	inner.Go(func() { a.hangup(ctx) })
	inner.Go(func() { a.housekeeping(ctx) })
	inner.Go(func() { a.prober().Run(ctx) })
	if a.phase.CompareAndSwap(phaseStarting, phaseReady) {
		a.log.InfoContext(ctx, "ready", "state_dir", a.state)
	}

	<-ctx.Done()
	cause := context.Cause(ctx)
	a.phase.Store(phaseDraining)
	a.log.Info("stopping")
	inner.Wait()
	a.drain()
	closeDoors()
	stopOut()
	outer.Wait()
	if errors.Is(cause, context.Canceled) {
		return nil
	}
	return cause
}

// recover takes up what an earlier process left: first what was to be said, then what was to be
// answered.
func (a *App) recover(ctx context.Context) error {
	if err := a.delivery.Recover(ctx); err != nil {
		return fmt.Errorf("outbox: %w", err)
	}
	if err := a.inbound.Recover(ctx); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// runChannel keeps one account connected. An account that its platform refuses for good stops
// alone: the others go on.
func (a *App) runChannel(ctx context.Context, x account) {
	t := x.adapter.Traits()
	if r, ok := x.adapter.(channels.CommandRegistrar); ok {
		if err := r.RegisterCommands(ctx, menu(a.commands.Specs())); err != nil && ctx.Err() == nil {
			a.log.WarnContext(ctx, "commands_not_registered", "channel", t.Channel, "account", t.Account, "error", err.Error())
		}
	}
	if err := x.adapter.Run(ctx, a.inbound); err != nil && ctx.Err() == nil {
		a.log.ErrorContext(ctx, "channel_stopped", "channel", t.Channel, "account", t.Account, "error", err.Error())
		a.states.set(channels.Status{Channel: t.Channel, Account: t.Account, State: channels.Stopped, Detail: err.Error()})
	}
}

func menu(specs []commands.Spec) []channels.CommandInfo {
	var list []channels.CommandInfo
	for _, s := range specs {
		if !s.Hidden {
			list = append(list, channels.CommandInfo{Name: s.Name, Description: s.Help, Args: s.Usage})
		}
	}
	return list
}

// drain lets turns finish, then cancels what is left.
func (a *App) drain() {
	ctx, cancel := a.opts.Clock.WithTimeout(context.Background(), a.drainTimeout(), llm.ErrShutdown)
	defer cancel()
	if err := a.lanes.Drain(ctx); err != nil {
		a.log.Error("turns_not_drained", "error", err.Error())
	}
	a.work.Wait()
}

// hangup reloads the configuration on SIGHUP.
func (a *App) hangup(ctx context.Context) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	defer signal.Stop(c)
	for {
		select {
		case <-ctx.Done():
			return
		case <-c:
			a.watcher.Reload()
		}
	}
}

// prober is the five-minute job that finds out whether a lead is back.
func (a *App) prober() *heartbeat.Prober {
	return heartbeat.New(heartbeat.Deps{
		Sessions: a.sessions, Clock: a.opts.Clock, Log: a.log,
		Probe: func(ctx context.Context, agent string, ref llm.ModelRef, onlyCooling bool) (answered, asked bool, err error) {
			result, err := a.failover.Probe(ctx, agent, ref, onlyCooling)
			return result == failover.ProbeBack, result == failover.ProbeBack || result == failover.ProbeDown, err
		},
	})
}

// housekeeping forgets what nobody needs any more: a while after the start, then once a day.
func (a *App) housekeeping(ctx context.Context) {
	const keep = 7 * 24 * time.Hour
	for wait := time.Hour; a.opts.Clock.Sleep(ctx, wait) == nil; wait = 24 * time.Hour {
		for what, err := range map[string]error{
			"journal": a.inbound.Prune(ctx), "outbox": a.delivery.Prune(ctx, keep), "wal": a.db.Truncate(ctx),
		} {
			if err != nil && ctx.Err() == nil {
				a.log.WarnContext(ctx, "housekeeping_failed", "what", what, "error", err.Error())
			}
		}
	}
}
