package app

import (
	"context"
	"errors"

	"understudy/chat"
	"understudy/commands"
	"understudy/inbound"
	"understudy/reply"
)

// pair lets somebody in who shows a code, and tells them; see commands.Deps.Pair.
func (a *App) pair(ctx context.Context, c commands.Call, channel, code string) (commands.Paired, error) {
	account := inbound.Account{Channel: channel}
	if channel == "" || channel == c.To.Channel {
		account = inbound.Account{Channel: c.To.Channel, Name: c.To.Account}
	}
	by := c.To.Channel + ":" + c.In.Sender.ID
	who, err := a.inbound.Pairing().Approve(ctx, account, code, by, len(a.cfg().Commands.OwnerAllowFrom) > 0)
	switch {
	case errors.Is(err, inbound.ErrUnknownCode):
		return commands.Paired{}, &commands.Refusal{Text: "No pending request on " + account.Channel + " has this code; codes are valid for one hour."}
	case errors.Is(err, inbound.ErrLocked):
		return commands.Paired{}, &commands.Refusal{Text: "Too many wrong codes; try again in a minute."}
	case err != nil:
		return commands.Paired{}, err
	}
	if err := a.delivery.Send(ctx, chat.Outbound{To: who.To, Class: chat.Command, Markdown: inbound.TextApproved}); err != nil {
		a.log.WarnContext(ctx, "approval_not_told", "channel", who.To.Channel, "error", err.Error())
	}
	return commands.Paired{Channel: account.Channel, Sender: who.Sender, Owner: who.Owner}, nil
}

// aside answers a question beside the conversation; see commands.Deps.Aside.
func (a *App) aside(ctx context.Context, c commands.Call, question string) (string, error) {
	o, err := a.reply.Aside(ctx, a.request(c, question))
	a.countTokens(o.Model, o.Usage)
	return o.Text, err
}

// context measures what a conversation's next request would be made of; see commands.Deps.Context.
func (a *App) context(ctx context.Context, c commands.Call) (commands.ContextReport, error) {
	x, err := a.reply.Context(ctx, a.request(c, ""))
	if err != nil {
		return commands.ContextReport{}, err
	}
	out := commands.ContextReport{
		Model: x.Model, Window: x.Window, Reserve: x.Reserve, System: x.System, Tools: x.Tools, ToolCount: x.ToolCount,
		Summary: x.Summary, Messages: x.Messages, MessageCount: x.MessageCount, Total: x.Total, Reported: x.Reported, Compactions: x.Compactions,
	}
	for _, f := range x.Files {
		out.Files = append(out.Files, commands.ContextFile(f))
	}
	return out, nil
}

// request is what a command asks reply for, about as much of the conversation as a turn is shown.
func (a *App) request(c commands.Call, text string) reply.Request {
	return reply.Request{
		ID: "command-" + c.In.EventKey, Agent: c.Agent, Key: c.Key, Parent: c.Parent, To: c.To, In: &c.In, Text: text, Tail: a.remembers(c.To),
	}
}

// steer hands a text to the turn that runs; see commands.Deps.Steer. Where that turn never listens, it
// is the next message.
func (a *App) steer(ctx context.Context, c commands.Call, text string) (taken bool, err error) {
	v, ok := a.commanding.Load(c.In.EventKey)
	r, runs := a.turns.byKey.Load(c.Key)
	if !ok || !runs || r.(*running).place() != c.To.Destination() {
		return false, nil
	}
	j := v.(*job)
	follow := *j
	follow.text, follow.follows, follow.steers = text, true, true
	j.handed = true
	follow.queueTurn(ctx)
	return true, nil
}
