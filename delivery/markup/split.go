package markup

import (
	"slices"
	"strings"
)

const (
	leastLimit  = 4   // smaller limits count as this: room for one rune and its guard
	shortPiece  = 200 // `chunkMode: newline` merges pieces shorter than this
	infoDivisor = 3   // info strings longer than limit/3 are not repeated
)

// place is where a text can be cut: in front of a line, or off bytes behind its start.
type place struct{ line, off int }

// splitter cuts a source into chunks that each fit the limits and stand for themselves (spec/chat.md §2.5):
// code blocks are closed at the end of a chunk and opened again in the next, the header of a table stands
// above all of its parts, links and emphasis are not torn apart, or are closed and opened again where they
// are longer than a message. No chunk is longer than Units, none cuts a character in half. Limits below
// four units count as four. The visible limit is not looked at; see Messages. A chunk is filled line by line; when the next line does not fit, the
// place of the cut is chosen among those that were passed.
type splitter struct {
	*source
	limits Limits
	shapes map[*frame]shape
	held   []stretch    // no cut inside of these; sorted, apart from each other
	long   []inlineSpan // elements that may be cut, because no message is long enough
	stops  []int        // the lines in front of which a chunk must end
}

// stretch is the part of the text between two offsets.
type stretch struct{ start, end int }

func newSplitter(src *source, l Limits) *splitter {
	if l.Units > 0 {
		l.Units = max(l.Units, leastLimit)
	}
	s := &splitter{source: src, limits: l}
	s.limit(l.Units)
	s.stops = []int{len(s.lines)}
	if l.Newline {
		s.stops = s.pieces()
	}
	return s
}

// limit changes the number of units of the chunks to come; 0 = no limit.
func (s *splitter) limit(units int) {
	s.limits.Units = units
	s.shapes = map[*frame]shape{}
	s.held, s.long = nil, nil
	if units == 0 {
		return
	}
	var held []stretch
	for _, e := range s.spans {
		switch m := len(e.mark); {
		case e.units <= units-2:
			held = append(held, stretch{e.start, e.end})
		case m > 0 && 8*m < units:
			s.long = append(s.long, e)
			held = append(held, stretch{e.start, e.start + m + 1}, stretch{e.end - m - 1, e.end})
		}
	}
	slices.SortFunc(held, func(a, b stretch) int { return a.start - b.start })
	for _, h := range held {
		if n := len(s.held); n > 0 && h.start < s.held[n-1].end {
			s.held[n-1].end = max(s.held[n-1].end, h.end)
			continue
		}
		s.held = append(s.held, h)
	}
}

// tears reports whether a cut at an offset would go through an element that fits one message.
func (s *splitter) tears(offset int) bool {
	i, _ := slices.BinarySearchFunc(s.held, offset, func(h stretch, at int) int { return h.start - at })
	return i > 0 && offset < s.held[i-1].end
}

// pieces returns where the pieces of `chunkMode: newline` end: at every blank line outside of code
// and tables, short neighbours merged (spec/chat.md §2.5, rule 8).
func (s *splitter) pieces() []int {
	var stops []int
	from, short := 0, true // the piece before, and whether it is short
	for i := 0; i < len(s.lines); {
		start := i
		for i < len(s.lines) && (s.lines[i].frame != nil || !blank(s.line(i))) {
			i++
		}
		end := i
		for i < len(s.lines) && s.lines[i].frame == nil && blank(s.line(i)) {
			i++
		}
		if start == end {
			continue
		}
		n := s.units(start, end)
		merged := s.units(from, end)
		if (short || n < shortPiece) && (s.limits.Units == 0 || merged <= s.limits.Units) {
			short = merged < shortPiece
			continue
		}
		if start > from {
			stops = append(stops, start)
		}
		from, short = start, n < shortPiece
	}
	return append(stops, len(s.lines))
}

// units returns the length of the lines [from, to).
func (s *source) units(from, to int) int {
	return Units(s.text[s.lines[from].start:s.lines[to-1].end])
}

func (s *splitter) done(at place) bool { return at.line >= len(s.lines) }

// stop returns the line in front of which a chunk that starts at a place must end.
func (s *splitter) stop(at place) int {
	for _, stop := range s.stops {
		if stop > at.line {
			return stop
		}
	}
	return len(s.lines)
}

// next returns the chunk that starts at a place, and where the one behind it starts. A chunk with
// nothing in it is "".
func (s *splitter) next(at place) (string, place) {
	for at.off == 0 && at.line < len(s.lines) && s.frameAt(at.line) == nil && blank(s.line(at.line)) {
		at.line++
	}
	if s.done(at) {
		return "", at
	}
	p := s.begin(at)
	for i, stop := at.line, s.stop(at); i < stop; i++ {
		r := s.row(p, i)
		if !s.fits(p, r, place{line: i + 1}) {
			if cut, ok := p.choose(); ok {
				return s.finish(p, cut)
			}
			if s.tooLong(p, r, place{line: i + 1}) {
				return s.cutRow(p, i, r)
			}
		}
		s.add(p, i, r)
	}
	return s.finish(p, candidate{rows: len(p.rows), to: p.to})
}

func blank(line string) bool { return strings.TrimSpace(line) == "" }
