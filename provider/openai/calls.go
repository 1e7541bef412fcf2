package openai

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"understudy/llm"
)

// The bounds of what a host may make us hold.
const (
	maxCalls     = 128
	maxArguments = 4 << 20
)

var (
	errBrokenCall   = errors.New("the arguments of a tool call are not a JSON object")
	errTooManyCalls = fmt.Errorf("more than %d tool calls, or arguments of more than %d MB", maxCalls, maxArguments>>20)
)

// callDelta is a piece of a tool call.
type callDelta struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"` // a string; at some hosts the object itself
	} `json:"function"`
	Extra json.RawMessage `json:"extra_content"`
}

// calls assembles tool calls. Nothing of a call is given out before it is complete.
type calls struct {
	list     []*partialCall
	size     int // of all arguments
	overflow bool
}

type partialCall struct {
	index    int
	id, name string
	args     strings.Builder
	extra    json.RawMessage
}

// madeCall is a complete call with what came beside it.
type madeCall struct {
	call  llm.ToolCall
	extra json.RawMessage
}

func (c *calls) any() bool { return len(c.list) > 0 }

// add digests a piece and reports whether it brought anything.
func (c *calls) add(d callDelta) bool {
	p := c.find(d)
	if p == nil {
		return false
	}
	if p.id == "" {
		p.id = d.ID
	}
	if p.name == "" {
		p.name = d.Function.Name
	}
	if len(d.Extra) > 0 && string(d.Extra) != "null" {
		p.extra = d.Extra
	}
	args := argumentsOf(d.Function.Arguments)
	if c.size += len(args); c.size > maxArguments {
		c.overflow = true
		return false
	}
	p.args.WriteString(args)
	return args != "" || d.Function.Name != ""
}

// find returns the call that d continues, or a new one. An id that differs begins a new call even
// under an old index: some hosts number all of them 0.
func (c *calls) find(d callDelta) *partialCall {
	index := len(c.list) - 1
	if d.Index != nil {
		index = *d.Index
	}
	for i := len(c.list) - 1; i >= 0; i-- {
		p := c.list[i]
		if p.index == index && (d.ID == "" || p.id == "" || d.ID == p.id) {
			return p
		}
	}
	if d.ID == "" && d.Function.Name == "" && d.Index == nil {
		return nil
	}
	if len(c.list) >= maxCalls {
		c.overflow = true
		return nil
	}
	if d.Index == nil {
		index = len(c.list)
	}
	p := &partialCall{index: index}
	c.list = append(c.list, p)
	return p
}

func argumentsOf(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0, string(raw) == "null":
		return ""
	case raw[0] == '"':
		return stringOf(raw)
	}
	return string(raw)
}

// finish returns the calls. In an answer that was cut at its token limit a half call is dropped;
// in any other it is a failure.
func (c *calls) finish(cut bool) ([]madeCall, error) {
	if c.overflow {
		return nil, errTooManyCalls
	}
	var made []madeCall
	for _, p := range c.list {
		args := strings.TrimSpace(p.args.String())
		if args == "" {
			args = "{}"
		}
		if p.name == "" || args[0] != '{' || !json.Valid([]byte(args)) {
			if cut {
				continue
			}
			return nil, errBrokenCall
		}
		id := p.id
		if id == "" {
			id = "call_" + rand.Text()[:16]
		}
		made = append(made, madeCall{llm.ToolCall{ID: id, Name: p.name, Input: json.RawMessage(args)}, p.extra})
	}
	return made, nil
}

// signatures keeps what must come back with the calls, by their place.
func signatures(made []madeCall) json.RawMessage {
	t := thought{Signatures: map[int]json.RawMessage{}}
	for i, m := range made {
		if len(m.extra) > 0 {
			t.Signatures[i] = m.extra
		}
	}
	if len(t.Signatures) == 0 {
		return nil
	}
	raw, err := json.Marshal(t)
	if err != nil {
		return nil
	}
	return raw
}
