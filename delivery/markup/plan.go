package markup

import (
	"regexp"
	"slices"
	"strings"
)

// plan is a chunk being filled.
type plan struct {
	start   place
	entered *frame // the frame that was opened again at the top
	column  int    // columns of white space that all lines lose, because the list they belong to began before
	rows    []string
	lines   int  // lines of the rows
	size    int  // units of the rows
	listed  bool // an item has begun in this chunk
	kept    bool // only headings and the like since the last place to end
	to      place

	// The last blank line outside of frames, the last place that tears nothing, and the last one that
	// only parts a heading from what it heads.
	gap, safe, bare candidate
}

// candidate is a place where a plan can end: behind so many of its rows.
type candidate struct {
	rows, size int
	to         place
}

// row is a line of a chunk: text put in front of it, and what the line has from one of its bytes on.
type row struct {
	before string
	from   int
	text   string
	after  string // rows to follow it
}

func (r row) whole() string { return r.before + r.text }

// begin plans a chunk that starts at a place.
func (s *splitter) begin(at place) *plan {
	p := &plan{start: at, to: at, kept: true}
	l := &s.lines[at.line]
	switch f := s.frameAt(at.line); {
	case f != nil:
		p.entered = f
		p.push(s.shape(f).reopen)
		if p.column = l.own; l.closes || f.quote != "" {
			p.column = indentation(s.line(at.line))
		}
	case l.code:
		p.column = l.own
	case at.line > 0:
		p.column = indentation(s.line(at.line))
	}
	return p
}

func (p *plan) push(rows string) {
	if len(p.rows) > 0 {
		p.size++
	}
	p.size += Units(rows)
	p.lines += 1 + strings.Count(rows, "\n")
	p.rows = append(p.rows, rows)
}

// structure is what makes a line more than the text of a paragraph.
var structure = regexp.MustCompile(`^\s*(?:[-+*](?:\s|$)|#{1,6}(?:\s|$)|>|\d{1,9}[.)](?:\s|$)|\[[^\]]*\]:|=+\s*$|-+\s*$|(?:[-*_][ \t]*){3,}$)`)

func isStructure(line string) bool {
	const enough = 100 // bytes; a longer rule or underline counts as none
	return looksLikeFence(line) || structure.MatchString(line[:min(len(line), enough)])
}

// row returns what a line becomes in a plan. Only lines that open or close a frame look like it.
func (s *splitter) row(p *plan, i int) row {
	r := s.rowOf(p, i)
	l := &s.lines[i]
	opens := l.opens != nil && !s.shape(l.opens).none
	guard := !opens && s.frameAt(i) == nil && looksLikeFence(r.whole())
	f := s.frameAt(i)
	if f != nil && f.fence != "" && !l.closes { // less indented than it was
		text := r.whole()
		if f == p.entered {
			text = r.text
		}
		guard = (p.column > 0 || f == p.entered) && looksLikeFence(text) && f.closedBy(text)
	}
	if u := s.limits.Units; u > 0 && r.text != "" && 2*Units(r.before) > u { // no room for marks of quotes
		r.before = ""
		if looksLikeFence(r.text) || f == nil && isStructure(r.text) {
			r.before = zeroWidth
		}
	}
	if l.item && !p.listed && len(p.rows) > p.opened() && s.lines[i-1].prose {
		r.before = "\n" + r.before // the rest of an item stands above
	}
	switch {
	case l.ends && f != nil:
		r.after = p.closerOf(f)
	case l.ends && opens:
		r.after = p.closerOf(l.opens)
	}
	if guard && f != nil && f == p.entered {
		r.before += zeroWidth
	} else if guard {
		r.before = zeroWidth + r.before
	}
	return r
}

func (s *splitter) rowOf(p *plan, i int) row {
	l, text := &s.lines[i], s.line(i)
	first := i == p.start.line
	f := s.frameAt(i)
	switch {
	case first && p.start.off > 0:
		return s.tail(p.start, f)
	case l.opens != nil:
		sh := s.shape(l.opens)
		if !sh.none && sh.opener != "" {
			return row{before: dedent(sh.opener, p.column)}
		} else if !sh.none {
			return row{before: s.outdented(p, i).whole()}
		}
		column := len(l.opens.margin)
		return row{before: text[:column] + zeroWidth, from: column, text: text[column:]}
	case l.frame != f: // given up
		return row{text: text}
	case l.closes && f == p.entered:
		return row{before: s.shape(f).closer}
	case l.closes:
		text = text[:len(text)-len(strings.TrimLeft(text, "> \t"))] + f.fence
		return row{before: dedent(text, p.column)}
	case f != nil && f == p.entered:
		return row{before: f.quote, from: l.own, text: text[l.own:]}
	}
	r := s.outdented(p, i)
	if !first {
		return r
	}
	_, starts := s.marks(p.start)
	if starts != "" {
		q := quotes(text)
		r = row{before: text[:q], from: q, text: text[q:]}
	}
	if l.inner && !l.code && isStructure(starts+r.text) {
		starts = zeroWidth + starts
	}
	r.before += starts
	return r
}

// outdented returns a line without the white space of a list that began in another chunk.
func (s *splitter) outdented(p *plan, i int) row {
	text := s.line(i)
	if p.column == 0 {
		return row{text: text}
	}
	column := indentation(text)
	switch l := s.lines[i]; {
	case l.inner && i == p.start.line:
	case l.inner || column >= p.column || blank(text[quotes(text):]):
		column = p.column
	default:
		p.column = column // a list further out goes on
	}
	r := row{before: text[:quotes(text)]}
	short := dedent(text, column)[len(r.before):]
	if !strings.HasSuffix(text, short) { // half a tab
		return row{before: r.before + short}
	}
	r.from, r.text = len(text)-len(short), short
	return r
}

// tail returns the rest of a line that was cut.
func (s *splitter) tail(at place, f *frame) row {
	text := s.line(at.line)
	r := row{from: at.off, text: text[at.off:]}
	if f != nil {
		r.before = f.quote
	} else {
		r.before = quoteMarks(text[:len(text)-len(strings.TrimLeft(text, "> \t"))])
	}
	_, starts := s.marks(at)
	r.before += starts
	if own := starts + r.text; looksLikeFence(own) || f == nil && isStructure(own) {
		r.before = strings.TrimSuffix(r.before, starts) + zeroWidth + starts
	}
	return r
}

// add puts a line into the plan and remembers whether the plan could end behind it.
func (s *splitter) add(p *plan, i int, r row) {
	p.push(r.whole())
	p.listed = p.listed || s.lines[i].item && r.from == 0
	if r.after != "" {
		p.push(r.after)
	}
	p.to = place{line: i + 1}
	empty := blank(s.line(i)) && s.frameAt(i) == nil
	if !empty {
		p.kept = s.lines[i].keep
	}
	next := i + 1
	if next < len(s.lines) && s.glued(next) {
		return
	}
	if p.kept {
		if l := &s.lines[i]; l.opens == nil && !l.table && slices.ContainsFunc(p.rows[p.opened():], seen) {
			p.bare = candidate{len(p.rows), p.size, p.to}
		}
		return
	}
	p.safe = candidate{len(p.rows), p.size, p.to}
	if empty && s.frameAt(next) == nil {
		p.gap = p.safe
	}
}

// glued reports whether a cut in front of a line would tear something apart.
func (s *splitter) glued(i int) bool {
	l := &s.lines[i]
	return l.glued || l.closes && s.frameAt(i) != nil || s.tears(l.start)
}

// frameAt returns the frame that a cut in front of a line would tear apart.
func (s *splitter) frameAt(i int) *frame {
	if i >= len(s.lines) {
		return nil
	}
	if f := s.lines[i].frame; f != nil && !s.shape(f).none {
		return f
	}
	return nil
}

// choose picks the place to end a full plan: behind the last blank line in its second half,
// otherwise behind the last line that may be the last one.
func (p *plan) choose() (candidate, bool) {
	if p.gap.rows > 0 && 2*p.gap.size >= p.size {
		return p.gap, true
	}
	return p.safe, p.safe.rows > 0
}

func (s *splitter) fits(p *plan, r row, after place) bool {
	if s.limits.Lines > 0 {
		rows := p.lines + 1
		if _, closer := s.exit(p, after); closer != "" {
			rows++
		}
		if rows > s.limits.Lines {
			return false
		}
	}
	return !s.tooLong(p, r, after)
}

func (s *splitter) tooLong(p *plan, r row, after place) bool {
	if s.limits.Units == 0 {
		return false
	}
	const widest = 3 // bytes of a unit
	if len(r.text) > widest*s.limits.Units {
		return true
	}
	size := p.size + Units(r.before) + Units(r.text) + s.exitUnits(p, after)
	if len(p.rows) > 0 {
		size++
	}
	if r.after != "" {
		size += 1 + Units(r.after)
	}
	if len(p.rows) == p.opened() && p.start.off > 0 {
		size++ // room for the guard in front of a tail
	}
	return size > s.limits.Units
}

// exit returns what is written where a chunk ends at a place: the ends of emphasis, and the line
// below a frame.
func (s *splitter) exit(p *plan, to place) (ends, closer string) {
	f := s.frameAt(to.line)
	if s.done(to) {
		if f = s.source.open; f != nil && s.shape(f).none {
			f = nil
		}
	} else {
		ends, _ = s.marks(to)
	}
	switch {
	case f == nil || f.fence == "":
		return ends, ""
	default:
		return ends, p.closerOf(f)
	}
}

// closerOf returns the line that closes a code block in a plan.
func (p *plan) closerOf(f *frame) string {
	if f == p.entered {
		return f.closer
	}
	return dedent(f.margin, p.column) + f.fence
}

func (s *splitter) exitUnits(p *plan, to place) int {
	ends, closer := s.exit(p, to)
	n := Units(ends) + Units(closer)
	if closer != "" {
		n++
	}
	return n
}

// finish writes a plan up to a candidate.
func (s *splitter) finish(p *plan, c candidate) (string, place) {
	ends, closer := s.exit(p, c.to)
	if to := c.to.line; c.to.off == 0 && to < len(s.lines) && s.lines[to].closes && s.frameAt(to) != nil {
		c.to.line++ // closed here already
	}
	if !slices.ContainsFunc(p.rows[p.opened():c.rows], seen) {
		return "", c.to
	}
	chunk := strings.TrimRight(strings.Join(p.rows[:c.rows], "\n"), " \t\n")
	chunk += ends
	if closer != "" {
		chunk += "\n" + closer
	}
	return chunk, c.to
}

// opened returns how many rows only open a frame again.
func (p *plan) opened() int {
	if p.entered != nil {
		return 1
	}
	return 0
}

// seen reports whether there is something on a row.
func seen(row string) bool { return strings.Trim(row, zeroWidth+" \t\n") != "" }

// cutRow ends a plan with the first part of a line that is too long for any chunk.
func (s *splitter) cutRow(p *plan, i int, r row) (string, place) {
	l := &s.lines[i]
	begun := len(p.rows) > p.opened()
	_, closer := s.exit(p, place{i, r.from})
	room := s.limits.Units - p.size - Units(r.before) - 1
	if len(p.rows) > 0 {
		room--
	}
	if closer != "" {
		room -= 1 + Units(closer)
	}
	c := cutter{line: r.text, allowed: func(at int) bool { return !s.tears(l.start + r.from + at) }}
	if p.bare.rows > 0 && (l.code || 3*room < s.limits.Units) && s.fitsAlone(i) {
		return s.finish(p, p.bare)
	}
	at := s.cutAt(c, place{i, r.from}, room)
	if begun && (r.text == "" || room < leastLimit || !c.allowed(at)) {
		return s.finish(p, candidate{rows: len(p.rows), to: place{line: i}})
	}
	head, rest := r.text[:at], r.text[at:]
	if !l.code {
		rest = strings.TrimLeft(rest, " \t")
	}
	if r.before == "" && looksLikeFence(head) {
		r.before = zeroWidth
	}
	p.push(r.before + head)
	if rest == "" && r.after != "" {
		p.push(r.after)
	}
	to := place{i, r.from + len(r.text) - len(rest)}
	if rest == "" {
		to = place{line: i + 1}
	}
	return s.finish(p, candidate{rows: len(p.rows), to: to})
}

// fitsAlone reports whether a line fits a chunk of its own.
func (s *splitter) fitsAlone(i int) bool {
	n := Units(s.line(i)) + 1
	if f := s.frameAt(i); f != nil {
		sh := s.shape(f)
		n += Units(sh.reopen) + Units(sh.closer) + 2
	}
	return n <= s.limits.Units
}

// cutAt returns where to cut so that the head has room for the marks of what it cuts through.
func (s *splitter) cutAt(c cutter, from place, room int) int {
	const least = 2 // one character
	left := room
	for {
		at := c.cut(left)
		ends, _ := s.marks(place{from.line, from.off + at})
		over := Units(c.line[:at]) + Units(ends) - room
		if over <= 0 || left <= least {
			return at
		}
		left = max(least, left-over)
	}
}
