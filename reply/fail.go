package reply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"understudy/chat"
	"understudy/failover"
	"understudy/llm"
	"understudy/session"
)

// fail ends a turn that has no answer: silently when it was stopped, else with a text that stands
// where the answer would.
func (t *turn) fail(ctx context.Context, err error) (Outcome, error) {
	cause := context.Cause(ctx)
	ctx = context.WithoutCancel(ctx)
	if errors.Is(cause, llm.ErrTurnTimeout) && !errors.Is(err, llm.ErrTurnTimeout) && failover.ReasonOf(err) != llm.ReasonTimeout {
		err = fmt.Errorf("%w (%s)", cause, err.Error()) // what the limit cut short is no failure of its own
	}
	o := t.outcome(Failed)
	o.Reason = reasonOf(err)
	switch {
	case errors.Is(cause, llm.ErrShutdown) && !t.acted:
		o.Status, o.Reason = Interrupted, llm.ReasonAborted
		t.bill(ctx)
		t.out.Cancel()
		return o, nil
	case errors.Is(cause, llm.ErrShutdown): // running it again would do again what was done
		err, o.Reason = errRestarted, llm.ReasonAborted
		o.Left = t.leave()
		o.Steered -= o.Left
	case cause != nil && !errors.Is(cause, llm.ErrTurnTimeout):
		o.Status, o.Reason = Stopped, llm.ReasonAborted
		o.Returned = t.giveBack(cause)
		o.Steered = t.nSteered
		t.conclude(ctx, o, err)
		t.out.Cancel()
		return o, nil
	}
	plan := t.plannedNow()
	o.Text, o.RetryAt = errorText(err, view{
		selected: plan.Selected, strict: plan.Strict, now: t.r.deps.Clock.Now(), zone: t.cfg.Zone, reference: t.req.ID, bleed: t.bleed(),
	})
	t.log.WarnContext(ctx, "turn_failed", "reason", string(o.Reason), "error", err.Error(), "reference", t.req.ID)
	t.conclude(ctx, o, err)
	if o.Quiet = t.isQuiet(); o.Quiet {
		t.out.Cancel()
		return o, nil
	}
	if e := t.out.Finish(ctx, t.outbound(chat.Error, o.Text)); e != nil {
		return o, fmt.Errorf("deliver the error text: %w", e)
	}
	return o, nil
}

// errRestarted ends a turn that a shutdown interrupted behind a tool.
var errRestarted = errors.New("the bot was shut down while the turn ran")

// isQuiet reports whether a failure is not told. Whoever runs turns that nobody asked for reports their
// failures in a way of its own (spec/chat.md §5.7, §6).
func (t *turn) isQuiet() bool {
	switch {
	case t.req.internal(), t.cfg.ErrorPolicy == ErrorsSilent:
		return true
	case t.cfg.ErrorPolicy == ErrorsOnce:
		return !t.r.errors.once(t.req.To)
	}
	return false
}

// bleed is the heartbeat's model if that answered here last: it may be why nothing fits any more
// (spec/chat.md §1.8).
func (t *turn) bleed() llm.ModelRef {
	if t.sess.LastModel == t.cfg.HeartbeatModel {
		return t.cfg.HeartbeatModel
	}
	return llm.ModelRef{}
}

// reasonOf is failover.ReasonOf for the errors of this package too.
func reasonOf(err error) llm.Reason {
	if r := failover.ReasonOf(err); r != llm.ReasonInternal || !errors.Is(err, llm.ErrTurnTimeout) {
		return r
	}
	return llm.ReasonTimeout
}

// conclude writes what a turn without an answer leaves behind. Of its conversation the user's words
// and finished tool calls stay, but not what cannot be answered: it would fail every later turn.
// Errors and notices are no part of it.
func (t *turn) conclude(ctx context.Context, o Outcome, failed error) {
	entries := complete(t.fresh)
	switch failover.ReasonOf(failed) {
	case llm.ReasonContextOverflow, llm.ReasonFormat, llm.ReasonRefusal:
		entries = t.deeds(entries)
	}
	t.finish(ctx, o, entries, nil)
}

// deeds says in words which tools ran in entries that cannot stay: what was done must not look undone.
func (t *turn) deeds(entries []session.Entry) []session.Entry {
	var names []string
	for _, e := range entries {
		for _, p := range e.Message.Parts {
			if p.ToolResult != nil && !p.ToolResult.IsError && p.ToolResult.Text != textSkipped && !slices.Contains(names, p.ToolResult.Name) {
				names = append(names, p.ToolResult.Name)
			}
		}
	}
	if !t.acted || len(names) == 0 {
		return nil
	}
	say := func(role llm.Role, text string) session.Entry {
		return session.Entry{Kind: session.KindMessage, Message: llm.Text(role, text), At: t.r.deps.Clock.Now()}
	}
	return []session.Entry{
		say(llm.RoleUser, "[A message that could not be answered is left out.]"),
		say(llm.RoleAssistant, "[The turn failed. Before that these tools ran: "+strings.Join(names, ", ")+".]"),
	}
}

// complete returns the entries up to the last one that leaves no tool call without its result.
func complete(entries []session.Entry) []session.Entry {
	open, end := 0, 0
	for i, e := range entries {
		for _, p := range e.Message.Parts {
			switch {
			case p.ToolCall != nil:
				open++
			case p.ToolResult != nil:
				open--
			}
		}
		if open == 0 {
			end = i + 1
		}
	}
	return entries[:end]
}
