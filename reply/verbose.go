package reply

import (
	"cmp"
	"fmt"
	"strings"

	"understudy/chat"
	"understudy/llm"
)

// What /verbose shows of tools (spec/chat.md §3.3).
const (
	verboseOn   = "on"
	verboseFull = "full" // with what they return

	maxShownInput  = 120 // characters
	maxShownOutput = 400
)

// verbosity is what somebody wants to see of tools.
func (t *turn) verbosity() string { return cmp.Or(t.req.Verbose, t.sess.Verbose) }

// verbose reports whether somebody wants to see how the turn works.
func (t *turn) verbose() bool {
	mode := t.verbosity()
	return (mode == verboseOn || mode == verboseFull) && !t.req.internal() && (t.req.To.Kind == chat.Direct || t.cfg.VerboseInGroups)
}

// showCall tells that a tool runs.
func (t *turn) showCall(tool Tool, c llm.ToolCall) {
	t.doing("🛠", tool.Name)
	if !t.verbose() {
		return
	}
	line := "🛠 " + tool.Name
	if input := t.shown(string(object(c.Input)), maxShownInput); input != "" && input != "{}" {
		line += " " + input
	}
	t.out.Notify(t.outbound(chat.Notice, line))
}

// showResult tells what a tool returned, where that is wanted.
func (t *turn) showResult(tool Tool, text string, err error) {
	if !t.verbose() || t.verbosity() != verboseFull && err == nil {
		return
	}
	mark := "→"
	if err != nil {
		mark, text = "✗", err.Error()
	}
	t.out.Notify(t.outbound(chat.Notice, fmt.Sprintf("🛠 %s %s %s", tool.Name, mark, t.shown(text, maxShownOutput))))
}

// shown makes a tool's words fit for a notice: one line of code, in which no markup counts.
func (t *turn) shown(s string, most int) string {
	s = short(t.r.deps.Redact(s), most)
	if s == "" || s == "{}" {
		return s
	}
	return "`" + strings.ReplaceAll(s, "`", "'") + "`"
}
