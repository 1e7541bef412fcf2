package markup

import (
	"regexp"
	"strings"
)

// deepestHeading is the smallest heading Discord knows.
const deepestHeading = 3

// discordStyle writes Discord's Markdown. It has no tables, no rules, three headings, only backtick
// fences, and finds those in the middle of a line too. Who may be mentioned is also said in the
// request.
type discordStyle struct{}

// discordMentions are <@1>, <@!1>, <@&1>, @everyone and @here.
var discordMentions = regexp.MustCompile(`<@[!&]?\d|@(?:everyone|here)`)

func quietDiscord(s string) string { return quiet(discordMentions, s) }

var discordEscaper = escaper{
	backslashed: "\\`*_~|[<",
	quiet:       quietDiscord,
	tag:         func(next rune) bool { return isWord(next) || strings.ContainsRune("@#:/!&\u200b", next) },
}

func (discordStyle) manner() manner { return manner{rule: rule} }

func (discordStyle) text(s string) string { return discordEscaper.escape(s) }

func (discordStyle) label(s string) string { return labelled(discordEscaper.escape(s)) }

// labelled escapes the brackets that would end the text of a link.
func labelled(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if (s[i] == '[' || s[i] == ']') && (i == 0 || s[i-1] != '\\') {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func (discordStyle) span(k span, inner string) string { return markdownSpan(markdownMarks[k], inner) }

func (discordStyle) code(s string) string {
	if longestRun(s) > 1 { // three would be a block
		s = strings.ReplaceAll(s, "``", "`"+zeroWidth+"`")
		s = strings.ReplaceAll(s, "``", "`"+zeroWidth+"`")
	}
	return markdownCode(strings.ReplaceAll(s, "@", string(literalAt)))
}

func (discordStyle) block(language, body string) string {
	if strings.TrimSpace(body) == "" {
		return ""
	}
	return "```" + languageName(language) + "\n" + brokenFences(body) + "\n```"
}

func (s discordStyle) link(inner, label, target string) string {
	switch {
	case label == target:
		return bareAddress(target)
	case strings.Contains(label, "://"): // Discord makes no links of texts that are one
		return inner + " (" + bareAddress(target) + ")"
	default:
		return "[" + inner + "](" + markdownTarget.Replace(target) + ")"
	}
}

func (s discordStyle) heading(level int, inner string) string {
	if level > deepestHeading {
		return s.span(bold, inner)
	}
	return markdownHeading(level, inner)
}

// markdownHeading writes a heading. Number signs at its end would be taken for decoration.
func markdownHeading(level int, inner string) string {
	if strings.HasSuffix(inner, "#") {
		inner = inner[:len(inner)-1] + `\#`
	}
	return strings.Repeat("#", level) + " " + inner
}

func (discordStyle) quote(inner string, _ bool) string { return quoteLines(inner, "> ") }

func (discordStyle) item(m itemMark) string {
	switch {
	case m.number >= 0:
		m.char = '.'
	default:
		m.char = '-'
	}
	return markdownItem(m) + m.box()
}

// box is the box of a task for dialects without task lists.
func (m itemMark) box() string {
	switch m.task {
	case openTask:
		return "☐ "
	case doneTask:
		return "☑ "
	default:
		return ""
	}
}

func (s discordStyle) table(t *tree, n *tableNode) string {
	return s.block("", strings.TrimRight(t.grid(n, plainStyle{}).aligned(), "\n"))
}

func (discordStyle) quiet(inner string) string { return quietDiscord(inner) }

func (discordStyle) lines(inner string) string { return escapeLines(quietDiscord(inner)) }

func (discordStyle) finish(s string) string {
	return strings.ReplaceAll(finishAddresses(s), string(literalAt), "@")
}
