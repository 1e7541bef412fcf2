package app

import (
	"context"
	"time"

	"understudy/channels"
	"understudy/chat"
	"understudy/failover"
	"understudy/failover/policy"
	"understudy/gateway"
	"understudy/inbound"
	"understudy/llm"
	"understudy/reply"
)

// observer turns what failover does into metrics, and into a line of a status draft.
type observer struct {
	m *gateway.Metrics
	a *App
}

// Attempted implements failover.Observer.
func (o observer) Attempted(_ failover.Ref, r failover.Record) {
	if r.Probe() {
		outcome := "ok"
		if r.Reason != "" {
			outcome = string(r.Reason)
		}
		o.m.Probe(r.Provider, outcome)
	}
}

// Fell implements failover.Observer. People whose turn it is may see it: see delivery.Turn.Doing.
func (o observer) Fell(run failover.Ref, from, to llm.ModelRef, reason llm.Reason) {
	o.m.ModelFailover(from.String(), to.String(), string(reason))
	if _, asked := o.a.turns.byKey.Load(run.Session); asked {
		o.a.delivery.Doing(run.Turn, "🤖 `"+to.String()+"`")
	}
}

// Skipped implements failover.Observer.
func (observer) Skipped(failover.Ref, failover.Record) {}

// Waited implements failover.Observer.
func (observer) Waited(failover.Ref, time.Duration, policy.Why) {}

// Settled implements failover.Observer.
func (o observer) Settled(agent string, changed []policy.Changed) {
	o.a.credentialsChanged(agent, changed)
}

// counters turns what delivery does into metrics, and counts it for each account.
type counters struct {
	m      *gateway.Metrics
	roster *roster
}

// Sent implements delivery.Metrics.
func (c counters) Sent(to chat.Address, class chat.Class) {
	c.m.Delivery(to.Channel, class.String(), "sent", "none")
	if class == chat.Notice {
		c.m.Notice("notice", "sent")
	}
	if x, ok := c.roster.of(to); ok {
		x.sent.Add(1)
	}
}

// Failed implements delivery.Metrics.
func (c counters) Failed(to chat.Address, class chat.Class, code string) {
	c.m.Delivery(to.Channel, class.String(), "failed", code)
	c.failed(to)
}

// NoticeFailed implements delivery.Metrics.
func (c counters) NoticeFailed(to chat.Address) {
	c.m.Notice("notice", "failed")
	c.failed(to)
}

func (c counters) failed(to chat.Address) {
	if x, ok := c.roster.of(to); ok {
		x.failed.Add(1)
	}
}

// compacted counts an attempt to shorten a conversation.
func (a *App) compacted(err error) {
	if err != nil {
		a.metrics.Compaction("failed")
		return
	}
	a.metrics.Compaction("ok")
}

func refStrings(refs []llm.ModelRef) []string {
	out := make([]string, len(refs))
	for i, r := range refs {
		out[i] = r.String()
	}
	return out
}

// connection takes in how the connection of a channel account is.
func (a *App) connection(s channels.Status) {
	a.states.set(s)
	x, ok := a.roster.get(inbound.Account{Channel: s.Channel, Name: s.Account})
	if !ok {
		return
	}
	if s.State == channels.Down {
		x.reconnects.Add(1)
		a.metrics.ChannelReconnect(s.Channel)
	}
	if s.State == channels.Connected {
		a.settled(x.subject())
	}
	if s.State != channels.Connected && s.Detail != "" {
		x.lastError.Store(&s.Detail)
	}
	a.metrics.ChannelUp(s.Channel, x.place, s.State == channels.Connected)
}

// blamed is the model that a turn is counted for: who answered, or who was to where nobody did.
func blamed(o reply.Outcome) string {
	if o.Model.IsZero() {
		return o.Selected.String()
	}
	return o.Model.String()
}

// resting lists the credentials that rest now. One that several agents share counts once.
func (a *App) resting(ctx context.Context) (list []gateway.Resting) {
	type why struct {
		profile llm.ProfileID
		reason  llm.Reason
	}
	seen, now := map[why]bool{}, a.opts.Clock.Now()
	for _, agent := range a.cfg().AgentIDs() {
		snap, err := a.health(ctx, agent)
		if err != nil {
			continue // readiness tells of it
		}
		for k, row := range snap.Health {
			for _, w := range [...]policy.Window{row.Cooldown, row.Disabled} {
				x := why{k.Profile, w.Reason}
				if w.Active(now) && !seen[x] {
					seen[x] = true
					list = append(list, gateway.Resting{Provider: k.Profile.Provider(), Reason: string(w.Reason)})
				}
			}
		}
	}
	return list
}

// measure records what is only known at the moment it is asked for.
func (a *App) measure() {
	if a.delivery == nil {
		return
	}
	a.metrics.ProfilesResting(a.resting(context.Background()))
	d, waiting := a.delivery.Depth(), 0
	a.turns.queued.Range(func(_, _ any) bool {
		waiting++
		return true
	})
	for state, n := range map[string]int{"waiting": waiting, "running": int(a.running.Load()), "outbox": d.Queued, "sending": d.Busy, "backlog": d.Backlog, "held": d.Held} {
		a.metrics.QueueDepth(state, n)
	}
}

// countTokens notes what a turn has used.
func (a *App) countTokens(model llm.ModelRef, u llm.Usage) {
	for kind, n := range map[string]int{
		"input": u.Input, "output": u.Output, "cache_read": u.CacheRead, "cache_write": u.CacheWrite,
	} {
		a.metrics.Tokens(model.String(), kind, n)
	}
}
