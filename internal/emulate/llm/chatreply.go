package llm

import "fmt"

type obj = map[string]any

// served returns the model id that the response names.
func (c *call) served(rep Reply) string {
	if rep.Served != "" {
		return rep.Served
	}
	return c.Model
}

// counts returns the usage of a reply.
func (c *call) counts(rep Reply) (in, out int) {
	in, out = rep.InputTokens, rep.OutputTokens
	if in == 0 {
		in = tokens(string(c.Body))
	}
	if out == 0 {
		out = tokens(rep.Text + rep.Reasoning)
	}
	return in, out
}

// callID returns the id of the i-th tool call, in OpenAI's form unless it is given.
func (c *call) callID(t ToolCall, i int) string {
	if t.ID != "" {
		return t.ID
	}
	return fmt.Sprintf("call_%d_%d", c.id, i)
}

func (t ToolCall) arguments() string {
	if t.Arguments == "" {
		return "{}"
	}
	return t.Arguments
}

func chatFinish(rep Reply) string {
	switch {
	case rep.Finish != "":
		return rep.Finish
	case len(rep.ToolCalls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func (c *call) chatUsage(rep Reply) obj {
	in, out := c.counts(rep)
	return obj{
		"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out,
		"prompt_tokens_details":     obj{"cached_tokens": rep.CachedTokens},
		"completion_tokens_details": obj{"reasoning_tokens": 0},
	}
}

func chatFrames(c *call, rep Reply) []frame {
	chunk := func(choices []obj, usage any) []byte {
		return mustJSON(obj{
			"id": "chatcmpl-" + itoa(c.id), "object": "chat.completion.chunk", "created": 1760000000,
			"model": c.served(rep), "choices": choices, "usage": usage,
		})
	}
	delta := func(d obj, finish any) string {
		return sse("", chunk([]obj{{"index": 0, "delta": d, "finish_reason": finish}}, nil))
	}
	out := []frame{{text: delta(obj{"role": "assistant", "content": ""}, nil)}}
	for _, s := range pieces(rep.Reasoning, rep.ChunkSize) {
		out = append(out, frame{text: delta(obj{"reasoning_content": s}, nil), content: true})
	}
	for _, s := range pieces(rep.Text, rep.ChunkSize) {
		out = append(out, frame{text: delta(obj{"content": s}, nil), content: true})
	}
	for i, t := range rep.ToolCalls {
		fn := func(f obj, id any) string {
			call := obj{"index": i, "function": f}
			if id != nil {
				call["id"], call["type"] = id, "function"
			}
			return delta(obj{"tool_calls": []obj{call}}, nil)
		}
		out = append(out, frame{text: fn(obj{"name": t.Name, "arguments": ""}, c.callID(t, i)), content: true})
		for _, s := range pieces(t.arguments(), rep.ChunkSize) {
			out = append(out, frame{text: fn(obj{"arguments": s}, nil), content: true})
		}
	}
	out = append(out, frame{text: delta(obj{}, chatFinish(rep)), terminal: true})
	if c.wants.usage {
		out = append(out, frame{text: sse("", chunk([]obj{}, c.chatUsage(rep))), terminal: true})
	}
	return append(out, frame{text: "data: [DONE]\n\n", terminal: true})
}

func chatWhole(c *call, rep Reply) []byte {
	message := obj{"role": "assistant", "content": rep.Text, "refusal": nil}
	if rep.Reasoning != "" {
		message["reasoning_content"] = rep.Reasoning
	}
	var calls []obj
	for i, t := range rep.ToolCalls {
		calls = append(calls, obj{"id": c.callID(t, i), "type": "function", "function": obj{"name": t.Name, "arguments": t.arguments()}})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	return mustJSON(obj{
		"id": "chatcmpl-" + itoa(c.id), "object": "chat.completion", "created": 1760000000, "model": c.served(rep),
		"choices": []obj{{"index": 0, "message": message, "finish_reason": chatFinish(rep)}},
		"usage":   c.chatUsage(rep),
	})
}

// incompleteReason is why the Responses API calls a response incomplete; "" = it is complete.
func incompleteReason(finish string) string {
	switch finish {
	case "length":
		return "max_output_tokens"
	case "content_filter":
		return "content_filter"
	}
	return ""
}
