package simulate

import (
	"context"
	"fmt"

	"understudy/config"
	"understudy/cron"
	"understudy/failover/policy"
	"understudy/heartbeat"
	"understudy/llm"
	"understudy/session"
)

// cronSelection applies the product's rules for scheduled tasks.
func (s *stage) cronSelection(ses session.Session, e event) (*policy.Selection, error) {
	p := cron.Payload{Model: e.model}
	if e.chain != nil {
		p.Fallbacks = &e.chain
	}
	sel, err := p.Selection(ses.Override, s.config.Agent(ses.AgentID).Models, func(text string) (llm.ModelRef, error) {
		choice, err := s.config.Resolve(text, config.Known{})
		return choice.Ref, err
	})
	if err != nil {
		return nil, fmt.Errorf("the task cannot run: %w", err)
	}
	return &sel, nil
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
