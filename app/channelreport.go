package app

import (
	"context"
	"slices"
	"sync"
	"time"

	"understudy/channels"
	"understudy/commands"
	"understudy/gateway"
)

// AccountReport is what `bot channels status` shows of one account. It holds no secret.
type AccountReport struct {
	Channel string `json:"channel"`
	Account string `json:"account"` // "default" for the block's own
	// State is one of channels.State, or "unavailable": a secret of it cannot be resolved.
	State      string             `json:"state"`
	Detail     string             `json:"detail,omitempty"`
	Since      time.Time          `json:"since,omitzero"`
	LastEvent  time.Time          `json:"lastEvent,omitzero"`
	LastError  string             `json:"lastError,omitempty"`
	Events     int64              `json:"events"`     // received since the start
	Reconnects int64              `json:"reconnects"` // since the start
	Sent       int64              `json:"sent"`       // since the start: answers, notices and the like
	Failed     int64              `json:"failed"`     // given up, or it is not known whether they arrived
	LastLook   *channels.Look     `json:"lastLook,omitempty"`
	Findings   []channels.Finding `json:"findings,omitempty"`
	ProbeError string             `json:"probeError,omitempty"`
}

// stateUnavailable is the state of an account whose secret cannot be resolved.
const stateUnavailable = "unavailable"

// reports describes the accounts of platforms, in a fixed order.
func (a *App) reports() []AccountReport {
	var list []AccountReport
	for _, x := range a.roster.all() {
		if !x.platform {
			continue
		}
		r := AccountReport{
			Channel: x.key.Channel, Account: accountID(x.key.Name), State: string(channels.Connecting),
			Events: x.received.Load(), Reconnects: x.reconnects.Load(), Sent: x.sent.Load(), Failed: x.failed.Load(),
		}
		if l, ok := x.adapter.(channels.Looker); ok {
			if look, done := l.LastLook(); done {
				r.LastLook = &look
			}
		}
		if s, ok := a.states.get(x.key); ok {
			r.State, r.Detail, r.Since = string(s.State), s.Detail, s.Since
		}
		if ms := x.last.Load(); ms != 0 {
			r.LastEvent = time.UnixMilli(ms)
		}
		if p := x.lastError.Load(); p != nil {
			r.LastError = *p
		}
		list = append(list, r)
	}
	for _, u := range a.cfg().Unavailable {
		if u.Channel != "" {
			list = append(list, AccountReport{Channel: u.Channel, Account: accountID(u.Account), State: stateUnavailable, Detail: u.Problem.String()})
		}
	}
	slices.SortStableFunc(list, func(x, y AccountReport) int {
		return compare(x.Channel, y.Channel, x.Account, y.Account)
	})
	return list
}

// probeLimit is how long a platform may take to say whether it lets an account in.
const probeLimit = 20 * time.Second

// probed is reports with what the platforms say now.
func (a *App) probed(ctx context.Context) []AccountReport {
	list := a.reports()
	var wg sync.WaitGroup
	for i, r := range list {
		x, ok := a.roster.get(keyOf(r.Channel, r.Account))
		if !ok {
			continue
		}
		wg.Go(func() { list[i].Findings, list[i].ProbeError = probe(ctx, x.adapter, a.commands) })
	}
	wg.Wait()
	return list
}

// probe asks one platform, also whether it shows these commands.
func probe(ctx context.Context, x channels.Adapter, known *commands.Registry) ([]channels.Finding, string) {
	p, ok := x.(channels.Prober)
	if !ok {
		return nil, ""
	}
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	found, err := p.Probe(ctx)
	refused := len(found) == 1 && found[0].Fix != "" // the token: nothing more is to be learnt
	if c, ok := x.(channels.CommandProber); ok && err == nil && !refused {
		var more []channels.Finding
		more, err = c.ProbeCommands(ctx, menu(known.Specs()))
		found = append(found, more...)
	}
	if err != nil {
		return found, err.Error()
	}
	return found, ""
}

// channelRoutes adds what the verbs about channels ask for.
func (a *App) channelRoutes(c *gateway.Control) {
	c.Handle("GET /v1/channels", answer(func(ctx context.Context, in struct{}) (any, error) { return a.reports(), nil }))
	c.Handle("POST /v1/channels/probe", answer(func(ctx context.Context, in struct{}) (any, error) { return a.probed(ctx), nil }))
	c.HandleLarge("POST /v1/messages", largestMessage, answer(a.sendMessage))
	c.Handle("POST /v1/notify", answer(a.notify))
	c.Handle("POST /v1/dead-letters/resubmit", answer(a.resubmit))
}
