package app

import (
	"context"
	"errors"

	"understudy/chat"
	"understudy/delivery/markup"
	"understudy/failover"
	"understudy/llm"
	"understudy/mcp"
	"understudy/notices"
	"understudy/reply"
	"understudy/session"
)

// replyDeps says what reply works with.
func (a *App) replyDeps() reply.Deps {
	return reply.Deps{
		Failover: a.failover, Sessions: memory{a.sessions, a},
		Begin:      a.wayOut,
		Agent:      func(id string) reply.Agent { return a.replyAgent(id, chat.Address{}) },
		AgentAt:    a.replyAgent,
		Models:     func() failover.Models { return a.current.Load() },
		Notices:    func() notices.Config { return a.cfg().Notices },
		Fetch:      a.fetch,
		ToolsFor:   a.toolsFor,
		Approve:    a.approve,
		Steer:      a.steered,
		Transcribe: a.transcribe,
		Speak:      a.planSpeech,
		Allowed:    a.allowed,
		Cost:       a.cost,
		Clock:      a.opts.Clock,
		Log:        a.log,
		IsSilent:   markup.IsSilent,
		Clean:      markup.StripScaffolding,
		Redact:     a.hide.Text,
	}
}

// replyAgent is an agent's configuration as a turn in a place sees it.
func (a *App) replyAgent(id string, _ chat.Address) reply.Agent {
	s := a.current.Load()
	x := s.cfg.Agent(id)
	m := s.cfg.Messages
	return reply.Agent{
		Name: x.ID, System: x.SystemPrompt, Models: x.Models, ImageModel: x.ImageModels, Timeout: x.Timeout, Zone: x.Timezone,
		Compaction: s.compaction(), HeartbeatModel: x.Heartbeat.Model,
		ResponsePrefix: m.ResponsePrefix, ErrorPolicy: reply.ErrorPolicy(m.ErrorPolicy),
		ContextVisibility: reply.Visibility(m.ContextVisibility), VerboseInGroups: s.cfg.Commands.VerboseInGroups,
	}
}

// toolsFor are the tools of a turn: the built-in ones, and those of the tool servers that are meant for
// the agent and the place.
func (a *App) toolsFor(agent string, to chat.Address, kind reply.Kind) []reply.Tool {
	list := append(a.tools(), a.ownTools(to, kind)...)
	for _, t := range a.mcp.Tools(agent, to.Channel, to.Kind != chat.Direct) {
		list = append(list, serverTool(t))
	}
	return list
}

// serverTool is a tool of a server as a turn sees it.
func serverTool(t mcp.Tool) reply.Tool {
	return reply.Tool{
		Tool:   llm.Tool{Name: t.Name, Description: t.Description, Schema: t.Schema},
		Source: t.Server, Approve: t.Approve, Timeout: t.Timeout,
		Run: func(ctx context.Context, c reply.Call) (string, error) {
			r, err := t.Call(ctx, c.Input)
			switch {
			case err != nil:
				return "", err
			case r.IsError:
				return "", errors.New(r.Text)
			}
			return r.Text, nil
		},
	}
}

// allowed reports whether somebody may use the bot in a place.
func (a *App) allowed(to chat.Address, sender string) bool {
	return a.inbound.Authorised(context.Background(), chat.Inbound{Address: to, Sender: chat.Sender{ID: sender}})
}

// cost is the price of a usage in US dollars, where it is known.
func (a *App) cost(ref llm.ModelRef, u llm.Usage) (usd float64, known bool) {
	p := a.current.Load().registry.Model(ref).Price
	if p == nil {
		return 0, false
	}
	perMillion := p.Input*float64(u.Input) + p.Output*float64(u.Output) + p.CacheRead*float64(u.CacheRead) + p.CacheWrite*float64(u.CacheWrite)
	return perMillion / 1e6, true
}

// memory is the session store as turns see it: with what the message that they answer set for itself
// alone (spec/chat.md §3.1). What they write is not changed by that.
type memory struct {
	*session.Store
	a *App
}

// Ensure implements reply.Sessions.
func (m memory) Ensure(ctx context.Context, seed session.Seed) (s session.Session, created bool, err error) {
	s, created, err = m.Store.Ensure(ctx, seed)
	return m.once(s), created, err
}

// TakeSwitch implements reply.Sessions.
func (m memory) TakeSwitch(ctx context.Context, key string) (s session.Session, pending bool, err error) {
	s, pending, err = m.Store.TakeSwitch(ctx, key)
	return m.once(s), pending, err
}

func (m memory) once(s session.Session) session.Session {
	v, ok := m.a.turns.byKey.Load(s.Key)
	if !ok {
		return s
	}
	switch once := v.(*running).once; {
	case once.Think == "default":
		s.Think = ""
	case once.Think != "":
		s.Think = once.Think
	}
	switch once := v.(*running).once; {
	case once.Verbose == "off":
		s.Verbose = ""
	case once.Verbose != "":
		s.Verbose = once.Verbose
	}
	return s
}
