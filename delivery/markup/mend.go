package markup

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mend makes unfinished Markdown look like what it is going to be: emphasis and code that are open
// at its end are ended, the start of a link is its text, the start of a list item, of a table or of
// a fence is left out.
func mend(text string) string {
	s := analyse(text)
	last := len(s.lines) - 1
	switch l := s.lines[last]; {
	case l.frame != nil && l.code:
		if tail := strings.TrimSpace(s.line(last)); tail != "" && len(tail) < len(l.frame.fence) && strings.Trim(tail, l.frame.fence[:1]) == "" {
			return strings.TrimRight(text[:l.start], "\n")
		}
		return text
	case l.table && l.frame != nil:
		if cell := 1 + strings.LastIndexByte(text, '|'); cell < len(text) {
			return text[:cell] + mend(text[cell:])
		}
		return text
	case l.code, l.frame != nil:
		return text
	case begun.MatchString(s.line(last)) && last > 0:
		return mend(strings.TrimRight(text[:l.start], " \t\n"))
	case l.keep && l.glued:
		return text
	case strings.HasPrefix(s.line(last), "|") && last > 0 && !l.keep:
		start := last
		if s.lines[last].inner && strings.Trim(s.line(last), "|-: \t") == "" && strings.HasPrefix(s.line(last-1), "|") {
			start--
		}
		if start > 0 && (start < last || !s.lines[last].inner) {
			return strings.TrimRight(text[:s.lines[start].start], " \t\n")
		}
	}
	from := last
	for from > 0 && s.lines[from].inner {
		from--
	}
	return s.endInlines(s.lines[from].start)
}

var (
	// begun is a line that is going to be the mark of a list, heading, quote, rule or fence, or the
	// underline that would make a heading of the line above it.
	begun = regexp.MustCompile("^[ >]*(?:[-=*+#>_]+|`+|~+|[-*+] \\[[ xX]?\\]?)$")
	// linkBegun is the start of a link, up to the end of the text.
	linkBegun = regexp.MustCompile(`!?\[([^\[\]\n]*)\]\([^()\s]*$`)
	// labelBegun is the start of the text of a link.
	labelBegun = regexp.MustCompile(`(^|[\s(])!?\[([^\[\]\n]{0,200})$`)
)

// mostOpen is how many marks may be open at the end of a text. More are no emphasis, but stars.
const mostOpen = 16

// endInlines ends what is open in the last paragraph, which starts at an offset.
func (s *source) endInlines(from int) string {
	text := s.text
	if m := linkBegun.FindStringSubmatchIndex(text[from:]); m != nil {
		text = text[:from+m[0]] + text[from+m[2]:from+m[3]]
	} else if m := labelBegun.FindStringSubmatchIndex(text[from:]); m != nil {
		text = text[:from+m[3]] + text[from+m[4]:from+m[5]]
	}
	if len(text) != len(s.text) {
		s = analyse(text)
	}
	open := s.openMarks(from)
	for n := len(open); n > 0; n = len(open) { // a mark with nothing behind it
		mark := open[n-1]
		if strings.HasSuffix(text, mark) {
			text = strings.TrimRight(strings.TrimSuffix(text, mark), " \t\n")
			open = open[:n-1]
			continue
		}
		if len(mark) == 2 && strings.HasSuffix(text, mark[:1]) { // the first half of its end
			text = text[:len(text)-1]
		}
		break
	}
	for _, mark := range slices.Backward(open) {
		text += mark
	}
	return text
}

// openMarks returns the marks behind an offset that start emphasis or code which does not end.
func (s *source) openMarks(from int) []string {
	starts, ends := map[int]inlineSpan{}, map[int]bool{}
	for _, e := range s.spans {
		if e.start < from {
			continue
		}
		starts[e.start] = e
		for i := range len(e.mark) {
			ends[e.end-1-i] = true
		}
	}
	var open []string
	for i := from; i < len(s.text); {
		c := s.text[i]
		e, known := starts[i]
		switch {
		case known && (e.mark == "" || c == '`'):
			i = e.end
			continue
		case known:
			i += len(e.mark)
			continue
		case c == '\\':
			i += 2
			continue
		case strings.IndexByte("*_~|`", c) < 0:
			i++
			continue
		}
		n := runOf(s.text[i:])
		if !ends[i] && !ends[i+n-1] && s.starts(i, n) {
			open = append(open, s.text[i:i+n])
			if c == '`' {
				break
			}
			if len(open) > mostOpen {
				return nil
			}
		}
		i += n
	}
	return open
}

// starts reports whether a run of marks could be the start of emphasis or code.
func (s *source) starts(at, n int) bool {
	before, _ := utf8.DecodeLastRuneInString(s.text[:at])
	after, _ := utf8.DecodeRuneInString(s.text[at+n:])
	if at+n < len(s.text) && unicode.IsSpace(after) {
		return false
	}
	switch s.text[at] {
	case '`':
		return n < 3
	case '~', '|':
		return n == 2
	default:
		return n <= 3 && (at == 0 || !isLetter(before))
	}
}
