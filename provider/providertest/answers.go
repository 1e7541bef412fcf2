package providertest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	emulator "understudy/internal/emulate/llm"
	"understudy/llm"
)

func (s Suite) answers(t *testing.T) {
	s.bubble(t, "text arrives in pieces", func(w world) {
		w.srv.Strict = true
		const text = "Grüße aus dem Emulator: one, two, three, four."
		w.srv.Reply(emulator.Reply{Text: text, ChunkDelay: time.Second, InputTokens: 120, CachedTokens: 20, OutputTokens: 7})
		a := w.ask(w.request("hi"))
		w.good(a)
		if a.Text != text {
			w.Errorf("text = %q", a.Text)
		}
		if a.Done.Stop != llm.StopEnd || a.Done.Served != "" {
			w.Errorf("done = %+v", *a.Done)
		}
		if u := a.Done.Usage; u.Output != 7 || u.CacheRead != 20 || u.ContextSize != 120 || u.Input+u.CacheRead+u.CacheWrite != 120 {
			w.Errorf("usage = %+v", u)
		}
	})
	s.bubble(t, "one json body for a stream request", func(w world) {
		w.srv.Reply(emulator.Reply{Text: "whole", AsJSON: true})
		a := w.ask(w.request("hi"))
		w.good(a)
		if a.Text != "whole" || a.Done.Stop != llm.StopEnd {
			w.Errorf("answer = %+v", a)
		}
	})
	s.bubble(t, "token limit", func(w world) {
		w.srv.Reply(emulator.Reply{Text: "cut sho", Finish: "length"})
		a := w.ask(w.request("hi"))
		w.good(a)
		if a.Text != "cut sho" || a.Done.Stop != llm.StopMaxTokens {
			w.Errorf("answer = %+v, done %+v", a, a.Done)
		}
	})
	s.bubble(t, "refusal", func(w world) {
		w.srv.Reply(emulator.Reply{Text: "", Finish: "content_filter"})
		w.failed(w.ask(w.request("hi")), llm.ReasonRefusal, "")
	})
	s.bubble(t, "thought counts as content but is not shown", func(w world) {
		if w.suite.NoReasoning {
			w.Skip("this API carries no thought")
		}
		w.srv.Reply(emulator.Reply{Reasoning: "let me think about that for a while", Text: "42"})
		a := w.ask(w.request("hi"))
		w.good(a)
		if a.Text != "42" || a.Progress == 0 || len(a.Reasoning) == 0 {
			w.Fatalf("answer = %+v", a)
		}
		if r := a.Reasoning[0]; r.Origin != w.request("").Model || !strings.Contains(r.Text, "let me think") {
			w.Errorf("reasoning = %+v", r)
		}
	})
	s.bubble(t, "thought without an answer is empty", func(w world) {
		if w.suite.NoReasoning {
			w.Skip("this API carries no thought")
		}
		w.srv.Reply(emulator.Reply{Reasoning: "hmm"})
		w.failed(w.ask(w.request("hi")), llm.ReasonEmptyResponse, "")
	})
	s.bubble(t, "tool calls and their results", s.toolLoop)
}

// toolLoop asks, answers two calls, and asks again.
func (s Suite) toolLoop(w world) {
	w.srv.Strict = true
	w.srv.Reply(
		emulator.Reply{Match: emulator.Match{Times: 1}, Text: "Looking.", ToolCalls: []emulator.ToolCall{
			{Name: "weather", Arguments: `{"city":"Köln","days":[1,2,3]}`},
			{Name: "clock"},
		}},
		emulator.Reply{Text: "It rains at noon."},
	)
	req := w.request("weather?")
	req.Tools = []llm.Tool{
		{Name: "weather", Description: "Tells the weather.", Schema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)},
		{Name: "clock"},
	}
	a := w.ask(req)
	w.good(a)
	if a.Done.Stop != llm.StopToolUse || len(a.Calls) != 2 || a.Text != "Looking." {
		w.Fatalf("answer = %+v, done %+v", a, a.Done)
	}
	if a.Calls[0].ID == "" || a.Calls[0].ID == a.Calls[1].ID {
		w.Errorf("ids %q and %q do not tell the calls apart", a.Calls[0].ID, a.Calls[1].ID)
	}
	got := []string{a.Calls[0].Name, string(a.Calls[0].Input), a.Calls[1].Name, string(a.Calls[1].Input)}
	if diff := cmp.Diff([]string{"weather", `{"city":"Köln","days":[1,2,3]}`, "clock", `{}`}, got); diff != "" {
		w.Errorf("calls (-want +got):\n%s", diff)
	}
	req.Messages = append(req.Messages, a.Message(), llm.Message{Role: llm.RoleTool, Parts: []llm.Part{
		{ToolResult: &llm.ToolResult{ID: a.Calls[0].ID, Text: "rain"}},
		{ToolResult: &llm.ToolResult{ID: a.Calls[1].ID, Text: "no clock here", IsError: true}},
	}})
	b := w.ask(req)
	w.good(b)
	if b.Text != "It rains at noon." {
		w.Errorf("second answer = %q", b.Text)
	}
}

// failed fails the test unless a failed for reason (and detail, if given).
func (w world) failed(a Answer, reason llm.Reason, detail llm.Detail) {
	w.Helper()
	if a.Fault != "" {
		w.Fatal(a.Fault)
	}
	if a.Err == nil {
		w.Fatalf("no error, but %+v", a)
	}
	if a.Err.Reason != reason || (detail != "" && a.Err.Detail != detail) {
		w.Errorf("reason = %s %s (rule %s, %v), want %s %s", a.Err.Reason, a.Err.Detail, a.Err.Rule, a.Err, reason, detail)
	}
	for _, key := range []string{keyOne, keyTwo} {
		if strings.Contains(a.Err.Error(), key) || strings.Contains(a.Err.Message, key) {
			w.Errorf("the error shows a key: %v", a.Err)
		}
	}
}
