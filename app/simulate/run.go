package simulate

import (
	"context"
	"fmt"
	"io"
	"log/slog"
)

// Options say what to play.
type Options struct {
	Name     string // of the scenario, for messages
	Scenario []byte // YAML
	Env      func(string) (string, bool)
	JSON     bool // print the trace as JSON Lines instead of the timeline
	Out      io.Writer
	Notes    io.Writer    // warnings about the configuration; nil = not shown
	Log      *slog.Logger // the product's own log; nil = none
}

// Run plays a scenario and prints what happened. An error in the scenario is a *config.Error that
// names file, line and key.
func Run(ctx context.Context, o Options) error {
	sc, err := parse(o.Name, o.Scenario, o.Env)
	if err != nil {
		return err
	}
	if o.Notes != nil {
		for _, w := range sc.warnings {
			fmt.Fprintln(o.Notes, "warning: "+w.String())
		}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	emit := writeJSON(o.Out)
	if !o.JSON {
		emit = writeTimeline(o.Out)
	}
	return play(ctx, sc, emit, o.Log)
}
