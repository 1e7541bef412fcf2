package llm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// responsesProtocol is OpenAI's Responses API, stateless.
func responsesProtocol() *protocol {
	return &protocol{
		suffix: "/responses", key: bearer, parse: parseResponses, refuse: refuseOpenAI,
		frames: responsesFrames, whole: responsesWhole, ping: ": ping\n\n",
		errorFrame: func(body string) string { return sse("error", []byte(body)) },
	}
}

type responsesRequest struct {
	Model        string          `json:"model"`
	Instructions string          `json:"instructions"`
	Input        json.RawMessage `json:"input"`
	Stream       bool            `json:"stream"`
	Previous     string          `json:"previous_response_id"`
}

type responsesItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
	Encrypted string          `json:"encrypted_content"`
}

func parseResponses(s *Server, r *Request) (*call, *refusal) {
	var q responsesRequest
	if err := json.Unmarshal(r.Body, &q); err != nil {
		return nil, badRequest("", "We could not parse the JSON body of your request.")
	}
	r.Model, r.Stream = q.Model, q.Stream
	c := &call{Request: r, system: q.Instructions}
	var items []responsesItem
	if json.Unmarshal(q.Input, &r.LastUser) == nil {
		items = []responsesItem{{Type: "message", Role: "user", Content: q.Input}}
	} else if err := json.Unmarshal(q.Input, &items); err != nil {
		return c, badRequest("input", "Invalid type for 'input'.")
	}
	for _, it := range items {
		if text, _ := chatContent(it.Content); it.Role == "user" {
			r.LastUser = text
		}
	}
	return c, s.checkResponses(q, items, r.Body)
}

func (s *Server) checkResponses(q responsesRequest, items []responsesItem, body []byte) *refusal {
	if bad := checkTop(q.Model, len(items)); bad != nil {
		return bad
	}
	if s.Strict {
		if bad := unknownFields(body, responsesFields()); bad != nil {
			return bad
		}
	}
	if q.Previous != "" {
		return &refusal{status: 400, kind: "invalid_request_error", code: "previous_response_not_found", param: "previous_response_id", message: "Previous response with id '" + q.Previous + "' not found."}
	}
	var open []string
	for i, it := range items {
		at := fmt.Sprintf("input[%d]", i)
		var bad *refusal
		switch it.Type {
		case "function_call", "function_call_output":
			open, bad = checkResponsesCall(at, it, open)
		case "reasoning":
			bad = checkThought(at, q.Model, it, items[i+1:])
		default:
			bad = s.checkResponsesMessage(at, it)
		}
		if bad != nil {
			return bad
		}
	}
	if len(open) > 0 {
		return badRequest("input", "No tool output found for function call "+open[0]+".")
	}
	return nil
}

func checkResponsesCall(at string, it responsesItem, open []string) ([]string, *refusal) {
	if it.Type == "function_call" {
		switch {
		case it.CallID == "" || len(it.CallID) > 64 || !json.Valid([]byte(it.Arguments)):
			return open, badRequest(at, "Invalid 'function_call'.")
		case !isToolName(it.Name, 64):
			return open, badToolName(at + ".name")
		case slices.Contains(open, it.CallID):
			return open, badRequest(at+".call_id", "Duplicate function call with call_id "+it.CallID+".")
		}
		return append(open, it.CallID), nil
	}
	k := slices.Index(open, it.CallID)
	switch {
	case k < 0:
		return open, badRequest(at, "No tool call found for function call output with call_id "+it.CallID+".")
	case len(it.Output) == 0 || string(it.Output) == "null":
		return open, badRequest(at+".output", "Missing required parameter: '"+at+".output'.")
	}
	return slices.Delete(open, k, k+1), nil
}

// checkThought checks a reasoning item; next are the items behind it.
func checkThought(at, model string, it responsesItem, next []responsesItem) *refusal {
	switch {
	case len(next) == 0 || next[0].Role == "user":
		return badRequest(at, "Item of type 'reasoning' was provided without its required following item.")
	case it.Encrypted != "" && it.Encrypted != encryptedFor(model):
		return &refusal{status: 400, kind: "invalid_request_error", code: "invalid_encrypted_content", param: at, message: "The encrypted content could not be verified."}
	}
	return nil
}

// checkResponsesMessage checks who speaks, and that each speaks in parts of their own kind.
func (s *Server) checkResponsesMessage(at string, it responsesItem) *refusal {
	var parts []struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(it.Content, &parts)
	_, images := chatContent(it.Content)
	allowed := []string{"input_text", "input_image", "input_file"}
	if it.Role == "assistant" {
		allowed = []string{"output_text", "refusal"}
	}
	switch {
	case it.Type != "" && it.Type != "message":
		return badRequest(at+".type", "Invalid value: '"+it.Type+"'.")
	case !slices.Contains([]string{"user", "assistant", "system", "developer"}, it.Role):
		return badRequest(at+".role", "Invalid value: '"+it.Role+"'. Supported values are: 'assistant', 'system', 'developer', and 'user'.")
	case images > 0 && s.NoImages:
		return badRequest(at+".content", "Invalid content type. input_image is not supported by this model.")
	case isEmpty(it.Content):
		return badRequest(at+".content", "Missing required parameter: '"+at+".content'.")
	}
	for i, p := range parts {
		if !slices.Contains(allowed, p.Type) {
			return badRequest(fmt.Sprintf("%s.content[%d]", at, i), fmt.Sprintf("Invalid value: '%s'. Supported values are: '%s'.", p.Type, strings.Join(allowed, "' and '")))
		}
	}
	return checkImages(at+".content", it.Content)
}

func responsesFields() []string {
	return []string{
		"model", "input", "instructions", "stream", "store", "include", "tools", "tool_choice", "max_output_tokens", "reasoning",
		"prompt_cache_key", "previous_response_id", "parallel_tool_calls", "text", "temperature", "top_p", "user", "metadata",
	}
}

// encryptedFor is the thought that a model accepts back; it accepts no other model's.
func encryptedFor(model string) string { return "sealed:" + model }

// item is one output item and the events that stream it.
type item struct {
	final  obj
	deltas []obj
}

func (c *call) items(rep Reply) []item {
	var out []item
	if rep.Reasoning != "" {
		id := "rs_" + itoa(c.id)
		it := item{final: obj{"type": "reasoning", "id": id, "summary": []obj{{"type": "summary_text", "text": rep.Reasoning}}, "encrypted_content": encryptedFor(c.Model)}}
		for _, s := range pieces(rep.Reasoning, rep.ChunkSize) {
			it.deltas = append(it.deltas, obj{"type": "response.reasoning_summary_text.delta", "item_id": id, "summary_index": 0, "delta": s})
		}
		out = append(out, it)
	}
	if rep.Text != "" {
		id := "msg_" + itoa(c.id)
		it := item{final: obj{"type": "message", "id": id, "role": "assistant", "status": "completed", "content": []obj{{"type": "output_text", "text": rep.Text, "annotations": []any{}}}}}
		for _, s := range pieces(rep.Text, rep.ChunkSize) {
			it.deltas = append(it.deltas, obj{"type": "response.output_text.delta", "item_id": id, "content_index": 0, "delta": s})
		}
		out = append(out, it)
	}
	for i, t := range rep.ToolCalls {
		id := fmt.Sprintf("fc_%d_%d", c.id, i)
		it := item{final: obj{"type": "function_call", "id": id, "call_id": c.callID(t, i), "name": t.Name, "arguments": t.arguments(), "status": "completed"}}
		for _, s := range pieces(t.arguments(), rep.ChunkSize) {
			it.deltas = append(it.deltas, obj{"type": "response.function_call_arguments.delta", "item_id": id, "delta": s})
		}
		it.deltas = append(it.deltas, obj{"type": "response.function_call_arguments.done", "item_id": id, "name": t.Name, "arguments": t.arguments()})
		out = append(out, it)
	}
	return out
}

func (c *call) response(rep Reply, status string, output []obj) obj {
	in, out := c.counts(rep)
	res := obj{
		"id": "resp_" + itoa(c.id), "object": "response", "created_at": 1760000000, "model": c.served(rep), "status": status,
		"error": nil, "incomplete_details": nil, "output": output,
	}
	if status != "in_progress" {
		res["usage"] = obj{
			"input_tokens": in, "output_tokens": out, "total_tokens": in + out,
			"input_tokens_details": obj{"cached_tokens": rep.CachedTokens}, "output_tokens_details": obj{"reasoning_tokens": 0},
		}
	}
	return res
}

// finished returns the complete response and its status.
func (c *call) finished(rep Reply) (res obj, event string) {
	output := []obj{}
	for _, it := range c.items(rep) {
		output = append(output, it.final)
	}
	if reason := incompleteReason(rep.Finish); reason != "" {
		res = c.response(rep, "incomplete", output)
		res["incomplete_details"] = obj{"reason": reason}
		return res, "response.incomplete"
	}
	if rep.Finish == "error" {
		res = c.response(rep, "failed", output)
		res["error"] = obj{"code": "server_error", "message": "The model produced an error."}
		return res, "response.failed"
	}
	return c.response(rep, "completed", output), "response.completed"
}

func responsesFrames(c *call, rep Reply) []frame {
	seq := 0
	event := func(o obj) string {
		o["sequence_number"] = seq
		seq++
		return sse(o["type"].(string), mustJSON(o))
	}
	out := []frame{{text: event(obj{"type": "response.created", "response": c.response(rep, "in_progress", []obj{})})}}
	for i, it := range c.items(rep) {
		started := obj{"type": it.final["type"], "id": it.final["id"], "status": "in_progress"}
		for _, k := range []string{"role", "call_id", "name"} {
			if v, ok := it.final[k]; ok {
				started[k] = v
			}
		}
		switch it.final["type"] {
		case "message":
			started["content"] = []obj{}
		case "function_call":
			started["arguments"] = ""
		case "reasoning":
			started["summary"] = []obj{}
		}
		out = append(out, frame{text: event(obj{"type": "response.output_item.added", "output_index": i, "item": started})})
		for _, d := range it.deltas {
			d["output_index"] = i
			out = append(out, frame{text: event(d), content: true})
		}
		out = append(out, frame{text: event(obj{"type": "response.output_item.done", "output_index": i, "item": it.final})})
	}
	res, name := c.finished(rep)
	return append(out, frame{text: event(obj{"type": name, "response": res}), terminal: true})
}

func responsesWhole(c *call, rep Reply) []byte {
	res, _ := c.finished(rep)
	return mustJSON(res)
}
