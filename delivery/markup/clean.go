package markup

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// clean makes any bytes a text that all the rest of the package can rely on: valid UTF-8, lines
// that end in "\n", nothing at its end, no control characters, no characters that only deceive
// (direction overrides, tags outside flags), and on every line as many ends of directional runs as
// starts. Its output is its own fixed point.
func clean(md string) string {
	md = strings.ToValidUTF8(md, "\uFFFD")
	c := cleaner{out: make([]byte, 0, len(md))}
	for i, r := range md {
		switch {
		case r == '\r':
			if !strings.HasPrefix(md[i+1:], "\n") {
				c.newline()
			}
		case r == '\n', r == '\u0085', r == '\u2028', r == '\u2029':
			c.newline()
		case r < utf8.RuneSelf:
			if r >= ' ' && r != 0x7f || r == '\t' {
				c.out = append(c.out, byte(r))
			}
		case c.unwanted(r):
			continue
		default:
			c.direction(r)
		}
		c.last = r
	}
	c.endLine()
	return strings.TrimRight(string(c.out), " \t\n")
}

// Characters that change the direction of a text. They end with their line at the latest
// (Unicode Standard Annex #9).
const (
	firstEmbedding = '\u202A' // left to right
	lastEmbedding  = '\u202B' // right to left
	endEmbedding   = '\u202C'
	firstOverride  = '\u202D'
	lastOverride   = '\u202E'
	firstIsolate   = '\u2066'
	lastIsolate    = '\u2068'
	endIsolate     = '\u2069'
)

const (
	blackFlag = '\U0001F3F4' // tags behind it make the flag of a region
	firstTag  = '\U000E0000'
	lastTag   = '\U000E007F'
)

// cleaner writes one clean text.
type cleaner struct {
	out  []byte
	line int    // where the line begins in out
	open []rune // the ends that the directional runs open on this line wait for
	last rune
}

// unwanted reports whether a character is to be dropped.
func (c *cleaner) unwanted(r rune) bool {
	switch {
	case r >= 0x7f && r <= 0x9f: // C1 controls
		return true
	case r == '\uFEFF', r >= '\uFFF9' && r <= '\uFFFB', r >= '\u206A' && r <= '\u206F':
		return true
	case r >= firstOverride && r <= lastOverride:
		return true
	case r >= '\uFDD0' && r <= '\uFDEF', r&0xFFFE == 0xFFFE: // no characters at all; styles use them
		return true
	case r >= firstTag && r <= lastTag:
		return c.last != blackFlag && (c.last < firstTag || c.last > lastTag)
	}
	return false
}

// direction writes a character and keeps account of the directional runs. An end without a start
// is dropped.
func (c *cleaner) direction(r rune) {
	const deepest = 60
	switch {
	case r >= firstEmbedding && r <= lastEmbedding, r >= firstIsolate && r <= lastIsolate:
		if len(c.open) == deepest {
			return
		}
		c.open = append(c.open, endOf(r))
	case r == endEmbedding:
		if n := len(c.open); n == 0 || c.open[n-1] != r {
			return
		}
		c.open = c.open[:len(c.open)-1]
	case r == endIsolate:
		i := lastIndex(c.open, r)
		if i < 0 {
			return
		}
		for n := len(c.open) - 1; n > i; n-- { // it ends what was opened inside
			c.out = utf8.AppendRune(c.out, c.open[n])
		}
		c.open = c.open[:i]
	}
	c.out = utf8.AppendRune(c.out, r)
}

func endOf(r rune) rune {
	if r >= firstIsolate {
		return endIsolate
	}
	return endEmbedding
}

func lastIndex(s []rune, r rune) int {
	for i, x := range slices.Backward(s) {
		if x == r {
			return i
		}
	}
	return -1
}

func (c *cleaner) newline() {
	c.endLine()
	c.out = append(c.out, '\n')
	c.line = len(c.out)
}

// endLine ends the directional runs of a line, in front of the bar that ends a row of a table.
func (c *cleaner) endLine() {
	if len(c.open) == 0 {
		return
	}
	tail := ""
	if line := strings.TrimRight(string(c.out[c.line:]), " \t"); strings.HasSuffix(line, "|") {
		tail = "|"
		c.out = c.out[:c.line+len(line)-1]
	}
	for _, r := range slices.Backward(c.open) {
		c.out = utf8.AppendRune(c.out, r)
	}
	c.out = append(c.out, tail...)
	c.open = nil
}

// isDirection reports whether a character starts or ends a directional run.
func isDirection(r rune) bool {
	return r >= firstEmbedding && r <= lastOverride || r >= firstIsolate && r <= endIsolate
}

// directions returns what must end and what must start again where a line is cut at an offset.
func directions(line string, at int) (ends, starts string) {
	var open []rune
	for _, r := range line[:at] {
		switch {
		case r >= firstEmbedding && r <= lastEmbedding, r >= firstIsolate && r <= lastIsolate:
			open = append(open, r)
		case (r == endEmbedding || r == endIsolate) && len(open) > 0:
			open = open[:len(open)-1]
		}
	}
	for _, r := range open {
		ends = string(endOf(r)) + ends
		starts += string(r)
	}
	return ends, starts
}

// printable drops what clean drops from a piece of text that was written as a character reference,
// and what would need more than a piece to be right.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < ' ':
			return ' '
		case isInvisible(r) && r != joiner && r != '\u200c', (&cleaner{}).unwanted(r):
			return -1
		}
		return r
	}, s)
}
