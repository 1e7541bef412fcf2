package simulate

import (
	"context"
	"fmt"

	"understudy/config"
	"understudy/failover/policy"
	"understudy/heartbeat"
	"understudy/llm"
	"understudy/session"
)

// cronSelection applies the rules for scheduled tasks (spec/failover.md §3, spec/chat.md §5.1).
func (s *stage) cronSelection(ses session.Session, e event) (*policy.Selection, error) {
	agent := s.config.Agent(ses.AgentID)
	sel := policy.Select(override(ses), agent.Models)
	if e.model != "" {
		choice, err := s.config.Resolve(e.model, config.Known{})
		if err != nil {
			return nil, fmt.Errorf("the task's model %q cannot be used: %w", e.model, err)
		}
		sel = policy.Selection{Ref: choice.Ref, Source: policy.SourceCron}
	}
	if e.chain != nil {
		sel.Source, sel.Fallbacks = policy.SourceCron, []llm.ModelRef{}
		for _, text := range e.chain {
			choice, err := s.config.Resolve(text, config.Known{})
			if err != nil {
				return nil, fmt.Errorf("the task's fallback %q cannot be used: %w", text, err)
			}
			sel.Fallbacks = append(sel.Fallbacks, choice.Ref)
		}
	}
	return &sel, nil
}

func override(s session.Session) policy.Override {
	return policy.Override{Ref: s.Override.Model, Source: s.Override.Source, Origin: s.Override.Origin}
}

// heartbeatSelection is heartbeat.model, or the session's own selection after a stale automatic
// override was cleared.
func (s *stage) heartbeatSelection(ctx context.Context, ses session.Session) (*policy.Selection, error) {
	agent := s.config.Agent(ses.AgentID)
	sel, stale := heartbeat.Selection(ses, agent.Heartbeat.Model, agent.Models)
	if stale != (session.Override{}) {
		if _, err := s.sessions.ClearAuto(ctx, ses.Key, stale); err != nil {
			return nil, err
		}
	}
	return &sel, nil
}
