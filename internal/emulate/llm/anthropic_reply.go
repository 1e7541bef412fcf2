package llm

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// signature is what makes a thought acceptable again: to the model that had it, unchanged.
func signature(model, thinking string) string {
	sum := sha256.Sum256([]byte(model + "\x00" + thinking))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// anthropicReply is a reply in the API's terms.
type anthropicReply struct {
	blocks []obj
	stop   string
	usage  obj
	model  string // who answered
}

func (c *call) anthropicReply(rep Reply) anthropicReply {
	in, out := c.counts(rep)
	a := anthropicReply{stop: anthropicStop(rep), model: c.Model, usage: obj{
		"input_tokens": max(0, in-rep.CachedTokens), "output_tokens": out,
		"cache_read_input_tokens": rep.CachedTokens, "cache_creation_input_tokens": 0,
	}}
	if rep.Served != "" && rep.Served != c.Model {
		if !c.allowsFallback() {
			a.stop = "refusal"
			return a
		}
		a.model = rep.Served
		a.blocks = append(a.blocks, obj{
			"type": "fallback", "from": obj{"model": c.Model}, "to": obj{"model": rep.Served},
			"trigger": obj{"type": "refusal", "category": "general_harms"},
		})
		a.usage["iterations"] = []obj{
			{"type": "message", "model": c.Model, "input_tokens": in, "output_tokens": 0},
			{"type": "fallback_message", "model": rep.Served, "input_tokens": in, "output_tokens": out},
		}
	}
	if rep.Reasoning != "" {
		a.blocks = append(a.blocks, obj{"type": "thinking", "thinking": rep.Reasoning, "signature": signature(c.Model, rep.Reasoning)})
	}
	if rep.Text != "" {
		a.blocks = append(a.blocks, obj{"type": "text", "text": rep.Text})
	}
	for i, t := range rep.ToolCalls {
		id := t.ID
		if id == "" {
			id = fmt.Sprintf("toolu_%d_%d", c.id, i)
		}
		a.blocks = append(a.blocks, obj{"type": "tool_use", "id": id, "name": t.Name, "input": json.RawMessage(t.arguments())})
	}
	return a
}

// anthropicStop translates the finish reason; one of unknown words is used as it is.
func anthropicStop(rep Reply) string {
	switch rep.Finish {
	case "":
		if len(rep.ToolCalls) > 0 {
			return "tool_use"
		}
		return "end_turn"
	case "stop":
		return "end_turn"
	case "length":
		return "max_tokens"
	case "tool_calls":
		return "tool_use"
	case "content_filter":
		return "refusal"
	}
	return rep.Finish
}

func (c *call) anthropicMessage(model string, content []obj, stop any, usage obj) obj {
	if content == nil {
		content = []obj{}
	}
	return obj{
		"id": "msg_" + itoa(c.id), "type": "message", "role": "assistant", "model": model,
		"content": content, "stop_reason": stop, "stop_sequence": nil, "usage": usage,
	}
}

func anthropicWhole(c *call, rep Reply) []byte {
	a := c.anthropicReply(rep)
	for _, b := range a.blocks { // a call may be given broken arguments; the document stays JSON
		if raw, ok := b["input"].(json.RawMessage); ok && !json.Valid(raw) {
			b["input"] = string(raw)
		}
	}
	return mustJSON(c.anthropicMessage(a.model, a.blocks, a.stop, a.usage))
}

func anthropicFrames(c *call, rep Reply) []frame {
	a := c.anthropicReply(rep)
	event := func(kind string, fields obj) string {
		fields["type"] = kind
		return sse(kind, mustJSON(fields))
	}
	begun := obj{"input_tokens": a.usage["input_tokens"], "cache_read_input_tokens": rep.CachedTokens, "output_tokens": 1}
	out := []frame{{text: event("message_start", obj{"message": c.anthropicMessage(c.Model, nil, nil, begun)})}}
	for i, b := range a.blocks {
		start, deltas := anthropicDeltas(b, rep.ChunkSize)
		out = append(out, frame{text: event("content_block_start", obj{"index": i, "content_block": start}), content: true})
		if i == 0 {
			out = append(out, frame{text: sse("ping", []byte(`{"type":"ping"}`))})
		}
		for _, d := range deltas {
			out = append(out, frame{text: event("content_block_delta", obj{"index": i, "delta": d}), content: true})
		}
		out = append(out, frame{text: event("content_block_stop", obj{"index": i}), content: true})
	}
	return append(out,
		frame{text: event("message_delta", obj{"delta": obj{"stop_reason": a.stop, "stop_sequence": nil}, "usage": a.usage}), terminal: true},
		frame{text: event("message_stop", obj{}), terminal: true},
	)
}

// anthropicDeltas takes a block apart into its empty beginning and what fills it.
func anthropicDeltas(b obj, size int) (start obj, deltas []obj) {
	fill := func(text, kind, field string) {
		for _, s := range pieces(text, size) {
			deltas = append(deltas, obj{"type": kind, field: s})
		}
	}
	switch b["type"] {
	case "text":
		fill(b["text"].(string), "text_delta", "text")
		return obj{"type": "text", "text": ""}, deltas
	case "thinking":
		fill(b["thinking"].(string), "thinking_delta", "thinking")
		deltas = append(deltas, obj{"type": "signature_delta", "signature": b["signature"]})
		return obj{"type": "thinking", "thinking": "", "signature": ""}, deltas
	case "tool_use":
		fill(string(b["input"].(json.RawMessage)), "input_json_delta", "partial_json")
		return obj{"type": "tool_use", "id": b["id"], "name": b["name"], "input": obj{}}, deltas
	}
	return b, nil
}
