package markup

import (
	"regexp"
	"sort"
	"strings"
)

// scaffolding are elements that belong to the talk between a model and its runner and are
// sometimes leaked into the answer (spec/chat.md §1.7). Thoughts may also lack their start,
// because the template of some models already contains it.
var (
	scaffoldOpen = regexp.MustCompile(`(?i)<(think|thinking|thought|reasoning|tool_calls?|tool_response|function_calls?|system-reminder)(?:\s[^<>]{0,200})?>`)
	thoughtsEnd  = regexp.MustCompile(`(?i)</(?:think|thinking|thought|reasoning)>`)
	templateMark = regexp.MustCompile(`<\|[a-z_]{2,32}\|>`)
)

// maxScaffolds bounds the work for one text; no honest answer has more.
const maxScaffolds = 64

// StripScaffolding removes leaked reasoning, tool-call and template markup from the visible text
// of a model. Code is left alone, so that one can talk about it. An element that is never closed
// hides everything behind it if it starts a line, which also makes it right for a text that is
// still being written.
func StripScaffolding(text string) string {
	if !strings.ContainsRune(text, '<') {
		return text
	}
	out := stripMarks(text)
	var b strings.Builder
	for range maxScaffolds {
		s, ok := nextScaffold(out)
		if !ok {
			break
		}
		if s.orphan {
			b.Reset()
		} else {
			b.WriteString(out[:s.from])
		}
		out = out[s.to:]
	}
	b.WriteString(out)
	if b.Len() == len(text) {
		return text
	}
	return strings.TrimSpace(b.String())
}

// stripMarks removes the marks of chat templates, such as <|im_end|>.
func stripMarks(text string) string {
	marks := templateMark.FindAllStringIndex(text, -1)
	if marks == nil {
		return text
	}
	code := codeSpans(text)
	var b strings.Builder
	at := 0
	for _, m := range marks {
		if !within(code, m[0]) {
			b.WriteString(text[at:m[0]])
			at = m[1]
		}
	}
	b.WriteString(text[at:])
	return b.String()
}

// scaffold is a part to be removed: [from, to); an orphan takes everything before it along.
type scaffold struct {
	from, to int
	orphan   bool
}

// nextScaffold finds the first element of text to be removed.
func nextScaffold(text string) (scaffold, bool) {
	var found scaffold
	ok := false
	code := codeSpans(text)
	for _, m := range scaffoldOpen.FindAllStringSubmatchIndex(text, 4*maxScaffolds) {
		if within(code, m[0]) {
			continue
		}
		if end := endTag(text[m[1]:], text[m[2]:m[3]]); end >= 0 {
			found, ok = scaffold{from: m[0], to: m[1] + end}, true
			break
		}
		if m[0] == 0 || text[m[0]-1] == '\n' {
			found, ok = scaffold{from: m[0], to: len(text)}, true
			break
		}
	}
	for _, m := range thoughtsEnd.FindAllStringIndex(text, 4*maxScaffolds) {
		if !within(code, m[0]) {
			if !ok || m[0] < found.from {
				found, ok = scaffold{from: m[0], to: m[1], orphan: true}, true
			}
			break
		}
	}
	return found, ok
}

// endTag returns the offset behind the first end tag of that name in any case, -1 if there is none.
func endTag(text, name string) int {
	tag := "</" + name + ">"
	for i := 0; ; i++ {
		j := strings.IndexByte(text[i:], '<')
		if j < 0 || i+j+len(tag) > len(text) {
			return -1
		}
		if i += j; strings.EqualFold(text[i:i+len(tag)], tag) {
			return i + len(tag)
		}
	}
}

// within reports whether an offset lies in one of the spans, which are sorted.
func within(spans [][2]int, at int) bool {
	i := sort.Search(len(spans), func(i int) bool { return spans[i][1] > at })
	return i < len(spans) && spans[i][0] <= at
}

// codeSpans returns the parts of text that are code: fenced blocks, and inline code on one line.
func codeSpans(text string) [][2]int {
	var spans [][2]int
	var f fence
	at := 0
	for line := range strings.SplitAfterSeq(text, "\n") {
		bare := strings.TrimRight(line, "\r\n")
		was := f
		f = f.after(bare)
		if was.open() || f.open() {
			spans = append(spans, [2]int{at, at + len(line)})
		} else {
			spans = append(spans, inlineCode(bare, at)...)
		}
		at += len(line)
	}
	return spans
}

func inlineCode(line string, at int) [][2]int {
	var spans [][2]int
	for i := 0; i < len(line); {
		if line[i] != '`' {
			i++
			continue
		}
		n := run(line[i:])
		end := -1
		for j := i + n; j < len(line); {
			if line[j] != '`' {
				j++
				continue
			}
			m := run(line[j:])
			if m == n {
				end = j + m
				break
			}
			j += m
		}
		if end < 0 {
			i += n
			continue
		}
		spans = append(spans, [2]int{at + i, at + end})
		i = end
	}
	return spans
}

// run counts the backticks s starts with.
func run(s string) int { return len(s) - len(strings.TrimLeft(s, "`")) }

// SilentReply is what a model answers when nothing is to be said.
const SilentReply = "NO_REPLY"

// IsSilent reports whether a model's whole answer is NO_REPLY, in any case (spec/chat.md §1.7).
func IsSilent(text string) bool { return strings.EqualFold(strings.TrimSpace(text), SilentReply) }
