package app

import (
	"context"
	"errors"

	"understudy/llm"
	"understudy/session"
)

// errBusyLane tells that the session had no place until the context ended.
var errBusyLane = errors.New("the session was busy all the time")

// errCrashedRun is what is left of work that panicked: the lane has logged the rest.
var errCrashedRun = errors.New("the work crashed")

// inLane runs f in the lane of a session, one after the other with everything else there, and waits for
// it. f ends soon after ctx does; it is cancelled by /stop and by the end of the bot too. inLane returns
// what f does; errBusyLane when its turn did not come before ctx ended, and otherwise why it never came:
// llm.ErrStopped, llm.ErrShutdown, session.ErrFull.
func (a *App) inLane(ctx context.Context, key, owner string, f func(ctx context.Context) error) error {
	item := &struct{ err error }{errCrashedRun}
	begun, done := make(chan struct{}), make(chan struct{})
	err := a.lanes.Submit(key, session.Task{
		Pool: session.Background, Owner: owner, Item: item,
		Run: func(lane context.Context) {
			defer close(done)
			close(begun)
			own, cancel := context.WithCancelCause(ctx)
			defer cancel(context.Canceled)
			defer context.AfterFunc(lane, func() { cancel(context.Cause(lane)) })()
			item.err = f(own)
		},
		Dropped: func(cause error) {
			item.err = cause
			close(done)
			close(begun)
		},
	})
	if errors.Is(err, session.ErrDraining) {
		return llm.ErrShutdown
	}
	if err != nil {
		return err
	}
	if a.opts.Clock.Await(ctx, begun) != nil && a.lanes.Withdraw(key, func(x any) bool { return x == item }) > 0 {
		return errBusyLane
	}
	if err := a.opts.Clock.Await(context.WithoutCancel(ctx), done); err != nil {
		return err
	}
	return item.err
}
