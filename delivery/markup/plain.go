package markup

import (
	"strconv"
	"strings"
)

// plainStyle writes text that means the same without any markup.
type plainStyle struct{}

func (plainStyle) manner() manner { return manner{rule: rule, indent: "  "} }

func (plainStyle) text(s string) string { return s }

func (plainStyle) label(s string) string { return s }

func (plainStyle) span(_ span, inner string) string { return inner }

func (plainStyle) code(s string) string { return s }

func (plainStyle) block(_, body string) string { return body }

func (plainStyle) link(inner, label, target string) string {
	if sameAddress(label, target) {
		return inner
	}
	return inner + " (" + target + ")"
}

func (plainStyle) heading(_ int, inner string) string { return inner }

func (plainStyle) quote(inner string, _ bool) string { return quoteLines(inner, "> ") }

func (plainStyle) item(m itemMark) string { return m.symbol() }

func (plainStyle) table(t *tree, n *tableNode) string {
	return strings.Trim(t.grid(n, plainStyle{}).aligned(), "\n")
}

func (plainStyle) lines(inner string) string { return inner }

func (plainStyle) quiet(inner string) string { return inner }

func (plainStyle) finish(s string) string { return s }

// symbol is the mark of an item for dialects that have no lists.
func (m itemMark) symbol() string {
	bullets := [...]string{"• ", "◦ ", "▪ "}
	switch {
	case m.task == openTask:
		return "☐ "
	case m.task == doneTask:
		return "☑ "
	case m.number >= 0:
		return strconv.Itoa(m.number) + ". "
	default:
		return bullets[min(m.depth, len(bullets)-1)]
	}
}

// quoteLines puts a mark in front of every line.
func quoteLines(inner, mark string) string {
	if inner == "" {
		return ""
	}
	return mark + strings.ReplaceAll(inner, "\n", "\n"+mark)
}
