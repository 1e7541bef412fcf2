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

// Split cuts Markdown into chunks that each fit the limits and stand for themselves: code fences
// are closed at the end of a chunk and opened again in the next (spec/chat.md §2.5). No chunk is
// empty, none is longer than Units, none cuts a character in half. Limits below four units count
// as four. The visible limit is not looked at; see Messages.
func Split(md string, l Limits) []string {
	md = normalise(md)
	if l.Units > 0 {
		l.Units = max(l.Units, leastLimit)
	}
	if !l.Newline {
		return splitLength(md, l)
	}
	var out []string
	for _, piece := range paragraphs(md, l.Units) {
		out = append(out, splitLength(piece, l)...)
	}
	return out
}

func normalise(md string) string {
	md = strings.ToValidUTF8(md, "\uFFFD")
	md = strings.ReplaceAll(md, "\r\n", "\n")
	md = strings.ReplaceAll(md, "\r", "\n")
	return strings.TrimRight(md, " \t\n")
}

// paragraphs splits at every blank line outside fences and merges short neighbours.
func paragraphs(md string, limit int) []string {
	var raw []string
	var f fence
	var cur []string
	for line := range strings.SplitSeq(md, "\n") {
		if !f.open() && blank(line) {
			raw = append(raw, strings.Join(cur, "\n"))
			cur = nil
			continue
		}
		f = f.after(line)
		cur = append(cur, line)
	}
	raw = append(raw, strings.Join(cur, "\n"))

	var out []string
	for _, p := range raw {
		if p == "" {
			continue
		}
		last := len(out) - 1
		if last >= 0 && (Units(out[last]) < shortPiece || Units(p) < shortPiece) {
			if both := out[last] + "\n\n" + p; limit == 0 || Units(both) <= limit {
				out[last] = both
				continue
			}
		}
		out = append(out, p)
	}
	return out
}

func blank(line string) bool { return strings.TrimSpace(line) == "" }

// sourceLine is a line still to be placed; a tail is the rest of one that was too long.
type sourceLine struct {
	text string
	tail bool
}

// splitter places lines into chunks. A chunk is planned line by line; when the next line does not
// fit, the place of the cut is chosen and everything behind it is planned anew.
type splitter struct {
	limits Limits
	lines  []sourceLine
}

func splitLength(md string, l Limits) []string {
	for {
		first, rest, more := strings.Cut(md, "\n")
		if !more || !blank(first) {
			break
		}
		md = rest
	}
	if blank(md) {
		return nil
	}
	if l.hold(md) && !openFence(md).open() {
		return []string{md}
	}
	s := splitter{limits: l}
	for text := range strings.SplitSeq(md, "\n") {
		s.lines = append(s.lines, sourceLine{text: text})
	}
	var out []string
	var f fence
	for at := 0; at < len(s.lines); {
		var chunk string
		chunk, at, f = s.next(at, f)
		if !blank(chunk) {
			out = append(out, chunk)
		}
	}
	return out
}

// hold reports whether a whole text is within the limits.
func (l Limits) hold(md string) bool {
	return (l.Units == 0 || Units(md) <= l.Units) && (l.Lines == 0 || strings.Count(md, "\n") < l.Lines)
}

// plan is a chunk being filled: the lines [start, end), with the fence that was open before them.
type plan struct {
	entered fence // open at the start
	now     fence // open at the end
	start   int
	end     int
	size    int // units so far, without the closing fence
	rows    int // lines so far, without the closing fence
	opener  int // index of the line that opened the current fence, -1 if it was open already
	gap     int // index after the last blank line outside fences, -1 if none
	gapSize int
}

// next plans one chunk from line at on, and returns it with where and in which fence to go on.
func (s *splitter) next(at int, f fence) (string, int, fence) {
	for !f.open() && at < len(s.lines) && blank(s.lines[at].text) {
		at++
	}
	p := plan{entered: f, now: f, start: at, end: at, opener: -1, gap: -1}
	if f.open() {
		p.size, p.rows = Units(f.reopen), 1
	}
	for p.end < len(s.lines) {
		line := &s.lines[p.end]
		after := s.admit(p.now, line)
		if line.tail && p.end > p.start {
			return s.finish(p, p.end)
		}
		closing := p.now.open() && !after.open()
		if !closing && !s.fits(p, line.text, after) {
			if cut := p.cut(); cut > p.start {
				return s.finish(p, cut)
			}
			if s.tooLong(p, line.text, after) {
				s.splitLine(p)
				continue
			}
		}
		p.add(line.text, after)
	}
	return s.finish(p, p.end)
}

// admit returns the fence after a line. It rewrites lines that would not let a chunk be balanced:
// a closing line becomes as short as possible, an info string or a fence that is too long for the
// limit is given up.
func (s *splitter) admit(now fence, line *sourceLine) fence {
	if now.open() {
		if !now.closes(line.text) {
			return now
		}
		line.text = now.closer
		return fence{}
	}
	f, ok := opens(line.text)
	if !ok || s.limits.Units == 0 {
		return f
	}
	room := func(opener string) int { return s.limits.Units - Units(opener) - Units(f.closer) - 2 }
	if Units(f.reopen)-Units(f.closer) > s.limits.Units/infoDivisor || room(f.reopen) < leastLimit {
		f.reopen = f.closer
	}
	if room(f.reopen) < leastLimit { // no room for any content: it stays text
		line.text = zeroWidth + line.text
		return fence{}
	}
	if room(line.text) < max(leastLimit, s.limits.Units/4) {
		line.text = f.reopen
	}
	return f
}

func (s *splitter) fits(p plan, text string, after fence) bool {
	if s.limits.Lines > 0 {
		rows := p.rows + 1
		if after.open() {
			rows++
		}
		if rows > s.limits.Lines {
			return false
		}
	}
	return !s.tooLong(p, text, after)
}

func (s *splitter) tooLong(p plan, text string, after fence) bool {
	if s.limits.Units == 0 {
		return false
	}
	size := p.size + Units(text)
	if p.rows > 0 {
		size++
	}
	if after.open() {
		size += 1 + Units(after.closer)
	}
	if p.empty() {
		size++ // room for the guard in front of a tail
	}
	return size > s.limits.Units
}

// empty reports whether the plan holds no content: nothing, or only the opener of a fence.
func (p *plan) empty() bool { return p.end == p.start || p.opener == p.start && p.end == p.start+1 }

func (p *plan) add(text string, after fence) {
	if p.rows > 0 {
		p.size++
	}
	p.size += Units(text)
	p.rows++
	if !p.now.open() && after.open() {
		p.opener = p.end
	}
	p.end++
	if !p.now.open() && !after.open() && blank(text) {
		p.gap, p.gapSize = p.end, p.size
	}
	p.now = after
}

// cut chooses where a full chunk ends: after the last blank line in its second half, otherwise
// before the line that does not fit, but never right behind the opener of a fence. A result that
// is not behind start means that there is no place to cut.
func (p *plan) cut() int {
	switch {
	case p.gap > p.start && 2*p.gapSize >= p.size:
		return p.gap
	case p.now.open() && p.opener == p.end-1 && p.end > p.start:
		return p.opener
	default:
		return p.end
	}
}

// finish writes the chunk that ends before line cut.
func (s *splitter) finish(p plan, cut int) (string, int, fence) {
	f := p.now
	if cut < p.end { // cuts before the end are outside fences only
		f = fence{}
	}
	var rows []string
	if p.entered.open() {
		rows = append(rows, p.entered.reopen)
	}
	for _, line := range s.lines[p.start:cut] {
		rows = append(rows, line.text)
	}
	if f.open() {
		rows = append(rows, f.closer)
	}
	return strings.TrimRight(strings.Join(rows, "\n"), " \t\n"), cut, f
}

// splitLine replaces the line at the end of the plan by its first part and a tail.
func (s *splitter) splitLine(p plan) {
	room := s.limits.Units - p.size - 1
	if p.rows > 0 {
		room--
	}
	if p.now.open() {
		room -= 1 + Units(p.now.closer)
	}
	line := s.lines[p.end].text
	head, tail := cutLine(line, room, p.now.open())
	if looksLikeFence(head) {
		head, tail = cutLine(line, room-1, p.now.open())
		head = zeroWidth + head
	}
	s.lines[p.end].text = head
	if tail == "" {
		return
	}
	if looksLikeFence(tail) {
		tail = zeroWidth + tail
	}
	s.lines = slices.Insert(s.lines, p.end+1, sourceLine{text: tail, tail: true})
}
