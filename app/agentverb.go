package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"understudy/channels/web"
	"understudy/reply"
)

// AgentTurn is what `bot agent` is to do.
type AgentTurn struct {
	Session string // a key, or a name for a conversation of scripts
	Message string // "" or "-" = read it from standard input
	Model   string // for this turn alone, strict; "" = the session's
	JSON    bool
}

// Agent is `bot agent`: one turn through the running bot. The answer goes to standard output, notices to
// standard error; it exits 1 when there is no answer. Interrupting it stops the turn.
func Agent(ctx context.Context, o Options, std Std, t AgentTurn) int {
	if t.Message == "" || t.Message == "-" {
		text, err := io.ReadAll(io.LimitReader(std.In, web.MaxText+1))
		if err != nil {
			return fail(std, fmt.Errorf("reading the message: %w", err))
		}
		t.Message = string(text)
	}
	if strings.TrimSpace(t.Message) == "" {
		fmt.Fprintln(std.Err, "bot: there is nothing to say: give --message TEXT, or a text on standard input")
		return ExitUsage
	}
	c, err := remote(o)
	if err != nil {
		return fail(std, err)
	}
	var r TurnResult
	err = c.CallRPC(ctx, "turn.run", turnParams{t.Session, t.Message, t.Model}, &r, func(raw json.RawMessage) {
		var e TurnEvent
		if !t.JSON && json.Unmarshal(raw, &e) == nil && e.Type == "notice" {
			fmt.Fprintln(std.Err, e.Text)
		}
	})
	switch {
	case ctx.Err() != nil:
		return fail(std, errors.New("interrupted; the turn was stopped"))
	case err != nil:
		return fail(std, err)
	}
	return r.print(std, t.JSON)
}

// print shows the result and returns the exit code.
func (r TurnResult) print(std Std, asJSON bool) int {
	good := r.Status == reply.Answered.String() || r.Status == reply.Silent.String()
	var err error
	switch {
	case asJSON:
		err = printJSON(std.Out, r)
	case good && r.Text != "":
		_, err = fmt.Fprintln(std.Out, r.Text)
	case r.Text != "":
		_, err = fmt.Fprintln(std.Err, r.Text)
	case !good:
		_, err = fmt.Fprintf(std.Err, "bot: there is no answer: the turn was %s\n", r.Status)
	}
	if err != nil {
		return fail(std, err)
	}
	for _, m := range r.Media {
		if !asJSON {
			fmt.Fprintf(std.Err, "The answer has a file %s of %d bytes; --json holds it.\n", m.Name, m.Size)
		}
	}
	if !good {
		return ExitFailed
	}
	return ExitOK
}
