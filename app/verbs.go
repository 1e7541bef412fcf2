package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"understudy/config"
	"understudy/internal/sqlite"
)

// Exit codes of the program (spec/chat.md §7.1).
const (
	ExitOK     = 0
	ExitFailed = 1
	ExitUsage  = 2
	// ExitRestart asks whoever supervises the process to start it again.
	ExitRestart = 75
	ExitConfig  = 78
)

// Std are the streams of a verb.
type Std struct {
	In       *os.File
	Out, Err io.Writer
}

// fail prints an error as an operator should read it and returns the exit code that belongs to it.
func fail(std Std, err error) int {
	var bad *config.Error
	if errors.As(err, &bad) {
		fmt.Fprintln(std.Err, bad.Error())
		return ExitConfig
	}
	var foreign *sqlite.ForeignError
	if errors.As(err, &foreign) {
		fmt.Fprintln(std.Err, "bot:", foreign.Public())
		return ExitConfig
	}
	fmt.Fprintln(std.Err, "bot:", err)
	return ExitFailed
}

// Serve is `bot run`: it serves until ctx ends.
func Serve(ctx context.Context, o Options, std Std) int {
	a, err := New(ctx, o)
	if err != nil {
		return fail(std, err)
	}
	a.greet(ctx, std.Err)
	err, closed := a.Run(ctx), a.Close()
	switch {
	case errors.Is(err, ErrRestart) && closed == nil:
		return ExitRestart
	case err != nil || closed != nil:
		return fail(std, errors.Join(err, closed))
	}
	return ExitOK
}

// PrintVersion is `bot version`.
func PrintVersion(o Options, std Std) int {
	fmt.Fprintln(std.Out, o.Version)
	return ExitOK
}

// ClassifyVerb is `bot classify`: it opens the input and hands over to Classify.
func ClassifyVerb(std Std, file string, o ClassifyOptions) int {
	var in io.Reader = std.In
	if file != "" && file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return fail(std, err)
		}
		defer func() { _ = f.Close() }()
		in = f
	} else if o.Text == "" && std.In != nil && term.IsTerminal(int(std.In.Fd())) {
		fmt.Fprintln(std.Err, "Reading errors from standard input, one JSON object a line; end with Ctrl-D. One text: bot classify --text …")
	}
	return Classify(o, in, std.Out, std.Err)
}
