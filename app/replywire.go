package app

import (
	"context"
	"errors"
	"fmt"

	"understudy/chat"
	"understudy/config"
	"understudy/delivery/markup"
	"understudy/failover"
	"understudy/llm"
	"understudy/mcp"
	"understudy/notices"
	"understudy/reply"
)

// replyDeps says what reply works with.
func (a *App) replyDeps() reply.Deps {
	return reply.Deps{
		Failover: a.failover, Sessions: a.sessions,
		Begin:      a.wayOut,
		Agent:      func(id string) reply.Agent { return a.replyAgent(id, chat.Address{}) },
		AgentAt:    a.replyAgent,
		Models:     func() failover.Models { return a.current.Load() },
		Notices:    func() notices.Config { return a.cfg().Notices },
		Fetch:      a.fetch,
		ToolsFor:   a.toolsFor,
		Approve:    a.approve,
		OfferTime:  a.offerTime,
		Steer:      a.steered,
		Transcribe: a.transcribe,
		Voice:      a.foreseeSpeech,
		Speak:      a.planSpeech,
		Allowed:    a.allowed,
		Cost:       a.cost,
		Compacted:  a.compacted,
		Clock:      a.opts.Clock,
		Log:        a.log,
		IsSilent:   markup.IsSilent,
		Clean:      markup.StripScaffolding,
		Redact:     a.hide.Text,
	}
}

// replyAgent is an agent's configuration as a turn in a place sees it.
func (a *App) replyAgent(id string, to chat.Address) reply.Agent {
	s := a.current.Load()
	x := s.cfg.Agent(id)
	m := s.cfg.Manners(to.Channel, to.Account)
	return reply.Agent{
		Name: x.ID, System: x.SystemPrompt, Files: systemFiles(x.SystemFiles), Models: x.Models, ImageModel: x.ImageModels, Timeout: x.Timeout, Zone: x.Timezone,
		Compaction: s.compaction(), HeartbeatModel: x.Heartbeat.Model,
		ResponsePrefix: *m.ResponsePrefix, ErrorPolicy: reply.ErrorPolicy(m.ErrorPolicy),
		ContextVisibility: reply.Visibility(s.cfg.Messages.ContextVisibility), VerboseInGroups: s.cfg.Commands.VerboseInGroups,
		Commitments: x.Commitments,
	}
}

// systemFiles are the operator's texts as a turn takes them.
func systemFiles(list []config.SystemFile) []reply.File {
	files := make([]reply.File, len(list))
	for i, f := range list {
		files[i] = reply.File(f)
	}
	return files
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
			return r.Text + attach(r.Files, c), nil
		},
	}
}

// attach puts what a tool made beside the answer, and tells the model so.
func attach(files []mcp.File, c reply.Call) (told string) {
	for _, f := range files {
		err := c.Attach(chat.Attachment{Name: f.Name, MediaType: f.MediaType, Size: int64(len(f.Data)), Data: f.Data})
		if err != nil {
			return told + fmt.Sprintf("\n[%s and what follows is not sent: %s]", f.Name, err)
		}
		told += fmt.Sprintf("\n[%s is sent with your answer]", f.Name)
	}
	return told
}

// allowed reports whether somebody may use the bot in a place; see reply.Deps.Allowed.
func (a *App) allowed(who chat.Inbound) bool { return a.inbound.Authorised(context.Background(), who) }

// cost is the price of a usage in US dollars, where it is known.
func (a *App) cost(ref llm.ModelRef, u llm.Usage) (usd float64, known bool) {
	p := a.current.Load().registry.Model(ref).Price
	if p == nil {
		return 0, false
	}
	perMillion := p.Input*float64(u.Input) + p.Output*float64(u.Output) + p.CacheRead*float64(u.CacheRead) + p.CacheWrite*float64(u.CacheWrite)
	return perMillion / 1e6, true
}
