package reply

import (
	"context"
	"math"
	"slices"

	"understudy/llm"
	"understudy/session"
)

// purpose is what the turn's tokens were used for.
func (q Request) purpose() session.Purpose {
	switch q.Kind {
	case Cron:
		return session.PurposeCron
	case Heartbeat:
		return session.PurposeHeartbeat
	}
	return session.PurposeMessage
}

// spend notes what a request used: one line per model and purpose.
func (t *turn) spend(by llm.ModelRef, p session.Purpose, u llm.Usage) {
	i := slices.IndexFunc(t.spent, func(x session.Spend) bool { return x.Model == by && x.Purpose == p })
	if i < 0 {
		i = len(t.spent)
		t.spent = append(t.spent, session.Spend{At: t.local(t.began), Agent: t.req.Agent, Model: by, Purpose: p, Turns: 1, Priced: true})
	}
	x := &t.spent[i]
	x.Usage = x.Usage.Add(u)
	usd, known := t.r.deps.Cost(by, u)
	x.CostMicros += int64(math.Round(usd * 1e6))
	x.Priced = x.Priced && known && u != (llm.Usage{}) // what was not reported is not free
}

// cost is the price of the turn; nil = not all of it is known.
func (t *turn) cost() *float64 {
	micros, known := session.Cost(t.spent)
	if !known {
		return nil
	}
	usd := float64(micros) / 1e6
	return &usd
}

// bill writes what was used where no end of a turn does.
func (t *turn) bill(ctx context.Context) {
	if err := t.r.deps.Sessions.AddSpend(context.WithoutCancel(ctx), t.spent...); err != nil {
		t.log.WarnContext(ctx, "usage_not_recorded", "error", err.Error())
	}
	t.spent = nil
}
