package failover

import (
	"sort"
	"strings"
	"unicode/utf8"

	"understudy/llm"
)

// leastQuote is how long a text must be to count as a quotation, in bytes: shorter ones stand in any
// message by chance.
const leastQuote = 8

// discreet returns a failure whose message repeats no line of the conversation from its beginning. The failure itself
// may belong to others too and is not changed.
func discreet(e *llm.Error, conversation []llm.Message) *llm.Error {
	message := unquoted(e.Message, conversation)
	if message == e.Message {
		return e
	}
	c := *e
	c.Message = message
	return &c
}

// unquoted returns a provider's message without what it quotes of the conversation. Hosts repeat
// prompts in their errors, and neither the log nor the records of attempts are a place for them
// (spec/failover.md §15).
func unquoted(message string, conversation []llm.Message) string {
	for _, m := range conversation {
		message = without(message, m.PlainText())
		for _, p := range m.Parts {
			if p.ToolResult != nil {
				message = without(message, p.ToolResult.Text)
			}
			if p.ToolCall != nil {
				message = without(message, string(p.ToolCall.Input))
			}
		}
	}
	return message
}

// without returns message without what it quotes of a text, line by line.
func without(message, text string) string {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if n := quoted(message, line); n > 0 {
			message = strings.ReplaceAll(message, line[:n], "[…]")
		}
	}
	return message
}

// quoted returns how much of the beginning of line stands in message; 0 = too little to tell.
func quoted(message, line string) int {
	if len(line) < leastQuote || !strings.Contains(message, line[:leastQuote]) {
		return 0
	}
	n := leastQuote + sort.Search(len(line)-leastQuote, func(i int) bool {
		return !strings.Contains(message, line[:leastQuote+i+1])
	})
	for n < len(line) && !utf8.RuneStart(line[n]) {
		n--
	}
	return n
}
