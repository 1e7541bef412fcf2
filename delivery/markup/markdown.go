package markup

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// escaper writes text into a Markdown so that it shows itself.
type escaper struct {
	// backslashed are the characters that a backslash makes harmless; others get an invisible space
	// behind them.
	backslashed string
	references  bool                // character references have a meaning
	quiet       func(string) string // makes what notifies people harmless
	tag         func(next rune) bool
}

// escape returns text that shows itself.
func (e escaper) escape(s string) string {
	s = e.quiet(s)
	if !strings.ContainsAny(s, "\\`*_~|[]<&") {
		return s
	}
	var b strings.Builder
	before := rune(0)
	for i, r := range s {
		rest := s[i+utf8.RuneLen(r):]
		next, _ := utf8.DecodeRuneInString(rest)
		if rest == "" {
			next = 0
		}
		if !e.means(r, before, next, rest) {
			b.WriteRune(r)
		} else if strings.ContainsRune(e.backslashed, r) {
			b.WriteByte('\\')
			b.WriteRune(r)
		} else {
			b.WriteRune(r)
			b.WriteString(zeroWidth)
		}
		before = r
	}
	return b.String()
}

// means reports whether a character could be markup where it stands; 0 is the unknown neighbour at
// either end of the text.
func (e escaper) means(r, before, next rune, rest string) bool {
	switch r {
	case '\\':
		return next == 0 || isPunctuation(next) || next == '\n'
	case '`':
		return true
	case '*':
		return !isBlank(before) || !isBlank(next)
	case '_':
		return !isWord(before) || !isWord(next)
	case '~', '|':
		if !strings.ContainsRune(e.backslashed, r) { // one tilde is enough, bars mean nothing
			return r == '~' && !isBlank(next)
		}
		return before == 0 || next == 0 || before == r || next == r
	case '[':
		end := strings.IndexByte(rest, ']')
		return end < 0 || end+1 == len(rest) || strings.IndexByte("([:", rest[end+1]) >= 0 || end == 1 && strings.IndexByte(" xX", rest[0]) >= 0
	case '<':
		return next == 0 || e.tag(next)
	case '&':
		return e.references && reference.MatchString(rest)
	}
	return false
}

// reference is what follows the ampersand of a character reference.
var reference = regexp.MustCompile(`^#?[A-Za-z0-9]{1,32};`)

func isBlank(r rune) bool { return r == ' ' || r == '\n' || r == '\t' }

// lineStart is what a line of text must not start with.
var lineStart = regexp.MustCompile(`^ *(?:([-+*#>=]|-#)|\d{1,9}([.)]))`)

// escapeLines keeps the lines of a paragraph from starting a heading, a list, a quote or a rule.
func escapeLines(inner string) string {
	lines := strings.Split(inner, "\n")
	for i, line := range lines {
		m := lineStart.FindStringSubmatchIndex(line)
		if m == nil {
			continue
		}
		at := max(m[2], m[4])
		rest := line[at:]
		switch c := rest[0]; {
		case c == '*' && len(rest) > 1 && rest[1] != ' ': // emphasis of ours
		case c == '>' || c == '=':
			lines[i] = line[:at] + zeroWidth + rest
		case m[4] >= 0 && len(rest) > 1 && rest[1] != ' ' && rest[1] != '\t': // 3.14
		default:
			lines[i] = line[:at] + `\` + rest
		}
	}
	return strings.Join(lines, "\n")
}

var markdownMarks = [...]string{bold: "**", italic: "*", strike: "~~", spoiler: "||"}

// markdownSpan writes emphasis whose marks touch no white space.
func markdownSpan(mark, inner string) string {
	text := strings.TrimSpace(inner)
	if text == "" || mark == "" {
		return inner
	}
	lead := inner[:strings.Index(inner, text)]
	return lead + mark + text + mark + inner[len(lead)+len(text):]
}

// markdownCode writes inline code.
func markdownCode(s string) string {
	mark := strings.Repeat("`", longestRun(s)+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") || s == "" {
		s = " " + s + " "
	}
	return mark + s + mark
}

// markdownItem is the mark of an item of a list.
func markdownItem(m itemMark) string {
	if m.number >= 0 {
		return strconv.Itoa(m.number) + string(m.char) + " "
	}
	return string(m.char) + " "
}

var markdownTarget = strings.NewReplacer("(", "%28", ")", "%29", "<", "%3C", ">", "%3E", `\`, "%5C", "*", "%2A", "`", "%60", "|", "%7C", "[", "%5B", "]", "%5D")

// bareAddress marks a bare address, for finishAddresses.
func bareAddress(target string) string {
	return string(markBegin) + strings.NewReplacer("`", "%60", "*", "%2A").Replace(target) + string(markEnd)
}

// finishAddresses puts bare addresses into angle brackets where what stands next to them would
// become a part of them.
func finishAddresses(s string) string {
	if !hasMarks(s) {
		return s
	}
	var b strings.Builder
	before := rune('\n')
	for s != "" {
		i := strings.IndexRune(s, markBegin)
		if i < 0 {
			break
		}
		b.WriteString(s[:i])
		if i > 0 {
			before, _ = utf8.DecodeLastRuneInString(s[:i])
		}
		target, rest, _ := strings.Cut(s[i+utf8.RuneLen(markBegin):], string(markEnd))
		next := '\n'
		if rest != "" {
			next, _ = utf8.DecodeRuneInString(rest)
		}
		if free := (isBlank(before) || before == '(') && (isBlank(next) || next == ')' || next == ',' || next == '.'); free && !strings.ContainsAny(target, "~|") && !strings.HasSuffix(target, "_") {
			b.WriteString(target)
		} else {
			b.WriteString("<" + target + ">")
		}
		before, s = '>', rest
	}
	return b.String() + s
}

// longestRun returns the length of the longest run of backticks.
func longestRun(s string) int {
	longest, n := 0, 0
	for i := range len(s) {
		if s[i] != '`' {
			n = 0
			continue
		}
		n++
		longest = max(longest, n)
	}
	return longest
}
