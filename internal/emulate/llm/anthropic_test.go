package llm_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"understudy/internal/emulate/llm"
)

// post sends body to the Messages API of srv and returns status and response.
func postMessages(t *testing.T, srv *llm.Server, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://api.anthropic.com/v1/messages", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Anthropic-Version", "2023-06-01")
	req.Header.Set("X-Api-Key", "k")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	transport := srv.Transport()
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(got)
}

func TestAnthropicRefusesWhatTheAPIRefuses(t *testing.T) {
	const top = `{"model":"m","max_tokens":5000,"messages":`
	user, tool := `{"role":"user","content":"hi"}`, `{"type":"tool_use","id":"t1","name":"look","input":{}}`
	tests := []struct{ name, body, want string }{
		{"no model", `{"max_tokens":1,"messages":[` + user + `]}`, "model: Field required"},
		{"no limit", `{"model":"m","messages":[` + user + `]}`, "max_tokens: Field required"},
		{"no messages", top + `[]}`, "at least one message"},
		{"no JSON", `{`, "not valid JSON"},
		{"the assistant first", top + `[{"role":"assistant","content":"hi"}]}`, "first message must use"},
		{"the same role twice", top + `[` + user + `,` + user + `]}`, "roles must alternate"},
		{"a role of another API", top + `[{"role":"tool","content":"x"}]}`, "Unexpected role"},
		{"the assistant last", top + `[` + user + `,{"role":"assistant","content":"hi"}]}`, "prefill"},
		{"empty content", top + `[{"role":"user","content":[]}]}`, "non-empty content"},
		{"blank text", top + `[{"role":"user","content":" "}]}`, "non-whitespace"},
		{"an id of another alphabet", top + `[` + user + `,{"role":"assistant","content":[{"type":"tool_use","id":"a|b","name":"x","input":{}}]}]}`, "pattern"},
		{"a call without a result", top + `[` + user + `,{"role":"assistant","content":[` + tool + `]},` + user + `]}`, "without `tool_result` blocks"},
		{"a result without a call", top + `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}]}`, "unexpected `tool_use_id`"},
		{"a result behind text", top + `[` + user + `,{"role":"assistant","content":[` + tool + `]},{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"t1"}]}]}`, "must come first"},
		{"arguments that are no object", top + `[` + user + `,{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"x","input":[]}]}]}`, "valid dictionary"},
		{"a forged thought", top + `[` + user + `,{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"AAAA"}]},` + user + `]}`, "Invalid `signature`"},
		{"a picture of the assistant", top + `[` + user + `,{"role":"assistant","content":[{"type":"image"}]},` + user + `]}`, "Input tag 'image'"},
		{"a picture of a kind nobody knows", top + `[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/tiff","data":"AAAA"}}]}]}`, "media_type"},
		{"two results for a call", top + `[` + user + `,{"role":"assistant","content":[` + tool + `,{"type":"tool_use","id":"t2","name":"look","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1"},{"type":"tool_result","tool_use_id":"t1"}]}]}`, "single result"},
		{"a tool's name of another alphabet", top + `[` + user + `,{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"functions.look","input":{}}]}]}`, "tool_use.name"},
		{"a picture that is another", top + `[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"/9j/4AAQ"}}]}]}`, "does not appear"},
		{"a picture too large", top + `[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"/9j/` + strings.Repeat("AAAA", 1_400_000) + `"}}]}]}`, "exceeds 5 MB"},
		{"fallbacks without the beta", top + `[` + user + `],"fallbacks":"default"}`, "fallbacks: Extra inputs"},
		{"an unknown field", top + `[` + user + `],"max_completion_tokens":1}`, "Extra inputs"},
		{"a small budget", top + `[` + user + `],"thinking":{"type":"enabled","budget_tokens":5}}`, "greater than or equal to 1024"},
		{"a budget as big as the limit", top + `[` + user + `],"thinking":{"type":"enabled","budget_tokens":5000}}`, "must be greater than"},
		{"calls without thought", top + `[` + user + `,{"role":"assistant","content":[` + tool + `]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1"}]}],"thinking":{"type":"enabled","budget_tokens":2000}}`, "Expected `thinking`"},
		{"a tool without a schema", top + `[` + user + `],"tools":[{"name":"x"}]}`, "input_schema"},
		{"too many marks", top + `[{"role":"user","content":[` + strings.TrimSuffix(strings.Repeat(`{"type":"text","text":"x","cache_control":{"type":"ephemeral"}},`, 5), ",") + `]}]}`, "maximum of 4"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			srv := llm.New()
			srv.Strict = true
			defer srv.Close()
			status, body := postMessages(t, srv, tt.body)
			if status != http.StatusBadRequest || !strings.Contains(unescape(t, body), tt.want) || !strings.Contains(body, `"type":"invalid_request_error"`) {
				t.Errorf("status %d, body %s; want 400 with %q", status, body, tt.want)
			}
		})
	}
}

// unescape returns the message of an error body.
func unescape(t *testing.T, body string) string {
	t.Helper()
	var e struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return e.Error.Message
}

func TestAnthropicAcceptsItsOwnAnswers(t *testing.T) {
	srv := llm.New()
	srv.Strict = true
	defer srv.Close()
	srv.Reply(llm.Reply{Match: llm.Match{Times: 1}, Reasoning: "hm", Text: "look", ToolCalls: []llm.ToolCall{{Name: "look", Arguments: `{"at":1}`}}})
	const first = `{"role":"user","content":"hi"}`
	status, body := postMessages(t, srv, `{"model":"m","max_tokens":9,"messages":[`+first+`]}`)
	var answer struct {
		Content    json.RawMessage `json:"content"`
		StopReason string          `json:"stop_reason"`
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK || answer.StopReason != "tool_use" {
		t.Fatalf("status %d, body %s", status, body)
	}
	again := `,"max_tokens":9,"messages":[` + first + `,{"role":"assistant","content":` + string(answer.Content) +
		`},{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + callID(t, answer.Content) + `","content":"there"}]}]}`
	if status, body := postMessages(t, srv, `{"model":"m"`+again); status != http.StatusOK {
		t.Errorf("its own answer: status %d, body %s", status, body)
	}
	if status, _ := postMessages(t, srv, `{"model":"other"`+again); status != http.StatusBadRequest {
		t.Errorf("the thought of another model: status %d", status)
	}
}

func callID(t *testing.T, content json.RawMessage) string {
	t.Helper()
	var blocks []struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(content, &blocks); err != nil || len(blocks) == 0 {
		t.Fatalf("content %s", content)
	}
	return blocks[len(blocks)-1].ID
}

func TestAnthropicStream(t *testing.T) {
	srv := llm.New()
	defer srv.Close()
	srv.Reply(llm.Reply{Text: "hello", InputTokens: 30, CachedTokens: 10, OutputTokens: 2})
	_, body := postMessages(t, srv, `{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}`)
	var kinds []string
	for line := range strings.Lines(body) {
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			kinds = append(kinds, strings.TrimSpace(name))
		}
	}
	want := "message_start content_block_start ping content_block_delta content_block_stop message_delta message_stop"
	if got := strings.Join(kinds, " "); got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	if !strings.Contains(body, `"input_tokens":20`) || !strings.Contains(body, `"cache_read_input_tokens":10`) {
		t.Errorf("usage is missing:\n%s", body)
	}
}

func TestAnthropicServedByAnother(t *testing.T) {
	srv := llm.New()
	defer srv.Close()
	srv.Reply(llm.Reply{Served: "spare", Text: "hello"})
	const body = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]`
	if _, got := postMessages(t, srv, body+`}`); !strings.Contains(got, `"stop_reason":"refusal"`) || strings.Contains(got, "hello") {
		t.Errorf("without fallbacks: %s", got)
	}
	_, got := postMessages(t, srv, body+`,"fallbacks":"default"}`, "Anthropic-Beta", "a, server-side-fallback-2026-07-01")
	for _, want := range []string{`"model":"spare"`, `"type":"fallback"`, `"fallback_message"`, `hello`} {
		if !bytes.Contains([]byte(got), []byte(want)) {
			t.Errorf("with fallbacks, without %s: %s", want, got)
		}
	}
}

func TestAnthropicErrorsSpeakItsLanguage(t *testing.T) {
	const body = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`
	srv := llm.New()
	defer srv.Close()
	srv.Keys, srv.Models = []string{"k"}, []string{"other"}
	if status, got := postMessages(t, srv, body, "X-Api-Key", "wrong"); status != 401 || !strings.Contains(got, `"authentication_error"`) {
		t.Errorf("a wrong key: %d %s", status, got)
	}
	if status, got := postMessages(t, srv, body); status != 404 || !strings.Contains(got, `"message":"model: m"`) {
		t.Errorf("an unknown model: %d %s", status, got)
	}
	srv.Fault(llm.Fault{Status: 529})
	if status, got := postMessages(t, srv, body); status != 529 || !strings.Contains(got, `"overloaded_error"`) {
		t.Errorf("overloaded: %d %s", status, got)
	}
	if n := srv.Requests(); len(n) != 3 || n[0].Key != "wrong" || n[0].LastUser != "hi" {
		t.Errorf("the log: %+v", n)
	}
}
