package heartbeat

import (
	"understudy/failover/policy"
	"understudy/llm"
	"understudy/session"
)

// Selection returns what a heartbeat turn of a session asks for: heartbeat.model where one is set,
// else the session's own choice. stale is the automatic override that has to be cleared first,
// because what it stood in for is not configured any more; zero = none (spec/failover.md §12,
// spec/chat.md §6.4).
func Selection(s session.Session, heartbeatModel llm.ModelRef, models policy.Models) (sel policy.Selection, stale session.Override) {
	if !heartbeatModel.IsZero() {
		return policy.Selection{Ref: heartbeatModel, Source: policy.SourceHeartbeat}, session.Override{}
	}
	if s.Override.Auto() && s.Override.Origin != models.Primary {
		stale, s.Override = s.Override, session.Override{}
	}
	return policy.Select(policy.Override{Ref: s.Override.Model, Source: s.Override.Source, Origin: s.Override.Origin}, models), stale
}
