package app

import (
	"context"
	"sync"
	"sync/atomic"

	"understudy/chat"
	"understudy/reply"
)

// backstage is where turns run that nobody asked for: what they come to is not said by them, but by
// whoever had them run.
type backstage struct {
	*reply.Runner
	turns sync.Map // turn id → *performance
}

// performance is one turn backstage.
type performance struct {
	said  chat.Outbound // what the turn came to; zero = nothing
	done  bool
	to    chat.Address // where the result would go
	sent  atomic.Int64 // messages that the agent sent itself
	spoke atomic.Bool  // … one of them to where the result would go
}

// openBackstage makes the runner of these turns. It works like the one of conversations, but nobody
// watches, nobody can be asked, and nobody speaks.
func (a *App) openBackstage() *backstage {
	b := &backstage{}
	deps := a.replyDeps()
	deps.Begin = func(_ chat.Address, _ *chat.Inbound, turn string) reply.Delivery { return b.wayOut(turn) }
	deps.Steer, deps.Approve, deps.Speak = nil, nil, nil
	b.Runner = reply.New(deps)
	return b
}

// perform runs a turn and returns what it came to beside its outcome.
func (b *backstage) perform(ctx context.Context, q reply.Request, to chat.Address) (*performance, reply.Outcome, error) {
	p := &performance{to: to}
	b.turns.Store(q.ID, p)
	defer b.turns.Delete(q.ID)
	o, err := b.Run(ctx, q)
	return p, o, err
}

// of returns the turn of an id, nil = it does not run here.
func (b *backstage) of(turn string) *performance {
	v, ok := b.turns.Load(turn)
	if !ok {
		return nil
	}
	return v.(*performance)
}

func (b *backstage) wayOut(turn string) reply.Delivery {
	if p := b.of(turn); p != nil {
		return p
	}
	return &performance{}
}

// Stream implements reply.Delivery.
func (*performance) Stream(string) {}

// Committed implements reply.Delivery.
func (*performance) Committed() bool { return false }

// Restart implements reply.Delivery.
func (*performance) Restart() {}

// Notify implements reply.Delivery. Fallbacks of such turns stand in the run log only (spec/chat.md §5.6).
func (*performance) Notify(chat.Outbound) {}

// Finish implements reply.Delivery.
func (p *performance) Finish(_ context.Context, o chat.Outbound) error {
	p.said, p.done = o, true
	return nil
}

// Cancel implements reply.Delivery.
func (*performance) Cancel() {}
