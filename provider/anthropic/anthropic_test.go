package anthropic

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"understudy/internal/secret"
	"understudy/llm"
	"understudy/provider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// host is a network with one machine on it, which sends the same bytes to everybody.
type host struct {
	status int
	header http.Header
	body   string

	request *http.Request // the last one
	sent    []byte        // and its body
}

func (h *host) RoundTrip(r *http.Request) (*http.Response, error) {
	h.request = r
	h.sent, _ = io.ReadAll(r.Body)
	if h.status == 0 {
		h.status = http.StatusOK
	}
	header := h.header.Clone()
	if header == nil {
		header = http.Header{"Content-Type": {"text/event-stream"}}
	}
	return &http.Response{
		StatusCode: h.status, Header: header, Request: r,
		Body: io.NopCloser(strings.NewReader(h.body)),
	}, nil
}

// fields returns what the host was sent, as generic JSON.
func (h *host) fields(t *testing.T) map[string]any {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(h.sent, &fields); err != nil {
		t.Fatalf("the request body: %v", err)
	}
	return fields
}

func newClient(t *testing.T, transport http.RoundTripper, change func(*provider.Spec)) llm.Client {
	t.Helper()
	def, _ := provider.Builtin("anthropic")
	spec := provider.Spec{
		ID: "anthropic", API: provider.AnthropicMessages, BaseURL: def.BaseURL, Quirks: def.Quirks,
		RefusalFallback: true, Transport: transport,
	}
	if change != nil {
		change(&spec)
	}
	c, err := New(spec)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func apiKey(key string) llm.Credential {
	return llm.Credential{Kind: llm.KindAPIKey, Secret: secret.New(key)}
}

func claude(model, text string) llm.Request {
	return llm.Request{
		Model:    llm.ModelRef{Provider: "anthropic", Model: model},
		Messages: []llm.Message{llm.Text(llm.RoleUser, text)},
	}
}

// heard is what an attempt brought.
type heard struct {
	text     string
	events   []llm.Event // without text and progress
	progress int
	done     *llm.Done
	err      *llm.Error
}

func listen(ctx context.Context, t testing.TB, c llm.Client, cred llm.Credential, req llm.Request) heard {
	t.Helper()
	var h heard
	for e, err := range c.Stream(ctx, cred, req) {
		if h.done != nil || h.err != nil {
			t.Fatal("something came behind the end")
		}
		switch {
		case err != nil:
			if !errors.As(err, &h.err) {
				t.Fatalf("the error is no *llm.Error: %v", err)
			}
		case e.Done != nil:
			h.done = e.Done
		case e.Progress:
			h.progress++
		case e.Text != "":
			h.text += e.Text
		default:
			h.events = append(h.events, e)
		}
	}
	if (h.done == nil) == (h.err == nil) {
		t.Fatalf("the stream ended with done %v and error %v", h.done, h.err)
	}
	return h
}

// sse writes events with their names, the way the API does.
func sse(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		var named struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal([]byte(e), &named)
		b.WriteString("event: " + named.Type + "\ndata: " + e + "\n\n")
	}
	return b.String()
}

// Pieces of streams.
const (
	begin    = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-5","content":[],"stop_reason":null,"usage":{"input_tokens":10,"cache_read_input_tokens":5,"output_tokens":1}}}`
	textOpen = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	textHi   = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}`
	close0   = `{"type":"content_block_stop","index":0}`
	close1   = `{"type":"content_block_stop","index":1}`
	endTurn  = `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":7}}`
	stop     = `{"type":"message_stop"}`
	callOpen = `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"look","input":{}}}`
	callArg1 = `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"at\":"}}`
	callArg2 = `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"1}"}}`
	endTool  = `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}}`
	endMax   = `{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":7}}`
	handOver = `{"type":"content_block_start","index":2,"content_block":{"type":"fallback","from":{"model":"claude-opus-5"},"to":{"model":"claude-opus-4-8"},"trigger":{"type":"refusal"}}}`
)

func TestAuthorization(t *testing.T) {
	tests := []struct {
		name   string
		kind   llm.CredentialKind
		change func(*provider.Spec)
		key    string // X-Api-Key
		bearer string
		betas  string
		url    string // asked; "" = the one of Anthropic
	}{
		{name: "an API key has a header of its own", kind: llm.KindAPIKey, key: "s3cret"},
		{name: "a setup token is a bearer", kind: llm.KindToken, bearer: "Bearer s3cret", betas: betaOAuth},
		{name: "an access token is a bearer", kind: llm.KindOAuth, bearer: "Bearer s3cret", betas: betaOAuth},
		{
			name: "another host gets a bearer without Anthropic's beta", kind: llm.KindToken, bearer: "Bearer s3cret",
			change: func(s *provider.Spec) { s.ID, s.BaseURL = "minimax", "https://api.minimax.io/anthropic" },
			url:    "https://api.minimax.io/anthropic/v1/messages",
		},
		{
			name: "Anthropic under another name is Anthropic", kind: llm.KindToken, bearer: "Bearer s3cret", betas: betaOAuth,
			change: func(s *provider.Spec) { s.ID = "second" },
		},
		{
			name: "a host without a key header gets keys as bearer", kind: llm.KindAPIKey, bearer: "Bearer s3cret",
			change: func(s *provider.Spec) { s.Quirks.KeyHeader = "" },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS"} {
				t.Setenv(name, "from-the-environment: 1")
			}
			t.Setenv("ANTHROPIC_BASE_URL", "https://elsewhere.example")
			h := &host{body: sse(begin, textOpen, textHi, close0, endTurn, stop)}
			c := newClient(t, h, tt.change)
			listen(t.Context(), t, c, llm.Credential{Kind: tt.kind, Secret: secret.New("s3cret")}, claude("claude-opus-4-8", "hi"))
			got := h.request.Header
			if got.Get("X-Api-Key") != tt.key || got.Get("Authorization") != tt.bearer {
				t.Errorf("X-Api-Key %q, Authorization %q", got.Get("X-Api-Key"), got.Get("Authorization"))
			}
			if betas := strings.Join(got.Values("Anthropic-Beta"), ","); betas != tt.betas {
				t.Errorf("anthropic-beta %q, want %q", betas, tt.betas)
			}
			if got.Get("Anthropic-Version") == "" {
				t.Error("no anthropic-version")
			}
			if u := h.request.URL.String(); u != cmp.Or(tt.url, "https://api.anthropic.com/v1/messages") {
				t.Errorf("asked %s", u)
			}
			if strings.Contains(strings.Join(headerValues(got), "\n"), "environment") {
				t.Error("a header came from the environment")
			}
		})
	}
}

func headerValues(h http.Header) []string {
	var all []string
	for _, vs := range h {
		all = append(all, vs...)
	}
	return all
}

func TestConfiguredHeaders(t *testing.T) {
	h := &host{body: sse(begin, textOpen, textHi, close0, endTurn, stop)}
	c := newClient(t, h, func(s *provider.Spec) {
		s.Headers = map[string]secret.String{"X-Team": secret.New("blue"), "Anthropic-Beta": secret.New("extra-2026-01-01")}
	})
	listen(t.Context(), t, c, llm.Credential{Kind: llm.KindToken, Secret: secret.New("s3cret")}, claude("claude-opus-4-8", "hi"))
	if got := h.request.Header.Get("X-Team"); got != "blue" {
		t.Errorf("X-Team %q", got)
	}
	if got := strings.Join(h.request.Header.Values("Anthropic-Beta"), ","); got != "extra-2026-01-01,"+betaOAuth {
		t.Errorf("anthropic-beta %q", got)
	}
}

func TestRefusalFallbackIsAskedFor(t *testing.T) {
	tests := []struct {
		name   string
		model  string
		kind   llm.CredentialKind
		strict bool
		change func(*provider.Spec)
		want   bool
	}{
		{name: "fable with a key", model: "claude-fable-5", kind: llm.KindAPIKey, want: true},
		{name: "opus with a key", model: "claude-opus-5", kind: llm.KindAPIKey, want: true},
		{name: "another model", model: "claude-opus-4-8", kind: llm.KindAPIKey},
		{name: "a subscription", model: "claude-opus-5", kind: llm.KindOAuth},
		{name: "a setup token", model: "claude-opus-5", kind: llm.KindToken},
		{name: "a strict selection", model: "claude-opus-5", kind: llm.KindAPIKey, strict: true},
		{
			name: "switched off", model: "claude-opus-5", kind: llm.KindAPIKey,
			change: func(s *provider.Spec) { s.RefusalFallback = false },
		},
		{
			name: "another provider", model: "claude-opus-5", kind: llm.KindAPIKey,
			change: func(s *provider.Spec) { s.ID, s.BaseURL = "gateway", "https://gateway.example" },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := &host{body: sse(begin, textOpen, textHi, close0, endTurn, stop)}
			req := claude(tt.model, "hi")
			req.Strict = tt.strict
			listen(t.Context(), t, newClient(t, h, tt.change), llm.Credential{Kind: tt.kind, Secret: secret.New("k")}, req)
			body, beta := h.fields(t)["fallbacks"], strings.Contains(strings.Join(h.request.Header.Values("Anthropic-Beta"), ","), "server-side-fallback-2026-07-01")
			if (body == "default") != tt.want || (body != nil) != tt.want || beta != tt.want {
				t.Errorf("fallbacks %v, beta header %v; want both %v", body, beta, tt.want)
			}
			if !h.fields(t)["stream"].(bool) {
				t.Error("not streamed")
			}
		})
	}
}

func TestNothingIsRetriedOrFollowed(t *testing.T) {
	for _, status := range []int{302, 408, 429, 500, 529} {
		n := 0
		h := &host{status: status, header: http.Header{"Location": {"https://elsewhere.example/"}, "Retry-After": {"7"}}, body: `{}`}
		c := newClient(t, counting{h, &n}, nil)
		got := listen(t.Context(), t, c, apiKey("k"), claude("claude-opus-4-8", "hi"))
		if n != 1 || got.err == nil || got.err.Status != status {
			t.Errorf("status %d: %d requests, error %+v", status, n, got.err)
		}
	}
}

type counting struct {
	http.RoundTripper
	n *int
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	*c.n++
	return c.RoundTripper.RoundTrip(r)
}

func TestSecretsStayOutOfErrors(t *testing.T) {
	h := &host{status: http.StatusUnauthorized, header: http.Header{"Content-Type": {"application/json"}}, body: `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`}
	got := listen(t.Context(), t, newClient(t, h, nil), apiKey("sk-ant-s3cret"), claude("claude-opus-4-8", "hi"))
	if got.err == nil || got.err.Reason != llm.ReasonAuth {
		t.Fatalf("got %+v", got.err)
	}
	if text := got.err.Error() + got.err.Message + got.err.Err.Error(); strings.Contains(text, "s3cret") {
		t.Errorf("the error holds the key: %s", text)
	}
}

func FuzzStream(f *testing.F) {
	whole := sse(begin, textOpen, textHi, close0, callOpen, callArg1, callArg2, close1, endTool, stop)
	f.Add([]byte(whole), "text/event-stream")
	f.Add([]byte(whole[:len(whole)/2]), "text/event-stream")
	f.Add([]byte(sse(handOver, begin, stop)), "text/event-stream")
	f.Add([]byte("data: [DONE]\n\n"), "")
	f.Add([]byte(`{"type":"message","content":[{"type":"tool_use"},null,7],"stop_reason":"end_turn"}`), "application/json")
	f.Add([]byte(`[{"type":"error"}]`), "application/json")
	f.Add([]byte("<html>"), "text/html")
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		h := &host{body: string(body), header: http.Header{"Content-Type": {contentType}}}
		def, _ := provider.Builtin("anthropic")
		c, err := New(provider.Spec{ID: "anthropic", API: provider.AnthropicMessages, BaseURL: def.BaseURL, Transport: h})
		if err != nil {
			t.Fatal(err)
		}
		got := listen(t.Context(), t, c, apiKey("k"), claude("claude-opus-5", "hi"))
		if got.done != nil && !bytes.Contains(body, []byte("message")) {
			t.Errorf("success out of %q", body)
		}
		for _, e := range got.events {
			if e.ToolCall != nil && !json.Valid(e.ToolCall.Input) {
				t.Errorf("a call with broken arguments: %s", e.ToolCall.Input)
			}
		}
	})
}
