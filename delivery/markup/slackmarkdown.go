package markup

import (
	"regexp"
	"strings"
)

// slackMarkdownStyle writes the standard Markdown that Slack takes as markdown_text. What has no
// backslash escape in Slack's list of them is taken its meaning with an invisible space.
type slackMarkdownStyle struct{}

// slackTokens are the starts of <!channel>, <!subteam^S1>, <@U1> and <#C1>.
var slackTokens = regexp.MustCompile(`<[!@#]`)

// quietSlack makes mentions and broadcasts harmless.
func quietSlack(s string) string { return quiet(broadcast, quiet(slackTokens, s)) }

var slackEscaper = escaper{
	backslashed: "\\`*_[",
	references:  true,
	quiet:       quietSlack,
	tag:         func(next rune) bool { return isWord(next) || next == '/' || next == '?' },
}

func (slackMarkdownStyle) manner() manner {
	return manner{rule: "---", commonMark: true}
}

func (slackMarkdownStyle) text(s string) string { return slackEscaper.escape(s) }

func (slackMarkdownStyle) label(s string) string { return labelled(slackEscaper.escape(s)) }

func (slackMarkdownStyle) span(k span, inner string) string {
	if k == spoiler {
		return inner
	}
	return markdownSpan(markdownMarks[k], inner)
}

func (slackMarkdownStyle) code(s string) string { return markdownCode(quietSlack(s)) }

func (slackMarkdownStyle) block(language, body string) string {
	if strings.TrimSpace(body) == "" {
		return ""
	}
	mark := strings.Repeat("`", max(3, longestRun(body)+1))
	return mark + languageName(language) + "\n" + quietSlack(body) + "\n" + mark
}

func (slackMarkdownStyle) link(inner, label, target string) string {
	if label == target {
		return bareAddress(target)
	}
	return "[" + inner + "](" + markdownTarget.Replace(target) + ")"
}

func (slackMarkdownStyle) heading(level int, inner string) string {
	return markdownHeading(level, inner)
}

func (slackMarkdownStyle) quote(inner string, _ bool) string { return quoteLines(inner, "> ") }

func (slackMarkdownStyle) item(m itemMark) string {
	switch m.task {
	case openTask:
		return markdownItem(m) + "[ ] "
	case doneTask:
		return markdownItem(m) + "[x] "
	default:
		return markdownItem(m)
	}
}

// table writes a table, in which bars that mean themselves are escaped.
func (s slackMarkdownStyle) table(t *tree, n *tableNode) string {
	g := t.grid(n, s)
	columns := 0
	for _, row := range g.rows {
		columns = max(columns, len(row))
	}
	var b strings.Builder
	for i, row := range g.rows {
		for j := 0; j < len(row) || i == 0 && j < columns; j++ {
			cell := ""
			if j < len(row) {
				cell = strings.ReplaceAll(row[j], "|", `\|`)
			}
			b.WriteString("| " + cell + " ")
		}
		b.WriteString("|\n")
		if i == 0 {
			b.WriteString(g.dashes(columns))
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

func (g grid) dashes(columns int) string {
	var b strings.Builder
	for j := range columns {
		a := left
		if j < len(g.align) {
			a = g.align[j]
		}
		b.WriteString([...]string{left: "| --- ", right: "| --: ", centre: "| :-: "}[a])
	}
	return b.String() + "|\n"
}

func (slackMarkdownStyle) quiet(inner string) string { return quietSlack(inner) }

func (slackMarkdownStyle) lines(inner string) string { return escapeLines(quietSlack(inner)) }

func (slackMarkdownStyle) finish(s string) string { return finishAddresses(s) }
