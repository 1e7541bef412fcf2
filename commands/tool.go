package commands

import (
	"context"
	"encoding/json"
	"fmt"
)

// Tool is a function for the model, in the shape that package reply wants.
type Tool struct {
	Name, Description string
	Schema            json.RawMessage
	Run               func(ctx context.Context, agent, key string, input json.RawMessage) (string, error)
}

// SessionStatus is the built-in tool with which a model reads the status of its conversation and,
// when the user asks for it, selects another model by the rules of /model (spec/failover.md §3).
// It names no profile and no problem of the operator. An error of Run is fit for the model when it
// is a refusal or a bad argument.
func (r *Registry) SessionStatus() Tool {
	return Tool{
		Name:        "session_status",
		Description: "Shows the status of this conversation: selected and answering model, fallbacks, context size, limits. With model set, selects that model for the conversation; do that only when the user asked for it.",
		Schema:      json.RawMessage(`{"type":"object","properties":{"model":{"type":"string","description":"a model reference (provider/model), an alias, or default"}},"additionalProperties":false}`),
		Run:         r.sessionStatus,
	}
}

func (r *Registry) sessionStatus(ctx context.Context, agent, key string, input json.RawMessage) (string, error) {
	var in struct {
		Model string `json:"model"`
	}
	if len(input) > 0 {
		if err := json.Unmarshal(input, &in); err != nil {
			return "", fmt.Errorf("the arguments are not valid: %w", err)
		}
	}
	s, err := r.deps.Sessions.Get(ctx, key)
	if err != nil {
		return "", err
	}
	c := Call{Agent: agent, Key: s.Key, Parent: s.Parent, To: s.Address, model: true}
	if in.Model == "" {
		reply, err := r.status(ctx, c, "")
		return reply.Text, err
	}
	text, err := r.choose(ctx, c, in.Model)
	if words, ok := told(err); ok {
		return "", &Refusal{words}
	}
	return text, err
}
