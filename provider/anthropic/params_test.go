package anthropic

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	emulate "understudy/internal/emulate/llm"
	"understudy/llm"
	"understudy/provider"
)

// body returns the request body that c builds, as generic JSON.
func body(t *testing.T, c llm.Client, req llm.Request, fallback bool) map[string]any {
	t.Helper()
	raw, err := json.Marshal(c.(*Client).params(req, fallback))
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

func TestRequestBody(t *testing.T) {
	ref := llm.ModelRef{Provider: "anthropic", Model: "claude-opus-4-8"}
	req := llm.Request{
		Model:  ref,
		System: "Be brief.",
		Tools: []llm.Tool{
			{Name: "a", Description: "does a", Schema: json.RawMessage(`{"type":"object","properties":{"x":{"type":"string"}},"required":["x"],"additionalProperties":false}`)},
			{Name: "b"},
		},
		Messages: []llm.Message{
			llm.Text(llm.RoleUser, "look"),
			{Role: llm.RoleAssistant, Parts: []llm.Part{
				{Reasoning: &llm.Reasoning{Origin: ref, Text: "hm", Opaque: json.RawMessage(`{"type":"thinking","thinking":"hm","signature":"c2ln"}`)}},
				{Reasoning: &llm.Reasoning{Origin: llm.ModelRef{Provider: "openai", Model: "gpt-5.5"}, Opaque: json.RawMessage(`{"id":"rs_1"}`)}},
				{Text: "looking"},
				{ToolCall: &llm.ToolCall{ID: "toolu_1", Name: "a", Input: json.RawMessage(`{"x":"y"}`)}},
			}},
			{Role: llm.RoleTool, Parts: []llm.Part{{ToolResult: &llm.ToolResult{ID: "toolu_1", Text: " ", IsError: true}}}},
			{Role: llm.RoleUser, Parts: []llm.Part{
				{Image: &llm.Image{MediaType: "image/png", Data: []byte("png")}},
				{Image: &llm.Image{MediaType: "image/tiff", Data: []byte("tiff"), Name: "scan.tiff"}},
				{Text: "and this"},
			}},
		},
		MaxTokens: 100,
	}
	want := parse(t, `{
		"model": "claude-opus-4-8", "max_tokens": 100,
		"system": [{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],
		"tools": [
			{"name":"a","description":"does a","input_schema":{"type":"object","properties":{"x":{"type":"string"}},"required":["x"],"additionalProperties":false}},
			{"name":"b","input_schema":{"type":"object","properties":{}},"cache_control":{"type":"ephemeral"}}
		],
		"messages": [
			{"role":"user","content":[{"type":"text","text":"look"}]},
			{"role":"assistant","content":[
				{"type":"thinking","thinking":"hm","signature":"c2ln"},
				{"type":"text","text":"looking"},
				{"type":"tool_use","id":"toolu_1","name":"a","input":{"x":"y"}}
			]},
			{"role":"user","content":[
				{"type":"tool_result","tool_use_id":"toolu_1","is_error":true,"content":[{"type":"text","text":"(no output)"}]},
				{"type":"image","source":{"type":"base64","media_type":"image/png","data":"cG5n"}},
				{"type":"text","text":"[image of another kind] scan.tiff"},
				{"type":"text","text":"and this","cache_control":{"type":"ephemeral"}}
			]}
		]
	}`)
	if diff := cmp.Diff(want, body(t, newClient(t, &host{}, nil), req, false)); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

func TestConversationEndsWithTheUser(t *testing.T) {
	req := llm.Request{Model: llm.ModelRef{Provider: "anthropic", Model: "claude-opus-4-8"}}
	for name, messages := range map[string][]llm.Message{
		"nothing":                 nil,
		"the assistant only":      {llm.Text(llm.RoleAssistant, "hello")},
		"the assistant last":      {llm.Text(llm.RoleUser, "hi"), llm.Text(llm.RoleAssistant, "hello")},
		"an empty message last":   {llm.Text(llm.RoleUser, "hi"), llm.Text(llm.RoleAssistant, "hello"), llm.Text(llm.RoleUser, " ")},
		"a call without a result": {llm.Text(llm.RoleUser, "hi"), {Role: llm.RoleAssistant, Parts: []llm.Part{{ToolCall: &llm.ToolCall{ID: "call|1", Name: "x"}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			srv := emulate.New()
			srv.Strict = true
			defer srv.Close()
			req.Messages = messages
			got := listen(t.Context(), t, newClient(t, srv.Transport(), plain), apiKey("k"), req)
			if got.err != nil {
				t.Errorf("refused: %v", got.err)
			}
		})
	}
}

// plain lets the client reach an emulator.
func plain(s *provider.Spec) { s.BaseURL = "http://api.anthropic.com" }

func TestThinking(t *testing.T) {
	tests := []struct {
		model, level string
		maxTokens    int
		want         string // thinking, output_config and max_tokens
	}{
		{"claude-opus-4-8", "", 0, `{"max_tokens":16384}`},
		{"claude-opus-4-8", "off", 0, `{"max_tokens":16384}`},
		{"claude-opus-4-8", "xhigh", 0, `{"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"xhigh"},"max_tokens":16384}`},
		{"claude-sonnet-4-6", "xhigh", 0, `{"thinking":{"type":"adaptive"},"output_config":{"effort":"high"},"max_tokens":16384}`},
		{"claude-fable-5", "", 0, `{"thinking":{"type":"adaptive","display":"summarized"},"max_tokens":16384}`},
		{"claude-fable-5", "off", 0, `{"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"low"},"max_tokens":16384}`},
		{"claude-opus-5", "off", 0, `{"output_config":{"effort":"low"},"max_tokens":16384}`},
		{"claude-opus-5", "medium", 500, `{"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"medium"},"max_tokens":500}`},
		{"claude-sonnet-4-5-20250929", "", 0, `{"max_tokens":16384}`},
		{"claude-sonnet-4-5-20250929", "low", 0, `{"thinking":{"type":"enabled","budget_tokens":4096},"max_tokens":20480}`},
		{"claude-opus-4-1", "xhigh", 0, `{"thinking":{"type":"enabled","budget_tokens":30976},"max_tokens":32000}`},
		{"claude-3-7-sonnet-latest", "minimal", 4000, `{"thinking":{"type":"enabled","budget_tokens":1024},"max_tokens":4000}`},
		{"claude-haiku-4-5", "high", 1500, `{"max_tokens":1500}`}, // no room to think
		{"claude-3-5-haiku-20241022", "high", 0, `{"max_tokens":8192}`},
		{"house-model", "high", 0, `{"max_tokens":8192}`},
	}
	outputs := map[string]int{"claude-opus-4-1": 32_000, "claude-3-5-haiku-20241022": 0, "house-model": 0}
	for _, tt := range tests {
		t.Run(tt.model+" "+tt.level, func(t *testing.T) {
			c := newClient(t, &host{}, func(s *provider.Spec) {
				s.Model = func(id string) provider.ModelInfo {
					most, ok := outputs[id]
					if !ok {
						most = 64_000
					}
					return provider.ModelInfo{MaxOutput: most, Images: true}
				}
			})
			req := claude(tt.model, "hi")
			req.Thinking, req.MaxTokens = tt.level, tt.maxTokens
			got := body(t, c, req, false)
			delete(got, "model")
			delete(got, "messages")
			if diff := cmp.Diff(parse(t, tt.want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestGeneration(t *testing.T) {
	for model, want := range map[string]generation{
		"claude-opus-4-6": 46, "claude-opus-4-20250514": 40, "claude-sonnet-4-5-20250929": 45, "claude-fable-5": 50,
		"claude-3-7-sonnet-20250219": 37, "claude-3-haiku": 30, "Claude-Opus-4-8": 48, "claude-opus-5-1": 51,
		"gpt-5.5": 0, "claude-": 0, "claude-instant": 0, "": 0, "claude-99999999999999999999": 0,
	} {
		if got := generationOf(model); got != want {
			t.Errorf("%q: %d, want %d", model, got, want)
		}
	}
}

// A transcript in which another model made the last call cannot be gone on from with thought, in
// the generations that were given budgets.
func TestNoThoughtBehindForeignCalls(t *testing.T) {
	srv := emulate.New()
	srv.Strict = true
	defer srv.Close()
	req := claude("claude-sonnet-4-5", "look")
	req.Thinking = "low"
	req.Messages = append(
		req.Messages,
		llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{ToolCall: &llm.ToolCall{ID: "call_1", Name: "look", Input: json.RawMessage(`{}`)}}}},
		llm.Message{Role: llm.RoleTool, Parts: []llm.Part{{ToolResult: &llm.ToolResult{ID: "call_1", Text: "there"}}}},
	)
	if got := listen(t.Context(), t, newClient(t, srv.Transport(), plain), apiKey("k"), req); got.err != nil {
		t.Errorf("refused: %v", got.err)
	}
}

// What a model said goes back to it, thought included, and is accepted; to another model the
// thought is not shown.
func TestThoughtGoesBackToItsOwnModelOnly(t *testing.T) {
	srv := emulate.New()
	srv.Strict = true
	defer srv.Close()
	srv.Reply(
		emulate.Reply{Match: emulate.Match{Contains: "first"}, Reasoning: "let me see", Text: "looking", ToolCalls: []emulate.ToolCall{{Name: "look", Arguments: `{"at":1}`}}},
		emulate.Reply{Text: "done"},
	)
	c := newClient(t, srv.Transport(), plain)
	req := claude("claude-opus-5", "first")
	req.Thinking = "low"
	got := listen(t.Context(), t, c, apiKey("k"), req)
	if got.err != nil || len(got.events) != 2 {
		t.Fatalf("got %+v, error %v", got.events, got.err)
	}
	thought, call := got.events[0].Reasoning, got.events[1].ToolCall
	req.Messages = append(
		req.Messages,
		llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{Reasoning: thought}, {Text: got.text}, {ToolCall: call}}},
		llm.Message{Role: llm.RoleTool, Parts: []llm.Part{{ToolResult: &llm.ToolResult{ID: call.ID, Text: "there"}}}},
		llm.Text(llm.RoleUser, "second"),
	)
	for _, model := range []string{"claude-opus-5", "claude-opus-4-8"} {
		req.Model.Model = model
		if got := listen(t.Context(), t, c, apiKey("k"), req); got.err != nil {
			t.Errorf("%s refused: %v", model, got.err)
		}
		bodies := srv.Requests()
		sent := string(bodies[len(bodies)-1].Body)
		if shown := strings.Contains(sent, "let me see"); shown != (model == "claude-opus-5") {
			t.Errorf("%s: thought shown: %v", model, shown)
		}
	}
}

// A turn that another model rescued goes back whole where the fallback is allowed, and without any
// thought where it is not.
func TestRescuedTurn(t *testing.T) {
	srv := emulate.New()
	srv.Strict = true
	defer srv.Close()
	srv.Reply(
		emulate.Reply{Match: emulate.Match{Contains: "delicate"}, Served: "claude-opus-4-8", Reasoning: "fine", Text: "here you are"},
		emulate.Reply{Text: "ok"},
	)
	c := newClient(t, srv.Transport(), plain)
	req := claude("claude-fable-5", "something delicate")

	req.Strict = true
	if got := listen(t.Context(), t, c, apiKey("k"), req); got.err == nil || got.err.Reason != llm.ReasonRefusal {
		t.Fatalf("strict: %+v", got.err)
	}
	req.Strict = false
	got := listen(t.Context(), t, c, apiKey("k"), req)
	if got.err != nil || got.done.Served != "claude-opus-4-8" || got.text != "here you are" {
		t.Fatalf("got %q, done %+v, error %v", got.text, got.done, got.err)
	}
	answer := llm.Message{Role: llm.RoleAssistant}
	for _, e := range got.events {
		answer.Parts = append(answer.Parts, llm.Part{Reasoning: e.Reasoning})
	}
	answer.Parts = append(answer.Parts, llm.Part{Text: got.text})
	req.Messages = append(req.Messages, answer, llm.Text(llm.RoleUser, "thanks"))
	for _, strict := range []bool{false, true} {
		req.Strict = strict
		if got := listen(t.Context(), t, c, apiKey("k"), req); got.err != nil {
			t.Errorf("strict %v: refused: %v", strict, got.err)
		}
	}
}
