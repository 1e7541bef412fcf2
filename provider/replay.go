package provider

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"understudy/llm"
)

// Target is who a transcript is prepared for.
type Target struct {
	Model   llm.ModelRef
	ToolIDs IDRule
	Images  bool // false: pictures become a line of text
	NoTools bool // calls and results become lines of text
	// Alternate: the first message is the user's, and user and assistant take turns; a tool's
	// results may stand between two assistant messages only.
	Alternate bool
	// Repair applies the strictest form of everything (llm.Request.Repair).
	Repair bool
	// NoReasoning drops the target's own reasoning too: it is state that only the provider can
	// open (llm.Request.Stateless).
	NoReasoning bool
}

// Target returns who req is prepared for.
func (s Spec) Target(req llm.Request) Target {
	info := s.Model(req.Model.Model)
	return Target{
		Model: req.Model, ToolIDs: s.Quirks.ToolIDs, Images: info.Images,
		NoTools: !s.TakesTools(req.Model.Model), Alternate: s.Quirks.Alternate, Repair: req.Repair, NoReasoning: req.Stateless || req.Repair,
	}
}

// TakesTools reports whether a model of the provider may be offered tools.
func (s Spec) TakesTools(model string) bool {
	return !s.Quirks.NoTools && s.Model(model).Tools
}

// The sentences that stand for what a transcript lacks.
const (
	noResult     = "No result: the call was interrupted."
	continuation = "(The conversation goes on.)"
	done         = "(done)"
)

// Replay returns msgs as the target accepts them (spec/failover.md §8.1): tool ids in the target's
// alphabet, every call followed by exactly one result and no result without its call, no reasoning
// of another model, no pictures for a model that takes none, no empty messages, and neighbours of
// one role merged. It changes nothing in msgs.
func Replay(msgs []llm.Message, t Target) []llm.Message {
	if t.Repair {
		t.ToolIDs, t.Alternate, t.NoReasoning = StrictIDs(), true, true
	}
	r := replay{target: t, ids: newIDs(t.ToolIDs, t.Repair)}
	for _, m := range msgs {
		switch m.Role {
		case llm.RoleAssistant:
			r.assistant(m)
		case llm.RoleTool:
			r.results(m)
		default:
			r.user(m)
		}
	}
	r.flush()
	if t.Alternate && len(r.out) > 0 && r.last().Role == llm.RoleAssistant {
		r.say(llm.RoleUser, continuation)
	}
	return r.out
}

// replay builds the new transcript. Calls wait in open until the next message that is no result;
// then their results are written, in the order of the calls.
type replay struct {
	target Target
	ids    *ids
	out    []llm.Message
	open   []openCall
}

type openCall struct {
	oldID, newID, name string
	result             *llm.ToolResult
}

func (r *replay) last() llm.Message { return r.out[len(r.out)-1] }

func (r *replay) say(role llm.Role, text string) { r.add(role, []llm.Part{{Text: text}}) }

// add appends parts as a message of role, or to the last message if that is of the same role.
func (r *replay) add(role llm.Role, parts []llm.Part) {
	if len(parts) == 0 {
		return
	}
	n := len(r.out)
	switch {
	case n > 0 && r.out[n-1].Role == role:
		r.out[n-1].Parts = append(r.out[n-1].Parts, parts...)
		return
	case r.target.Alternate && n == 0 && role == llm.RoleAssistant:
		r.out = append(r.out, llm.Text(llm.RoleUser, continuation))
	case r.target.Alternate && n > 0 && r.out[n-1].Role == llm.RoleTool && role == llm.RoleUser:
		r.out = append(r.out, llm.Text(llm.RoleAssistant, done))
	}
	r.out = append(r.out, llm.Message{Role: role, Parts: parts})
}

func (r *replay) user(m llm.Message) {
	var parts []llm.Part
	for _, p := range m.Parts {
		if q, ok := r.visible(p); ok {
			parts = append(parts, q)
		}
	}
	if len(parts) == 0 {
		return
	}
	r.flush()
	r.add(llm.RoleUser, parts)
}

func (r *replay) assistant(m llm.Message) {
	r.flush()
	var parts []llm.Part
	for _, p := range m.Parts {
		switch {
		case p.Reasoning != nil:
			if p.Reasoning.Origin == r.target.Model && !r.target.NoReasoning {
				parts = append(parts, p)
			}
		case p.ToolCall != nil && r.target.NoTools:
			parts = append(parts, llm.Part{Text: "[tool call: " + clean(p.ToolCall.Name) + " " + string(objectOrEmpty(p.ToolCall.Input)) + "]"})
		case p.ToolCall != nil:
			if call, ok := r.call(*p.ToolCall); ok {
				parts = append(parts, llm.Part{ToolCall: &call})
			}
		default:
			if q, ok := r.visible(p); ok {
				parts = append(parts, q)
			}
		}
	}
	// Thought that led to nothing visible cannot be replayed.
	for len(parts) > 0 && parts[len(parts)-1].Reasoning != nil {
		parts = parts[:len(parts)-1]
	}
	r.add(llm.RoleAssistant, parts)
}

// call rewrites a tool call and opens it.
func (r *replay) call(c llm.ToolCall) (llm.ToolCall, bool) {
	if c.Name == "" {
		return c, false
	}
	open := openCall{oldID: c.ID, newID: r.ids.next(c.ID), name: c.Name}
	r.open = append(r.open, open)
	return llm.ToolCall{ID: open.newID, Name: c.Name, Input: objectOrEmpty(c.Input)}, true
}

func (r *replay) results(m llm.Message) {
	for _, p := range m.Parts {
		if p.ToolResult == nil {
			continue
		}
		if r.target.NoTools {
			r.say(llm.RoleUser, "[tool result: "+clean(p.ToolResult.Text)+"]")
			continue
		}
		i := slices.IndexFunc(r.open, func(o openCall) bool { return o.result == nil && o.oldID == p.ToolResult.ID })
		if i < 0 {
			continue
		}
		res := *p.ToolResult
		res.Text = clean(res.Text)
		res.ID, res.Name = r.open[i].newID, r.open[i].name
		r.open[i].result = &res
	}
}

// flush writes the results of the open calls.
func (r *replay) flush() {
	var parts []llm.Part
	for _, o := range r.open {
		res := o.result
		if res == nil {
			res = &llm.ToolResult{ID: o.newID, Name: o.name, Text: noResult, IsError: true}
		}
		parts = append(parts, llm.Part{ToolResult: res})
	}
	r.open = r.open[:0]
	r.add(llm.RoleTool, parts)
}

// visible returns text and pictures as the target takes them.
func (r *replay) visible(p llm.Part) (llm.Part, bool) {
	switch {
	case p.Image != nil && (!r.target.Images || len(p.Image.Data) == 0):
		return llm.Part{Text: placeholder(*p.Image)}, true
	case p.Image != nil:
		return llm.Part{Image: p.Image}, true
	case strings.TrimSpace(p.Text) != "":
		return llm.Part{Text: clean(p.Text)}, true
	}
	return llm.Part{}, false
}

func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func placeholder(img llm.Image) string {
	if img.Name == "" {
		return "[image]"
	}
	return "[image: " + img.Name + "]"
}

// objectOrEmpty returns a valid JSON object: raw itself, or {}.
func objectOrEmpty(raw json.RawMessage) json.RawMessage {
	if trimmed := bytes.TrimSpace(raw); len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(trimmed) {
		return trimmed
	}
	return json.RawMessage("{}")
}
