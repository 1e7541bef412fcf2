package providertest

import (
	"encoding/json"
	"testing"

	"understudy/llm"
)

// transcripts: whatever other models wrote, the request is acceptable (spec/failover.md §8.1).
func (s Suite) transcripts(t *testing.T) {
	for name, messages := range Foreign() {
		s.bubble(t, name, func(w world) {
			w.srv.Strict = true
			req := w.request("")
			req.Messages = messages
			w.good(w.ask(req))
		})
		s.bubble(t, name+", repaired", func(w world) {
			w.srv.Strict, w.srv.Alternate, w.srv.ToolIDLength = true, true, 9
			req := w.request("")
			req.Messages, req.Repair = messages, true
			w.good(w.ask(req))
		})
		s.bubble(t, name+", without state", func(w world) {
			w.srv.Strict = true
			req := w.request("")
			req.Messages, req.Stateless, req.CacheKey = messages, true, "conversation-1"
			w.good(w.ask(req))
		})
	}
}

// Foreign returns transcripts that another model wrote, or that something went wrong with. Each
// ends so that a model can answer.
func Foreign() map[string][]llm.Message {
	user := func(text string) llm.Message { return llm.Text(llm.RoleUser, text) }
	bot := func(parts ...llm.Part) llm.Message { return llm.Message{Role: llm.RoleAssistant, Parts: parts} }
	text := func(s string) llm.Part { return llm.Part{Text: s} }
	call := func(id string) llm.Part {
		return llm.Part{ToolCall: &llm.ToolCall{ID: id, Name: "look", Input: json.RawMessage(`{"at":"it"}`)}}
	}
	result := func(ids ...string) llm.Message {
		m := llm.Message{Role: llm.RoleTool}
		for _, id := range ids {
			m.Parts = append(m.Parts, llm.Part{ToolResult: &llm.ToolResult{ID: id, Text: "seen"}})
		}
		return m
	}
	thought := llm.Part{Reasoning: &llm.Reasoning{
		Origin: llm.ModelRef{Provider: "elsewhere", Model: "deep"}, Text: "private", Opaque: json.RawMessage(`{"type":"reasoning","encrypted_content":"foreign","signature":"foreign"}`),
	}}
	return map[string][]llm.Message{
		"ids of another alphabet": {user("hi"), bot(call("functions.look:0|τ"), call("toolu_01ABC-def_ghi.jkl")), result("functions.look:0|τ", "toolu_01ABC-def_ghi.jkl"), user("and?")},
		"the same id twice":       {user("hi"), bot(call("call_0")), result("call_0"), bot(text("again"), call("call_0")), result("call_0"), user("and?")},
		"call without result":     {user("hi"), bot(call("a"), call("b")), result("b"), user("and?")},
		"result without call":     {user("hi"), result("ghost"), bot(text("yes")), user("and?")},
		"results out of order":    {user("hi"), bot(call("a"), call("b")), result("b"), result("a")},
		"foreign thought":         {user("hi"), bot(thought, text("yes")), user("and?"), bot(thought), user("hello?")},
		"two users in a row":      {user("hi"), user("anybody?")},
		"assistant first":         {bot(text("welcome")), user("hi")},
		"two assistants in a row": {user("hi"), bot(text("one")), bot(text("two"), call("a")), result("a")},
		"empty messages":          {user("hi"), bot(), bot(text("  ")), user(""), user("and?")},
		"half a call":             {user("hi"), bot(llm.Part{ToolCall: &llm.ToolCall{ID: "a", Name: "look", Input: json.RawMessage(`{"at":`)}}), result("a"), user("and?")},
		"a very long id":          {user("hi"), bot(call("call_01234567890123456789012345678901234567890123456789012345678901234567890123456789")), result("call_01234567890123456789012345678901234567890123456789012345678901234567890123456789"), user("and?")},
	}
}
