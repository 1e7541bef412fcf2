package app

import (
	"slices"
	"time"

	"understudy/channels"
	"understudy/chat"
	"understudy/failover"
	"understudy/failover/policy"
	"understudy/gateway"
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
	if s.State == channels.Down {
		a.metrics.ChannelReconnect(s.Channel)
	}
	i := slices.IndexFunc(a.accounts, func(x account) bool {
		t := x.adapter.Traits()
		return t.Channel == s.Channel && t.Account == s.Account
	})
	a.metrics.ChannelUp(s.Channel, a.place(i), s.State == channels.Connected)
}

// place is the position of an account among those of its channel.
func (a *App) place(i int) int {
	if i < 0 {
		return i
	}
	n := 0
	for _, x := range a.accounts[:i] {
		if x.adapter.Traits().Channel == a.accounts[i].adapter.Traits().Channel {
			n++
		}
	}
	return n
}

// countTokens notes what a turn has used.
func (a *App) countTokens(model llm.ModelRef, u llm.Usage) {
	for kind, n := range map[string]int{
		"input": u.Input, "output": u.Output, "cache_read": u.CacheRead, "cache_write": u.CacheWrite,
	} {
		a.metrics.Tokens(model.String(), kind, n)
	}
}
