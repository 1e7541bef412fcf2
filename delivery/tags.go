package delivery

import (
	"regexp"
	"strings"
)

// replyTag is what a model may write to choose the message that its answer refers to
// (spec/chat.md §2.3). The blanks behind a tag go with it.
var replyTag = regexp.MustCompile(`(?i)\[\[[ \t]*reply_to(?:_current|[ \t]*:[ \t]*([^\[\]\s]{1,64}))[ \t]*\]\][ \t]*`)

// longestTag bounds how much of an unfinished text may be the beginning of a tag, in bytes.
const longestTag = 96

// pointer is the message a model chose: the one it answers, or one by its id. The zero pointer is no
// choice.
type pointer struct {
	current bool
	id      string
}

// target returns the id of the message in a turn that answers current; "" = no choice.
func (p pointer) target(current string) string {
	if p.current {
		return current
	}
	return p.id
}

// takeTags removes the tags of a model's text and returns what the first of them chose. Code is left
// alone, so that one can talk about it.
func takeTags(text string) (string, pointer) {
	if !strings.Contains(text, "[[") {
		return text, pointer{}
	}
	var b strings.Builder
	var chosen pointer
	taken, fenced := false, false
	for line := range strings.SplitAfterSeq(text, "\n") {
		if bare := strings.TrimLeft(line, " "); strings.HasPrefix(bare, "```") || strings.HasPrefix(bare, "~~~") {
			fenced = !fenced
		}
		if fenced {
			b.WriteString(line)
			continue
		}
		at, ticks := 0, 0
		for _, m := range replyTag.FindAllStringSubmatchIndex(line, -1) {
			ticks += strings.Count(line[at:m[0]], "`")
			b.WriteString(line[at:m[0]])
			if at = m[1]; ticks%2 == 1 { // in inline code
				b.WriteString(line[m[0]:m[1]])
				continue
			}
			taken = true
			switch {
			case chosen != (pointer{}):
			case m[2] >= 0:
				chosen.id = line[m[2]:m[3]]
			default:
				chosen.current = true
			}
		}
		b.WriteString(line[at:])
	}
	if !taken {
		return text, pointer{}
	}
	return strings.TrimSpace(b.String()), chosen
}

// withoutTagStart cuts from a text that is still being written what may become a tag.
func withoutTagStart(text string) string {
	i := strings.LastIndex(text, "[[")
	if i < 0 || len(text)-i > longestTag || strings.Contains(text[i:], "]]") {
		return strings.TrimSuffix(text, "[")
	}
	rest := strings.ToLower(strings.TrimLeft(text[i+2:], " \t"))
	if strings.HasPrefix("reply_to_current", rest) || (strings.HasPrefix(rest, "reply_to") && !strings.Contains(rest, "\n")) {
		return text[:i]
	}
	return text
}
