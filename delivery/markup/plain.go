package markup

import "strings"

// plainStyle writes text that means the same without any markup.
type plainStyle struct{}

func (plainStyle) text(s string) string { return s }

func (plainStyle) span(_ span, inner string) string { return inner }

func (plainStyle) code(s string) string { return s }

func (plainStyle) block(_, body string) string { return strings.TrimRight(body, "\n") }

func (plainStyle) link(inner, label, target string) string {
	return withTarget(inner, label, target, target)
}

func (plainStyle) quote(inner string) string { return quoteLines(inner) }
