package reply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"understudy/chat"
	"understudy/llm"
)

// runTools executes the calls of one answer in order and returns the message with their results.
// Once the turn has ended, or somebody wrote meanwhile, no further call starts; each still gets its
// result, so that no call is without one and what was done stays on record.
func (t *turn) runTools(ctx context.Context, calls []llm.ToolCall) llm.Message {
	m := llm.Message{Role: llm.RoleTool}
	for i, c := range calls {
		text, err, foreign := "", errNotRun, false
		switch {
		case ctx.Err() != nil:
		case i >= maxCalls:
			err = errTooMany
		case t.listen():
			text, err = textSkipped, nil
		default:
			text, foreign, err = t.call(ctx, c)
			t.progress()
		}
		if err != nil {
			t.log.WarnContext(ctx, "tool_failed", "tool", oneLine(c.Name), "error", err.Error())
		}
		m.Parts = append(m.Parts, llm.Part{ToolResult: t.result(c, foreign, text, err)})
	}
	return m
}

// listen takes what people wrote while the turn ran and reports whether they did.
func (t *turn) listen() bool {
	t.steered = append(t.steered, t.r.deps.Steer(t.sess.Key)...)
	return len(t.steered) > 0
}

// hear adds what was taken to the conversation, before the model is asked again.
func (t *turn) hear(ctx context.Context) error {
	if ctx.Err() == nil {
		t.listen()
	}
	if t.late == 0 {
		t.lateAt = len(t.fresh)
	}
	for len(t.steered) > 0 {
		s := t.steered[0]
		t.steered = t.steered[1:]
		t.nSteered++
		t.late++
		m, err := t.userMessage(ctx, s.In, s.Text)
		switch {
		case errors.Is(err, errEmptyMessage):
		case err != nil:
			return err
		default:
			t.hold(s.In)
			t.add(withContext(m, nil, s.Digests), llm.ModelRef{}, nil)
		}
	}
	return nil
}

// leave gives back the messages that were taken over and that nothing was done for, and returns how many:
// whoever runs them again does nothing twice.
func (t *turn) leave() int {
	n := t.late + len(t.steered)
	if t.late > 0 {
		t.fresh = t.fresh[:t.lateAt]
	}
	t.late, t.steered, t.nSteered = 0, nil, t.nSteered-t.late
	return n
}

// call executes one call of the model. foreign tells that text comes from a server.
func (t *turn) call(ctx context.Context, c llm.ToolCall) (text string, foreign bool, err error) {
	tool, ok := t.tool(c.Name)
	if !ok {
		return "", false, fmt.Errorf("there is no tool named %q", oneLine(c.Name))
	}
	if tool.Approve {
		if err := t.approved(ctx, tool, c); err != nil {
			return "", false, err
		}
	}
	if tool.offers {
		text, err = t.offerTool(c)
		return text, false, err
	}
	t.acted, t.late = true, 0
	t.run.Working()
	t.showCall(tool, c)
	text, err = t.runTool(ctx, tool, c)
	t.showResult(tool, text, err)
	return text, tool.Source != "", err
}

// approved asks for consent to a call. Without it there is an error, never a hang.
func (t *turn) approved(ctx context.Context, tool Tool, c llm.ToolCall) error {
	if t.r.deps.Approve == nil || t.req.internal() {
		return errNobody
	}
	call, cancel := t.r.deps.Clock.WithTimeout(ctx, approvalTimeout, errAskTime)
	defer cancel()
	yes := false
	err := t.apart(call, 0, func() (err error) {
		yes, err = t.r.deps.Approve(call, Approval{
			Key: t.sess.Key, Agent: t.req.Agent, Turn: t.req.ID, To: t.req.To, Sender: t.sender(),
			Tool: tool.Name, Source: tool.Source, Input: c.Input,
		})
		return err
	})
	switch {
	case ctx.Err() != nil:
		return errNotRun
	case call.Err() != nil:
		return errNoConsent
	case err != nil:
		t.log.WarnContext(ctx, "approval_not_asked", "tool", tool.Name, "error", err.Error())
		return errAskFailed
	case !yes:
		return errDenied
	}
	return nil
}

// noticeTo tells people what a call did.
func (t *turn) noticeTo(text string) {
	if !t.req.internal() {
		t.out.Notify(t.outbound(chat.Notice, text))
	}
}

// runTool executes one call, within its time. A crash of the tool is an error of the tool, not of
// the bot.
func (t *turn) runTool(ctx context.Context, tool Tool, c llm.ToolCall) (string, error) {
	limit := tool.Timeout
	if limit <= 0 {
		limit = defaultToolTimeout
	}
	call, cancel := t.r.deps.Clock.WithTimeout(ctx, limit, errCallTime)
	defer cancel()
	text := ""
	err := t.apart(call, toolGrace, func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				t.log.ErrorContext(ctx, "tool_panicked", "tool", tool.Name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				err = fmt.Errorf("the tool %s crashed", tool.Name)
			}
		}()
		text, err = tool.Run(call, Call{
			Session: t.sess.Key, Agent: t.req.Agent, Turn: t.req.ID, Kind: t.req.Kind, To: t.req.To, Sender: t.sender(),
			Input: object(c.Input), Notify: t.noticeTo, Attach: t.files.add,
		})
		return err
	})
	switch {
	case errors.Is(err, errUnknownEnd):
		return "", err
	case err != nil && call.Err() != nil && ctx.Err() == nil:
		return "", fmt.Errorf("no result within %s: the call was stopped", span(limit))
	case err != nil:
		return "", err
	}
	return text, nil
}

// apart runs f in a goroutine of its own, so that nobody hangs with it, and returns its error; or
// errUnknownEnd when f has not returned within grace after ctx ended. What f writes may be read only
// if the error is another one.
func (t *turn) apart(ctx context.Context, grace time.Duration, f func() error) error {
	clock := t.r.deps.Clock
	var err error
	done := make(chan struct{})
	clock.Go(func() {
		defer close(done)
		err = f()
	})
	if clock.Await(ctx, done) == nil {
		return err
	}
	if grace > 0 {
		last, cancel := clock.WithTimeout(context.WithoutCancel(ctx), grace, errUnknownEnd)
		defer cancel()
		if clock.Await(last, done) == nil {
			return err
		}
	}
	return errUnknownEnd
}

// sender is who wrote the message that the turn answers.
func (t *turn) sender() chat.Sender {
	if t.req.In == nil {
		return chat.Sender{}
	}
	return t.req.In.Sender
}

// object returns what a tool is called with: always something.
func object(input json.RawMessage) json.RawMessage {
	if len(input) == 0 {
		return json.RawMessage("{}")
	}
	return input
}
