package app

import (
	"bytes"
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"understudy/chat"
	"understudy/failover/policy"
	"understudy/llm"
)

// chained is a bot that is opened with a chain of two models.
func chained(t *testing.T, d *desk) *App {
	t.Helper()
	o := d.options()
	o.NoControl = true
	a, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

const twoModels = "agents: {defaults: {model: {primary: anthropic/claude-opus-4-8, fallbacks: [openai/gpt-5.5]}}}\n"

// A chain that nobody can be asked with is told at the start, with the command that helps.
func TestTheStartNamesModelsWithoutACredential(t *testing.T) {
	d := newDesk(t, twoModels)
	d.env["OPENAI_API_KEY"] = "sk-1"
	var out bytes.Buffer
	chained(t, d).greet(t.Context(), &out)
	if got := out.String(); !strings.Contains(got, "warning  anthropic/claude-opus-4-8 has no credential: bot auth add anthropic:default\n") || strings.Count(got, "warning") != 1 {
		t.Error(got)
	}
}

// The token of the page goes to nobody but a person at a terminal, and a configured one to nobody at all.
func TestTheStartKeepsTheTokenToItself(t *testing.T) {
	for _, config := range []string{"", "gateway: {token: chosen-by-the-operator}\n"} {
		o := newDesk(t, twoModels+config).options()
		o.NoControl, o.Listen = true, "127.0.0.1:0"
		a, err := New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		a.greet(t.Context(), &out)
		if got := out.String(); strings.Contains(got, "token=") || !strings.Contains(got, "page     http://127.0.0.1:") || strings.Contains(got, "bot page") != (config == "") {
			t.Errorf("%q: %s", config, got)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What rests is seen by monitoring, and `bot status` says who would answer instead.
func TestRestingCredentialsAreSeenFromOutside(t *testing.T) {
	d := newDesk(t, twoModels)
	d.env["ANTHROPIC_API_KEY"], d.env["OPENAI_API_KEY"] = "sk-ant-1", "sk-1"
	a := chained(t, d)
	store, err := a.auth.get(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	seen := func() string {
		rec := httptest.NewRecorder()
		a.metrics.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
		return rec.Body.String()
	}
	if got := seen(); strings.Contains(got, "bot_profile_resting{") {
		t.Error(got)
	}
	for _, model := range []string{"claude-opus-4-8", "claude-haiku-4-5"} {
		failed := policy.Attempt{Profile: "anthropic:env", Model: model, At: time.Now(), Failure: &llm.Failure{Reason: llm.ReasonRateLimit}}
		if _, err := store.Settle(context.Background(), policy.DefaultRules(), failed); err != nil {
			t.Fatal(err)
		}
	}
	if got := seen(); !strings.Contains(got, `bot_profile_resting{provider="anthropic",reason="rate_limit"} 1`+"\n") {
		t.Error(got)
	}
	st, err := a.Status(t.Context(), chat.Address{})
	if err != nil || st.Model.Active != "openai/gpt-5.5" || st.Model.Reason != "rate limit" {
		t.Errorf("%+v, %v", st.Model, err)
	}
	if err := store.ClearHealth(t.Context(), "anthropic:env"); err != nil {
		t.Fatal(err)
	}
	if st, err = a.Status(t.Context(), chat.Address{}); err != nil || st.Model.Active != "" || strings.Contains(seen(), "bot_profile_resting{") {
		t.Errorf("%+v, %v", st.Model, err)
	}
}
