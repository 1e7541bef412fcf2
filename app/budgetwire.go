package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/budget"
	"understudy/chat"
	"understudy/failover"
	"understudy/llm"
	"understudy/provider/sim"
	"understudy/session"
)

// openPurse opens the budget.
func (a *App) openPurse(ctx context.Context) (err error) {
	a.purse, err = budget.New(ctx, budget.Deps{
		DB: a.db, Usage: a.sessions, Clock: a.opts.Clock, Log: a.log,
		Config: func() budget.Config { return a.cfg().Budget },
		Price:  a.price,
		Zone:   func() *time.Location { return a.cfg().Agent("").Timezone },
		Told: func(ctx context.Context, key, text string) {
			ctx = context.WithoutCancel(ctx)
			a.work.Go(func() {
				if err := (announcer{a}).Tell(ctx, key, text); err != nil {
					a.log.WarnContext(ctx, "owner_not_told", "key", key, "error", err.Error())
				}
			})
		},
	})
	return err
}

// price is what a usage costs, where it is known. The offline models are free; others without a price
// have an unknown one, also those of this machine: behind a local address there may be a paid account.
func (a *App) price(ref llm.ModelRef, u llm.Usage) (usd float64, known bool) {
	if ref.Provider == sim.Provider {
		return 0, true
	}
	return a.cost(ref, u)
}

// till stands between the chain of a turn and the purse.
type till struct{ a *App }

var _ failover.Purse = till{}

// askFor is how long a person may think about a paid stand-in (spec/chat.md §12 D19).
const askFor = 60 * time.Second

var errNoWord = errors.New("nobody answered in time")

// MayStandIn implements failover.Purse.
func (t till) MayStandIn(ctx context.Context, turn failover.Ref, ref llm.ModelRef, unattended bool) bool {
	a := t.a
	if a.purse.MayStandIn(ctx, ref) != budget.Yes {
		return false
	}
	if !a.purse.MustAsk(ref) {
		return true
	}
	if unattended {
		a.log.InfoContext(ctx, "standin_not_asked", "turn", turn.Turn, "model", ref.String())
		return false
	}
	ok, err := a.askAboutMoney(ctx, turn, ref)
	if err != nil {
		a.log.InfoContext(ctx, "standin_not_agreed", "turn", turn.Turn, "model", ref.String(), "error", err.Error())
	}
	return ok && err == nil
}

// StoodIn implements failover.Purse.
func (t till) StoodIn(ctx context.Context, ref llm.ModelRef, u llm.Usage) {
	t.a.purse.StoodIn(ctx, ref, u)
}

// textMoney asks whether a paid model may stand in; it takes the model, its price, and the two commands.
const textMoney = "💸 May `%s` stand in? %s\nPress a button, or write `%s` or `%s`, within 60 seconds."

// askAboutMoney asks in the conversation of a turn whether a model may stand in, and waits.
func (a *App) askAboutMoney(ctx context.Context, turn failover.Ref, ref llm.ModelRef) (bool, error) {
	to, sender, ok := a.whoAsked(turn)
	if !ok {
		return false, errors.New("nobody is there to be asked")
	}
	ctx, cancel := a.opts.Clock.WithTimeout(ctx, askFor, errNoWord)
	defer cancel()
	q := &question{sender: sender, key: turn.Session, tool: ref.String(), answer: make(chan bool, 1), closed: make(chan struct{})}
	token, err := a.approvals.ask(q)
	if err != nil {
		return false, err
	}
	defer a.approvals.end(token)
	yes, no := wordApprove+" "+token, wordDeny+" "+token
	err = a.delivery.Send(ctx, chat.Outbound{
		To: to, Class: chat.Command, TurnID: turn.Turn + "-money-" + token,
		Markdown: fmt.Sprintf(textMoney, ref, a.priceText(ref), yes, no),
		Buttons:  []chat.Button{{Label: "Use it", Command: yes}, {Label: "Don't", Command: no}},
	})
	if err != nil {
		return false, err
	}
	if err := a.opts.Clock.Await(ctx, q.closed); err != nil {
		return false, err
	}
	return <-q.answer, nil
}

// priceText says what a model costs.
func (a *App) priceText(ref llm.ModelRef) string {
	in, known := a.price(ref, llm.Usage{Input: 1e6})
	out, _ := a.price(ref, llm.Usage{Output: 1e6})
	if !known {
		return "What it costs is unknown."
	}
	micros := func(usd float64) int64 { return int64(usd * 1e6) }
	return fmt.Sprintf("It costs %s per million tokens of input and %s of output.", budget.Dollars(micros(in)), budget.Dollars(micros(out)))
}

// whoAsked finds the conversation of a turn that runs, and whose message it answers.
func (a *App) whoAsked(turn failover.Ref) (to chat.Address, sender string, ok bool) {
	v, found := a.turns.byKey.Load(turn.Session)
	if !found {
		return to, "", false
	}
	r := v.(*running)
	return r.to, r.jobs[0].in.Sender.ID, true
}

// countUsage notes what was used outside of any turn.
func (a *App) countUsage(ctx context.Context, agent string, ref llm.ModelRef, p session.Purpose, u llm.Usage) {
	if u == (llm.Usage{}) {
		return
	}
	usd, known := a.price(ref, u)
	err := a.sessions.AddSpend(context.WithoutCancel(ctx), session.Spend{
		At: a.opts.Clock.Now().In(a.cfg().Agent(agent).Timezone), Agent: agent, Model: ref, Purpose: p, Turns: 1, Usage: u,
		CostMicros: int64(usd * 1e6), Priced: known,
	})
	if err != nil {
		a.log.WarnContext(ctx, "usage_not_recorded", "error", err.Error())
	}
}
