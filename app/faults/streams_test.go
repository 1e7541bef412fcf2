package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	emulate "understudy/internal/emulate/llm"
	"understudy/llm"
	"understudy/reply"
)

// took runs f and returns how long it lasted on the bubble's clock.
func took(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

func TestAStreamThatFallsSilentIsLeft(t *testing.T) {
	for name, fault := range map[string]emulate.Fault{
		"after the first words":       {Say: "Well, ", Hang: true},
		"before the first byte":       {Hang: true},
		"with pings but no content":   {Say: "", Hang: true, PingEvery: 10 * time.Second},
		"with pings after some words": {Say: "Well, ", Hang: true, PingEvery: 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, chain)
				fault.Match = emulate.Match{Model: "a1", Times: 1}
				h.apis.Fault(fault)
				var o reply.Outcome
				if d := took(func() { o = h.says("hi") }); d > 31*time.Second {
					t.Errorf("the turn took %s, want the provider's limit of 30 s", d)
				}
				h.expectAnswer(o, "beta/b1")
				if got := trail(o); got != "a1=timeout b1=ok" {
					t.Errorf("trail: %s", got)
				}
				synctest.Wait()
				if n := h.apis.InFlight(); n != 0 {
					t.Errorf("%d requests are still open", n)
				}
				h.expectAnswer(h.says("again"), "alpha/a1") // the session is free, and a probe finds a1 well
			})
		})
	}
}

func TestALongHealthyStreamIsNotCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, chain)
		text := strings.TrimSpace(strings.Repeat("word ", 36))
		h.apis.Reply(emulate.Reply{Match: emulate.Match{Model: "a1"}, Text: text, ChunkSize: 1, ChunkDelay: time.Second})
		var o reply.Outcome
		if d := took(func() { o = h.says("hi") }); d < 2*time.Minute {
			t.Fatalf("the stream took %s only: the test proves nothing", d)
		}
		h.expectAnswer(o, "alpha/a1")
		if o.Text != text {
			t.Errorf("the answer is %q", o.Text)
		}
		h.expectCalls("a1@p1")
		if w := h.row("alpha:p1", "a1").Cooldown; !w.Until.IsZero() {
			t.Errorf("a window began: %+v", w)
		}
	})
}

func TestAStreamThatIsFarTooSlowEndsWithTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, strings.Replace(chain, "{defaults: {", "{defaults: {timeoutSeconds: 120, ", 1))
		h.apis.Reply(emulate.Reply{Match: emulate.Match{Model: "a1", Times: 1}, Text: strings.Repeat("x", 2000), ChunkSize: 1, ChunkDelay: time.Second})
		var o reply.Outcome
		if d := took(func() { o = h.says("hi") }); d != 2*time.Minute {
			t.Errorf("the turn took %s, want its limit of 2 min", d)
		}
		if o.Status != reply.Failed || o.Reason != llm.ReasonTimeout || !strings.Contains(o.Text, "ran out of time") {
			t.Errorf("the turn ended %s (%s): %s", o.Status, o.Reason, o.Text)
		}
		if w := h.row("alpha:p1", "a1").Cooldown; w.Reason != llm.ReasonTimeout {
			t.Errorf("the request that was cut counts as %q", w.Reason)
		}
		h.expectAnswer(h.says("again"), "alpha/a1") // the session is free, and a probe finds a1 well
	})
}

// stream is a response body of Chat Completions made of the given chunks.
func stream(chunks ...string) string {
	var b strings.Builder
	for _, c := range chunks {
		fmt.Fprintf(&b, "data: %s\n\n", c)
	}
	return b.String()
}

func TestHalfAToolCallIsNeverRun(t *testing.T) {
	const head = `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"a1","choices":[{"index":0,"delta":`
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, chain)
		ran := 0
		h.tools = []reply.Tool{{
			Tool: llm.Tool{Name: "send_mail", Description: "sends mail", Schema: []byte(`{"type":"object"}`)},
			Run:  func(context.Context, reply.Call) (string, error) { ran++; return "sent", nil },
		}}
		h.open(h.sessions)
		h.apis.Fault(emulate.Fault{Match: emulate.Match{Model: "a1"}, Status: 200, ContentType: "text/event-stream", Body: stream(
			head+`{"role":"assistant","content":"Let me check"},"finish_reason":null}]}`,
			head+`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"send_mail","arguments":"{\"to\": \"som"}}]},"finish_reason":null}]}`,
		)})
		o := h.says("mail it")
		h.expectAnswer(o, "beta/b1")
		if ran != 0 {
			t.Errorf("the tool ran %d times", ran)
		}
		if strings.Contains(h.heard(), "Let me check") {
			t.Errorf("words of the broken stream were said: %s", h.heard())
		}
	})
}

func TestAnErrorBehindTheFirstEventIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, "agents: {defaults: {model: {primary: rho/r1, fallbacks: [beta/b1]}}}\n"+providers)
		h.apis.Fault(emulate.Fault{
			Match: emulate.Match{Model: "r1"}, Status: 200, ContentType: "text/event-stream", Body: "event: response.created\n" +
				`data: {"type":"response.created","sequence_number":0,"response":{"id":"r","object":"response","status":"in_progress","model":"r1","output":[]}}` + "\n\n" +
				"event: error\n" +
				`data: {"type":"error","sequence_number":1,"code":"insufficient_quota","message":"You exceeded your current quota, please check your plan and billing details.","param":null}` + "\n\n",
		})
		h.stream = true
		o := h.says("hi")
		h.expectAnswer(o, "beta/b1")
		if got := trail(o); got != "r1=billing b1=ok" {
			t.Errorf("trail: %s", got)
		}
		if w := h.row("rho:p1", "").Disabled; w.Reason != llm.ReasonBilling || time.Until(w.Until) != 5*time.Hour {
			t.Errorf("the key's disable window is %+v", w)
		}
	})
}

func TestASuccessWithoutAnAnswerIsNone(t *testing.T) {
	for name, fault := range map[string]emulate.Fault{
		"no choices":       {Status: 200, Body: `{"id":"c","object":"chat.completion","created":1,"model":"a1","choices":[]}`},
		"null content":     {Status: 200, Body: `{"id":"c","object":"chat.completion","created":1,"model":"a1","choices":[{"index":0,"message":{"role":"assistant","content":null},"finish_reason":"stop"}]}`},
		"only blanks":      {Status: 200, Body: `{"id":"c","object":"chat.completion","created":1,"model":"a1","choices":[{"index":0,"message":{"role":"assistant","content":" \n "},"finish_reason":"stop"}]}`},
		"no body":          {Status: 200, Raw: true, ContentType: "text/event-stream"},
		"a page":           {Status: 200, ContentType: "text/html", Body: "<html><body>Welcome to nginx</body></html>"},
		"an empty stream":  {Empty: true},
		"an early end":     {Cut: true},
		"a torn stream":    {Say: "Well", Reset: true},
		"a torn handshake": {Reset: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, chain)
				fault.Match = emulate.Match{Model: "a1"}
				h.apis.Fault(fault)
				o := h.says("hi")
				h.expectAnswer(o, "beta/b1")
				switch reason := o.Trail[0].Reason; reason {
				case llm.ReasonEmptyResponse, llm.ReasonUnclassified, llm.ReasonTimeout:
				default:
					t.Errorf("the reason is %q", reason)
				}
				if used := h.row("alpha:p1", "").LastUsed; !used.IsZero() {
					t.Errorf("the key counts as successfully used")
				}
				if strings.Contains(h.heard(), "Well") {
					t.Errorf("words of the broken stream were said: %s", h.heard())
				}
			})
		})
	}
}

func TestShownWordsOfABrokenStreamEndTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, chain)
		h.stream = true
		h.apis.Fault(emulate.Fault{Match: emulate.Match{Model: "a1"}, Say: "The answer is", Reset: true})
		o := h.says("hi")
		if o.Status != reply.Failed || o.Reason != llm.ReasonTimeout {
			t.Errorf("the turn ended %s (%s)", o.Status, o.Reason)
		}
		h.expectCalls("a1@p1")
		if got := h.shown.String(); got != "The answer is" {
			t.Errorf("shown: %q", got)
		}
	})
}

func TestAFailingToolIsNoProviderFailure(t *testing.T) {
	for name, run := range map[string]func(context.Context, reply.Call) (string, error){
		"an error": func(context.Context, reply.Call) (string, error) { return "", errors.New("the result was lost") },
		"a crash":  func(context.Context, reply.Call) (string, error) { panic("lost") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, chain)
				h.tools = []reply.Tool{{Tool: llm.Tool{Name: "look", Description: "looks", Schema: []byte(`{"type":"object"}`)}, Run: run}}
				h.open(h.sessions)
				h.apis.Reply(emulate.Reply{Match: emulate.Match{Model: "a1", Times: 1}, ToolCalls: []emulate.ToolCall{{Name: "look"}}})
				h.expectAnswer(h.says("hi"), "alpha/a1")
				h.expectCalls("a1@p1 a1@p1")
				if w := h.row("alpha:p1", "a1").Cooldown; !w.Until.IsZero() {
					t.Errorf("a window began: %+v", w)
				}
			})
		})
	}
}
