package anthropic

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"understudy/llm"
)

// answer assembles one answer from its events. It does no I/O.
//
// Events leave in the order of the blocks. From the first tool call on they are held back until the
// answer is complete: a broken or refused answer thus yields no call, and when another model takes
// over in the middle, the calls of the first can still be dropped, as the API demands.
type answer struct {
	model  llm.ModelRef
	open   map[int]*openBlock
	held   []llm.Event
	began  bool   // an event of the answer has come
	spoken bool   // text that is more than white space
	stop   string // the API's stop reason
	served string // the model that took over
	bad    error  // a call that cannot be used
	usage  llm.Usage
}

// openBlock is a block whose end has not come.
type openBlock struct {
	block
	input     strings.Builder // the arguments of a call
	text      strings.Builder // thought
	signature strings.Builder // of the thought
}

func newAnswer(model llm.ModelRef) *answer {
	return &answer{model: model, open: map[int]*openBlock{}}
}

// take applies one event and returns what leaves.
func (a *answer) take(e event) []llm.Event {
	switch e.Type {
	case "message_start":
		a.count(e.Message.Usage)
	case "content_block_start":
		a.began = true
		return a.start(e.Index, e.Block)
	case "content_block_delta":
		a.began = true
		return a.grow(e.Index, e.Delta)
	case "content_block_stop":
		return a.end(e.Index)
	case "message_delta":
		a.count(e.Usage)
		if e.Delta.StopReason != "" {
			a.stop = e.Delta.StopReason
		}
	default: // ping and whatever is new
		return nil
	}
	a.began = true
	return nil
}

// start begins a block. Text in it leaves at once.
func (a *answer) start(index int, raw json.RawMessage) []llm.Event {
	b := &openBlock{}
	if decode(raw, &b.block) != nil {
		return nil
	}
	b.text.WriteString(b.Thinking)
	b.signature.WriteString(b.Signature)
	a.open[index] = b
	switch b.Type {
	case "text":
		return a.say(b.Text)
	case blockFallback:
		a.takeOver(b.To.Model)
		delete(a.open, index)
		return a.pass(llm.Event{Reasoning: &llm.Reasoning{Origin: a.model, Opaque: slices.Clone(raw)}})
	}
	return progress()
}

// takeOver notes that another model goes on; calls of the one before are void.
func (a *answer) takeOver(model string) {
	if model != "" {
		a.served = model
	}
	a.held = slices.DeleteFunc(a.held, func(e llm.Event) bool { return e.ToolCall != nil })
	a.bad = nil
	clear(a.open)
}

// grow continues a block.
func (a *answer) grow(index int, d delta) []llm.Event {
	switch b := a.open[index]; {
	case d.Type == "text_delta":
		return a.say(d.Text)
	case b == nil: // nothing to continue
	case d.Type == "input_json_delta":
		b.input.WriteString(d.PartialJSON)
	case d.Type == "thinking_delta":
		b.text.WriteString(d.Thinking)
	case d.Type == "signature_delta":
		b.signature.WriteString(d.Signature)
	}
	return progress()
}

// end closes a block. A call that cannot be used is noted in bad.
func (a *answer) end(index int) []llm.Event {
	b := a.open[index]
	delete(a.open, index)
	if b == nil {
		return nil
	}
	switch b.Type {
	case "tool_use":
		call, err := b.call()
		if err != nil {
			a.bad = err
			return nil
		}
		return a.pass(llm.Event{ToolCall: call})
	case blockThinking:
		text := b.text.String()
		return a.pass(a.thought(text, opaque{Type: blockThinking, Thinking: text, Signature: b.signature.String()}))
	case blockRedacted:
		return a.pass(a.thought("", opaque{Type: blockRedacted, Data: b.Data}))
	}
	return nil
}

// call returns the finished call of a tool_use block.
func (b *openBlock) call() (*llm.ToolCall, error) {
	input := json.RawMessage(strings.TrimSpace(b.input.String()))
	if len(input) == 0 {
		input = b.Input
	}
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(input, &object); err != nil || object == nil || b.Name == "" || b.ID == "" {
		return nil, errBadCall
	}
	return &llm.ToolCall{ID: b.ID, Name: b.Name, Input: input}, nil
}

// thought returns a finished block of thought. Without a signature it cannot be sent back.
func (a *answer) thought(text string, o opaque) llm.Event {
	r := &llm.Reasoning{Origin: a.model, Text: text}
	if o.Signature != "" || o.Data != "" {
		raw, err := json.Marshal(o)
		if err == nil {
			r.Opaque = raw
		}
	}
	return llm.Event{Reasoning: r}
}

func (a *answer) say(text string) []llm.Event {
	if text == "" {
		return nil
	}
	a.spoken = a.spoken || strings.TrimSpace(text) != ""
	return a.pass(llm.Event{Text: text})
}

// pass lets an event leave, or holds it behind a call; then only its arrival is told.
func (a *answer) pass(e llm.Event) []llm.Event {
	if e.ToolCall != nil || len(a.held) > 0 {
		a.held = append(a.held, e)
		return progress()
	}
	return []llm.Event{e}
}

func progress() []llm.Event { return []llm.Event{{Progress: true}} }

// count takes over what u knows.
func (a *answer) count(u usage) {
	for _, f := range []struct {
		to   *int
		from *int
	}{
		{&a.usage.Input, u.Input},
		{&a.usage.Output, u.Output},
		{&a.usage.CacheRead, u.CacheRead},
		{&a.usage.CacheWrite, u.CacheWrite},
	} {
		if f.from != nil && *f.from >= 0 {
			*f.to = *f.from
		}
	}
	a.usage.ContextSize = a.usage.Input + a.usage.CacheRead + a.usage.CacheWrite
	for _, it := range u.Iterations {
		if it.Type == "fallback_message" && it.Model != "" {
			a.served = it.Model
		}
	}
}

// finish closes what is still open. The error is that of a call which cannot be used; in an answer
// cut off by its limit such a call is simply left out.
func (a *answer) finish() error {
	for _, index := range slices.Sorted(maps.Keys(a.open)) {
		if b := a.open[index]; b.Type == "tool_use" {
			a.end(index)
		}
	}
	if a.stop == "max_tokens" {
		return nil
	}
	return a.bad
}

func (a *answer) calls() bool {
	return slices.ContainsFunc(a.held, func(e llm.Event) bool { return e.ToolCall != nil })
}

// done returns the terminal event of an answer that holds something.
func (a *answer) done() llm.Event {
	d := &llm.Done{Stop: llm.StopEnd, Usage: a.usage}
	switch {
	case a.stop == "max_tokens", a.stop == "model_context_window_exceeded":
		d.Stop = llm.StopMaxTokens
	case a.calls():
		d.Stop = llm.StopToolUse
	}
	if a.served != a.model.Model {
		d.Served = a.served
	}
	return llm.Event{Done: d}
}
