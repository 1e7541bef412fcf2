package markup

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mrkdwnStyle writes Slack's mrkdwn. The three references keep text from becoming a mention, a
// broadcast or a link. Slack has no escape for its own emphasis characters, and wants white space
// or punctuation around emphasis; an invisible space does for both.
type mrkdwnStyle struct{}

// Marks that only exist until a whole text is finished; clean lets none of them through.
const (
	markBegin    = '\uFDD0' // emphasis, code or an address begins
	markEnd      = '\uFDD1' // and ends
	literalStar  = '\uFDD2' // characters that mean themselves
	literalScore = '\uFDD3'
	literalTilde = '\uFDD4'
	literalAt    = '\uFDD5'
)

var (
	mrkdwnReferences = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	mrkdwnEscaper    = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "`", "ˋ",
		"*", string(literalStar), "_", string(literalScore), "~", string(literalTilde))
	mrkdwnTarget = strings.NewReplacer("&", "&amp;", "<", "%3C", ">", "%3E", "|", "%7C", "`", "%60")
	mrkdwnMarks  = [...]string{bold: "*", italic: "_", strike: "~", spoiler: ""}

	// broadcast is what notifies people without angle brackets.
	broadcast = regexp.MustCompile(`@(?:channel|here|everyone)`)
)

func (mrkdwnStyle) manner() manner { return manner{rule: rule, indent: "  ", liftsCode: true} }

func (mrkdwnStyle) text(s string) string { return mrkdwnEscaper.Replace(quiet(broadcast, s)) }

func (s mrkdwnStyle) label(text string) string {
	return s.text(strings.NewReplacer("|", "¦", "\n", " ").Replace(text))
}

// span writes emphasis. It ends with its line, so it is begun anew on the next one.
func (mrkdwnStyle) span(k span, inner string) string {
	mark := mrkdwnMarks[k]
	if mark == "" {
		return inner
	}
	lines := strings.Split(inner, "\n")
	for i, line := range lines {
		text := strings.TrimSpace(line)
		if text == "" {
			continue
		}
		lead := line[:strings.Index(line, text)]
		lines[i] = lead + string(markBegin) + mark + text + mark + string(markEnd) + line[len(lead)+len(text):]
	}
	return strings.Join(lines, "\n")
}

func (mrkdwnStyle) code(s string) string {
	return string(markBegin) + "`" + mrkdwnReferences.Replace(strings.NewReplacer("`", "ˋ", "@", string(literalAt)).Replace(s)) + "`" + string(markEnd)
}

func (mrkdwnStyle) block(_, body string) string {
	if body == "" {
		return ""
	}
	return "```\n" + mrkdwnReferences.Replace(brokenFences(body)) + "\n```"
}

// brokenFences makes three backticks in code something that does not end it.
func brokenFences(body string) string {
	return strings.ReplaceAll(body, "```", "``"+zeroWidth+"`")
}

func (s mrkdwnStyle) link(inner, label, target string) string {
	if label == target {
		return "<" + mrkdwnTarget.Replace(target) + ">"
	}
	return "<" + mrkdwnTarget.Replace(target) + "|" + s.label(revealed(label)) + ">"
}

func (s mrkdwnStyle) heading(_ int, inner string) string { return s.span(bold, inner) }

func (mrkdwnStyle) quote(inner string, nested bool) string {
	if nested {
		return quoteLines(inner, "&gt; ")
	}
	return quoteLines(inner, "> ")
}

func (mrkdwnStyle) item(m itemMark) string { return m.symbol() }

func (s mrkdwnStyle) table(t *tree, n *tableNode) string {
	return s.block("", strings.TrimRight(t.grid(n, plainStyle{}).aligned(), "\n"))
}

func (mrkdwnStyle) quiet(inner string) string { return quiet(broadcast, inner) }

// lines keeps text from becoming a quote, and from a broadcast made of pieces.
func (mrkdwnStyle) lines(inner string) string {
	lines := strings.Split(quiet(broadcast, inner), "\n")
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimLeft(line, " "), "&gt;") {
			lines[i] = zeroWidth + line
		}
	}
	return strings.Join(lines, "\n")
}

func (mrkdwnStyle) finish(s string) string {
	if !hasMarks(s) {
		return s
	}
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if hasMarks(line) {
			lines[i] = finishMrkdwn([]rune(line))
		}
	}
	return strings.Join(lines, "\n")
}

func hasMarks(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r >= markBegin && r <= literalAt })
}

// meant returns the character that a mark stands for.
func meant(r rune) rune {
	switch r {
	case literalStar:
		return '*'
	case literalScore:
		return '_'
	case literalTilde:
		return '~'
	case literalAt:
		return '@'
	}
	return r
}

// finishMrkdwn decides where a line needs invisible spaces: around emphasis that touches text, and
// behind characters that would begin emphasis which a later one could end.
func finishMrkdwn(line []rune) string {
	var last [128]int // where emphasis could end for the last time
	for i, r := range line {
		r = meant(r)
		if i > 0 && (r == '*' || r == '_' || r == '~') && !unicode.IsSpace(line[i-1]) && (i+1 == len(line) || !isLetter(line[i+1])) {
			last[r] = i
		}
	}
	out := make([]byte, 0, len(line)+16)
	for i, r := range line {
		c := meant(r)
		switch {
		case r == markBegin:
			if i > 0 && line[i-1] != markBegin && !isFree(line[i-1]) {
				out = append(out, zeroWidth...)
			}
		case r == markEnd:
			if i+1 < len(line) && line[i+1] != markEnd && !isFree(line[i+1]) {
				out = append(out, zeroWidth...)
			}
		default:
			out = utf8.AppendRune(out, c)
			if c != r && last[c] > i && (i == 0 || !isLetter(line[i-1])) && !unicode.IsSpace(line[i+1]) {
				out = append(out, zeroWidth...)
			}
		}
	}
	return string(out)
}

// isFree reports whether Slack sees emphasis next to a character.
func isFree(r rune) bool { return unicode.IsSpace(r) || isPunctuation(r) }

func isLetter(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// quiet makes what matches harmless without changing what is to be seen (spec/chat.md §8, S5).
func quiet(re *regexp.Regexp, s string) string {
	return re.ReplaceAllStringFunc(s, func(m string) string { return m[:1] + zeroWidth + m[1:] })
}
