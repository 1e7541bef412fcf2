package app

import (
	"context"
	"errors"
	"sync"
	"time"

	"understudy/channels"
	"understudy/chat"
)

// runChannel keeps one account connected. An account that its platform refuses for good stops
// alone: the others go on.
func (a *App) runChannel(ctx context.Context, x *account) {
	own, cancel := context.WithCancel(ctx)
	var side sync.WaitGroup
	if r, ok := x.adapter.(channels.CommandRegistrar); ok {
		side.Go(func() { a.registerCommands(own, x, r) })
	}
	err := x.adapter.Run(own, tap{a, x})
	cancel()
	side.Wait()
	if err != nil && ctx.Err() == nil {
		a.stopped(ctx, x, err)
	}
}

// The waits before another try to register commands.
var registerWaits = []time.Duration{30 * time.Second, 5 * time.Minute, time.Hour}

// registerCommands shows the commands in the platform's menu, once the account is connected. Without
// it they work all the same, typed.
func (a *App) registerCommands(ctx context.Context, x *account, r channels.CommandRegistrar) {
	if a.opts.Clock.Await(ctx, a.states.wait(x.key)) != nil {
		return
	}
	for _, wait := range append([]time.Duration{0}, registerWaits...) {
		if a.opts.Clock.Sleep(ctx, wait) != nil {
			return
		}
		err := r.RegisterCommands(ctx, menu(a.commands.Specs()))
		if err == nil || ctx.Err() != nil {
			return
		}
		a.log.WarnContext(ctx, "commands_not_registered", "channel", x.key.Channel, "account", x.key.Name, "error", err.Error())
	}
}

// tap passes on what an account receives, and takes note of it.
type tap struct {
	a *App
	x *account
}

// Accept implements channels.Sink.
func (t tap) Accept(ctx context.Context, m chat.Inbound) error {
	t.x.received.Add(1)
	t.x.last.Store(t.a.opts.Clock.Now().UnixMilli())
	err := t.a.inbound.Accept(ctx, m)
	var refusal *channels.Refusal
	if err != nil && !errors.As(err, &refusal) && ctx.Err() == nil {
		text := "an event could not be stored: " + err.Error()
		t.x.lastError.Store(&text)
	}
	return err
}

// Status implements channels.Sink.
func (t tap) Status(s channels.Status) { t.a.inbound.Status(s) }
