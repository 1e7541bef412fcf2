package markup

import (
	"slices"
	"sort"
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
)

// source is a clean text with what has to be known about it to cut it: its lines, and the inline
// elements that a cut would tear apart.
type source struct {
	text  string
	lines []sourceLine
	spans []inlineSpan // sorted by start; they nest, but never cross
	refs  references
	used  map[string]bool // the definitions that links refer to
	open  *frame          // still open at the end
	turns bool            // there are directional runs
}

// sourceLine is the line text[start:end].
type sourceLine struct {
	start, end int
	// frame is what would be torn apart by a cut in front of the line.
	frame *frame
	// closes tells that the line only ends its frame; ends, that its frame ends behind it without
	// such a line.
	closes, ends bool
	opens        *frame // the frame whose fence opens on this line
	own          int    // where the line's own text starts in a frame, behind the marks of quotes and lists
	table        bool   // a row of a table
	keep         bool   // nothing to end a message with: a heading, the fence above code
	glued        bool   // nothing to start a message with
	prose        bool   // a line of a paragraph
	inner        bool   // not the first line of its paragraph
	item         bool   // an item of an ordered list, which a paragraph above it would swallow
	code         bool   // white space has a meaning
}

// frame is a code block or a table: what is cut in there needs lines around both parts.
type frame struct {
	quote  string // the marks of the quotes around it
	reopen string // the lines above what is continued
	closer string // the line below what is cut off; "" = none
	margin string // the white space and the marks of quotes in front of a code block
	fence  string // the marker of a code block
	opener int    // index of its first line
}

// inlineSpan is an inline element, text[start:end] with its marks. Mark is what starts and ends it;
// without one it cannot be cut.
type inlineSpan struct {
	start, end int
	mark       string
	units      int
}

// analyse reads a clean text. A text the parser cannot cope with has lines and nothing else.
func analyse(text string) (s *source) {
	s = &source{text: text, turns: strings.ContainsFunc(text, isDirection)}
	at := 0
	for line := range strings.SplitSeq(text, "\n") {
		s.lines = append(s.lines, sourceLine{start: at, end: at + len(line)})
		at += len(line) + 1
	}
	defer func() {
		if recover() != nil { // a stranger's text met a fault of the parser
			s.spans, s.open = nil, nil
			for i, l := range s.lines {
				s.lines[i] = sourceLine{start: l.start, end: l.end}
			}
		}
	}()
	doc, pc := parse(markdown, []byte(text), nil)
	s.used = map[string]bool{}
	s.blocks(doc)
	for _, r := range pc.References() {
		if s.used[string(normalised(r.Label()))] {
			s.refs = append(s.refs, r)
		}
	}
	slices.SortStableFunc(s.spans, func(a, b inlineSpan) int { return a.start - b.start })
	return s
}

// at returns the index of the line an offset lies on.
func (s *source) at(offset int) int {
	return max(0, sort.Search(len(s.lines), func(i int) bool { return s.lines[i].start > offset })-1)
}

func (s *source) line(i int) string { return s.text[s.lines[i].start:s.lines[i].end] }

func (s *source) blocks(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.FencedCodeBlock:
			s.fenced(n)
		case *tableNode:
			s.table(n)
		case *ast.CodeBlock:
			for i := range n.Lines().Len() {
				l := &s.lines[s.at(n.Lines().At(i).Start)]
				l.code = true
				l.own = max(0, n.Lines().At(i).Start-l.start-4)
			}
		case *ast.Heading:
			s.heading(n)
			s.inlines(n)
		case *ast.Paragraph, *ast.TextBlock:
			for i := range n.Lines().Len() {
				l := &s.lines[s.at(n.Lines().At(i).Start)]
				l.prose, l.inner = true, i > 0
			}
			s.inlines(n)
		case *ast.ListItem:
			list, ok := parent.(*ast.List)
			s.lines[s.at(n.Pos())].item = ok && list.IsOrdered()
			s.blocks(n)
		default:
			s.blocks(n)
		}
	}
}

func (s *source) fenced(n *ast.FencedCodeBlock) {
	opener := s.at(n.Pos())
	row := s.line(opener)
	column := n.Pos() - s.lines[opener].start
	if !looksLikeFence(row[column:]) {
		return
	}
	length := runOf(row[column:])
	f := &frame{quote: quoteMarks(row[:column]), margin: margin(row[:column]), fence: row[column : column+length], opener: opener}
	f.reopen = f.quote + strings.TrimRight(row[column:], " \t")
	f.closer = f.quote + f.fence
	s.lines[opener].keep, s.lines[opener].opens = true, f
	last := opener
	for i := range n.Lines().Len() {
		seg := n.Lines().At(i)
		last = s.at(seg.Start)
		l := &s.lines[last]
		l.frame, l.code, l.own = f, true, min(seg.Start-l.start, l.end-l.start)
	}
	switch next := last + 1; {
	case next < len(s.lines) && f.closedBy(s.line(next)):
		s.lines[next].frame, s.lines[next].closes = f, true
	case next == len(s.lines):
		s.open = f
	default:
		s.lines[last].ends = true
	}
}

// closedBy reports whether a line behind the content of a code block is its end.
func (f *frame) closedBy(line string) bool {
	line = strings.TrimLeft(line, "> \t")
	n := runOf(line)
	return n >= len(f.fence) && line[0] == f.fence[0] && strings.Trim(line[n:], " \t") == ""
}

// table makes a frame of the rows below the row of dashes.
func (s *source) table(n *tableNode) {
	opener := s.at(n.Lines().At(0).Start)
	f := &frame{opener: opener}
	for i := range n.Lines().Len() {
		seg := n.Lines().At(i)
		l := &s.lines[s.at(seg.Start)]
		l.own, l.table = seg.Start-l.start, true
		switch i {
		case 0:
			f.quote = quoteMarks(s.text[l.start:seg.Start])
			f.reopen = f.quote + strings.TrimSpace(s.text[seg.Start:l.end])
			l.keep = true
		case 1:
			f.reopen += "\n" + f.quote + strings.TrimSpace(s.text[seg.Start:l.end])
			l.keep, l.glued = true, true
		default:
			l.frame = f
		}
	}
}

// heading keeps a heading with what follows it, and its underline with it.
func (s *source) heading(n *ast.Heading) {
	if n.Lines().Len() == 0 {
		return
	}
	first, last := s.at(n.Lines().At(0).Start), s.at(n.Lines().At(n.Lines().Len()-1).Start)
	for i := first; i <= last; i++ {
		s.lines[i].keep = true
	}
	if s.text[n.Pos()] != '#' && last+1 < len(s.lines) {
		s.lines[last+1].glued, s.lines[last+1].keep = true, true
	}
}

// inlines collects the elements of a paragraph or heading.
func (s *source) inlines(n ast.Node) {
	if n.Lines().Len() == 0 {
		return
	}
	last := n.Lines().At(n.Lines().Len() - 1)
	s.elements(n, last.Start+len(strings.TrimRight(s.text[last.Start:last.Stop], " \t\n")))
}

// elements collects the children of n, which ends at an offset.
func (s *source) elements(n ast.Node, end int) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		start := s.startOf(c)
		stop := end
		if next := c.NextSibling(); next != nil {
			stop = s.startOf(next)
		}
		mark := ""
		switch c := c.(type) {
		case *ast.Text, *ast.String, *extast.TaskCheckBox:
			continue
		case *ast.Link:
			if c.Reference != nil {
				s.used[string(normalised(c.Reference.Value))] = true
			}
		case *ast.Image:
			if c.Reference != nil {
				s.used[string(normalised(c.Reference.Value))] = true
			}
		case *ast.Emphasis:
			mark = s.mark(start, c.Level)
		case *extast.Strikethrough, *spoilerNode:
			mark = s.mark(start, 2)
		case *ast.CodeSpan:
			if n := run(s.text[max(start, 0):]); n < 3 { // three would open a block
				mark = s.mark(start, n)
			}
		case *literalNode:
			stop = c.stop
		}
		if start < 0 || stop <= start {
			continue
		}
		if m := len(mark); !strings.HasSuffix(s.text[start:stop], mark) && strings.HasPrefix(s.text[stop:], mark) {
			stop += m // the parser counts the rest of a run of marks from its start
		}
		s.spans = append(s.spans, inlineSpan{start, stop, mark, Units(s.text[start:stop])})
		s.elements(c, stop-len(mark))
	}
}

// mark returns the n characters that start an element, "" if they are none of its marks.
func (s *source) mark(start, n int) string {
	if start < 0 || n == 0 || start+n > len(s.text) || strings.Trim(s.text[start:start+n], s.text[start:start+1]) != "" {
		return ""
	}
	return s.text[start : start+n]
}

// startOf returns where an inline node starts. The parser says where the run of marks starts that
// emphasis is a part of, and of a bare link where the character in front of it is.
func (s *source) startOf(n ast.Node) int {
	inside := func(mark int) int {
		if n.FirstChild() == nil {
			return n.Pos()
		}
		return max(n.Pos(), s.startOf(n.FirstChild())-mark)
	}
	switch n := n.(type) {
	case *ast.Emphasis:
		return inside(n.Level)
	case *extast.Strikethrough, *spoilerNode:
		return inside(2)
	case *ast.AutoLink:
		if before, ok := n.PreviousSibling().(*ast.Text); ok {
			return max(n.Pos(), before.Segment.Stop)
		}
	}
	return n.Pos()
}

// quoteMarks returns the marks of quotes among what stands in front of a block.
func quoteMarks(prefix string) string { return strings.Repeat("> ", strings.Count(prefix, ">")) }

// margin returns what stands in front of a block, with white space for the marks of lists.
func margin(prefix string) string {
	return strings.Map(func(r rune) rune {
		if r == '>' || r == '\t' {
			return r
		}
		return ' '
	}, prefix)
}

// runOf counts how often the first character of s is repeated at its start.
func runOf(s string) int {
	if s == "" {
		return 0
	}
	return len(s) - len(strings.TrimLeft(s, s[:1]))
}
