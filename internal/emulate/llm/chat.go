package llm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// chatProtocol is OpenAI's Chat Completions, which most hosts are compatible with.
func chatProtocol() *protocol {
	return &protocol{
		suffix: "/chat/completions", key: bearer, parse: parseChat, refuse: refuseOpenAI,
		frames: chatFrames, whole: chatWhole, ping: ": ping\n\n",
		errorFrame: func(body string) string { return sse("", []byte(body)) },
	}
}

type chatRequest struct {
	Model         string        `json:"model"`
	Messages      []chatMessage `json:"messages"`
	Stream        bool          `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Tools []struct {
		Type     string `json:"type"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
}

type chatMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

func parseChat(s *Server, r *Request) (*call, *refusal) {
	var q chatRequest
	if err := json.Unmarshal(r.Body, &q); err != nil {
		return nil, badRequest("", "We could not parse the JSON body of your request.")
	}
	r.Model, r.Stream = q.Model, q.Stream
	c := &call{Request: r, wants: wants{usage: q.StreamOptions.IncludeUsage}}
	for _, m := range q.Messages {
		text, _ := chatContent(m.Content)
		switch m.Role {
		case "user":
			r.LastUser = text
		case "system", "developer":
			c.system += text
		}
	}
	return c, s.checkChat(q, r.Body)
}

func (s *Server) checkChat(q chatRequest, body []byte) *refusal {
	if bad := checkTop(q.Model, len(q.Messages)); bad != nil {
		return bad
	}
	if s.Strict {
		if bad := unknownFields(body, chatFields()); bad != nil {
			return bad
		}
	}
	for i, t := range q.Tools {
		switch {
		case t.Type != "function" || t.Function.Name == "":
			return badRequest(fmt.Sprintf("tools[%d]", i), "Missing required parameter: 'tools[].function.name'.")
		case !isToolName(t.Function.Name, 64):
			return badToolName(fmt.Sprintf("tools[%d].function.name", i))
		}
	}
	var open []string
	before := ""
	for i, m := range q.Messages {
		at := fmt.Sprintf("messages.[%d]", i)
		if m.Role != "tool" && len(open) > 0 {
			return badRequest(at+".role", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: "+strings.Join(open, ", "))
		}
		if bad := s.checkChatMessage(at, m, &open); bad != nil {
			return bad
		}
		if bad := s.checkTurn(at, before, m.Role); bad != nil {
			return bad
		}
		before = m.Role
	}
	if len(open) > 0 {
		return badRequest("messages", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.")
	}
	return nil
}

func (s *Server) checkChatMessage(at string, m chatMessage, open *[]string) *refusal {
	_, images := chatContent(m.Content)
	if bad := checkImages(at+".content", m.Content); bad != nil {
		return bad
	}
	switch {
	case !slices.Contains([]string{"system", "developer", "user", "assistant", "tool"}, m.Role):
		return badRequest(at+".role", fmt.Sprintf("Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.", m.Role))
	case images > 0 && (s.NoImages || m.Role != "user"):
		return badRequest(at+".content", "Invalid content type. image_url is only supported by certain models.")
	case m.Role == "user" && isEmpty(m.Content):
		return badRequest(at+".content", fmt.Sprintf("Invalid value for 'content': expected a string, got null. (%s)", at))
	case m.Role == "assistant" && isEmpty(m.Content) && len(m.ToolCalls) == 0:
		return badRequest(at+".content", "Invalid assistant message: content or tool_calls must be set")
	case m.Role == "tool" && (len(m.Content) == 0 || string(m.Content) == "null"):
		return badRequest(at+".content", fmt.Sprintf("Invalid value for 'content': expected a string, got null. (%s)", at))
	case m.Role == "tool":
		i := slices.Index(*open, m.ToolCallID)
		if i < 0 {
			return badRequest(at+".role", "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
		}
		*open = slices.Delete(*open, i, i+1)
	}
	for j, tc := range m.ToolCalls {
		if bad := s.checkToolID(fmt.Sprintf("%s.tool_calls[%d].id", at, j), tc.ID); bad != nil {
			return bad
		}
		switch {
		case !isToolName(tc.Function.Name, 64):
			return badToolName(fmt.Sprintf("%s.tool_calls[%d].function.name", at, j))
		case !json.Valid([]byte(tc.Function.Arguments)):
			return badRequest(at+".tool_calls", "Invalid 'arguments': not a JSON object.")
		}
		*open = append(*open, tc.ID)
	}
	if id := twice(*open); id != "" {
		return badRequest(at+".tool_calls", "Duplicate value for 'tool_call_id' of '"+id+"'.")
	}
	return nil
}

func badToolName(at string) *refusal {
	return badRequest(at, "Invalid '"+at+"': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.")
}

// checkImages checks the pictures of a content, in the forms of both APIs.
func checkImages(at string, content json.RawMessage) *refusal {
	var parts []struct {
		Type string          `json:"type"`
		URL  json.RawMessage `json:"image_url"`
	}
	_ = json.Unmarshal(content, &parts)
	for i, p := range parts {
		if p.Type != "image_url" && p.Type != "input_image" {
			continue
		}
		var object struct {
			URL string `json:"url"`
		}
		url := ""
		if json.Unmarshal(p.URL, &url) != nil {
			_ = json.Unmarshal(p.URL, &object)
			url = object.URL
		}
		if !isImageURL(url) {
			return badRequest(fmt.Sprintf("%s[%d].image_url", at, i), "Invalid image data. Expected a URL, or a base64-encoded data URL of an image.")
		}
	}
	return nil
}

// checkToolID applies the id rule of OpenAI, or Mistral's.
func (s *Server) checkToolID(at, id string) *refusal {
	if s.ToolIDLength > 0 {
		if len(id) != s.ToolIDLength || strings.ContainsFunc(id, func(c rune) bool { return !isAlnum(c) }) {
			return badRequest(at, fmt.Sprintf("Tool call id was %s but must be a-z, A-Z, 0-9, with a length of %d.", id, s.ToolIDLength))
		}
		return nil
	}
	if id == "" || len(id) > 40 {
		return badRequest(at, fmt.Sprintf("Invalid '%s': string too long. Expected a string with maximum length 40, but got a string with length %d instead.", at, len(id)))
	}
	return nil
}

// checkTurn enforces alternation where the server asks for it.
func (s *Server) checkTurn(at, before, role string) *refusal {
	if !s.Alternate {
		return nil
	}
	wrong := false
	switch role {
	case "user":
		wrong = before == "user" || before == "tool"
	case "assistant":
		wrong = before == "assistant" || before == "" || before == "system"
	case "system":
		wrong = before != ""
	}
	if wrong {
		return badRequest(at+".role", fmt.Sprintf("Unexpected role '%s' after role '%s'", role, before))
	}
	return nil
}

func isAlnum(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func isEmpty(raw json.RawMessage) bool {
	s := strings.TrimSpace(string(raw))
	return s == "" || s == "null" || s == `""` || s == "[]"
}

// chatContent reads content in both forms: its text, and how many pictures it has.
func chatContent(raw json.RawMessage) (text string, images int) {
	if json.Unmarshal(raw, &text) == nil {
		return text, 0
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	_ = json.Unmarshal(raw, &parts)
	for _, p := range parts {
		text += p.Text
		if p.Type == "image_url" || p.Type == "input_image" {
			images++
		}
	}
	return text, images
}

func checkTop(model string, messages int) *refusal {
	switch {
	case model == "":
		return badRequest("model", "you must provide a model parameter")
	case messages == 0:
		return badRequest("messages", "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	return nil
}

func badRequest(param, message string) *refusal {
	return &refusal{status: http.StatusBadRequest, kind: "invalid_request_error", param: param, message: message}
}

// unknownFields refuses members that the API does not have.
func unknownFields(body []byte, known []string) *refusal {
	var all map[string]json.RawMessage
	if json.Unmarshal(body, &all) != nil {
		return badRequest("", "The body is not a JSON object.")
	}
	for name := range all {
		if !slices.Contains(known, name) {
			return &refusal{status: http.StatusBadRequest, kind: "invalid_request_error", code: "unknown_parameter", param: name, message: fmt.Sprintf("Unknown parameter: '%s'.", name)}
		}
	}
	return nil
}

func chatFields() []string {
	return []string{
		"model", "messages", "stream", "stream_options", "tools", "tool_choice", "max_tokens", "max_completion_tokens",
		"reasoning_effort", "prompt_cache_key", "temperature", "top_p", "stop", "user", "store", "n", "parallel_tool_calls",
	}
}

// refuseOpenAI writes OpenAI's error object.
func refuseOpenAI(r *refusal) []byte {
	null := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	return mustJSON(map[string]any{"error": map[string]any{
		"message": r.message, "type": r.kind, "param": null(r.param), "code": null(r.code),
	}})
}
