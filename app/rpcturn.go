package app

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"understudy/channels/web"
	"understudy/chat"
	"understudy/failover/policy"
	"understudy/gateway"
	"understudy/llm"
	"understudy/reply"
	"understudy/session"
)

// signOfLife is how often a caller who listens is shown that the bot is still there.
const signOfLife = 15 * time.Second

type turnParams struct {
	Session string `json:"session" rpc:"required"`
	Message string `json:"message" rpc:"required"`
	Model   string `json:"model"`
}

// TurnResult is what came of a turn that a program asked for.
type TurnResult struct {
	Turn    string     `json:"turn"` // its reference in logs
	Session string     `json:"session"`
	Status  string     `json:"status"`          // answered, silent, failed, stopped, interrupted
	Text    string     `json:"text,omitempty"`  // the answer, or why there is none
	Model   string     `json:"model,omitempty"` // that answered
	Reason  llm.Reason `json:"reason,omitempty"`
	RetryAt time.Time  `json:"retryAt,omitzero"` // of a failure: when trying again is worth it
	Usage   llm.Usage  `json:"usage"`
	CostUSD *float64   `json:"costUsd,omitempty"`
	// Acted tells that a tool ran: what it did is done, whatever came after.
	Acted bool              `json:"acted,omitempty"`
	Media []chat.Attachment `json:"media,omitempty"`
}

// turnRun is the method turn.run: one turn of a session, for the caller alone. When the caller goes
// away, the turn is stopped as by /stop.
func (c calls) turnRun(ctx context.Context, raw json.RawMessage, emit func(any) error) (any, error) {
	p, err := gateway.RPCParams[turnParams](raw)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(p.Message) == "" || len(p.Message) > web.MaxText {
		return nil, gateway.BadParam("message", "must be a text of at most 64 KiB")
	}
	s, err := c.script(ctx, p.Session)
	if err != nil {
		return nil, err
	}
	only, err := c.oneOff(ctx, s, p.Model)
	if err != nil {
		return nil, err
	}
	select {
	case c.turns <- struct{}{}:
		defer func() { <-c.turns }()
	default:
		return nil, &gateway.RPCError{Code: gateway.RPCBusy, Message: "too many turns are under way; try again later"}
	}
	t := scripted{c: c, feed: newTurnFeed(), ended: make(chan scriptEnd, 1), req: c.request(s, p.Message, only)}
	return t.run(ctx, emit)
}

// script returns the session of a turn; one that scripts use comes into being with its first turn.
func (c calls) script(ctx context.Context, name string) (session.Session, error) {
	s, err := c.find(ctx, name)
	var missing *gateway.RPCError
	if !errors.As(err, &missing) || missing.Code != gateway.RPCNotFound {
		return s, err
	}
	cfg := c.a.cfg()
	seed, ok := scriptSeed(cfg, namedKey(cfg, name))
	if !ok {
		return s, err
	}
	s, _, err = c.a.sessions.Ensure(ctx, seed)
	return s, err
}

// oneOff reads a model that is to answer this turn alone (spec/failover.md §3); nil = the session's.
func (c calls) oneOff(ctx context.Context, s session.Session, text string) (*policy.Selection, error) {
	if text == "" {
		return nil, nil
	}
	choice, err := c.a.commands.OneOff(ctx, ownerCall(s), text)
	switch {
	case err != nil:
		return nil, rpcError(err)
	case choice.Profile != "":
		return nil, gateway.BadParam("model", "takes no profile: sessions.patch locks one")
	}
	return &policy.Selection{Ref: choice.Ref, Source: policy.SourceOneOff}, nil
}

// request is the turn of a program. In a conversation of people it is nothing that a person wrote.
func (c calls) request(s session.Session, text string, only *policy.Selection) reply.Request {
	id := "rpc-" + uuid.NewString()
	return reply.Request{
		ID: id, Agent: s.AgentID, Key: s.Key, Parent: s.Parent, To: s.Address, Text: text, Selection: only,
		In:   &chat.Inbound{ID: id, Address: s.Address, Sender: chat.Sender{ID: ownerSender, Local: true}, Text: text, At: c.a.opts.Clock.Now()},
		Tail: c.a.remembers(s.Address), Program: s.Address.Channel != channelCLI,
	}
}

// scripted is a turn that a program asked for.
type scripted struct {
	c     calls
	req   reply.Request
	feed  *turnFeed
	ended chan scriptEnd
}

type scriptEnd struct {
	outcome reply.Outcome
	err     error
}

// run queues the turn in its session's lane and tells the caller what happens until it has ended.
func (t scripted) run(ctx context.Context, emit func(any) error) (any, error) {
	lanes, owner := t.c.a.lanes, t.req.ID // an owner of its own: nothing else is stopped with it
	err := lanes.Submit(t.req.Key, session.Task{
		Owner: owner, Run: t.answer, Dropped: func(cause error) { t.ended <- scriptEnd{err: cause} },
	})
	if err != nil {
		return nil, rpcError(err)
	}
	stop := func() { lanes.Stop(t.req.Key, owner) }
	defer context.AfterFunc(ctx, stop)()
	alive := time.NewTicker(signOfLife)
	defer alive.Stop()
	for {
		var gone error
		select {
		case <-t.feed.wake:
			gone = t.tell(emit)
		case <-alive.C:
			gone = emit(nil)
		case end := <-t.ended:
			if t.tell(emit) != nil || end.err != nil {
				return nil, rpcError(end.err)
			}
			return t.result(end.outcome), nil
		}
		if gone != nil {
			stop()
			emit = func(any) error { return nil }
		}
	}
}

func (t scripted) tell(emit func(any) error) error {
	for _, e := range t.feed.take() {
		if err := emit(e); err != nil {
			return err
		}
	}
	return nil
}

// answer runs the turn, in a session that the rule of its place may begin anew. Nobody can be asked to
// approve a tool or be offered a reminder, and nobody's messages are taken over.
func (t scripted) answer(ctx context.Context) {
	a := t.c.a
	d := a.replyDeps()
	d.Begin = func(chat.Address, *chat.Inbound, string) reply.Delivery { return t.feed }
	d.Approve, d.Steer, d.ToolsFor = nil, nil, a.scriptTools
	d.AgentAt = func(id string, to chat.Address) reply.Agent {
		agent := a.replyAgent(id, to)
		agent.Commitments = false
		return agent
	}
	a.running.Add(1)
	defer a.running.Add(-1)
	a.renew(context.WithoutCancel(ctx), t.req.ID, t.req.Agent, t.req.Key, t.req.To)
	began := a.opts.Clock.Now()
	o, err := reply.New(d).Run(ctx, t.req)
	a.metrics.TurnEnded(gateway.Turn{
		Channel: t.req.To.Channel, Model: blamed(o), Outcome: o.Status.String(), Trigger: "message", Duration: a.opts.Clock.Since(began),
	})
	a.countTokens(o.Model, o.Usage)
	t.ended <- scriptEnd{o, err}
}

func (t scripted) result(o reply.Outcome) TurnResult {
	r := TurnResult{
		Turn: t.req.ID, Session: t.req.Key, Status: o.Status.String(), Text: o.Text, Reason: o.Reason, RetryAt: utc(o.RetryAt),
		Usage: o.Usage, CostUSD: o.CostUSD, Acted: o.Acted, Media: t.feed.media(),
	}
	if o.Status == reply.Answered || o.Status == reply.Silent {
		r.Model = refName(o.Model)
	}
	return r
}
