package reply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"understudy/llm"
)

// Tool is a function that a model may call during a turn. Calling it is observable work: failover
// never repeats a call (spec/failover.md §8.1).
type Tool struct {
	llm.Tool
	// Run does the work. Its result goes to the model; an error becomes an error result and the
	// turn goes on. It must return soon after ctx ends.
	Run func(ctx context.Context, call Call) (string, error)
}

// Call is one invocation of a Tool.
type Call struct {
	Session string // key of the session the turn belongs to
	Agent   string
	Input   json.RawMessage
}

// maxToolOutput bounds what one tool call may put into the conversation, in bytes.
const maxToolOutput = 64 << 10

// runTools executes the calls of one answer in order and returns the message with their results.
// Once the turn has ended, or somebody wrote meanwhile, no further call starts; each still gets its
// result, so that no call is without one and what was done stays on record.
func (t *turn) runTools(ctx context.Context, calls []llm.ToolCall) llm.Message {
	m := llm.Message{Role: llm.RoleTool}
	for _, c := range calls {
		text, err := "", errNotRun
		switch {
		case ctx.Err() != nil:
		case t.listen():
			text, err = textSkipped, nil
		default:
			text, err = t.runTool(ctx, c)
		}
		result := &llm.ToolResult{ID: c.ID, Name: c.Name, Text: text}
		if err != nil {
			result.Text, result.IsError = err.Error(), true
			t.log.WarnContext(ctx, "tool_failed", "tool", c.Name, "error", err.Error())
		}
		if len(result.Text) > maxToolOutput {
			result.Text = result.Text[:maxToolOutput] + "\n[cut]"
		}
		result.Text = strings.ToValidUTF8(result.Text, "\uFFFD")
		m.Parts = append(m.Parts, llm.Part{ToolResult: result})
	}
	return m
}

// textSkipped is the result of a call that did not start because somebody wrote (spec/chat.md §1.5).
const textSkipped = "Skipped due to queued user message."

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
	for _, s := range t.steered {
		m, err := t.userMessage(ctx, s.In, s.Text)
		switch {
		case errors.Is(err, errEmptyMessage):
		case err != nil:
			return err
		default:
			t.add(m, llm.ModelRef{}, nil)
		}
		t.nSteered++
	}
	t.steered = nil
	return nil
}

var errNotRun = errors.New("not run: the turn was stopped before")

// runTool executes one call. A crash of the tool is an error of the tool, not of the bot.
func (t *turn) runTool(ctx context.Context, c llm.ToolCall) (text string, err error) {
	for _, tool := range t.r.deps.Tools {
		if tool.Name != c.Name {
			continue
		}
		defer func() {
			if p := recover(); p != nil {
				t.log.ErrorContext(ctx, "tool_panicked", "tool", c.Name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				text, err = "", fmt.Errorf("the tool %s crashed", c.Name)
			}
		}()
		t.run.Working()
		return tool.Run(ctx, Call{Session: t.sess.Key, Agent: t.req.Agent, Input: c.Input})
	}
	return "", fmt.Errorf("there is no tool named %q", c.Name)
}

// toolSpecs are the tools as the model sees them.
func (r *Runner) toolSpecs() []llm.Tool {
	specs := make([]llm.Tool, len(r.deps.Tools))
	for i, t := range r.deps.Tools {
		specs[i] = t.Tool
	}
	return specs
}
