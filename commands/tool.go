package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"understudy/chat"
)

// SessionStatus is the built-in tool with which a model reads the status of its conversation and,
// when the user asks for it, selects another model by the rules of /model (spec/failover.md §3).
// Only the user can lift the choice again.
func (r *Registry) SessionStatus() Tool {
	return Tool{
		Name:        "session_status",
		Description: "Shows the status of this conversation: selected and answering model, fallbacks, context size, limits. With model set, selects that model for the conversation; do that only when the user asked for it.",
		Schema:      json.RawMessage(`{"type":"object","properties":{"model":{"type":"string","description":"a model reference (provider/model), an alias, or default"}},"additionalProperties":false}`),
		Run: func(ctx context.Context, agent, key string, input json.RawMessage) (string, error) {
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
			c := Call{Agent: agent, Key: key, Parent: s.Parent, To: s.Address}
			c.To.Kind = chat.Room // what is sensitive stays hidden from the conversation
			if in.Model != "" {
				text, err := r.choose(ctx, c, in.Model)
				var no *refusal
				if errors.As(err, &no) {
					return "", no
				}
				return text, err
			}
			reply, err := r.status(ctx, c, "")
			return reply.Text, err
		},
	}
}
