package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"understudy/chat"
	"understudy/commands"
	"understudy/llm"
	"understudy/notices"
	"understudy/reply"
)

// toolbox is what the built-in tools of turns work with. Which tools there are depends on the place alone;
// what they do, on who is there.
type toolbox struct {
	a *App
	// people returns those whose words are in a call's turn.
	people func(ctx context.Context, c reply.Call) people
	// mute tells that the turn says nothing in the conversation.
	mute bool
}

// toolsFor are the tools of a turn; see reply.Deps.ToolsFor.
func (a *App) toolsFor(agent string, to chat.Address) []reply.Tool {
	return toolbox{a: a, people: a.peopleOf}.tools(agent, to)
}

// scriptTools are the tools of a turn that a program asked for and alone hears.
func (a *App) scriptTools(agent string, to chat.Address) []reply.Tool {
	return toolbox{a: a, people: scriptOwner, mute: true}.tools(agent, to)
}

// tools are the built-in ones, and those of the tool servers that are meant for the agent and the place.
func (b toolbox) tools(agent string, to chat.Address) []reply.Tool {
	list := []reply.Tool{b.status()}
	if to.Conversation != "" && to.Channel != channelCLI { // else nothing could be said there, now or later
		list = append(list, b.cron())
		if !b.mute {
			list = append(list, b.a.sendTool())
		}
	}
	for _, t := range b.a.mcp.Tools(agent, to.Channel, to.Kind != chat.Direct) {
		list = append(list, serverTool(t))
	}
	return list
}

// status is the tool that shows the state of the conversation and selects its model. People are told of a
// selection: it is strict, and what a model read may have led it there.
func (b toolbox) status() reply.Tool {
	t := b.a.commands.SessionStatus()
	return reply.Tool{
		Tool: llm.Tool{Name: t.Name, Description: t.Description, Schema: t.Schema},
		Run: func(ctx context.Context, c reply.Call) (string, error) {
			by := b.people(ctx, c)
			text, err := t.Run(ctx, commands.ToolUse{
				Agent: c.Agent, Key: c.Session, Input: c.Input, By: by.calls(c), Strangers: by.strangers(),
				Chosen: func(x commands.Chosen) { c.Notify(notices.Selected(x.Ref, x.Default, x.Before)) },
			})
			var refused *commands.Refusal
			if err != nil && !errors.As(err, &refused) {
				b.a.log.ErrorContext(ctx, "tool_fault", "tool", t.Name, "turn", c.Turn, "error", err.Error())
				return "", errToolFault
			}
			return text, err
		},
	}
}

// errToolFault is what a model is told of a fault on our side.
var errToolFault = errors.New("a fault of the bot")

// Bounds of what a model may say beside its answer.
const (
	mostSent    = 5        // messages of one turn
	largestSent = 16 << 10 // bytes
)

// sendTool says something at once in the conversation of the turn.
func (a *App) sendTool() reply.Tool {
	return reply.Tool{
		Tool: llm.Tool{
			Name:        "send_message",
			Description: "Say something at once in this conversation, beside your answer: for example that a long task goes on. Do not repeat it in the answer. It cannot reach any other conversation.",
			Schema:      json.RawMessage(`{"type":"object","properties":{"text":{"type":"string","description":"Markdown"}},"required":["text"],"additionalProperties":false}`),
		},
		Run: a.sendFromTurn,
	}
}

func (a *App) sendFromTurn(ctx context.Context, c reply.Call) (string, error) {
	var in struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(c.Input, &in); err != nil || strings.TrimSpace(in.Text) == "" || len(in.Text) > largestSent {
		return "", fmt.Errorf("text must be a text of at most %d KB", largestSent>>10)
	}
	n, class := a.sent.count(c.Turn), chat.Assistant
	if n > mostSent {
		return "", fmt.Errorf("a turn may send at most %d messages", mostSent)
	}
	p := a.backstage.of(c.Turn)
	if p != nil {
		class = chat.Cron
	}
	o := chat.Outbound{To: c.To, Class: class, Markdown: in.Text, TurnID: fmt.Sprintf("%s-sent-%d", c.Turn, n)}
	if err := a.delivery.Send(ctx, o); err != nil {
		return "", errors.New("it could not be sent")
	}
	if p != nil {
		p.sent.Add(1)
		if p.to.Destination() == c.To.Destination() {
			p.spoke.Store(true)
		}
	}
	return "sent", nil
}
