package classify

import "bytes"

// answer reads the keys under which APIs put an answer. It looks whether there is text or a tool
// call and why the answer ended; it never reads what the text says (spec/failover.md §6, principle 3).
func (r *report) answer(key []byte, v value, depth int) {
	switch string(key) {
	case "choices", "candidates":
		for e := range elements(v.raw) {
			r.choice(e.raw, depth)
		}
	case "output":
		if v.kind == kindObject { // Bedrock Converse, DashScope
			r.object(v.raw, depth+1, false)
			return
		}
		for e := range elements(v.raw) { // Responses
			r.turn(e.raw)
		}
		r.answered = r.answered || hasText(v)
	case "result", "item", "contentblock":
		if v.kind == kindObject {
			r.turn(v.raw)
		}
	case "content", "text", "toolcalls", "delta", "completion", "generation":
		r.content(v)
	case "stopreason", "finishreason", "donereason":
		r.ended(v)
	case "promptfeedback":
		r.refused = r.refused || member(v.raw, "blockReason").filled() // whatever the reason, the prompt was
	case "incompletedetails":
		r.ended(member(v.raw, "reason"))
	}
}

// choice reads one of several answers.
func (r *report) choice(obj []byte, depth int) {
	for k, v := range members(obj) {
		switch string(k) {
		case "message", "delta", "content":
			if v.kind == kindObject {
				r.turn(v.raw)
			} else {
				r.content(v)
			}
		case "text":
			r.content(v)
		case "finish_reason", "finishReason":
			r.ended(v)
		case "error":
			r.errorMember(max(r.n-1, 0), v, depth, false)
		}
	}
}

// turn reads one message, delta or output item.
func (r *report) turn(obj []byte) {
	for k, v := range members(obj) {
		switch string(k) {
		case "content", "parts", "text", "response":
			r.content(v)
		case "refusal":
			r.refused = r.refused || hasText(v)
		case "tool_calls", "function_call", "functionCall", "toolUse":
			r.answered = r.answered || v.filled()
		case "type":
			r.answered = r.answered || isCall(v)
		case "stop_reason", "finish_reason":
			r.ended(v)
		}
	}
}

// content reads text or a list of blocks.
func (r *report) content(v value) {
	switch v.kind {
	case kindString:
		r.answered = r.answered || hasText(v)
	case kindObject:
		r.turn(v.raw)
	case kindArray:
		for e := range elements(v.raw) {
			if e.kind == kindObject && member(e.raw, "thought").kind != kindTrue { // Gemini's reasoning is no answer
				r.turn(e.raw)
			}
		}
	}
}

// ended notes a finish reason.
func (r *report) ended(v value) {
	if v.kind == kindString && len(v.raw) > 0 && len(v.raw) <= 48 {
		r.finish = v.raw
	}
}

func isTurn(obj []byte) bool {
	return member(obj, "role").kind != kindNone || member(obj, "content").kind != kindNone
}

func isCall(v value) bool {
	return bytes.HasSuffix(v.raw, []byte("_call")) || string(v.raw) == "tool_use" || string(v.raw) == "function"
}

func hasText(v value) bool { return v.kind == kindString && len(bytes.TrimSpace(v.text())) > 0 }
