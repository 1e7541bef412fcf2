package markup

import "strings"

// shape is what limits make of a frame.
type shape struct {
	reopen string // the lines above what is continued
	closer string // the line below what is cut off
	opener string // what stands for the line that opens it; "" = that line
	none   bool   // there is no room for the frame: its lines are text
}

// shape returns the shape of a frame (spec/chat.md §2.5, rule 5): an info string that is too long
// is not repeated, a fence or a header that leaves no room for anything is given up.
func (s *splitter) shape(f *frame) shape {
	if sh, ok := s.shapes[f]; ok {
		return sh
	}
	sh := shape{reopen: f.reopen, closer: f.closer}
	if limit := s.limits.Units; limit > 0 {
		if f.fence == "" {
			sh.none = 2*Units(f.reopen) > limit
		} else {
			room := func(opener string) int { return limit - Units(opener) - Units(f.margin) - Units(f.closer) - 2 }
			if Units(f.reopen)-Units(f.closer) > limit/infoDivisor || room(f.reopen) < leastLimit {
				sh.reopen = f.closer
			}
			if room(s.line(f.opener)) < max(leastLimit, limit/4) {
				sh.opener = f.margin + strings.TrimPrefix(sh.reopen, f.quote)
			}
			sh.none = room(sh.reopen) < leastLimit
		}
	}
	s.shapes[f] = sh
	return sh
}

// marks returns the marks that end what is cut through at a place, and those that start it again:
// emphasis and code that is longer than a message, and runs of text with a direction of their own.
func (s *splitter) marks(at place) (ends, starts string) {
	const deepest = 8
	if at.line >= len(s.lines) {
		return "", ""
	}
	l := s.lines[at.line]
	offset := l.start + at.off
	depth := 0
	for _, e := range s.long {
		if e.start >= offset {
			break
		}
		if offset < e.end {
			depth++
			starts += e.mark
			ends = e.mark + ends
		}
	}
	if depth > deepest || 4*Units(starts) > s.limits.Units {
		ends, starts = "", ""
	}
	if at.off > 0 && s.turns {
		e, st := directions(s.line(at.line), at.off)
		ends, starts = e+ends, starts+st
	}
	return ends, starts
}

// quotes returns how many bytes of a line are the marks of quotes it starts with.
func quotes(line string) int {
	end := 0
	for i := 0; ; {
		for n := 0; n < 3 && i < len(line) && line[i] == ' '; n++ {
			i++
		}
		if i == len(line) || line[i] != '>' {
			return end
		}
		if i++; i < len(line) && line[i] == ' ' {
			i++
		}
		end = i
	}
}

// indentation returns how many columns of white space a line starts with, behind the marks of
// quotes.
func indentation(line string) int {
	n := 0
	for _, c := range []byte(line[quotes(line):]) {
		switch c {
		case ' ':
			n++
		case '\t':
			n += 4 - n%4
		default:
			return n
		}
	}
	return n
}

// dedent removes up to that many columns of white space from the start of a line, behind the marks
// of quotes.
func dedent(line string, columns int) string {
	q := quotes(line)
	marks, line := line[:q], line[q:]
	n := 0
	for i := range len(line) {
		if n >= columns {
			return marks + strings.Repeat(" ", n-columns) + line[i:]
		}
		switch line[i] {
		case ' ':
			n++
		case '\t':
			n += 4 - n%4
		default:
			return marks + line[i:]
		}
	}
	return marks
}
