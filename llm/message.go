package llm

import (
	"context"
	"encoding/json"
	"iter"
)

// Role says who speaks a message.
type Role string

// The roles of a conversation. Tool results travel in a message of role RoleTool; providers map
// it to their own shape.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one turn of a conversation as models see it. Its JSON form is what transcripts store.
type Message struct {
	Role  Role   `json:"role"`
	Parts []Part `json:"parts"`
}

// Part is one piece of a message; exactly one field is set.
type Part struct {
	Text       string      `json:"text,omitempty"`
	Image      *Image      `json:"image,omitempty"`
	ToolCall   *ToolCall   `json:"toolCall,omitempty"`
	ToolResult *ToolResult `json:"toolResult,omitempty"`
	Reasoning  *Reasoning  `json:"reasoning,omitempty"`
}

// Image is picture bytes for a model. Providers that take no images get Name as a placeholder.
type Image struct {
	MediaType string `json:"mediaType"` // "image/png", "image/jpeg", "image/gif", "image/webp"
	Data      []byte `json:"data"`
	Name      string `json:"name,omitempty"`
}

// ToolCall is the model's wish to run a tool. ID pairs it with its ToolResult; a provider that
// did not write it may have to rewrite it to its own alphabet.
type ToolCall struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"` // a complete JSON object, never a fragment
}

// ToolResult answers the ToolCall with the same ID.
type ToolResult struct {
	ID      string `json:"id"`
	Name    string `json:"name,omitempty"`
	Text    string `json:"text"`
	IsError bool   `json:"isError,omitempty"`
}

// Reasoning is a provider's private thought block. Only the model family that wrote it (Origin)
// may ever see Opaque again; for everybody else the block does not exist (spec/failover.md §8.1).
type Reasoning struct {
	Origin ModelRef        `json:"origin"`
	Text   string          `json:"text,omitempty"`
	Opaque json.RawMessage `json:"opaque,omitempty"`
}

// Text returns a message of one text part.
func Text(role Role, text string) Message {
	return Message{Role: role, Parts: []Part{{Text: text}}}
}

// PlainText joins the text parts of m.
func (m Message) PlainText() string {
	if len(m.Parts) == 1 {
		return m.Parts[0].Text
	}
	var s string
	for _, p := range m.Parts {
		s += p.Text
	}
	return s
}

// HasImage reports whether any message carries an image.
func HasImage(ms []Message) bool {
	for _, m := range ms {
		for _, p := range m.Parts {
			if p.Image != nil {
				return true
			}
		}
	}
	return false
}

// Tool describes a function the model may call. Schema is a JSON Schema object.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage
}

// Request is one question to one model. It holds no credential and no address: both come with the
// attempt, so that nothing of one candidate can reach another (spec/failover.md §8.1).
type Request struct {
	Model     ModelRef
	System    string
	Messages  []Message
	Tools     []Tool
	MaxTokens int    // of the answer; 0 = the provider's default
	Thinking  string // "", "off", "minimal", "low", "medium", "high", "xhigh"
	// Strict tells that the selection allows no other model; it switches Anthropic's server-side
	// fallback off.
	Strict bool
	// CacheKey is a stable, opaque id of the conversation for providers that route by it.
	CacheKey string
	// Stateless asks for the same request without provider-side state (spec §6.1 session_expired).
	Stateless bool
	// Repair asks for the known repairs of a rejected transcript (spec §6.1 format).
	Repair bool
}

// Usage counts tokens as the provider reported them.
type Usage struct {
	Input       int `json:"input"`       // not counting the cached ones
	Output      int `json:"output"`      // reasoning included
	CacheRead   int `json:"cacheRead"`   // input tokens served from the provider's cache
	CacheWrite  int `json:"cacheWrite"`  // input tokens written to it
	ContextSize int `json:"contextSize"` // whole prompt of the last request
}

// Add returns the sum of both; ContextSize is the later one's.
func (u Usage) Add(v Usage) Usage {
	sum := Usage{
		Input: u.Input + v.Input, Output: u.Output + v.Output,
		CacheRead: u.CacheRead + v.CacheRead, CacheWrite: u.CacheWrite + v.CacheWrite,
		ContextSize: v.ContextSize,
	}
	if sum.ContextSize == 0 {
		sum.ContextSize = u.ContextSize
	}
	return sum
}

// Event is one step of a streamed answer; exactly one field is set.
type Event struct {
	Text      string     // visible text, to be appended
	Reasoning *Reasoning // a complete block of thought, to be kept with the answer
	ToolCall  *ToolCall  // a complete call
	Progress  bool       // thought or call arguments are arriving: content, though nothing to show yet
	Done      *Done      // the terminal event; a stream without one has failed
}

// Done closes a successful stream.
type Done struct {
	Stop  StopReason
	Usage Usage
	// Served is the model id that answered when the provider says so and it differs from the
	// requested one (Anthropic's server-side fallback); else "".
	Served string
}

// StopReason says why a successful answer ended.
type StopReason string

// The ways a successful answer ends. Refusals and errors are failures, not stop reasons.
const (
	StopEnd       StopReason = "end"
	StopToolUse   StopReason = "tool_use"
	StopMaxTokens StopReason = "max_tokens"
)

// Client asks one model API. Stream makes exactly one attempt: no retry, no wait, no other model.
// It yields events until Done, or ends with one error, which is always an *Error. The sequence
// must stop when ctx ends or the consumer does, and release the connection.
// A Client holds no credential and is safe for concurrent use.
type Client interface {
	Stream(ctx context.Context, cred Credential, req Request) iter.Seq2[Event, error]
}
