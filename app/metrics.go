package app

import (
	"time"

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
	c.m.Delivery(channel, class.String(), "sent", "")
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
