package app

import (
	"context"
	"slices"
	"time"

	"understudy/failover/policy"
	"understudy/gateway"
	"understudy/llm"
)

// ModelInfo is a model as `bot models` and the RPC show it.
type ModelInfo struct {
	Ref           string `json:"ref"`
	Alias         string `json:"alias,omitempty"`
	Role          string `json:"role,omitempty"`     // primary or fallback, of the agent
	Position      int    `json:"position,omitempty"` // of a fallback: 1 is asked first
	ContextWindow int    `json:"contextWindow,omitempty"`
	Allowed       bool   `json:"allowed"`    // people may select it
	Credential    string `json:"credential"` // ok, resting, none; unknown where the stored ones cannot be read
	// Until is when the first credential rests no more.
	Until    time.Time       `json:"until,omitzero"`
	Reason   llm.Reason      `json:"reason,omitempty"`   // of the rest
	Profiles []llm.ProfileID `json:"profiles,omitempty"` // that would be tried, in order
}

type modelsListParams struct {
	Agent    string `json:"agent"`
	Provider string `json:"provider"`
}

// modelsList is the method models.list.
func (c calls) modelsList(ctx context.Context, p modelsListParams) (any, error) {
	snap := c.a.current.Load()
	if p.Agent == "" {
		p.Agent = snap.cfg.DefaultAgent()
	}
	if !slices.Contains(snap.cfg.AgentIDs(), p.Agent) {
		return nil, gateway.BadParam("agent", "there is no such agent")
	}
	health, err := c.a.health(ctx, p.Agent)
	list := snap.describe(p.Agent, health, err != nil, c.a.opts.Clock.Now())
	return modelsFound{Agent: p.Agent, Models: ofProvider(list, p.Provider)}, nil
}

// ofProvider keeps the models of a provider; "" = all.
func ofProvider(list []ModelInfo, provider string) []ModelInfo {
	if provider == "" {
		return list
	}
	id := llm.NormalizeProvider(provider)
	return slices.DeleteFunc(list, func(m ModelInfo) bool {
		ref, err := llm.ParseRef(m.Ref)
		return err != nil || ref.Provider != id
	})
}

// describe lists the models that an agent can be asked with: its chain in order, then what else is named,
// then what a credential makes available. blind tells that the stored credentials could not be read.
func (s *snapshot) describe(agent string, health policy.Snapshot, blind bool, now time.Time) []ModelInfo {
	m := s.cfg.Agent(agent).Models
	out := []ModelInfo{}
	seen := map[llm.ModelRef]bool{{}: true}
	for i, ref := range slices.Concat([]llm.ModelRef{m.Primary}, m.Fallbacks, s.selectable(health, now)) {
		if seen[ref] {
			continue
		}
		seen[ref] = true
		x := ModelInfo{
			Ref: ref.String(), Alias: s.cfg.Alias(ref), ContextWindow: s.Info(ref).ContextWindow,
			Allowed: ref == m.Primary || s.cfg.Allowed(ref), Profiles: s.profiles(health, ref, now),
		}
		switch {
		case i == 0:
			x.Role = "primary"
		case i <= len(m.Fallbacks):
			x.Role, x.Position = "fallback", i
		}
		x.credential(health, ref, now)
		if blind && len(x.Profiles) == 0 {
			x.Credential = "unknown"
		}
		out = append(out, x)
	}
	return out
}

// credential tells whether anything could serve the model now.
func (x *ModelInfo) credential(health policy.Snapshot, ref llm.ModelRef, now time.Time) {
	x.Credential = credentialNone
	for _, id := range x.Profiles {
		w, blocked := health.Health.Block(id, ref.Model, now)
		if !blocked {
			x.Credential, x.Until, x.Reason = credentialOK, time.Time{}, ""
			return
		}
		if x.Until.IsZero() || w.Until.Before(x.Until) {
			x.Credential, x.Until, x.Reason = "resting", w.Until.UTC(), w.Reason
		}
	}
}
