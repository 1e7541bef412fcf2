package openai_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	emulator "understudy/internal/emulate/llm"
	"understudy/internal/secret"
	"understudy/llm"
	"understudy/provider"
	"understudy/provider/openai"
	"understudy/provider/providertest"
)

// ask makes one attempt against srv.
func ask(t *testing.T, srv *emulator.Server, spec provider.Spec, cred llm.Credential, req llm.Request) providertest.Answer {
	t.Helper()
	tr := srv.Transport()
	defer tr.CloseIdleConnections()
	spec.Transport = tr
	client, err := openai.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	a := providertest.Collect(client.Stream(t.Context(), cred, req))
	if a.Fault != "" {
		t.Fatal(a.Fault)
	}
	return a
}

func newServer(t *testing.T) *emulator.Server {
	srv := emulator.New()
	t.Cleanup(srv.Close)
	return srv
}

func hi(provider string) llm.Request {
	return llm.Request{
		Model:    llm.ModelRef{Provider: provider, Model: "m1"},
		Messages: []llm.Message{llm.Text(llm.RoleUser, "hi")},
	}
}

var (
	key  = llm.Credential{Kind: llm.KindAPIKey, Secret: secret.New("sk-test")}
	chat = provider.Spec{ID: "alpha", API: provider.OpenAIChat, BaseURL: "http://alpha.test/v1"}
	resp = provider.Spec{ID: "openai", API: provider.OpenAIResponses, BaseURL: "https://api.openai.com/v1"}
)

func frames(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

const (
	say  = `{"choices":[{"index":0,"delta":{"content":"hello"}}]}`
	stop = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	done = "[DONE]"
)

// What compatible hosts really send.
func TestOddChatStreams(t *testing.T) {
	for _, tt := range []struct {
		name   string
		body   string
		text   string
		reason llm.Reason // "" = an answer
		stop   llm.StopReason
	}{
		{"error null in every chunk", frames(`{"error":null,"choices":[{"index":0,"delta":{"content":"hello"}}]}`, `{"error":null,"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, done), "hello", "", llm.StopEnd},
		{"no done marker", frames(say, stop), "hello", "", llm.StopEnd},
		{"no finish reason", frames(say, done), "hello", "", llm.StopEnd},
		{"neither", frames(say), "hello", llm.ReasonTimeout, ""},
		{"no empty line at the end", strings.TrimRight(frames(say, stop, done), "\n"), "hello", "", llm.StopEnd},
		{"carriage returns", strings.ReplaceAll(frames(say, stop, done), "\n", "\r\n"), "hello", "", llm.StopEnd},
		{"no space behind data", strings.ReplaceAll(frames(say, stop, done), "data: ", "data:"), "hello", "", llm.StopEnd},
		{"comments and event names", ": ping\n\nevent: message\nid: 1\nretry: 10\n" + frames(say) + ": ping\n\n" + frames(stop, done), "hello", "", llm.StopEnd},
		{"pings in data lines", frames("PING", say, "PING", stop, done), "hello", "", llm.StopEnd},
		{"an event over two lines", "data: {\"choices\":[{\"index\":0,\n" + "data: \"delta\":{\"content\":\"hello\"},\"finish_reason\":\"stop\"}]}\n\n", "hello", "", llm.StopEnd},
		{"only comments", ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n", "", llm.ReasonEmptyResponse, ""},
		{"half an event", frames(say) + `data: {"choices":[{"index":0,"del`, "hello", llm.ReasonTimeout, ""},
		{"content as parts", frames(`{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"hello"}]}}]}`, stop, done), "hello", "", llm.StopEnd},
		{"a second choice", frames(say, `{"choices":[{"index":1,"delta":{"content":"other"}}]}`, stop, done), "hello", "", llm.StopEnd},
		{"wrong types", frames(`{"created":"yesterday","usage":"none","choices":[{"index":0,"delta":{"content":"hello","tool_calls":null}}]}`, stop, done), "hello", "", llm.StopEnd},
		{"unknown finish with text", frames(say, `{"choices":[{"index":0,"delta":{},"finish_reason":"natural"}]}`, done), "hello", "", llm.StopEnd},
		{"finish network error", frames(say, `{"choices":[{"index":0,"delta":{},"finish_reason":"network_error"}]}`), "hello", llm.ReasonTimeout, ""},
		{"finish error", frames(`{"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}`), "", llm.ReasonTimeout, ""},
		{"error in the choice", frames(say, `{"choices":[{"index":0,"delta":{},"error":{"code":429,"message":"Rate limit exceeded"},"finish_reason":"error"}]}`), "hello", llm.ReasonRateLimit, ""},
		{"error event without choices", frames(`{"object":"error","message":"The model is overloaded","code":503}`), "", llm.ReasonOverloaded, ""},
		{"error as text", frames(`{"error":"too many requests"}`), "", llm.ReasonRateLimit, ""},
		{"refusal in pieces", frames(`{"choices":[{"index":0,"delta":{"refusal":"I can"}}]}`, `{"choices":[{"index":0,"delta":{"refusal":"not."}}]}`, stop, done), "", llm.ReasonRefusal, ""},
		{"content filter behind text", frames(say, `{"choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}`, done), "hello", llm.ReasonRefusal, ""},
		{"white space before json", "\n\n\n  " + `{"choices":[{"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}]}`, "hello", "", llm.StopEnd},
		{"json without choices", `{"id":"x","object":"chat.completion","choices":[]}`, "", llm.ReasonEmptyResponse, ""},
		{"json cut off", `{"choices":[{"message":{"role":"assistant","content":"hel`, "", llm.ReasonTimeout, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := newServer(t)
			srv.Fault(emulator.Fault{Status: 200, ContentType: "text/event-stream", Body: tt.body})
			a := ask(t, srv, chat, key, hi("alpha"))
			if a.Text != tt.text {
				t.Errorf("text = %q", a.Text)
			}
			switch {
			case tt.reason == "" && a.Err != nil:
				t.Errorf("error = %v (rule %s)", a.Err, a.Err.Rule)
			case tt.reason == "" && a.Done.Stop != tt.stop:
				t.Errorf("done = %+v", a.Done)
			case tt.reason != "" && (a.Err == nil || a.Err.Reason != tt.reason):
				t.Errorf("error = %v, want %s", a.Err, tt.reason)
			}
		})
	}
}

// A host that never ends does not fill the memory.
func TestEndlessText(t *testing.T) {
	srv := newServer(t)
	much := `{"choices":[{"index":0,"delta":{"content":"` + strings.Repeat("a", 1<<20) + `"}}]}`
	srv.Fault(emulator.Fault{Status: 200, ContentType: "text/event-stream", Body: strings.Repeat(frames(much), 18) + frames(stop, done)})
	a := ask(t, srv, chat, key, hi("alpha"))
	if a.Err == nil || !strings.Contains(a.Err.Error(), "longer than") || len(a.Text) > 16<<20 {
		t.Errorf("%d bytes, error %v", len(a.Text), a.Err)
	}
}

// How compatible hosts stream tool calls.
func TestOddToolCalls(t *testing.T) {
	chunk := func(calls string) string {
		return `{"choices":[{"index":0,"delta":{"tool_calls":[` + calls + `]}}]}`
	}
	const finish = `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`
	for _, tt := range []struct {
		name   string
		events []string
		want   []string // name and input of each call
		reason llm.Reason
	}{
		{"in pieces", []string{chunk(`{"index":0,"id":"a","function":{"name":"f","arguments":""}}`), chunk(`{"index":0,"function":{"arguments":"{\"x\""}}`), chunk(`{"index":0,"function":{"arguments":":1}"}}`), finish}, []string{"f", `{"x":1}`}, ""},
		{"interleaved", []string{chunk(`{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}`), chunk(`{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}`), chunk(`{"index":0,"function":{"arguments":"}"}}`), finish}, []string{"f", "{}", "g", "{}"}, ""},
		{"without index", []string{chunk(`{"id":"a","function":{"name":"f","arguments":"{"}}`), chunk(`{"function":{"arguments":"}"}}`), chunk(`{"id":"b","function":{"name":"g","arguments":"{}"}}`), finish}, []string{"f", "{}", "g", "{}"}, ""},
		{"all at index 0", []string{chunk(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), chunk(`{"index":0,"id":"b","function":{"name":"f","arguments":"{\"y\":2}"}}`), finish}, []string{"f", "{}", "f", `{"y":2}`}, ""},
		{"arguments as an object", []string{chunk(`{"index":0,"id":"a","function":{"name":"f","arguments":{"x":1}}}`), finish}, []string{"f", `{"x":1}`}, ""},
		{"no id", []string{chunk(`{"index":0,"function":{"name":"f","arguments":"{}"}}`), finish}, []string{"f", "{}"}, ""},
		{"no arguments", []string{chunk(`{"index":0,"id":"a","function":{"name":"f"}}`), finish}, []string{"f", "{}"}, ""},
		{"finish says stop", []string{chunk(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), stop}, []string{"f", "{}"}, ""},
		{"half a call", []string{chunk(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`), finish}, nil, llm.ReasonUnclassified},
		{"not an object", []string{chunk(`{"index":0,"id":"a","function":{"name":"f","arguments":"[1]"}}`), finish}, nil, llm.ReasonUnclassified},
		{"cut at the limit", []string{chunk(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`), `{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`}, nil, llm.ReasonEmptyResponse},
		{"stream breaks in a call", []string{chunk(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`)}, nil, llm.ReasonTimeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := newServer(t)
			srv.Fault(emulator.Fault{Status: 200, ContentType: "text/event-stream", Body: frames(tt.events...)})
			a := ask(t, srv, chat, key, hi("alpha"))
			var got []string
			ids := map[string]bool{}
			for _, c := range a.Calls {
				got = append(got, c.Name, string(c.Input))
				ids[c.ID] = c.ID != ""
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if len(ids) != len(a.Calls) || ids[""] {
				t.Errorf("ids do not tell the calls apart: %v", ids)
			}
			if tt.reason == "" && (a.Done == nil || a.Done.Stop != llm.StopToolUse) {
				t.Errorf("done = %+v, error %v", a.Done, a.Err)
			}
			if tt.reason != "" && (a.Err == nil || a.Err.Reason != tt.reason) {
				t.Errorf("error = %v, want %s", a.Err, tt.reason)
			}
		})
	}
}

func TestOddResponses(t *testing.T) {
	const completed = `{"type":"response.completed","response":{"object":"response","status":"completed","output":[]}}`
	delta := `{"type":"response.output_text.delta","item_id":"m","delta":"hello"}`
	for _, tt := range []struct {
		name   string
		body   string
		text   string
		reason llm.Reason
	}{
		{"plain", frames(delta, completed), "hello", ""},
		{"text only in the item", frames(`{"type":"response.output_item.done","item":{"id":"m","type":"message","content":[{"type":"output_text","text":"hello"}]}}`, completed), "hello", ""},
		{"text only in the end", frames(`{"type":"response.completed","response":{"status":"completed","output":[{"id":"m","type":"message","content":[{"type":"output_text","text":"hello"}]}]}}`), "hello", ""},
		{"text in both", frames(delta, `{"type":"response.output_item.done","item":{"id":"m","type":"message","content":[{"type":"output_text","text":"hello"}]}}`, `{"type":"response.completed","response":{"status":"completed","output":[{"id":"m","type":"message","content":[{"type":"output_text","text":"hello"}]}]}}`), "hello", ""},
		{"older end", frames(delta, `{"type":"response.done","response":{"status":"completed"}}`), "hello", ""},
		{"done marker alone", frames(delta, done), "hello", llm.ReasonTimeout},
		{"no end", frames(delta), "hello", llm.ReasonTimeout},
		{"failed", frames(`{"type":"response.created","response":{"error":null}}`, `{"type":"response.failed","response":{"status":"failed","error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model. Please adjust your input and try again."}}}`), "", llm.ReasonContextOverflow},
		{"failed without saying why", frames(delta, `{"type":"response.failed","response":{"status":"failed","error":null}}`), "hello", llm.ReasonTimeout},
		{"error event", frames(`{"type":"error","code":"rate_limit_exceeded","message":"Rate limit reached for m1"}`), "", llm.ReasonRateLimit},
		{"filter", frames(delta, `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}}`), "hello", llm.ReasonRefusal},
		{"refusal", frames(`{"type":"response.refusal.delta","delta":"No."}`, completed), "", llm.ReasonRefusal},
		{"empty", frames(completed), "", llm.ReasonEmptyResponse},
		{"half a call", frames(`{"type":"response.output_item.done","item":{"type":"function_call","call_id":"a","name":"f","arguments":"{\"x\":"}}`, completed), "", llm.ReasonUnclassified},
		{"half a call at the limit", frames(delta, `{"type":"response.output_item.done","item":{"type":"function_call","call_id":"a","name":"f","arguments":"{\"x\":"}}`, `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`), "hello", ""},
		{"wrong types", frames(`{"type":"response.output_text.delta","item_id":7,"delta":"hello"}`, completed), "hello", ""},
		{"detail", `{"detail":"Instructions are not valid"}`, "", llm.ReasonUnclassified},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := newServer(t)
			srv.Fault(emulator.Fault{Status: 200, ContentType: "text/event-stream", Body: tt.body})
			a := ask(t, srv, resp, key, hi("openai"))
			if a.Text != tt.text {
				t.Errorf("text = %q", a.Text)
			}
			if tt.reason == "" && a.Err != nil {
				t.Errorf("error = %v (rule %s)", a.Err, a.Err.Rule)
			}
			if tt.reason != "" && (a.Err == nil || a.Err.Reason != tt.reason) {
				t.Errorf("error = %v, want %s", a.Err, tt.reason)
			}
		})
	}
}

// canned answers every request with the same bytes.
type canned struct{ body string }

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(c.body)), Request: r}, nil
}

// FuzzStream feeds arbitrary bytes as the body: whatever comes, the sequence ends with Done or a
// classified error, and no half tool call gets out.
func FuzzStream(f *testing.F) {
	for _, seed := range []string{
		frames(say, stop, done), frames(`{"type":"response.completed","response":{"output":[{"type":"function_call","call_id":"a","name":"f","arguments":"{"}]}}`),
		"<html>", "{", "[", "data", "data:\n\ndata: {}\n\n", `{"choices":[{"message":{"content":"x"}}]}`, "\xef\xbb\xbfdata: x", "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{}]}}]}\n\n",
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, body string, useChat bool) {
		spec := resp
		if useChat {
			spec = chat
		}
		spec.Transport = canned{body}
		client, err := openai.New(spec)
		if err != nil {
			t.Fatal(err)
		}
		a := providertest.Collect(client.Stream(t.Context(), key, hi(spec.ID)))
		if a.Fault != "" {
			t.Fatal(a.Fault)
		}
		for _, c := range a.Calls {
			var object map[string]any
			if c.Name == "" || c.ID == "" || json.Unmarshal(c.Input, &object) != nil {
				t.Fatalf("a broken call got out: %+v", c)
			}
		}
		if a.Done != nil && a.Text == "" && len(a.Calls) == 0 {
			t.Fatal("an empty answer counts as a success")
		}
	})
}

// BenchmarkStream reads an answer of 400 pieces.
func BenchmarkStream(b *testing.B) {
	body := strings.Repeat(frames(say), 400) + frames(stop, done)
	spec := chat
	spec.Transport = canned{body}
	client, err := openai.New(spec)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range client.Stream(b.Context(), key, hi("alpha")) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
