package drill

import (
	"context"

	"understudy/app"
)

// Options are those of verbs that run beside the bot, or without it.
func (w *World) Options() app.Options { return w.options(context.Background()) }
