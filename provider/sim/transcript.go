package sim

import (
	"strings"

	"understudy/llm"
)

// lastResult returns the tool result the model is asked to go on from, if the transcript ends in one.
func lastResult(ms []llm.Message) *llm.ToolResult {
	if len(ms) == 0 {
		return nil
	}
	parts := ms[len(ms)-1].Parts
	for i := len(parts) - 1; i >= 0; i-- {
		if parts[i].ToolResult != nil {
			return parts[i].ToolResult
		}
	}
	return nil
}

func lastUserText(ms []llm.Message) string {
	for i := len(ms) - 1; i >= 0; i-- {
		if ms[i].Role == llm.RoleUser {
			return spoken(ms[i])
		}
	}
	return ""
}

// currentMessage stands between what was said before in a group and the message itself.
const currentMessage = "[Current message - respond to this]\n"

// spoken returns the text of a message without what stands above it: what was said before, and the line
// in brackets that says who wrote it and when.
func spoken(m llm.Message) string {
	s := m.PlainText()
	if _, current, ok := strings.Cut(s, "\n"+currentMessage); ok && strings.HasPrefix(s, "[") {
		s = current
	}
	if line, rest, ok := strings.Cut(s, "\n"); ok && strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]") {
		return rest
	}
	return s
}

func firstUserText(ms []llm.Message) string {
	for _, m := range ms {
		if m.Role == llm.RoleUser {
			return spoken(m)
		}
	}
	return ""
}

func countRole(ms []llm.Message, role llm.Role) int {
	n := 0
	for _, m := range ms {
		if m.Role == role {
			n++
		}
	}
	return n
}

func countCalls(ms []llm.Message) int {
	n := 0
	for _, m := range ms {
		for _, p := range m.Parts {
			if p.ToolCall != nil {
				n++
			}
		}
	}
	return n
}

func countImages(ms []llm.Message) int {
	n := 0
	for _, m := range ms {
		for _, p := range m.Parts {
			if p.Image != nil {
				n++
			}
		}
	}
	return n
}
