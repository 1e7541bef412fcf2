package openai

import (
	"slices"
	"strings"

	"understudy/llm"
)

// stopReason maps a finish reason of a good answer.
func stopReason(finish string) llm.StopReason {
	switch strings.ToLower(finish) {
	case "length", "max_tokens", "model_length", "max_output_tokens":
		return llm.StopMaxTokens
	case "tool_calls", "function_call", "tool_use":
		return llm.StopToolUse
	}
	return llm.StopEnd
}

// failed reports whether a finish reason says that the answer is none. One that nobody knows is
// believed when there is an answer.
func failed(finish string, spoke bool) bool {
	f := strings.ToLower(finish)
	if f == "" || slices.Contains(goodFinishes(), f) {
		return false
	}
	for _, word := range []string{"error", "abort", "filter", "safety", "sensitive", "malformed", "refusal", "recitation", "prohibited", "blocklist", "insufficient", "cancel", "fail"} {
		if strings.Contains(f, word) {
			return true
		}
	}
	return !spoke
}

func goodFinishes() []string {
	return []string{"stop", "length", "tool_calls", "function_call", "tool_use", "eos", "end_turn", "stop_sequence", "max_tokens", "model_length", "max_output_tokens", "done", "completed"}
}
