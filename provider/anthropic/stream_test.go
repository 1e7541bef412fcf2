package anthropic

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"understudy/llm"
)

func call(id, name, input string) llm.Event {
	return llm.Event{ToolCall: &llm.ToolCall{ID: id, Name: name, Input: json.RawMessage(input)}}
}

func TestAnswers(t *testing.T) {
	opus := llm.ModelRef{Provider: "anthropic", Model: "claude-opus-5"}
	usage := llm.Usage{Input: 10, Output: 7, CacheRead: 5, ContextSize: 15}
	thinking := []string{
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"so"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}`,
		close0,
	}
	tests := []struct {
		name string
		body string
		text string
		want []llm.Event
		done llm.Done
	}{
		{name: "text", body: sse(begin, textOpen, textHi, textHi, close0, endTurn, stop), text: "hihi", done: llm.Done{Stop: llm.StopEnd, Usage: usage}},
		{
			name: "a call leaves whole, behind its text", body: sse(begin, textOpen, textHi, close0, callOpen, callArg1, callArg2, close1, endTool, stop),
			text: "hi", want: []llm.Event{call("toolu_1", "look", `{"at":1}`)}, done: llm.Done{Stop: llm.StopToolUse, Usage: usage},
		},
		{
			name: "a call without arguments", body: sse(begin, callOpen, close1, endTool, stop),
			want: []llm.Event{call("toolu_1", "look", `{}`)}, done: llm.Done{Stop: llm.StopToolUse, Usage: usage},
		},
		{
			name: "a call cut off by the limit is left out", body: sse(begin, textOpen, textHi, close0, callOpen, callArg1, close1, endMax, stop),
			text: "hi", done: llm.Done{Stop: llm.StopMaxTokens, Usage: usage},
		},
		{
			name: "thought is kept with its signature", body: sse(append(append([]string{begin}, thinking...), textOpen, textHi, close0, endTurn, stop)...),
			text: "hi",
			want: []llm.Event{{Reasoning: &llm.Reasoning{
				Origin: opus, Text: "so", Opaque: json.RawMessage(`{"type":"thinking","thinking":"so","signature":"c2ln"}`),
			}}},
			done: llm.Done{Stop: llm.StopEnd, Usage: usage},
		},
		{
			name: "redacted thought", body: sse(begin, `{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"abc"}}`, close0, textOpen, textHi, endTurn, stop),
			text: "hi",
			want: []llm.Event{{Reasoning: &llm.Reasoning{Origin: opus, Opaque: json.RawMessage(`{"type":"redacted_thinking","data":"abc"}`)}}},
			done: llm.Done{Stop: llm.StopEnd, Usage: usage},
		},
		{
			name: "events without names, CRLF, comments and the unknown",
			body: ": hello\r\n\r\ndata: " + strings.Join([]string{begin, `{"type":"ping"}`, `{"type":"news","x":1}`, textOpen, textHi, endTurn, stop}, "\r\n\r\ndata: ") + "\r\n\r\n",
			text: "hi", done: llm.Done{Stop: llm.StopEnd, Usage: usage},
		},
		{
			name: "another model took over: its calls count, those before do not",
			body: sse(begin, textOpen, textHi, close0, callOpen, callArg1, callArg2, close1, handOver,
				`{"type":"content_block_stop","index":2}`,
				`{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_2","name":"look","input":{"at":2}}}`,
				`{"type":"content_block_stop","index":3}`, endTool, stop),
			text: "hi",
			want: []llm.Event{
				{Reasoning: &llm.Reasoning{Origin: opus, Opaque: json.RawMessage(`{"type":"fallback","from":{"model":"claude-opus-5"},"to":{"model":"claude-opus-4-8"},"trigger":{"type":"refusal"}}`)}},
				call("toolu_2", "look", `{"at":2}`),
			},
			done: llm.Done{Stop: llm.StopToolUse, Usage: usage, Served: "claude-opus-4-8"},
		},
		{
			name: "another model answered from the start, without a hand-over",
			body: sse(begin, textOpen, textHi, close0, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7,"iterations":[{"type":"fallback_message","model":"claude-opus-4-8"}]}}`, stop),
			text: "hi", done: llm.Done{Stop: llm.StopEnd, Usage: usage, Served: "claude-opus-4-8"},
		},
		{
			name: "fields of unexpected types are left out",
			body: sse(`{"type":"message_start","message":{"usage":{"input_tokens":"ten"}}}`, textOpen, textHi, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":null}`, stop),
			text: "hi", done: llm.Done{Stop: llm.StopEnd},
		},
		{
			name: "a stop reason of tomorrow", body: sse(begin, textOpen, textHi, `{"type":"message_delta","delta":{"stop_reason":"bored"}}`, stop),
			text: "hi", done: llm.Done{Stop: llm.StopEnd, Usage: llm.Usage{Input: 10, Output: 1, CacheRead: 5, ContextSize: 15}},
		},
		{
			name: "the window is full: what was said stands", body: sse(begin, textOpen, textHi, `{"type":"message_delta","delta":{"stop_reason":"model_context_window_exceeded"},"usage":{"output_tokens":7}}`, stop),
			text: "hi", done: llm.Done{Stop: llm.StopMaxTokens, Usage: usage},
		},
		{
			name: "one JSON document",
			body: `{"type":"message","role":"assistant","content":[{"type":"text","text":"hi"},{"type":"tool_use","id":"toolu_1","name":"look","input":{"at":1}}],"stop_reason":"tool_use","usage":{"input_tokens":10,"output_tokens":7,"cache_read_input_tokens":5}}`,
			text: "hi", want: []llm.Event{call("toolu_1", "look", `{"at":1}`)}, done: llm.Done{Stop: llm.StopToolUse, Usage: usage},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := listen(t.Context(), t, newClient(t, &host{body: tt.body}, nil), apiKey("k"), claude("claude-opus-5", "hi"))
			if got.err != nil {
				t.Fatalf("failed: %v", got.err)
			}
			if got.text != tt.text {
				t.Errorf("text %q, want %q", got.text, tt.text)
			}
			if diff := cmp.Diff(tt.want, got.events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(&tt.done, got.done); diff != "" {
				t.Errorf("done (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	overloaded := `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`
	tests := []struct {
		name   string
		host   host
		reason llm.Reason
		text   string // said before
	}{
		{name: "cut before the end", host: host{body: sse(begin, textOpen, textHi)}, reason: llm.ReasonTimeout, text: "hi"},
		{name: "a stop reason but no end", host: host{body: sse(begin, textOpen, textHi, close0, endTurn)}, reason: llm.ReasonTimeout, text: "hi"},
		{name: "cut behind a call", host: host{body: sse(begin, callOpen, callArg1, callArg2, close1)}, reason: llm.ReasonTimeout},
		{name: "an event cut in the middle", host: host{body: sse(begin, textOpen) + "event: content_block_delta\ndata: {\"type\":\"content_bl\n\n"}, reason: llm.ReasonTimeout},
		{name: "an error event at once", host: host{body: sse(overloaded)}, reason: llm.ReasonOverloaded},
		{name: "an error event in the middle", host: host{body: sse(begin, textOpen, textHi, overloaded)}, reason: llm.ReasonOverloaded, text: "hi"},
		{name: "an error event without a name", host: host{body: "data: " + overloaded + "\n\n"}, reason: llm.ReasonOverloaded},
		{name: "an error object without a type", host: host{body: "event: error\ndata: {\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"}, reason: llm.ReasonOverloaded},
		{name: "a rate limit in the stream", host: host{body: sse(`{"type":"error","error":{"type":"rate_limit_error","message":"Rate limited"}}`)}, reason: llm.ReasonRateLimit},
		{name: "a refusal", host: host{body: sse(begin, `{"type":"message_delta","delta":{"stop_reason":"refusal"},"usage":{"output_tokens":1}}`, stop)}, reason: llm.ReasonRefusal},
		{
			name: "a refusal in the middle", host: host{body: sse(begin, textOpen, textHi, close0, callOpen, close1, `{"type":"message_delta","delta":{"stop_reason":"refusal"},"usage":{"output_tokens":1}}`, stop)},
			reason: llm.ReasonRefusal, text: "hi",
		},
		{name: "a refusal as a document", host: host{body: `{"type":"message","content":[],"stop_reason":"refusal"}`}, reason: llm.ReasonRefusal},
		{name: "nothing in it", host: host{body: sse(begin, endTurn, stop)}, reason: llm.ReasonEmptyResponse},
		{name: "only white space", host: host{body: sse(begin, textOpen, strings.Replace(textHi, `"hi"`, `" \n"`, 1), close0, endTurn, stop)}, reason: llm.ReasonEmptyResponse, text: " \n"},
		{name: "no body", host: host{}, reason: llm.ReasonEmptyResponse},
		{name: "an empty document", host: host{body: `{"type":"message","content":[],"stop_reason":"end_turn"}`, header: http.Header{"Content-Type": {"application/json"}}}, reason: llm.ReasonEmptyResponse},
		{name: "a web page", host: host{body: "<!DOCTYPE html><html><body>Welcome</body></html>", header: http.Header{"Content-Type": {"text/html"}}}, reason: llm.ReasonTimeout},
		{name: "an error document with status 200", host: host{body: overloaded, header: http.Header{"Content-Type": {"application/json"}}}, reason: llm.ReasonOverloaded},
		{name: "a stop reason that is a failure", host: host{body: sse(begin, textOpen, textHi, `{"type":"message_delta","delta":{"stop_reason":"error"}}`, stop)}, reason: llm.ReasonTimeout, text: "hi"},
		{name: "a filter that ended it", host: host{body: sse(begin, textOpen, textHi, `{"type":"message_delta","delta":{"stop_reason":"content_filter"}}`, stop)}, reason: llm.ReasonRefusal, text: "hi"},
		{name: "the window was full from the start", host: host{body: sse(begin, `{"type":"message_delta","delta":{"stop_reason":"model_context_window_exceeded"}}`, stop)}, reason: llm.ReasonContextOverflow},
		{name: "a bad request", host: host{status: 400, body: `{"type":"error","error":{"type":"invalid_request_error","message":"messages.6: tool_use ids were found without tool_result blocks"}}`}, reason: llm.ReasonFormat},
		{name: "overloaded", host: host{status: 529, body: overloaded}, reason: llm.ReasonOverloaded},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := tt.host
			got := listen(t.Context(), t, newClient(t, &h, nil), apiKey("k"), claude("claude-opus-5", "hi"))
			if got.err == nil || got.err.Reason != tt.reason {
				t.Fatalf("got %+v", got.err)
			}
			if got.text != tt.text {
				t.Errorf("said %q, want %q", got.text, tt.text)
			}
			for _, e := range got.events {
				if e.ToolCall != nil {
					t.Errorf("a failed answer made the call %v", e.ToolCall)
				}
			}
		})
	}
}

// Calls are judged only at the end, but their arrival counts as content at once.
func TestProgress(t *testing.T) {
	h := &host{body: sse(begin, `{"type":"ping"}`, callOpen, callArg1, callArg2, close1, endTool, stop)}
	got := listen(t.Context(), t, newClient(t, h, nil), apiKey("k"), claude("claude-opus-5", "hi"))
	if got.progress != 4 { // the block, two pieces, its end; neither the beginning nor the ping
		t.Errorf("%d signs of progress, want 4", got.progress)
	}
}

func TestEndlessAnswer(t *testing.T) {
	h := &host{body: sse(begin, textOpen, textHi) + "data: " + strings.Repeat("x", maxMessage) + "\n\n" + sse(close0, endTurn, stop)}
	if got := listen(t.Context(), t, newClient(t, h, nil), apiKey("k"), claude("claude-opus-5", "hi")); !errors.Is(got.err, errOversized) || got.text != "hi" {
		t.Errorf("took %d bytes, error %v", len(got.text), got.err)
	}
}

func TestMalformedCall(t *testing.T) {
	h := &host{body: sse(begin, textOpen, textHi, close0, callOpen, callArg1, close1, endTool, stop)}
	got := listen(t.Context(), t, newClient(t, h, nil), apiKey("k"), claude("claude-opus-5", "hi"))
	if got.err == nil || len(got.events) > 0 {
		t.Errorf("got %+v", got)
	}
}
