package llm

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// checkAnthropic says why the API would refuse q; nil = it would not.
func checkAnthropic(s *Server, r *Request, q anthropicRequest) *refusal {
	switch {
	case len(r.Header["Anthropic-Version"]) == 0:
		return badRequest("anthropic-version", "header is required")
	case q.Model == "":
		return badRequest("model", "Field required")
	case q.MaxTokens < 1:
		return badRequest("max_tokens", "Field required")
	case len(q.Messages) == 0:
		return badRequest("messages", "at least one message is required")
	case len(q.Fallbacks) > 0 && !r.hasBeta(fallbackBeta):
		return badRequest("fallbacks", "Extra inputs are not permitted")
	case q.Thinking.Type == "enabled" && q.Thinking.BudgetTokens < 1024:
		return badRequest("thinking.enabled.budget_tokens", "Input should be greater than or equal to 1024")
	case q.Thinking.Type == "enabled" && q.Thinking.BudgetTokens >= q.MaxTokens:
		return badRequest("", "`max_tokens` must be greater than `thinking.budget_tokens`.")
	}
	if s.Strict {
		if bad := unknownFields(r.Body, anthropicFields()); bad != nil {
			return badRequest(bad.param, "Extra inputs are not permitted")
		}
	}
	if bad := checkAnthropicTools(q.Tools); bad != nil {
		return bad
	}
	t := transcript{server: s, request: r, query: q, used: map[string]bool{}}
	return t.check()
}

func checkAnthropicTools(tools []anthropicTool) *refusal {
	seen := map[string]bool{}
	for i, t := range tools {
		at := fmt.Sprintf("tools.%d.custom", i)
		switch {
		case !isToolName(t.Name, 128):
			return badRequest(at+".name", "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'")
		case t.InputSchema.Type != "object":
			return badRequest(at+".input_schema.type", "Input should be 'object'")
		case seen[t.Name]:
			return badRequest("tools", "Tool names must be unique.")
		}
		seen[t.Name] = true
	}
	return nil
}

// transcript checks the messages of a request, one after the other.
type transcript struct {
	server  *Server
	request *Request
	query   anthropicRequest
	open    []string // calls of the message before
	results []string // answered calls of the message
	used    map[string]bool
	marks   int // cache breakpoints
	first   string
}

func (t *transcript) check() *refusal {
	if system, err := anthropicContent(t.query.System); err == nil {
		for i, b := range system {
			if len(t.query.System) > 0 && strings.TrimSpace(b.Text) == "" && b.Type == "text" {
				return badRequest(fmt.Sprintf("system.%d", i), "text content blocks must be non-empty")
			}
			t.mark(b.CacheControl)
		}
	}
	for _, tool := range t.query.Tools {
		t.mark(tool.CacheControl)
	}
	before := ""
	for i, m := range t.query.Messages {
		at := fmt.Sprintf("messages.%d", i)
		if bad := t.turn(at, before, m); bad != nil {
			return bad
		}
		if bad := t.message(at, m); bad != nil {
			return bad
		}
		before = m.Role
	}
	return t.end(before)
}

func (t *transcript) mark(control json.RawMessage) {
	if len(control) > 0 && string(control) != "null" {
		t.marks++
	}
}

// turn checks who speaks.
func (t *transcript) turn(at, before string, m anthropicMessage) *refusal {
	switch {
	case m.Role != "user" && m.Role != "assistant":
		return badRequest("messages", `Unexpected role "`+m.Role+`". Allowed roles are "user" or "assistant".`)
	case before == "" && m.Role != "user":
		return badRequest("messages", "first message must use the \"user\" role")
	case t.server.Strict && before == m.Role:
		return badRequest("messages", "roles must alternate between \"user\" and \"assistant\", but found multiple \""+m.Role+"\" roles in a row")
	case len(t.open) > 0 && m.Role != "user":
		return t.unanswered(at)
	}
	return nil
}

func (t *transcript) unanswered(at string) *refusal {
	return badRequest(at, "`tool_use` ids were found without `tool_result` blocks immediately after: "+strings.Join(t.open, ", ")+". Each `tool_use` block must have a corresponding `tool_result` block in the next message.")
}

// message checks the blocks of one message.
func (t *transcript) message(at string, m anthropicMessage) *refusal {
	blocks, err := m.blocks()
	if err != nil || len(blocks) == 0 {
		return badRequest(at+".content", "all messages must have non-empty content")
	}
	calls, answered := t.open, 0
	t.open, t.results = nil, nil
	for i, b := range blocks {
		where := fmt.Sprintf("%s.content.%d", at, i)
		t.mark(b.CacheControl)
		var bad *refusal
		if m.Role == "assistant" {
			if i == 0 {
				t.first = b.Type
			}
			bad = t.said(where, b)
		} else {
			if b.Type == "tool_result" {
				if slices.Contains(t.results, b.ToolUseID) {
					return badRequest(where, "each tool_use must have a single result. Found multiple `tool_result` blocks with id: "+b.ToolUseID)
				}
				t.results = append(t.results, b.ToolUseID)
				if !slices.Contains(calls, b.ToolUseID) {
					return badRequest(where, "unexpected `tool_use_id` found in `tool_result` blocks: "+b.ToolUseID+". Each `tool_result` block must have a corresponding `tool_use` block in the previous message.")
				}
				if i != answered {
					return badRequest(where, "`tool_result` blocks must come first")
				}
				answered++
			}
			bad = t.asked(where, b)
		}
		if bad != nil {
			return bad
		}
	}
	if answered < len(calls) {
		t.open = calls[answered:]
		return t.unanswered(at)
	}
	return nil
}

// said checks a block of the assistant.
func (t *transcript) said(at string, b anthropicBlock) *refusal {
	switch b.Type {
	case "text":
		return checkText(at, b)
	case "tool_use":
		var input map[string]any
		switch {
		case !anthropicID(b.ID):
			return badRequest(at+".tool_use.id", "String should match pattern '^[a-zA-Z0-9_-]+$'")
		case t.used[b.ID]:
			return badRequest("messages", "`tool_use` ids must be unique")
		case !isToolName(b.Name, 128):
			return badRequest(at+".tool_use.name", "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'")
		case json.Unmarshal(b.Input, &input) != nil || input == nil:
			return badRequest(at+".tool_use.input", "Input should be a valid dictionary")
		}
		t.used[b.ID] = true
		t.open = append(t.open, b.ID)
	case "thinking":
		if b.Signature != signature(t.query.Model, b.Thinking) {
			return badRequest(at, "Invalid `signature` in `thinking` block")
		}
	case "redacted_thinking":
		if b.Data == "" {
			return badRequest(at+".redacted_thinking.data", "Field required")
		}
	case "fallback":
		if !t.request.hasBeta(fallbackBeta) {
			return unexpectedTag(at, b.Type)
		}
	default:
		return unexpectedTag(at, b.Type)
	}
	return nil
}

// asked checks a block of the user.
func (t *transcript) asked(at string, b anthropicBlock) *refusal {
	switch b.Type {
	case "text":
		return checkText(at, b)
	case "image":
		switch {
		case t.server.NoImages:
			return badRequest(at, "this model does not support image input")
		case b.Source.Type != "base64" || len(b.Source.Data) == 0:
			return badRequest(at+".image.source", "Field required")
		case !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, b.Source.MediaType):
			return badRequest(at+".image.source.base64.media_type", "Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'")
		case !looksLike(b.Source.MediaType, b.Source.Data):
			return badRequest(at+".image.source.base64", "The image was specified using the "+b.Source.MediaType+" media type, but does not appear to be one")
		case base64.StdEncoding.EncodedLen(len(b.Source.Data)) > maxImage:
			return badRequest(at+".image.source.base64", fmt.Sprintf("image exceeds 5 MB maximum: %d bytes > %d bytes", base64.StdEncoding.EncodedLen(len(b.Source.Data)), maxImage))
		}
	case "tool_result":
	default:
		return unexpectedTag(at, b.Type)
	}
	return nil
}

// end checks what can be told only when everything was read.
func (t *transcript) end(last string) *refusal {
	switch {
	case len(t.open) > 0:
		return t.unanswered(fmt.Sprintf("messages.%d", len(t.query.Messages)-1))
	case t.server.Strict && last != "user":
		return badRequest("", "This model does not support assistant message prefill. The conversation must end with a user message.")
	case t.marks > 4:
		return badRequest("", fmt.Sprintf("A maximum of 4 blocks with cache_control may be provided. Found %d.", t.marks))
	case t.query.Thinking.Type == "enabled" && t.mustThink():
		return badRequest("", "Expected `thinking` or `redacted_thinking`, but found `"+t.first+"`. When `thinking` is enabled, a final `assistant` message must start with a thinking block")
	}
	return nil
}

// mustThink reports whether the transcript ends in tool results for calls made without thought.
func (t *transcript) mustThink() bool {
	blocks, err := t.query.Messages[len(t.query.Messages)-1].blocks()
	return err == nil && len(blocks) > 0 && blocks[0].Type == "tool_result" && t.first != "thinking" && t.first != "redacted_thinking"
}

func checkText(at string, b anthropicBlock) *refusal {
	if strings.TrimSpace(b.Text) == "" {
		return badRequest(at, "text content blocks must contain non-whitespace text")
	}
	return nil
}

func unexpectedTag(at, tag string) *refusal {
	return badRequest(at, "Input tag '"+tag+"' found using 'type' does not match any of the expected tags")
}

// anthropicID reports whether s matches ^[a-zA-Z0-9_-]+$.
func anthropicID(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool { return !isAlnum(c) && c != '_' && c != '-' })
}

func anthropicFields() []string {
	return []string{
		"model", "max_tokens", "messages", "stream", "system", "tools", "tool_choice", "thinking", "output_config",
		"fallbacks", "metadata", "stop_sequences", "temperature", "top_k", "top_p", "service_tier", "cache_control",
	}
}
