package openai_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	emulator "understudy/internal/emulate/llm"
	"understudy/internal/secret"
	"understudy/llm"
	"understudy/provider"
	"understudy/provider/openai"
)

// sent returns the body of the last request.
func sent(t *testing.T, srv *emulator.Server) map[string]any {
	t.Helper()
	log := srv.Requests()
	if len(log) == 0 {
		t.Fatal("no request")
	}
	var body map[string]any
	if err := json.Unmarshal(log[len(log)-1].Body, &body); err != nil {
		t.Fatal(err)
	}
	return body
}

func thinker(string) provider.ModelInfo {
	return provider.ModelInfo{Known: true, Images: true, Tools: true, Reasoning: true, Efforts: []string{"low", "medium", "high"}}
}

func TestQuirksOfChatRequests(t *testing.T) {
	for _, tt := range []struct {
		name   string
		quirks provider.Quirks
		has    map[string]any
		hasNot []string
	}{
		{"plain host", provider.Quirks{}, map[string]any{"max_tokens": 500.0, "stream": true, "stream_options": map[string]any{"include_usage": true}}, []string{"max_completion_tokens", "reasoning_effort", "reasoning", "prompt_cache_key", "store"}},
		{"openai", provider.Quirks{CompletionTokens: true, Effort: provider.EffortPlain, CacheKey: true}, map[string]any{"max_completion_tokens": 500.0, "reasoning_effort": "high", "prompt_cache_key": "conv"}, []string{"max_tokens"}},
		{"openrouter", provider.Quirks{Effort: provider.EffortObject}, map[string]any{"reasoning": map[string]any{"effort": "high"}}, []string{"reasoning_effort"}},
		{"mistral", provider.Quirks{NoStreamOptions: true}, nil, []string{"stream_options"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := newServer(t)
			spec := chat
			spec.Quirks, spec.Model = tt.quirks, thinker
			req := hi("alpha")
			req.MaxTokens, req.Thinking, req.CacheKey = 500, "xhigh", "conv"
			if a := ask(t, srv, spec, key, req); a.Err != nil {
				t.Fatal(a.Err)
			}
			body := sent(t, srv)
			for name, want := range tt.has {
				if diff := cmp.Diff(want, body[name]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
			for _, name := range tt.hasNot {
				if _, there := body[name]; there {
					t.Errorf("%s was sent", name)
				}
			}
		})
	}
}

func TestThinkingLevels(t *testing.T) {
	for _, tt := range []struct {
		level string
		info  provider.ModelInfo
		want  any
	}{
		{"high", provider.ModelInfo{}, nil}, // not known to think
		{"", provider.ModelInfo{Reasoning: true}, nil},
		{"off", provider.ModelInfo{Reasoning: true}, nil},
		{"off", provider.ModelInfo{Reasoning: true, Efforts: []string{"none", "low"}}, "none"},
		{"minimal", provider.ModelInfo{Reasoning: true}, "low"},
		{"xhigh", provider.ModelInfo{Reasoning: true}, "high"},
		{"xhigh", provider.ModelInfo{Reasoning: true, Efforts: []string{"low", "xhigh"}}, "xhigh"},
		{"medium", provider.ModelInfo{Reasoning: true, Efforts: []string{"none", "high"}}, "high"},
		{"enormous", provider.ModelInfo{Reasoning: true}, nil},
	} {
		srv := newServer(t)
		spec := chat
		spec.Quirks.Effort = provider.EffortPlain
		spec.Model = func(string) provider.ModelInfo { return tt.info }
		req := hi("alpha")
		req.Thinking = tt.level
		ask(t, srv, spec, key, req)
		if got := sent(t, srv)["reasoning_effort"]; got != tt.want {
			t.Errorf("%q for %+v: %v, want %v", tt.level, tt.info, got, tt.want)
		}
	}
}

func TestToolsOnlyForModelsThatTakeThem(t *testing.T) {
	srv := newServer(t)
	spec := chat
	spec.Model = func(string) provider.ModelInfo { return provider.ModelInfo{Known: true} }
	req := hi("alpha")
	req.Tools = []llm.Tool{{Name: "look"}}
	req.Messages = append(req.Messages,
		llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{ToolCall: &llm.ToolCall{ID: "a", Name: "look", Input: json.RawMessage(`{}`)}}}},
		llm.Message{Role: llm.RoleTool, Parts: []llm.Part{{ToolResult: &llm.ToolResult{ID: "a", Text: "a cat"}}}})
	ask(t, srv, spec, key, req)
	if _, there := sent(t, srv)["tools"]; there {
		t.Error("tools were sent to a model that takes none")
	}
	if body := string(srv.Requests()[0].Body); strings.Contains(body, "tool_calls") || !strings.Contains(body, "a cat") {
		t.Errorf("transcript = %s", body)
	}
}

// A ChatGPT subscription is the same provider at another address (spec/failover.md §5.3).
func TestSubscription(t *testing.T) {
	srv := newServer(t)
	srv.Strict = true
	spec := resp
	def, _ := provider.Builtin("openai")
	spec.Quirks, spec.Model = def.Quirks, thinker
	spec.Headers = map[string]secret.String{"X-Gateway": secret.New("inner")}
	oauth := llm.Credential{Kind: llm.KindOAuth, Secret: secret.New("token"), AccountID: "acc-1"}
	req := hi("openai")
	req.MaxTokens, req.CacheKey, req.Thinking = 1000, "conv", "low"
	if a := ask(t, srv, spec, oauth, req); a.Err != nil || a.Text != "ok" {
		t.Fatalf("answer = %+v, %v", a, a.Err)
	}
	r := srv.Requests()[0]
	h := http.Header(r.Header)
	if r.Host != "chatgpt.com" || r.Path != "/backend-api/codex/responses" || r.Key != "token" ||
		h.Get("chatgpt-account-id") != "acc-1" || h.Get("originator") == "" || h.Get("session_id") != "conv" || h.Get("X-Gateway") != "" {
		t.Errorf("request = %s%s %v", r.Host, r.Path, h)
	}
	body := sent(t, srv)
	if _, there := body["max_output_tokens"]; there || body["instructions"] == "" || body["instructions"] == nil || body["store"] != false {
		t.Errorf("body = %v", body)
	}
	// The next attempt with an API key of the same provider goes to the API, with nothing of the above.
	if a := ask(t, srv, spec, key, req); a.Err != nil {
		t.Fatal(a.Err)
	}
	r = srv.Requests()[1]
	h = http.Header(r.Header)
	if r.Host != "api.openai.com" || r.Path != "/v1/responses" || h.Get("chatgpt-account-id") != "" || h.Get("originator") != "" || h.Get("X-Gateway") != "inner" {
		t.Errorf("request = %s%s %v", r.Host, r.Path, h)
	}
	if body := sent(t, srv); body["max_output_tokens"] != 1000.0 {
		t.Errorf("body = %v", body)
	}
}

func TestUsageLimitHasItsExactEnd(t *testing.T) {
	srv := newServer(t)
	now := time.Unix(1777936568, 0).Add(-2 * time.Hour)
	srv.Fault(emulator.Fault{Status: 429, Body: `{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"plus","resets_at":1777936568,"resets_in_seconds":7200}}`})
	spec := resp
	spec.Quirks.SubscriptionURL = "https://chatgpt.com/backend-api/codex"
	spec.Now = func() time.Time { return now }
	a := ask(t, srv, spec, llm.Credential{Kind: llm.KindOAuth, Secret: secret.New("token")}, hi("openai"))
	if a.Err == nil || a.Err.Reason != llm.ReasonRateLimit || a.Err.ResetAt.Unix() != 1777936568 {
		t.Errorf("error = %+v", a.Err)
	}
}

// A model's sealed thought comes back to it, and to nobody else.
func TestSealedThought(t *testing.T) {
	srv := newServer(t)
	srv.Strict = true
	srv.Reply(emulator.Reply{Reasoning: "deep", Text: "42"})
	spec := resp
	spec.Model = thinker
	req := hi("openai")
	first := ask(t, srv, spec, key, req)
	if first.Err != nil || len(first.Reasoning) != 1 || len(first.Reasoning[0].Opaque) == 0 {
		t.Fatalf("answer = %+v, %v", first, first.Err)
	}
	req.Messages = append(req.Messages, first.Message(), llm.Text(llm.RoleUser, "why?"))
	for _, tt := range []struct {
		name  string
		model string
		state bool
		want  bool
	}{{"own", "m1", true, true}, {"another model", "m2", true, false}, {"without state", "m1", false, false}} {
		req.Model.Model, req.Stateless = tt.model, !tt.state
		if a := ask(t, srv, spec, key, req); a.Err != nil {
			t.Fatalf("%s: %v", tt.name, a.Err)
		}
		log := srv.Requests()
		if got := strings.Contains(string(log[len(log)-1].Body), "sealed:m1"); got != tt.want {
			t.Errorf("%s: sent back = %v", tt.name, got)
		}
	}
}

// Gemini wants the signature of a thought back with the call, and a stand-in for foreign calls.
func TestThoughtSignatures(t *testing.T) {
	srv := newServer(t)
	srv.Fault(emulator.Fault{Match: emulator.Match{Times: 1}, Status: 200, ContentType: "text/event-stream", Body: frames(
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","extra_content":{"google":{"thought_signature":"SIG"}},"function":{"name":"look","arguments":"{}"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, done,
	)})
	spec := chat
	spec.Quirks.ThoughtSignatures = true
	req := hi("alpha")
	a := ask(t, srv, spec, key, req)
	if a.Err != nil || len(a.Calls) != 1 {
		t.Fatalf("answer = %+v, %v", a, a.Err)
	}
	result := llm.Message{Role: llm.RoleTool, Parts: []llm.Part{{ToolResult: &llm.ToolResult{ID: "a", Text: "seen"}}}}
	req.Messages = append(req.Messages, a.Message(), result)
	ask(t, srv, spec, key, req)
	if body := string(srv.Requests()[1].Body); !strings.Contains(body, `"thought_signature":"SIG"`) {
		t.Errorf("the signature is lost: %s", body)
	}
	req.Model.Model = "m2"
	ask(t, srv, spec, key, req)
	if body := string(srv.Requests()[2].Body); strings.Contains(body, "SIG") || !strings.Contains(body, "skip_thought_signature_validator") {
		t.Errorf("foreign call: %s", body)
	}
}

func TestReasoningEcho(t *testing.T) {
	srv := newServer(t)
	srv.Reply(emulator.Reply{Match: emulator.Match{Times: 1}, Reasoning: "let me look", ToolCalls: []emulator.ToolCall{{ID: "a", Name: "look"}}})
	spec := chat
	spec.Quirks.ReasoningEcho = true
	req := hi("alpha")
	a := ask(t, srv, spec, key, req)
	req.Messages = append(req.Messages, a.Message(), llm.Message{Role: llm.RoleTool, Parts: []llm.Part{{ToolResult: &llm.ToolResult{ID: "a", Text: "seen"}}}})
	ask(t, srv, spec, key, req)
	if body := string(srv.Requests()[1].Body); !strings.Contains(body, `"reasoning_content":"let me look"`) {
		t.Errorf("the thought is lost: %s", body)
	}
}

func TestStrictHost(t *testing.T) {
	srv := newServer(t)
	srv.ToolIDLength, srv.Alternate, srv.Strict = 9, true, true
	def, _ := provider.Builtin("mistral")
	spec := provider.Spec{ID: "mistral", API: def.API, BaseURL: def.BaseURL, Quirks: def.Quirks}
	req := hi("mistral")
	req.Messages = append(req.Messages,
		llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{ToolCall: &llm.ToolCall{ID: "toolu_01", Name: "look", Input: json.RawMessage(`{}`)}}}},
		llm.Message{Role: llm.RoleTool, Parts: []llm.Part{{ToolResult: &llm.ToolResult{ID: "toolu_01", Text: "seen"}}}},
		llm.Text(llm.RoleUser, "and?"))
	if a := ask(t, srv, spec, key, req); a.Err != nil {
		t.Error(a.Err)
	}
}

func TestConstructorFaults(t *testing.T) {
	for name, spec := range map[string]provider.Spec{
		"another api": {ID: "x", API: provider.AnthropicMessages, BaseURL: "http://x.test"},
		"no base url": {ID: "x", API: provider.OpenAIChat},
	} {
		if _, err := openai.New(spec); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
