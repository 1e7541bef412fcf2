package commands

import (
	"context"
	"encoding/json"

	"understudy/llm"
	"understudy/session"
)

// Tool is a function for the model, near the shape that package reply wants.
type Tool struct {
	Name, Description string
	Schema            json.RawMessage
	Run               func(ctx context.Context, u ToolUse) (string, error)
}

// ToolUse is one call of a Tool by a model.
type ToolUse struct {
	Agent, Key string // of the session
	Input      json.RawMessage
	// By is everybody whose words the model may follow in this turn, as they would give a command. Nobody
	// can tell whose words led to a call, so it may do only what all of them may; nothing where there is
	// nobody, as in a turn that no person began.
	By []Call
	// Strangers tells that words of people who are not let in stand there too.
	Strangers bool
	// Chosen is told that a model was selected, so that people learn of it whatever the model says; nil = nobody is.
	Chosen func(Chosen)
}

// Chosen is a selection that a model made for its conversation.
type Chosen struct {
	Ref     llm.ModelRef
	Default bool // the configured default, with its fallbacks; else it is strict
	// Before is what had been selected; zero = the configured default.
	Before llm.ModelRef
}

// Refusals of SessionStatus, for the model.
const (
	textNobodyAsked = "Not done: a model is selected only when somebody asks for it, and nobody asked in this turn."
	textNotAll      = "Not done: not everybody whose words are in this turn may select the model here. Whoever may can do it with /model."
)

// SessionStatus is the built-in tool with which a model reads the status of its conversation and,
// when the user asks for it, selects another model by the rules of /model (spec/failover.md §3): for
// people who may use /model. It names no profile and no problem of the operator. An error of Run is a
// *Refusal, which is fit for the model, or a fault on our side.
func (r *Registry) SessionStatus() Tool {
	return Tool{
		Name:        "session_status",
		Description: "Shows the status of this conversation: selected and answering model, fallbacks, context size, limits. With model set, selects that model for the conversation; do that only when the user asked for it.",
		Schema:      json.RawMessage(`{"type":"object","properties":{"model":{"type":"string","description":"a model reference (provider/model), an alias, or default"}},"additionalProperties":false}`),
		Run:         r.sessionStatus,
	}
}

func (r *Registry) sessionStatus(ctx context.Context, u ToolUse) (string, error) {
	var in struct {
		Model string `json:"model"`
	}
	if len(u.Input) > 0 && json.Unmarshal(u.Input, &in) != nil {
		return "", &Refusal{"The arguments are not what the schema says."}
	}
	s, err := r.deps.Sessions.Get(ctx, u.Key)
	if err != nil {
		return "", err
	}
	c := Call{Agent: u.Agent, Key: s.Key, Parent: s.Parent, To: s.Address, model: true}
	if in.Model == "" {
		reply, err := r.status(ctx, c, "")
		return reply.Text, err
	}
	if err := r.mayChoose(u); err != nil {
		return "", err
	}
	return r.chooseFor(ctx, u, c, s, in.Model)
}

// mayChoose reports whether everybody may use /model.
func (r *Registry) mayChoose(u ToolUse) error {
	i, ok := r.byName["model"]
	switch {
	case !ok || len(u.By) == 0:
		return &Refusal{textNobodyAsked}
	case u.Strangers:
		return &Refusal{textNotAll}
	}
	for _, c := range u.By {
		if _, may := r.may(r.specs[i], c); !may {
			return &Refusal{textNotAll}
		}
	}
	return nil
}

// chooseFor selects a model for the session s of c and tells of what changed.
func (r *Registry) chooseFor(ctx context.Context, u ToolUse, c Call, s session.Session, model string) (string, error) {
	before, _, err := r.deps.Sessions.Selection(ctx, s)
	if err != nil {
		return "", err
	}
	t, err := r.target(ctx, c, model)
	text := ""
	if err == nil {
		text, err = r.choose(ctx, c, model)
	}
	if words, ok := told(err); ok {
		return "", &Refusal{words}
	}
	if err != nil {
		return "", err
	}
	x := Chosen{Ref: t.Ref, Default: t.isDefault}
	if before.User() {
		x.Before = before.Model
	}
	var pinned llm.ProfileID
	if s.Pin.Source == session.SourceUser {
		pinned = s.Pin.Profile
	}
	same := t.isDefault && x.Before.IsZero() || x.Before == t.Ref
	if u.Chosen != nil && (!same || pinned != t.Profile) {
		u.Chosen(x)
	}
	return text, nil
}
