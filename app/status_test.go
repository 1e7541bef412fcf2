package app

import (
	"testing"
	"time"

	"understudy/failover/policy"
	"understudy/llm"
	"understudy/session"
)

// TestStatusTellsWhetherTheLeadCanServe looks at a model while its only credential, one of two, and none rests.
func TestStatusTellsWhetherTheLeadCanServe(t *testing.T) {
	dir := t.TempDir()
	a, err := New(t.Context(), Options{Version: "test", Listen: listenOff, NoControl: true, Log: quiet(), Env: func(name string) (string, bool) {
		v, ok := map[string]string{"OPENCLAW_STATE_DIR": dir, "OLLAMA_HOST": "127.0.0.1:1", "ANTHROPIC_API_KEY": "sk-ant-test"}[name]
		return v, ok
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	now := time.Now()
	stored := []policy.Profile{
		{ID: "anthropic:home", Kind: llm.KindAPIKey, HasSecret: true}, {ID: "anthropic:work", Kind: llm.KindAPIKey, HasSecret: true},
	}
	rests := func(id llm.ProfileID, until time.Duration) policy.Health {
		return policy.Health{policy.Key{Profile: id}: {Cooldown: policy.Window{Until: now.Add(until), Reason: llm.ReasonRateLimit}}}
	}
	both := rests("anthropic:work", time.Hour)
	for k, row := range rests("anthropic:home", time.Minute) {
		both[k] = row
	}
	for name, c := range map[string]struct {
		model  string
		health policy.Snapshot
		pinned llm.ProfileID
		want   string
		until  time.Time
	}{
		"well":                    {"anthropic/claude-opus-4-8", policy.Snapshot{}, "", "ok", time.Time{}},
		"its only one rests":      {"anthropic/claude-opus-4-8", policy.Snapshot{Health: rests("anthropic:env", time.Minute)}, "", "resting", now.Add(time.Minute).UTC()},
		"one of two rests":        {"anthropic/claude-opus-4-8", policy.Snapshot{Profiles: stored, Health: rests("anthropic:work", time.Hour)}, "", "ok", time.Time{}},
		"both rest":               {"anthropic/claude-opus-4-8", policy.Snapshot{Profiles: stored, Health: both}, "", "resting", now.Add(time.Minute).UTC()},
		"the one of this chat":    {"anthropic/claude-opus-4-8", policy.Snapshot{Profiles: stored, Health: rests("anthropic:work", time.Hour)}, "anthropic:work", "resting", now.Add(time.Hour).UTC()},
		"nothing is stored":       {"openai/gpt-5.5", policy.Snapshot{}, "", "none", time.Time{}},
		"no model is configured":  {"", policy.Snapshot{}, "", "", time.Time{}},
		"another provider's rest": {"openai/gpt-5.5", policy.Snapshot{Health: rests("anthropic:env", time.Minute)}, "", "none", time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := session.Session{}
			if c.pinned != "" {
				s.Pin = session.Pin{Profile: c.pinned, Source: session.SourceUser}
			}
			got, until := a.servable(s, c.health, c.model, now)
			if got != c.want || !until.Equal(c.until) {
				t.Errorf("%q until %v, want %q until %v", got, until, c.want, c.until)
			}
		})
	}
}
