package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"understudy/llm"
	"understudy/provider"
)

// chunk is a chunk of a stream, or a whole completion. Fields of hosts that differ stay raw.
type chunk struct {
	Error   json.RawMessage `json:"error"`
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	XGroq   struct {
		Usage *usage `json:"usage"`
	} `json:"x_groq"`

	// What hosts put into an event that is an error without an "error" member.
	Object  string          `json:"object"`
	Type    string          `json:"type"`
	Message json.RawMessage `json:"message"`
	Detail  json.RawMessage `json:"detail"`
}

func (c chunk) isError() bool {
	return isError(c.Error) || (len(c.Choices) == 0 && c.Usage == nil &&
		(c.Object == "error" || c.Type == "error" || isError(c.Message) || isError(c.Detail)))
}

type choice struct {
	Index        int             `json:"index"`
	Delta        delta           `json:"delta"`
	Message      delta           `json:"message"`
	FinishReason string          `json:"finish_reason"`
	Error        json.RawMessage `json:"error"`
	Usage        *usage          `json:"usage"`
}

type delta struct {
	Content          json.RawMessage `json:"content"`
	Refusal          string          `json:"refusal"`
	ReasoningContent string          `json:"reasoning_content"`
	Reasoning        json.RawMessage `json:"reasoning"` // a string; at some hosts an object
	ToolCalls        []callDelta     `json:"tool_calls"`
}

type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	CacheHit         int `json:"prompt_cache_hit_tokens"`
	Details          struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func (u *usage) tokens() llm.Usage {
	if u == nil {
		return llm.Usage{}
	}
	cached := min(max(u.Details.Cached, u.CacheHit, 0), max(u.PromptTokens, 0))
	return llm.Usage{
		Input: max(u.PromptTokens, 0) - cached, Output: max(u.CompletionTokens, 0),
		CacheRead: cached, ContextSize: max(u.PromptTokens, 0),
	}
}

// chatDecoder assembles an answer of Chat Completions.
type chatDecoder struct {
	model   llm.ModelRef
	calls   calls
	thought strings.Builder
	refusal strings.Builder
	spoke   bool
	finish  string
	last    []byte // the chunk that brought finish
	usage   *usage
}

func newChatDecoder(model llm.ModelRef) *chatDecoder { return &chatDecoder{model: model} }

// event implements decoder.
func (d *chatDecoder) event(data []byte) step {
	if data[0] != '{' {
		return step{} // a ping in a data line
	}
	c, ok := decodeChunk(data)
	if !ok {
		return step{fail: &provider.Evidence{Err: errBrokenEvent}}
	}
	if c.isError() {
		return step{fail: &provider.Evidence{Event: clip(data)}}
	}
	d.note(c)
	var st step
	for _, ch := range c.Choices {
		if ch.Index != 0 {
			continue
		}
		if isError(ch.Error) {
			st.fail = &provider.Evidence{Event: clip(data), Message: messageOf(ch.Error)}
			return st
		}
		d.add(ch.Delta, &st)
		if ch.FinishReason != "" && d.finish == "" {
			d.finish, d.last = ch.FinishReason, clip(data)
		}
		if failed(ch.FinishReason, d.spoke || d.calls.any()) {
			st.fail = d.badFinish()
			return st
		}
	}
	return st
}

// whole implements decoder.
func (d *chatDecoder) whole(data []byte) step {
	c, ok := decodeChunk(data)
	if !ok || c.isError() || len(c.Choices) == 0 {
		return step{fail: &provider.Evidence{Event: clip(data)}}
	}
	d.note(c)
	ch := c.Choices[0]
	if isError(ch.Error) {
		return step{fail: &provider.Evidence{Event: clip(data), Message: messageOf(ch.Error)}}
	}
	var st step
	d.add(ch.Message, &st)
	d.finish, d.last = ch.FinishReason, clip(data)
	if d.finish == "" {
		d.finish = "stop"
	}
	if failed(d.finish, d.spoke || d.calls.any()) {
		return step{fail: d.badFinish()}
	}
	rest := d.end()
	rest.events = append(st.events, rest.events...)
	return rest
}

func (d *chatDecoder) note(c chunk) {
	for _, u := range []*usage{c.Usage, c.XGroq.Usage} {
		if u != nil {
			d.usage = u
		}
	}
	if len(c.Choices) > 0 && c.Choices[0].Usage != nil {
		d.usage = c.Choices[0].Usage
	}
}

// add digests one delta.
func (d *chatDecoder) add(x delta, st *step) {
	text, thinking := contentOf(x.Content)
	thinking += x.ReasoningContent
	if x.ReasoningContent == "" { // hosts that send both send the same
		thinking += stringOf(x.Reasoning)
	}
	if thinking != "" && d.thought.Len() < maxEvent {
		d.thought.WriteString(thinking)
	}
	if x.Refusal != "" && d.refusal.Len() < maxEvidence {
		d.refusal.WriteString(x.Refusal)
	}
	moved := thinking != "" || x.Refusal != ""
	for _, tc := range x.ToolCalls {
		moved = d.calls.add(tc) || moved
	}
	if text != "" {
		if d.thought.Len() > 0 && !d.spoke {
			st.events = append(st.events, d.takeThought(nil))
		}
		d.spoke = true
		st.events = append(st.events, llm.Event{Text: text})
	} else if moved {
		st.events = append(st.events, llm.Event{Progress: true})
	}
}

func (d *chatDecoder) takeThought(opaque json.RawMessage) llm.Event {
	r := &llm.Reasoning{Origin: d.model, Text: d.thought.String(), Opaque: opaque}
	d.thought.Reset()
	return llm.Event{Reasoning: r}
}

// complete implements decoder.
func (d *chatDecoder) complete() bool { return d.finish != "" }

// end implements decoder. A [DONE] without a finish reason completes an answer too.
func (d *chatDecoder) end() step {
	if d.refusal.Len() > 0 && !d.spoke && !d.calls.any() {
		return step{fail: &provider.Evidence{Event: refusalBody(d.refusal.String())}}
	}
	stop := stopReason(d.finish)
	made, err := d.calls.finish(stop == llm.StopMaxTokens)
	if err != nil {
		return step{fail: &provider.Evidence{Err: err}}
	}
	var st step
	if opaque := signatures(made); d.thought.Len() > 0 || opaque != nil {
		st.events = append(st.events, d.takeThought(opaque))
	}
	for _, m := range made {
		st.events = append(st.events, llm.Event{ToolCall: &m.call})
	}
	if len(made) > 0 && stop == llm.StopEnd {
		stop = llm.StopToolUse
	}
	st.done = &llm.Done{Stop: stop, Usage: d.usage.tokens()}
	return st
}

func (d *chatDecoder) badFinish() *provider.Evidence {
	return &provider.Evidence{Event: d.last, Message: "Provider finish_reason: " + clipText(d.finish)}
}

// errBrokenEvent is an event that is no JSON: what came is cut off or is not this API.
var errBrokenEvent = errors.New("unexpected EOF: an event of the stream is not JSON")

// decodeChunk is lenient: a field of an unexpected type does not make the rest unreadable.
func decodeChunk(data []byte) (chunk, bool) {
	var c chunk
	err := json.Unmarshal(data, &c)
	var wrongType *json.UnmarshalTypeError
	return c, err == nil || errors.As(err, &wrongType)
}

// isError reports whether an "error" member says that there is one: some hosts send null, false or
// an empty value with every chunk.
func isError(raw json.RawMessage) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", "false", `""`, "{}", "[]", "0":
		return false
	}
	return true
}

func messageOf(raw json.RawMessage) string {
	var e struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(raw, &e)
	return clipText(e.Message)
}

func clipText(s string) string { return s[:min(len(s), 500)] }

func stringOf(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

// contentOf reads content as a string or as a list of parts.
func contentOf(raw json.RawMessage) (text, thinking string) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '[' {
		return stringOf(raw), ""
	}
	var parts []struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		Thinking json.RawMessage `json:"thinking"`
	}
	_ = json.Unmarshal(raw, &parts)
	for _, p := range parts {
		if p.Type == "thinking" {
			inner, _ := contentOf(p.Thinking)
			thinking += inner
			continue
		}
		text += p.Text
	}
	return text, thinking
}

// refusalBody is a refusal that came in pieces, in the form in which it comes whole.
func refusalBody(text string) []byte {
	quoted, err := json.Marshal(text)
	if err != nil {
		return nil
	}
	return []byte(`{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":null,"refusal":` +
		string(quoted) + `},"finish_reason":"stop"}]}`)
}
