package sim

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"understudy/llm"
)

// statusTool is the one tool the models know how to call.
const statusTool = "session_status"

// reply is a finished answer, ready to be streamed.
type reply struct {
	pieces []string
	call   *llm.ToolCall
	stop   llm.StopReason
	usage  llm.Usage
}

// answer is what a model says to req. It is pure: the same request gets the same answer.
func answer(req llm.Request) reply {
	var r reply
	r.stop = llm.StopEnd
	text := ""
	switch result, said := lastResult(req.Messages), lastUserText(req.Messages); {
	case result != nil:
		text = relay(result)
	case asksForStatus(said) && offered(req.Tools, statusTool):
		text = "Let me look."
		r.call = &llm.ToolCall{
			ID:    fmt.Sprintf("sim_call_%d", 1+countCalls(req.Messages)),
			Name:  statusTool,
			Input: json.RawMessage(`{}`),
		}
		r.stop = llm.StopToolUse
	case countRole(req.Messages, llm.RoleAssistant) == 0:
		text = introduction(req, said)
	default:
		text = acknowledgement(req, said)
	}
	r.pieces = pieces(text)
	if req.MaxTokens > 0 && len(r.pieces) > req.MaxTokens {
		r.pieces, r.call, r.stop = r.pieces[:req.MaxTokens], nil, llm.StopMaxTokens
	}
	r.usage = count(req, r.pieces)
	return r
}

// introduction is the first answer of a conversation.
func introduction(req llm.Request, said string) string {
	var b strings.Builder
	if req.Model.Model == ModelUnderstudy {
		b.WriteString("I am **sim/understudy**, the built-in offline model that steps in when sim/lead fails.")
	} else {
		b.WriteString("I am **sim/lead**, the built-in offline model: no key, no network, no real thinking. Everything around me is the real thing.")
	}
	b.WriteString("\n\n" + received(req, said) + "\n\nWhat to do next:\n")
	if req.Model.Model == ModelUnderstudy {
		b.WriteString("- `/why` shows what happened on the way to this answer\n")
		b.WriteString("- `/sim lead ok` brings the lead back, then write again\n")
	} else {
		b.WriteString("- `/sim lead rate_limit 60s`, then write again: the understudy answers, and a notice says so\n")
		b.WriteString("- `/status` shows models and their health, `/why` how the last answer came about\n")
	}
	b.WriteString("- for a real model set a key, for example `ANTHROPIC_API_KEY` or `OPENAI_API_KEY`, or start Ollama, and start the bot again")
	return b.String()
}

// acknowledgement is every later answer: short, but it proves that the context arrived.
func acknowledgement(req llm.Request, said string) string {
	text := fmt.Sprintf("%s here. %s", req.Model, received(req, said))
	if first := firstUserText(req.Messages); first != "" && first != said {
		text += fmt.Sprintf(" The conversation I was given began with %s.", quote(first))
	}
	return text
}

// received says what reached the model.
func received(req llm.Request, said string) string {
	var b strings.Builder
	if said == "" {
		b.WriteString("You sent no text.")
	} else {
		fmt.Fprintf(&b, "You said: %s.", quote(said))
	}
	fmt.Fprintf(&b, " With it came %s", plural(len(req.Messages), "message"))
	if req.System != "" {
		fmt.Fprintf(&b, ", a system prompt of %s", plural(utf8.RuneCountInString(req.System), "character"))
	}
	if n := countImages(req.Messages); n > 0 {
		b.WriteString(", " + plural(n, "picture"))
	}
	if n := len(req.Tools); n > 0 {
		b.WriteString(", " + plural(n, "tool"))
	}
	b.WriteString(".")
	return b.String()
}

func relay(r *llm.ToolResult) string {
	if r.IsError {
		return fmt.Sprintf("The tool failed: %s", cut(strings.TrimSpace(r.Text), 400))
	}
	return fmt.Sprintf("The tool answered:\n\n%s", cut(strings.TrimSpace(r.Text), 2000))
}

// asksForStatus looks for the word itself, not for the letters inside another one.
func asksForStatus(text string) bool {
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) }) {
		if w == "status" {
			return true
		}
	}
	return false
}

func offered(tools []llm.Tool, name string) bool {
	for _, t := range tools {
		if t.Name == name {
			return true
		}
	}
	return false
}

// pieces cuts text behind its blanks: the grain in which it is streamed and, one piece a token,
// counted.
func pieces(text string) []string {
	var out []string
	for text != "" {
		n := strings.IndexAny(text, " \n")
		if n < 0 {
			return append(out, text)
		}
		for n < len(text) && (text[n] == ' ' || text[n] == '\n') {
			n++
		}
		out = append(out, text[:n])
		text = text[n:]
	}
	return out
}

// count estimates tokens at four bytes each for the prompt, one a piece for the answer.
func count(req llm.Request, said []string) llm.Usage {
	n := len(req.System)
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			n += len(p.Text)
			if p.ToolResult != nil {
				n += len(p.ToolResult.Text)
			}
		}
	}
	in := (n + 3) / 4
	return llm.Usage{Input: in, Output: len(said), ContextSize: in}
}

func quote(s string) string { return "“" + cut(strings.Join(strings.Fields(s), " "), 200) + "”" }

// cut bounds s to n runes.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
