package providertest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	emulator "understudy/internal/emulate/llm"
	"understudy/internal/secret"
	"understudy/llm"
	"understudy/provider"
	"understudy/provider/anthropic"
	"understudy/provider/openai"
	"understudy/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a kind of API with a strict emulator behind it.
type stage struct {
	model  llm.ModelRef
	client llm.Client
	srv    *emulator.Server
}

// troupe makes one of each: two Anthropic services, both OpenAI APIs, and a host as strict about
// ids and turns as Mistral.
func troupe(fatal func(...any)) (stages []*stage, closeAll func()) {
	strict := func(adjust func(*emulator.Server)) *emulator.Server {
		srv := emulator.New()
		srv.Strict = true
		if adjust != nil {
			adjust(srv)
		}
		return srv
	}
	add := func(newClient provider.Factory, api provider.API, id, model string, srv *emulator.Server) {
		def, _ := provider.Builtin(id)
		transport := srv.Transport()
		client, err := newClient(provider.Spec{
			ID: id, API: api, BaseURL: "https://api.example.com/v1", Quirks: def.Quirks, Transport: transport,
		}.WithDefaults())
		if err != nil {
			fatal(err)
		}
		stages = append(stages, &stage{llm.ModelRef{Provider: id, Model: model}, client, srv})
	}
	add(anthropic.New, provider.AnthropicMessages, "anthropic", "claude-opus-5", strict(nil))
	add(anthropic.New, provider.AnthropicMessages, "anthropic", "claude-sonnet-4-5", strict(nil))
	add(openai.New, provider.OpenAIChat, "groq", "m1", strict(nil))
	add(openai.New, provider.OpenAIResponses, "openai", "gpt-5.5", strict(nil))
	add(openai.New, provider.OpenAIChat, "mistral", "m2", strict(func(s *emulator.Server) { s.ToolIDLength, s.Alternate = 9, true }))
	return stages, func() {
		for _, s := range stages {
			s.srv.Close()
		}
	}
}

var tools = []llm.Tool{{Name: "look", Description: "looks", Schema: json.RawMessage(`{"type":"object"}`)}}

// A conversation may change its model before every single request, also between a tool call and
// what follows its result: whatever one API wrote, every other accepts, and nobody sees another
// model's thoughts (spec/failover.md §8.1).
func TestEveryAPIAcceptsWhatTheOthersWrote(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		stages, closeAll := troupe(rt.Fatal)
		defer closeAll()
		talk := []llm.Message{llm.Text(llm.RoleUser, "question 0")}
		for n := range rapid.IntRange(2, 8).Draw(rt, "requests") {
			s := rapid.SampledFrom(stages).Draw(rt, "model")
			calls := rapid.IntRange(0, 3).Draw(rt, "calls")
			rep := emulator.Reply{}
			if rapid.Bool().Draw(rt, "thinks") {
				rep.Reasoning = "private thought of " + s.model.String()
			}
			if calls == 0 || rapid.Bool().Draw(rt, "remarks") {
				rep.Text = fmt.Sprintf("answer %d", n)
			}
			for i := range calls {
				rep.ToolCalls = append(rep.ToolCalls, emulator.ToolCall{Name: "look", Arguments: fmt.Sprintf(`{"at":%d}`, i)})
			}
			s.srv.Forget()
			s.srv.Reply(rep)
			a := providertest.Collect(s.client.Stream(t.Context(), llm.Credential{
				Profile: llm.ProfileID(s.model.Provider + ":p1"), Kind: llm.KindAPIKey, Secret: secret.New("sk-test"),
			}, llm.Request{
				Model: s.model, System: "You are brief.", Messages: talk, Tools: tools, MaxTokens: 20_000,
				Thinking: rapid.SampledFrom([]string{"", "off", "low", "high"}).Draw(rt, "level"),
				CacheKey: "c1", Stateless: rapid.Bool().Draw(rt, "stateless"), Repair: rapid.IntRange(0, 4).Draw(rt, "repair") == 0,
			}))
			if a.Err != nil || a.Fault != "" || len(a.Calls) != calls {
				rt.Fatalf("request %d to %s: %v %q, %d calls of %d\n%s", n, s.model, a.Err, a.Fault, len(a.Calls), calls, lastBody(s.srv))
			}
			if fault := leaks(stages, s); fault != "" {
				rt.Fatalf("request %d to %s: %s", n, s.model, fault)
			}
			talk = append(talk, a.Message())
			if calls == 0 {
				talk = append(talk, asks(n+1, rapid.IntRange(0, 2).Draw(rt, "pictures")))
				continue
			}
			results := llm.Message{Role: llm.RoleTool}
			for _, c := range a.Calls {
				results.Parts = append(results.Parts, llm.Part{ToolResult: &llm.ToolResult{
					ID: c.ID, Name: c.Name, Text: rapid.SampledFrom([]string{"seen", "", " "}).Draw(rt, "result"), IsError: rapid.Bool().Draw(rt, "failed"),
				}})
			}
			talk = append(talk, results)
			if rapid.IntRange(0, 3).Draw(rt, "steered") == 0 { // somebody wrote while the tools ran
				talk = append(talk, llm.Text(llm.RoleUser, "and be quick"))
			}
		}
	})
}

// asks is a question with pictures of several kinds.
func asks(n, pictures int) llm.Message {
	m := llm.Text(llm.RoleUser, fmt.Sprintf("question %d", n))
	kinds := []llm.Image{
		{MediaType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n"), Name: "a.png, 3x2"},
		{MediaType: "image/jpeg", Data: []byte("\xFF\xD8\xFF\xE0")},
	}
	for i := range pictures {
		m.Parts = append(m.Parts, llm.Part{Image: &kinds[i]})
	}
	return m
}

func lastBody(srv *emulator.Server) string {
	log := srv.Requests()
	if len(log) == 0 {
		return "(nothing arrived)"
	}
	return string(log[len(log)-1].Body)
}

// leaks reports what s was told that it must not hear.
func leaks(stages []*stage, s *stage) string {
	body := lastBody(s.srv)
	for _, other := range stages {
		if other != s && strings.Contains(body, "private thought of "+other.model.String()) {
			return "it got the thoughts of " + other.model.String()
		}
	}
	if !strings.Contains(body, "question 0") {
		return "it did not get the question"
	}
	return ""
}
