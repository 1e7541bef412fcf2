package openai

import (
	"encoding/json"
	"errors"
	"strings"

	"understudy/llm"
	"understudy/provider"
)

// responseEvent is what is read of an event of the Responses API.
type responseEvent struct {
	Type     string          `json:"type"`
	ItemID   string          `json:"item_id"`
	Delta    json.RawMessage `json:"delta"`
	Item     json.RawMessage `json:"item"`
	Response json.RawMessage `json:"response"`
	Error    json.RawMessage `json:"error"`
	Detail   json.RawMessage `json:"detail"`
	Message  json.RawMessage `json:"message"`
}

// response is the object that the last event brings, or a whole body.
type response struct {
	Object     string            `json:"object"`
	Status     string            `json:"status"`
	Error      json.RawMessage   `json:"error"`
	Output     []json.RawMessage `json:"output"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Usage struct {
		Input   int `json:"input_tokens"`
		Output  int `json:"output_tokens"`
		Details struct {
			Cached int `json:"cached_tokens"`
		} `json:"input_tokens_details"`
	} `json:"usage"`
}

type outputItem struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Content   []struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	} `json:"content"`
	Summary   []summaryPart `json:"summary"`
	Encrypted string        `json:"encrypted_content"`
}

// responsesDecoder assembles an answer of the Responses API.
type responsesDecoder struct {
	model   llm.ModelRef
	said    map[string]bool // ids of messages whose text came in deltas
	seen    int             // output items taken
	calls   []llm.ToolCall
	refusal strings.Builder
	spoke   bool
	final   *response
	bad     error
}

func newResponsesDecoder(model llm.ModelRef) *responsesDecoder {
	return &responsesDecoder{model: model, said: map[string]bool{}}
}

// event implements decoder.
func (d *responsesDecoder) event(data []byte) step {
	if data[0] != '{' {
		return step{}
	}
	var ev responseEvent
	if err := json.Unmarshal(data, &ev); err != nil && !isWrongType(err) {
		return step{fail: &provider.Evidence{Err: errBrokenEvent}}
	}
	var st step
	switch ev.Type {
	case "response.output_text.delta":
		if text := stringOf(ev.Delta); text != "" {
			d.said[ev.ItemID], d.spoke = true, true
			st.events = []llm.Event{{Text: text}}
		}
	case "response.refusal.delta":
		if d.refusal.Len() < maxEvidence {
			d.refusal.WriteString(stringOf(ev.Delta))
		}
		st.events = []llm.Event{{Progress: true}}
	case "response.output_item.done":
		d.take(ev.Item, &st)
	case "response.completed", "response.incomplete", "response.done":
		return d.closing(ev.Response, data)
	case "response.failed", "response.cancelled", "error":
		st.fail = &provider.Evidence{Event: clip(data), Message: "Provider finish_reason: error"}
	default:
		if isProgress(ev.Type) && stringOf(ev.Delta) != "" {
			st.events = []llm.Event{{Progress: true}}
		} else if isError(ev.Error) || (ev.Type == "" && (isError(ev.Detail) || isError(ev.Message))) {
			st.fail = &provider.Evidence{Event: clip(data)}
		}
	}
	return st
}

// isProgress reports whether events of a type carry thought or arguments.
func isProgress(kind string) bool {
	return strings.HasPrefix(kind, "response.reasoning") || kind == "response.function_call_arguments.delta"
}

// whole implements decoder.
func (d *responsesDecoder) whole(data []byte) step {
	var r response
	if err := json.Unmarshal(data, &r); (err != nil && !isWrongType(err)) || isError(r.Error) || (r.Object != "response" && r.Output == nil) {
		return step{fail: &provider.Evidence{Event: clip(data)}}
	}
	return d.closing(data, data)
}

// closing digests the final response object; evidence is what is classified if it is a failure.
func (d *responsesDecoder) closing(object json.RawMessage, evidence []byte) step {
	var r response
	if err := json.Unmarshal(object, &r); err != nil && !isWrongType(err) {
		return step{fail: &provider.Evidence{Err: errBrokenEvent}}
	}
	if isError(r.Error) || r.Status == "failed" || r.Status == "cancelled" {
		return step{fail: &provider.Evidence{Event: clip(evidence), Message: "Provider finish_reason: error"}}
	}
	if reason := r.Incomplete.Reason; reason != "" && failed(reason, false) {
		return step{fail: &provider.Evidence{Event: clip(evidence), Message: "Provider finish_reason: " + clipText(reason)}}
	}
	d.final = &r
	var st step
	for _, item := range r.Output[min(d.seen, len(r.Output)):] {
		d.take(item, &st)
	}
	rest := d.end()
	rest.events = append(st.events, rest.events...)
	return rest
}

// take digests one finished output item.
func (d *responsesDecoder) take(raw json.RawMessage, st *step) {
	var it outputItem
	if err := json.Unmarshal(raw, &it); err != nil && !isWrongType(err) {
		d.bad = errBrokenEvent
		return
	}
	d.seen++
	switch it.Type {
	case "message":
		for _, c := range it.Content {
			if c.Type == "output_text" && c.Text != "" && !d.said[it.ID] {
				d.spoke = true
				st.events = append(st.events, llm.Event{Text: c.Text})
			}
			if c.Type == "refusal" && d.refusal.Len() == 0 {
				d.refusal.WriteString(c.Refusal)
			}
		}
	case "reasoning":
		if r := d.reasoning(it); r != nil {
			st.events = append(st.events, llm.Event{Reasoning: r})
		}
	case "function_call":
		d.call(it)
		st.events = append(st.events, llm.Event{Progress: true})
	}
}

// reasoning keeps a thought; Opaque only if it is sealed, since nothing else can be sent back.
func (d *responsesDecoder) reasoning(it outputItem) *llm.Reasoning {
	r := &llm.Reasoning{Origin: d.model}
	for _, s := range it.Summary {
		r.Text += s.Text
	}
	if it.Encrypted != "" {
		r.Opaque = seal(it)
	}
	if r.Text == "" && r.Opaque == nil {
		return nil
	}
	return r
}

func (d *responsesDecoder) call(it outputItem) {
	args := strings.TrimSpace(it.Arguments)
	if args == "" {
		args = "{}"
	}
	switch {
	case len(d.calls) >= maxCalls || len(args) > maxArguments:
		d.bad = errTooManyCalls
	case it.Name == "" || it.CallID == "" || args[0] != '{' || !json.Valid([]byte(args)):
		d.bad = errBrokenCall
	default:
		d.calls = append(d.calls, llm.ToolCall{ID: it.CallID, Name: it.Name, Input: json.RawMessage(args)})
	}
}

// complete implements decoder.
func (d *responsesDecoder) complete() bool { return d.final != nil }

// end implements decoder.
func (d *responsesDecoder) end() step {
	if d.final == nil {
		return step{}
	}
	cut := d.final.Incomplete.Reason != ""
	switch {
	case d.bad != nil && (!cut || !errors.Is(d.bad, errBrokenCall)):
		return step{fail: &provider.Evidence{Err: d.bad}}
	case d.refusal.Len() > 0 && !d.spoke && len(d.calls) == 0:
		return step{fail: &provider.Evidence{Event: refusalBody(d.refusal.String())}}
	}
	var st step
	for i := range d.calls {
		st.events = append(st.events, llm.Event{ToolCall: &d.calls[i]})
	}
	u := d.final.Usage
	cached := min(max(u.Details.Cached, 0), max(u.Input, 0))
	st.done = &llm.Done{Stop: llm.StopEnd, Usage: llm.Usage{
		Input: max(u.Input, 0) - cached, Output: max(u.Output, 0), CacheRead: cached, ContextSize: max(u.Input, 0),
	}}
	switch {
	case cut:
		st.done.Stop = llm.StopMaxTokens
	case len(d.calls) > 0:
		st.done.Stop = llm.StopToolUse
	}
	return st
}

func isWrongType(err error) bool {
	var wrong *json.UnmarshalTypeError
	return errors.As(err, &wrong)
}
