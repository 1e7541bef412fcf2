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

	"understudy/delivery"
	"understudy/llm"
)

// Run serves until ctx ends, then stops in order: no new messages, turns may finish for
// shutdown.drain, deliveries are flushed. What was accepted and not answered is answered by the
// next start. It returns nil after an orderly stop, and ErrRestart after one that /restart asked for.
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
	stopUnasked := a.runUnasked(fail)
	if a.control != nil {
		outer.Go(func() { fail("control socket", a.control.Run(doors)) })
	}
	if a.gateway != nil {
		outer.Go(func() { fail("gateway", a.gateway.Run(doors)) })
	}
	a.roster.run(func(x *account) {
		own, end := context.WithCancel(ctx)
		x.stop, x.ended = end, make(chan struct{})
		inner.Go(func() {
			defer close(x.ended)
			defer end()
			a.runChannel(own, x)
		})
	})
	inner.Go(func() { fail("tool servers", a.mcp.Run(ctx)) })
	inner.Go(func() { a.watcher.Run(ctx, a.replace) })
	inner.Go(func() { a.awaitRestart(ctx, cancel) })
	inner.Go(func() { a.hangup(ctx) })
	inner.Go(func() { a.housekeeping(ctx) })
	if a.phase.CompareAndSwap(phaseStarting, phaseReady) {
		a.log.InfoContext(ctx, "ready", "state_dir", a.state)
	}
	a.back(ctx)

	<-ctx.Done()
	cause := context.Cause(ctx)
	a.phase.Store(phaseDraining)
	close(a.draining)
	a.log.Info("stopping")
	a.roster.halt()
	a.letGo(&inner)
	a.inbound.Close() // what waits for more of the same sender stays in the journal
	a.drain(stopUnasked)
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
	err := a.joined.settle(ctx, func(turn string) (bool, error) {
		s, err := a.delivery.AnswerState(ctx, turn)
		return s == delivery.AnswerSent || s == delivery.AnswerUnknown, err
	})
	if err != nil {
		return fmt.Errorf("joined turns: %w", err)
	}
	if err := a.inbound.Recover(ctx); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// letGo waits until the channels and watchers have ended. One that does not keeps nobody from ending: what
// arrives there from now on is not taken in, and comes again after the start.
func (a *App) letGo(inner *sync.WaitGroup) {
	gone := make(chan struct{})
	go func() {
		inner.Wait()
		close(gone)
	}()
	ctx, cancel := a.opts.Clock.WithTimeout(context.Background(), endLimit, errStays)
	defer cancel()
	if a.opts.Clock.Await(ctx, gone) == nil {
		return
	}
	for _, x := range a.roster.all() {
		if x.ended == nil {
			continue
		}
		select {
		case <-x.ended:
		default:
			a.log.Error("channel_does_not_end", "channel", x.key.Channel, "account", x.key.Name, "error", errStays.Error())
		}
	}
	a.log.Error("stopping_without_all", "error", "not everything ended within "+endLimit.String())
}

// drain lets turns finish, then cancels what is left. unasked does so for what nobody asked for.
func (a *App) drain(unasked func(context.Context)) {
	ctx, cancel := a.opts.Clock.WithTimeout(context.Background(), a.drainTimeout(), llm.ErrShutdown)
	defer cancel()
	var side sync.WaitGroup
	side.Go(func() { unasked(ctx) })
	if err := a.lanes.Drain(ctx); err != nil {
		a.log.Error("turns_not_drained", "error", err.Error())
	}
	side.Wait()
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

// housekeeping forgets what nobody needs any more: a while after the start, then once a day.
func (a *App) housekeeping(ctx context.Context) {
	const keep = 7 * 24 * time.Hour
	for wait := time.Hour; a.opts.Clock.Sleep(ctx, wait) == nil; wait = 24 * time.Hour {
		for what, err := range map[string]error{
			"journal": a.inbound.Prune(ctx), "outbox": a.delivery.Prune(ctx, keep), "sessions": a.forgetSessions(ctx), "wal": a.db.Truncate(ctx),
		} {
			if err != nil && ctx.Err() == nil {
				a.log.WarnContext(ctx, "housekeeping_failed", "what", what, "error", err.Error())
			}
		}
	}
}
