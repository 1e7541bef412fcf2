package llm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// anthropicProtocol is Anthropic's Messages API.
//
// Reply.Served plays its server-side fallback: the requested model declines, and the named one
// answers if the request allows that, else the refusal stands. Reply.Finish "content_filter" is a
// refusal that nobody rescues.
func anthropicProtocol() *protocol {
	return &protocol{
		suffix: "/v1/messages", key: anthropicKey, parse: parseAnthropic, refuse: refuseAnthropic,
		frames: anthropicFrames, whole: anthropicWhole, ping: sse("ping", []byte(`{"type":"ping"}`)),
		errorFrame: func(body string) string { return sse("error", []byte(body)) },
	}
}

// fallbackBeta is the beta under which `fallbacks` exists.
const fallbackBeta = "server-side-fallback-2026-07-01"

func anthropicKey(h http.Header) string {
	if key := h.Get("X-Api-Key"); key != "" {
		return key
	}
	return bearer(h)
}

type anthropicRequest struct {
	Model     string             `json:"model"`
	MaxTokens int                `json:"max_tokens"`
	Stream    bool               `json:"stream"`
	System    json.RawMessage    `json:"system"`
	Messages  []anthropicMessage `json:"messages"`
	Tools     []anthropicTool    `json:"tools"`
	Fallbacks json.RawMessage    `json:"fallbacks"`
	Thinking  struct {
		Type         string `json:"type"`
		BudgetTokens int    `json:"budget_tokens"`
	} `json:"thinking"`
}

type anthropicTool struct {
	Name        string `json:"name"`
	InputSchema struct {
		Type string `json:"type"`
	} `json:"input_schema"`
	CacheControl json.RawMessage `json:"cache_control"`
}

type anthropicMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type anthropicBlock struct {
	Type         string          `json:"type"`
	Text         string          `json:"text"`
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Input        json.RawMessage `json:"input"`
	ToolUseID    string          `json:"tool_use_id"`
	Thinking     string          `json:"thinking"`
	Signature    string          `json:"signature"`
	Data         string          `json:"data"`
	CacheControl json.RawMessage `json:"cache_control"`
	Source       struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      []byte `json:"data"`
	} `json:"source"`
}

// blocks reads content in both forms.
func (m anthropicMessage) blocks() ([]anthropicBlock, error) {
	return anthropicContent(m.Content)
}

func anthropicContent(raw json.RawMessage) ([]anthropicBlock, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []anthropicBlock{{Type: "text", Text: text}}, nil
	}
	var blocks []anthropicBlock
	if err := json.Unmarshal(raw, &blocks); err != nil {
		return nil, fmt.Errorf("reading content: %w", err)
	}
	return blocks, nil
}

func parseAnthropic(s *Server, r *Request) (*call, *refusal) {
	var q anthropicRequest
	if err := json.Unmarshal(r.Body, &q); err != nil {
		return nil, badRequest("", "The request body is not valid JSON.")
	}
	r.Model, r.Stream = q.Model, q.Stream
	c := &call{Request: r}
	if system, err := anthropicContent(q.System); err == nil {
		for _, b := range system {
			c.system += b.Text
		}
	}
	for _, m := range q.Messages {
		if m.Role != "user" {
			continue
		}
		blocks, _ := m.blocks()
		text := ""
		for _, b := range blocks {
			text += b.Text
		}
		if text != "" {
			r.LastUser = text
		}
	}
	return c, checkAnthropic(s, r, q)
}

// allowsFallback reports whether the request asks for a server-side fallback.
func (c *call) allowsFallback() bool {
	var q struct {
		Fallbacks string `json:"fallbacks"`
	}
	return json.Unmarshal(c.Body, &q) == nil && q.Fallbacks == "default"
}

// hasBeta reports whether a request names a beta.
func (r *Request) hasBeta(name string) bool {
	for _, line := range http.Header(r.Header).Values("Anthropic-Beta") {
		if slices.Contains(strings.Split(strings.ReplaceAll(line, " ", ""), ","), name) {
			return true
		}
	}
	return false
}

// refuseAnthropic writes Anthropic's error object, in its own words where the core's are OpenAI's.
func refuseAnthropic(r *refusal) []byte {
	kind, message := r.kind, r.message
	switch r.status {
	case http.StatusUnauthorized:
		kind, message = "authentication_error", "invalid x-api-key"
	case http.StatusNotFound:
		kind = "not_found_error"
		if _, rest, ok := strings.Cut(message, "The model `"); ok {
			model, _, _ := strings.Cut(rest, "`")
			message = "model: " + model
		}
	case http.StatusRequestEntityTooLarge:
		kind, message = "request_too_large", "Request exceeds the maximum size"
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable:
		kind, message = "api_error", "Internal server error"
	}
	if r.param != "" {
		message = r.param + ": " + message
	}
	return mustJSON(obj{"type": "error", "error": obj{"type": kind, "message": message}, "request_id": "req_emulated"})
}
