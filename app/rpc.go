package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"understudy/chat"
	"understudy/commands"
	"understudy/config"
	"understudy/gateway"
	"understudy/llm"
	"understudy/session"
)

// calls are the methods of the bot's JSON-RPC (docs/rpc.md), for the command line and for programs of
// the owner.
type calls struct {
	a        *App
	sessions sessionShelf
	turns    chan struct{} // one for each turn that may be under way, at whichever door
}

// mostScripted bounds the turns that programs have under way or waiting.
const mostScripted = 64

// rpc returns the JSON-RPC of the bot, for all doors: its bounds hold for what comes in at any of them.
func (a *App) rpc() *gateway.RPC {
	c := calls{a: a, sessions: newShelf(a.sessions), turns: make(chan struct{}, mostScripted)}
	x := gateway.NewRPC(a.log)
	x.Handle("sessions.list", quick(c.sessionsList))
	x.Handle("sessions.get", quick(c.sessionsGet))
	x.Handle("sessions.patch", quick(c.sessionsPatch))
	x.Handle("sessions.reset", quick(c.sessionsReset))
	x.Handle("sessions.delete", quick(c.sessionsDelete))
	x.Handle("sessions.cleanup", quick(c.sessionsCleanup))
	x.Handle("models.list", quick(c.modelsList))
	x.HandleSlow("turn.run", c.turnRun)
	return x
}

// quick makes a method that has no events.
func quick[In any](f func(ctx context.Context, in In) (any, error)) gateway.RPCMethod {
	return func(ctx context.Context, raw json.RawMessage, _ func(any) error) (any, error) {
		in, err := gateway.RPCParams[In](raw)
		if err != nil {
			return nil, err
		}
		return f(ctx, in)
	}
}

// channelCLI is the channel of conversations that scripts begin (spec/chat.md §1.1).
const channelCLI = "cli"

// namedKey reads what names a session: its key, or a name for one that scripts use.
func namedKey(cfg *config.Config, name string) string {
	if strings.HasPrefix(name, "agent:") {
		return name
	}
	return session.Key(cfg.DefaultAgent(), scriptAddress(name), cfg.Session)
}

func scriptAddress(name string) chat.Address {
	return chat.Address{Channel: channelCLI, Conversation: name, Kind: chat.Direct}
}

// scriptSeed returns what a session of scripts begins with; ok is false for the key of anything else,
// because nobody knows its place.
func scriptSeed(cfg *config.Config, key string) (seed session.Seed, ok bool) {
	part := strings.SplitN(key, ":", 4)
	if len(part) != 4 || part[0] != "agent" || part[2] != channelCLI || !slices.Contains(cfg.AgentIDs(), part[1]) {
		return seed, false
	}
	to := scriptAddress(part[3])
	return session.Seed{Key: key, AgentID: part[1], Address: to}, session.Key(part[1], to, cfg.Session) == key
}

// maxSessionName bounds what may name a session, in bytes.
const maxSessionName = 512

// find returns the session that a parameter named session names.
func (c calls) find(ctx context.Context, name string) (session.Session, error) {
	if name == "" || len(name) > maxSessionName {
		return session.Session{}, gateway.BadParam("session", "must be a key or a name of 1 to 512 bytes")
	}
	s, err := c.a.sessions.Get(ctx, namedKey(c.a.cfg(), name))
	return s, rpcError(err)
}

// rpcError gives the errors of the session store, of the lanes and of commands their codes.
func rpcError(err error) error {
	var refusal *commands.Refusal
	switch {
	case errors.Is(err, session.ErrNotFound):
		return &gateway.RPCError{Code: gateway.RPCNotFound, Message: "there is no such session"}
	case errors.Is(err, session.ErrFull):
		return &gateway.RPCError{Code: gateway.RPCBusy, Message: "too many messages wait in this conversation"}
	case errors.Is(err, session.ErrDraining), errors.Is(err, llm.ErrShutdown):
		return &gateway.RPCError{Code: gateway.RPCStopping, Message: "the bot is shutting down"}
	case errors.Is(err, llm.ErrStopped):
		return &gateway.RPCError{Code: gateway.RPCRefused, Message: "it was stopped while it waited"}
	case errors.As(err, &refusal):
		return &gateway.RPCError{Code: gateway.RPCRefused, Message: refusal.Text}
	}
	return err
}

// owner is a command of the bot's owner in a session.
func ownerCall(s session.Session) commands.Call {
	in := chat.Inbound{Address: s.Address, Sender: chat.Sender{ID: ownerSender, Local: true}}
	return commands.Call{Agent: s.AgentID, Key: s.Key, Parent: s.Parent, To: s.Address, In: in, Owner: true}
}

// ownerSender is who programs of the owner speak as.
const ownerSender = "owner"

// command runs a slash command in a session and returns its reply.
func (c calls) command(ctx context.Context, s session.Session, text string) (string, error) {
	inv, ok := c.a.commands.Match(text)
	if !ok {
		return "", fmt.Errorf("%q is no command", text)
	}
	return c.a.commands.Run(ctx, inv, ownerCall(s)).Text, nil
}

// inLane does something in a session's lane, before what waits there; a turn that runs is stopped
// first. It goes on when the caller leaves.
func (c calls) inLane(ctx context.Context, key string, do func(ctx context.Context) error) error {
	ended := make(chan error, 1)
	err := c.a.lanes.Submit(key, session.Task{
		Front: true, Owner: ownerSender, Preempt: llm.ErrStopped,
		Run:     func(ctx context.Context) { ended <- do(context.WithoutCancel(ctx)) },
		Dropped: func(cause error) { ended <- cause },
	})
	if err != nil {
		return rpcError(err)
	}
	select {
	case err := <-ended:
		return rpcError(err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
