package llm_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"go.uber.org/goleak"

	emulator "understudy/internal/emulate/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// post sends a chat request for model and returns status and body.
func post(t *testing.T, client *http.Client, url, model, text string) (int, string) {
	t.Helper()
	body := `{"model":"` + model + `","messages":[{"role":"user","content":"` + text + `"}]}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer k1")
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(raw)
}

func TestScriptedOrder(t *testing.T) {
	srv := emulator.New()
	defer srv.Close()
	srv.Fault(
		emulator.Fault{Match: emulator.Match{Model: "a1", After: 1, Times: 2}, Status: 429},
		emulator.Fault{Match: emulator.Match{Host: "beta.test"}, Status: 500},
		emulator.Fault{Match: emulator.Match{Key: "other"}, Status: 401},
		emulator.Fault{Match: emulator.Match{Contains: "boom"}, Status: 503},
	)
	client := &http.Client{Transport: srv.Transport()}
	var got []int
	for _, ask := range [][3]string{
		{"alpha.test", "a1", "hi"},
		{"alpha.test", "a1", "hi"},
		{"alpha.test", "a2", "hi"},
		{"alpha.test", "a1", "hi"},
		{"alpha.test", "a1", "hi"},
		{"beta.test", "a1", "hi"},
		{"alpha.test", "a2", "go boom"},
	} {
		status, _ := post(t, client, "http://"+ask[0]+":8080/v1/chat/completions", ask[1], ask[2])
		got = append(got, status)
	}
	if diff := cmp.Diff([]int{200, 429, 200, 429, 200, 500, 503}, got); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	srv.Heal()
	if status, _ := post(t, client, "http://beta.test/v1/chat/completions", "a1", "hi"); status != 200 {
		t.Errorf("status behind Heal = %d", status)
	}
	log := srv.Requests()
	if len(log) != 8 || log[0].Host != "alpha.test" || log[0].Key != "k1" || log[0].Model != "a1" || log[6].LastUser != "go boom" {
		t.Errorf("log = %+v", log)
	}
	srv.ClearRequests()
	if len(srv.Requests()) != 0 {
		t.Error("the log is not empty")
	}
}

// A request that a fault answers uses up no reply.
func TestRepliesWaitForGoodRequests(t *testing.T) {
	srv := emulator.New()
	defer srv.Close()
	srv.Fault(emulator.Fault{Match: emulator.Match{Times: 1}, Status: 500})
	srv.Reply(emulator.Reply{Match: emulator.Match{Times: 1}, Text: "once"}, emulator.Reply{Text: "ever after"})
	client := &http.Client{Transport: srv.Transport()}
	var texts []string
	for range 3 {
		_, body := post(t, client, "http://x.test/v1/chat/completions", "m", "hi")
		texts = append(texts, body)
	}
	if !strings.Contains(texts[1], "once") || !strings.Contains(texts[2], "ever after") {
		t.Errorf("replies = %q", texts)
	}
}

func TestRejections(t *testing.T) {
	for _, tt := range []struct {
		name, path, body string
		set              func(*emulator.Server)
		status           int
		want             string
	}{
		{"unknown path", "/v1/moon", `{}`, nil, 404, "unknown_url"},
		{"not json", "/v1/chat/completions", `{`, nil, 400, "parse"},
		{"no model", "/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}]}`, nil, 400, "model"},
		{"no messages", "/v1/chat/completions", `{"model":"m"}`, nil, 400, "messages"},
		{"unknown model", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"}]}`, func(s *emulator.Server) { s.Models = []string{"n"} }, 404, "model_not_found"},
		{"unknown key", "/v1/responses", `{"model":"m","input":"x"}`, func(s *emulator.Server) { s.Keys = []string{"n"} }, 401, "invalid_api_key"},
		{"unknown field", "/v1/chat/completions", `{"model":"m","colour":"red","messages":[{"role":"user","content":"x"}]}`, func(s *emulator.Server) { s.Strict = true }, 400, "unknown_parameter"},
		{"orphan result", "/v1/chat/completions", `{"model":"m","messages":[{"role":"tool","tool_call_id":"a","content":"x"}]}`, nil, 400, "must be a response"},
		{"orphan call", "/v1/chat/completions", `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"x"}]}`, nil, 400, "did not have response messages"},
		{"tool id", "/v1/chat/completions", `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_1","content":"x"}]}`, func(s *emulator.Server) { s.ToolIDLength = 9 }, 400, "with a length of 9"},
		{"turns", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"user","content":"y"}]}`, func(s *emulator.Server) { s.Alternate = true }, 400, "Unexpected role"},
		{"responses orphan call", "/v1/responses", `{"model":"m","input":[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}]}`, nil, 400, "No tool output found"},
		{"responses state", "/v1/responses", `{"model":"m","input":"x","previous_response_id":"resp_1"}`, nil, 400, "previous_response_not_found"},
		{"foreign thought", "/v1/responses", `{"model":"m","input":[{"type":"reasoning","summary":[],"encrypted_content":"sealed:other"},{"type":"message","role":"assistant","content":"x"}]}`, nil, 400, "invalid_encrypted_content"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := emulator.New()
			if tt.set != nil {
				tt.set(srv)
			}
			rec := httptest.NewRecorder()
			srv.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodPost, tt.path, strings.NewReader(tt.body)))
			if rec.Code != tt.status || !strings.Contains(rec.Body.String(), tt.want) {
				t.Errorf("%d %s, want %d %s", rec.Code, rec.Body, tt.status, tt.want)
			}
		})
	}
}

// The official SDK reads what the emulator writes, streamed and not.
func TestOfficialSDK(t *testing.T) {
	srv := emulator.New()
	defer srv.Close()
	srv.Reply(emulator.Reply{Text: "hello there", ToolCalls: []emulator.ToolCall{{ID: "c1", Name: "look", Arguments: `{"a":1}`}}})
	opts := []option.RequestOption{option.WithBaseURL("http://x.test/v1/"), option.WithMaxRetries(0), option.WithHTTPClient(&http.Client{Transport: srv.Transport()})}
	params := sdk.ChatCompletionNewParams{Model: "m", Messages: []sdk.ChatCompletionMessageParamUnion{sdk.UserMessage("hi")}}
	chat := sdk.NewChatCompletionService(opts...)
	whole, err := chat.New(t.Context(), params)
	if err != nil || whole.Choices[0].Message.Content != "hello there" || whole.Choices[0].Message.ToolCalls[0].ID != "c1" || whole.Usage.TotalTokens == 0 {
		t.Errorf("whole = %+v, %v", whole, err)
	}
	var acc sdk.ChatCompletionAccumulator
	stream := chat.NewStreaming(t.Context(), params)
	for stream.Next() {
		acc.AddChunk(stream.Current())
	}
	if stream.Err() != nil || acc.Choices[0].Message.Content != "hello there" || acc.Choices[0].FinishReason != "tool_calls" || acc.Choices[0].Message.ToolCalls[0].Function.Arguments != `{"a":1}` {
		t.Errorf("stream = %+v, %v", acc.Choices, stream.Err())
	}
	resp := responses.NewResponseService(opts...)
	rp := responses.ResponseNewParams{Model: "m", Input: responses.ResponseNewParamsInputUnion{OfString: sdk.String("hi")}}
	r, err := resp.New(t.Context(), rp)
	if err != nil || r.OutputText() != "hello there" {
		t.Errorf("response = %+v, %v", r, err)
	}
	events := resp.NewStreaming(t.Context(), rp)
	last := ""
	for events.Next() {
		last = events.Current().Type
	}
	if events.Err() != nil || last != "response.completed" {
		t.Errorf("last event %q, %v", last, events.Err())
	}
}

func TestTimeCostsNothingInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := emulator.New()
		defer srv.Close()
		srv.Fault(emulator.Fault{Latency: time.Hour})
		srv.Reply(emulator.Reply{Text: strings.Repeat("x", 120), ChunkSize: 12, ChunkDelay: time.Minute})
		start := time.Now()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://x.test/v1/chat/completions",
			strings.NewReader(`{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		res, err := (&http.Client{Transport: srv.Transport()}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if got := time.Since(start); got != time.Hour+10*time.Minute {
			t.Errorf("the answer took %v", got)
		}
	})
}

func TestHangEndsWithTheClientOrTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := emulator.New()
		srv.Fault(emulator.Fault{Hang: true, PingEvery: time.Second, Say: "hel"})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		open := func(ctx context.Context) *http.Response {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://x.test/v1/chat/completions",
				strings.NewReader(`{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}`))
			if err != nil {
				t.Fatal(err)
			}
			res, err := (&http.Client{Transport: srv.Transport()}).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			return res
		}
		res := open(ctx)
		lines := bufio.NewScanner(res.Body)
		pings := 0
		for pings < 3 && lines.Scan() {
			if strings.HasPrefix(lines.Text(), ": ping") {
				pings++
			}
		}
		if pings != 3 {
			t.Errorf("%d pings, %v", pings, lines.Err())
		}
		cancel()
		_ = res.Body.Close()
		synctest.Wait()
		if srv.InFlight() != 0 {
			t.Error("the request outlives its client")
		}
		other := open(t.Context())
		srv.Close()
		_, err := io.Copy(io.Discard, other.Body)
		_ = other.Body.Close()
		if err == nil {
			t.Error("a hanging stream ended cleanly")
		}
	})
}

func TestResetOverTCP(t *testing.T) {
	srv := emulator.New()
	defer srv.Close()
	srv.Fault(emulator.Fault{Match: emulator.Match{Times: 1}, Reset: true}, emulator.Fault{Say: "hello", Reset: true})
	host := httptest.NewServer(srv)
	defer host.Close()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	for range 2 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, host.URL+"/v1/chat/completions",
			strings.NewReader(`{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		res, err := (&http.Client{Transport: tr}).Do(req)
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
		if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			t.Errorf("error = %v", err)
		}
	}
}
