package config

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/failover/policy"
	"understudy/llm"
)

func TestPools(t *testing.T) {
	c := must(t, `
auth:
  profiles:
    openai:work: {provider: openai, mode: api_key}
    openai-codex:me@example.com: {provider: openai-codex, mode: oauth, email: me@example.com}
    zai:a: {}
  order: {openai: [openai:user@example.com, openai:api-key-backup], Z.AI: [], anthropic: [anthropic:a, anthropic:a]}
models: {providers: {openai: {apiKey: sk-test-key}}}
`)
	for provider, want := range map[string]policy.Pool{
		"openai": {
			Provider:   "openai",
			Declared:   []policy.Declared{{ID: "openai-codex:me@example.com", Mode: llm.KindOAuth}, {ID: "openai:work", Mode: llm.KindAPIKey}},
			Configured: []llm.ProfileID{"openai:user@example.com", "openai:api-key-backup"},
			Virtual:    &policy.Profile{ID: "openai:env", Kind: llm.KindAPIKey, HasSecret: true},
		},
		"Z-AI":      {Provider: "zai", Declared: []policy.Declared{{ID: "zai:a"}}, Configured: []llm.ProfileID{}},
		"anthropic": {Provider: "anthropic", Configured: []llm.ProfileID{"anthropic:a"}},
		"gemini":    {Provider: "gemini"},
	} {
		if diff := cmp.Diff(want, c.Pool(provider)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", provider, diff)
		}
	}
}

func TestAuthProviders(t *testing.T) {
	c := must(t, "auth: {profiles: {'xai:a': {}}, order: {Z.AI: []}}\nmodels: {providers: {openai: {apiKey: sk-test-key}, groq: {}, xai: {apiKey: sk-test-key}}}")
	if diff := cmp.Diff([]string{"openai", "xai", "zai"}, c.AuthProviders()); diff != "" {
		t.Error(diff)
	}
}

func TestAuthWarnings(t *testing.T) {
	const text = "auth:\n  order:\n    antropic: []\n    openai: [openai:a, openai:a]\n  profiles:\n    grok:a: {}\n"
	want := []string{
		`bot.yaml:3:5: auth.order.antropic: there is no provider "antropic" (did you mean "anthropic"?)`,
		`bot.yaml:4:24: auth.order.openai[1]: "openai:a" stands here twice (the first one counts)`,
		`bot.yaml:6:5: auth.profiles.grok:a: there is no provider "grok" (did you mean "groq"?)`,
	}
	if diff := cmp.Diff(want, warnings(t, text)); diff != "" {
		t.Error(diff)
	}
	if got := problems(t, "auth: {order: {openai: [anthropic:a]}}"); len(got) != 1 {
		t.Errorf("an order with a foreign profile: %v", got)
	}
}

func TestCooldownRules(t *testing.T) {
	c := must(t, `
auth:
  cooldowns:
    billingBackoffHours: 30
    billingBackoffHoursByProvider: {Anthropic: 0.5}
    authPermanentBackoffMinutes: 5
    authPermanentMaxMinutes: 1
    failureWindowHours: 12
    overloadedProfileRotations: 0
    overloadedBackoffMs: 250
    rateLimitedProfileRotations: 3
`, RetryMaxWaitVar, "off")
	want := policy.Rules{
		BillingBackoff: 30 * time.Hour, BillingMax: 30 * time.Hour, // raised to the base
		BillingByProvider:    map[string]time.Duration{"anthropic": 30 * time.Minute},
		AuthPermanentBackoff: 5 * time.Minute, AuthPermanentMax: 5 * time.Minute,
		FailureWindow: 12 * time.Hour, OverloadedBackoff: 250 * time.Millisecond, RateLimitRotations: 3,
		RetryAfterCap: -1,
	}
	if diff := cmp.Diff(want, c.Rules()); diff != "" {
		t.Error(diff)
	}
	if err := c.Rules().Validate(); err != nil {
		t.Error(err)
	}
}

func TestEnvironment(t *testing.T) {
	for _, tt := range []struct {
		name, value string
		skip, wait  time.Duration
		warns       bool
	}{
		{SkipTTLVar, "", 0, time.Minute, false},
		{SkipTTLVar, "0", 0, time.Minute, false},
		{SkipTTLVar, "5", time.Second, time.Minute, false},
		{SkipTTLVar, " 60000 ", time.Minute, time.Minute, false},
		{SkipTTLVar, "99999999999999999999", 10 * time.Minute, time.Minute, false},
		{SkipTTLVar, "-1", 0, time.Minute, true},
		{SkipTTLVar, "soon", 0, time.Minute, true},
		{SkipTTLVar, "NaN", 0, time.Minute, true},
		{RetryMaxWaitVar, "7", 0, 7 * time.Second, false},
		{RetryMaxWaitVar, "0", 0, -1, false},
		{RetryMaxWaitVar, "OFF", 0, -1, false},
		{RetryMaxWaitVar, "none", 0, -1, false},
		{RetryMaxWaitVar, "false", 0, -1, false},
		{RetryMaxWaitVar, "disabled", 0, -1, false},
		{RetryMaxWaitVar, "-5", 0, time.Minute, true},
		{RetryMaxWaitVar, "a while", 0, time.Minute, true},
		{RetryMaxWaitVar, "1e300", 0, longestSpan, false},
	} {
		e, ws := ReadEnv(env(tt.name, tt.value))
		if e.SkipTTL != tt.skip || e.RetryAfterCap != tt.wait || (len(ws) > 0) != tt.warns {
			t.Errorf("%s=%q: skip %v, wait %v, warnings %v", tt.name, tt.value, e.SkipTTL, e.RetryAfterCap, ws)
		}
	}
	for dir, want := range map[string]string{"": "/srv/someone/.openclaw", "/srv/bot": "/srv/bot", "~/bot": "/srv/someone/bot", "/a/../b": "/b"} {
		if e, _ := ReadEnv(env(StateDirVar, dir)); e.StateDir != want {
			t.Errorf("state directory for %q: %q", dir, e.StateDir)
		}
	}
}

func TestListenerFromTheEnvironment(t *testing.T) {
	vars := []string{ListenVar, "0.0.0.0:8787", TokenVar, "0123456789abcdef"}
	c := must(t, "", vars...)
	if c.Gateway.Listen != "0.0.0.0:8787" || c.Gateway.Token.Reveal() != "0123456789abcdef" || len(c.Secrets()) != 1 {
		t.Errorf("gateway %+v", c.Gateway)
	}
	if c := must(t, "gateway: {listen: '127.0.0.1:1'}", vars...); c.Gateway.Listen != "127.0.0.1:1" {
		t.Errorf("the file must win: %+v", c.Gateway)
	}
	if got := problems(t, "", vars[:2]...); len(got) != 1 {
		t.Errorf("off loopback without a token: %v", got)
	}
}
