package markup

import (
	"strings"
	"unicode/utf8"
)

// cutter looks for the place to cut a line that is too long.
type cutter struct {
	line    string
	allowed func(at int) bool // an offset that tears nothing apart
}

// cut returns where the line is to be cut so that the head has at most room units: at the end of a
// sentence in the second half, else at a space, else between two characters (spec/chat.md §2.5,
// rule 6), wherever possible outside of inline elements.
func (c cutter) cut(room int) int {
	fit := prefix(c.line, max(room, 2))
	if fit == c.line {
		return len(c.line)
	}
	if at := c.sentenceEnd(fit); at > 0 {
		return at
	}
	if at := c.space(fit); at > 0 {
		return at
	}
	return c.character(len(fit))
}

// sentenceEnd returns the offset behind the last sentence that ends in the second half of fit.
func (c cutter) sentenceEnd(fit string) int {
	half := len(prefix(fit, Units(fit)/2))
	for end := len(fit); end > half; {
		r, n := utf8.DecodeLastRuneInString(fit[:end])
		switch r {
		case '。', '！', '？':
			if c.allowed(end) && characterEnd(c.line, end) == end {
				return end
			}
		case '.', '!', '?':
			if end < len(c.line) && c.line[end] == ' ' && c.allowed(end) {
				return end
			}
		}
		end -= n
	}
	return 0
}

// space returns the offset behind the last space of fit that has text before it. A space right
// behind fit counts too.
func (c cutter) space(fit string) int {
	if c.line[len(fit)] == ' ' && c.allowed(len(fit)) {
		return len(fit)
	}
	for end := len(fit); ; {
		i := strings.LastIndexByte(fit[:end], ' ')
		if i <= 0 || blank(fit[:i]) {
			return 0
		}
		if c.allowed(i + 1) {
			return i + 1
		}
		end = i
	}
}

// character returns the last offset up to limit between two characters, outside of inline elements
// if there is such a place.
func (c cutter) character(limit int) int {
	last, free := 0, 0
	for start, end := range characters(c.line, limit) {
		if start > limit || end-start > longestCharacter {
			break
		}
		if last = start; start > 0 && c.allowed(start) {
			free = start
		}
		if end == limit {
			last = limit
			if c.allowed(limit) {
				free = limit
			}
		}
	}
	switch {
	case free > 0 && !blank(c.line[:free]):
		return free
	case last > 0:
		return last
	default:
		return limit
	}
}
