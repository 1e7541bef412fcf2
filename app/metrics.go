package app

import (
	"time"

	"understudy/channels"
	"understudy/chat"
	"understudy/failover"
	"understudy/failover/policy"
	"understudy/gateway"
	"understudy/inbound"
	"understudy/llm"
)

// observer turns what failover does into metrics.
type observer struct{ m *gateway.Metrics }

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

// Fell implements failover.Observer.
func (o observer) Fell(_ failover.Ref, from, to llm.ModelRef, reason llm.Reason) {
	o.m.ModelFailover(from.String(), to.String(), string(reason))
}

// Skipped implements failover.Observer.
func (observer) Skipped(failover.Ref, failover.Record) {}

// Waited implements failover.Observer.
func (observer) Waited(failover.Ref, time.Duration, policy.Why) {}

// Settled implements failover.Observer.
func (observer) Settled(string, []policy.Changed) {}

// counters turns what delivery does into metrics.
type counters struct{ m *gateway.Metrics }

// Sent implements delivery.Metrics.
func (c counters) Sent(channel string, class chat.Class) {
	c.m.Delivery(channel, class.String(), "sent", "none")
	if class == chat.Notice {
		c.m.Notice("notice", "sent")
	}
}

// Failed implements delivery.Metrics.
func (c counters) Failed(channel string, class chat.Class, code string) {
	c.m.Delivery(channel, class.String(), "failed", code)
}

// NoticeFailed implements delivery.Metrics.
func (c counters) NoticeFailed(string) { c.m.Notice("notice", "failed") }

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

// measure records what is only known at the moment it is asked for.
func (a *App) measure() {
	if a.delivery == nil {
		return
	}
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
