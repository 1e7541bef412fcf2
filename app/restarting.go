package app

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"understudy/chat"
	"understudy/commands"
	"understudy/inbound"
)

// ErrRestart ends Run after /restart: whoever supervises the process is to start it again.
var ErrRestart = errors.New("the owner asked for a restart")

// textBack is said after a restart where it was asked for.
const textBack = "✅ Back."

// farewell is how long a restart waits so that its announcement is on its way first.
const farewell = time.Second

// The place among the cursors where a restart leaves whom to tell.
const (
	restartCursors = "restart"
	restartCursor  = "asked"
)

// asked is a restart that somebody waits for.
type asked struct {
	To   chat.Address `json:"to"`
	Turn string       `json:"turn"`
}

// restart begins an orderly restart; see commands.Deps.Restart.
func (a *App) restart(ctx context.Context, c commands.Call) error {
	cursor, err := inbound.OpenCursor(ctx, a.db, restartCursors, "", restartCursor)
	if err != nil {
		return err
	}
	text, err := json.Marshal(asked{c.To, "back-" + c.In.EventKey})
	if err != nil {
		return err
	}
	if err := cursor.SetValue(ctx, string(text)); err != nil {
		return err
	}
	a.leaving.Do(func() { close(a.restarts) })
	return nil
}

// awaitRestart ends Run when a restart was asked for.
func (a *App) awaitRestart(ctx context.Context, stop context.CancelCauseFunc) {
	if a.opts.Clock.Await(ctx, a.restarts) == nil && a.opts.Clock.Sleep(ctx, farewell) == nil {
		stop(ErrRestart)
	}
}

// back tells whoever asked for a restart that it is over.
func (a *App) back(ctx context.Context) {
	cursor, err := inbound.OpenCursor(ctx, a.db, restartCursors, "", restartCursor)
	var text string
	if err == nil {
		text, err = cursor.Value(ctx)
	}
	var x asked
	if err == nil && text != "" {
		if err = json.Unmarshal([]byte(text), &x); err == nil {
			err = a.delivery.Send(ctx, chat.Outbound{To: x.To, Class: chat.Command, Markdown: textBack, TurnID: x.Turn})
		}
		err = errors.Join(err, cursor.SetValue(ctx, ""))
	}
	if err != nil {
		a.log.WarnContext(ctx, "return_not_told", "error", err.Error())
	}
}
