package llm_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"understudy/internal/emulate/llm"
)

// postTo sends a body to one of OpenAI's APIs.
func postTo(t *testing.T, srv *llm.Server, path, body string) (int, string) {
	t.Helper()
	transport := srv.Transport()
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Post("http://api.openai.com/v1"+path, "application/json", strings.NewReader(body))
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

// strictCase is a transcript that an API refuses (want tells with which words) or accepts (want "").
type strictCase struct{ name, items, want string }

func (c strictCase) run(t *testing.T, path, field string) {
	t.Run(c.name, func(t *testing.T) {
		srv := llm.New()
		srv.Strict = true
		defer srv.Close()
		status, body := postTo(t, srv, path, `{"model":"m","`+field+`":[`+c.items+`]}`)
		if c.want == "" {
			if status != http.StatusOK {
				t.Errorf("refused: %d %s", status, body)
			}
			return
		}
		if status != http.StatusBadRequest || !strings.Contains(body, c.want) {
			t.Errorf("status %d, body %s; want 400 with %q", status, body, c.want)
		}
	})
}

func TestChatRefusesWhatTheAPIRefuses(t *testing.T) {
	const user = `{"role":"user","content":"hi"},`
	calls := func(names ...string) string {
		var list []string
		for _, n := range names {
			id, name, _ := strings.Cut(n, "=")
			list = append(list, `{"id":"`+id+`","type":"function","function":{"name":"`+name+`","arguments":"{}"}}`)
		}
		return `{"role":"assistant","content":null,"tool_calls":[` + strings.Join(list, ",") + `]},`
	}
	const result = `{"role":"tool","tool_call_id":"a","content":"x"}`
	for _, c := range []strictCase{
		{"a call and its result", user + calls("a=look") + result, ""},
		{"a result without a call", user + result, "must be a response to a preceeding message"},
		{"two results for a call", user + calls("a=look") + result + "," + result, "must be a response to a preceeding message"},
		{"a call without a result", user + calls("a=look") + `{"role":"user","content":"x"}`, "did not have response messages"},
		{"a name of another alphabet", user + calls("a=functions.look") + result, "does not match pattern"},
		{"two calls with one id", user + calls("a=look", "a=look") + result, "Duplicate value"},
		{"a result without content", user + calls("a=look") + `{"role":"tool","tool_call_id":"a"}`, "expected a string, got null"},
		{"an empty answer", user + `{"role":"assistant","content":""},{"role":"user","content":"x"}`, "content or tool_calls must be set"},
		{"a picture", `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,/9j/4AAQ"}}]}`, ""},
		{"a picture that is another", `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,/9j/4AAQ"}}]}`, "Invalid image data"},
	} {
		c.run(t, "/chat/completions", "messages")
	}
}

func TestResponsesRefusesWhatTheAPIRefuses(t *testing.T) {
	const (
		user   = `{"role":"user","content":"hi"},`
		call   = `{"type":"function_call","call_id":"a","name":"look","arguments":"{}"},`
		output = `{"type":"function_call_output","call_id":"a","output":"x"}`
	)
	said := func(kind string) string {
		return `{"type":"message","role":"assistant","content":[{"type":"` + kind + `","text":"x"}]},`
	}
	for _, c := range []strictCase{
		{"a call and its result", user + call + output, ""},
		{"an output without a call", user + output, "No tool call found"},
		{"a call without an output", user + call + `{"role":"user","content":"x"}`, "No tool output found"},
		{"two calls with one id", user + call + call + output, "Duplicate function call"},
		{"an output that is none", user + call + `{"type":"function_call_output","call_id":"a"}`, "Missing required parameter"},
		{"a name of another alphabet", user + strings.Replace(call, "look", "functions.look", 1) + output, "does not match pattern"},
		{"an answer", user + said("output_text") + `{"role":"user","content":"x"}`, ""},
		{"an answer in the user's parts", user + said("input_text") + `{"role":"user","content":"x"}`, "Supported values are: 'output_text' and 'refusal'"},
		{"an empty message", `{"role":"user","content":""}`, "Missing required parameter"},
		{"a role of another API", user + `{"role":"tool","content":"x"}`, "Supported values are: 'assistant'"},
		{"an item that nobody knows", user + `{"type":"tool_use","role":"user","content":"x"}`, "Invalid value: 'tool_use'"},
		{"a picture that is another", `{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}`, "Invalid image data"},
	} {
		c.run(t, "/responses", "input")
	}
}
