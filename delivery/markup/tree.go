package markup

import (
	"html"
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
)

// span is a kind of emphasis.
type span uint8

const (
	bold span = iota
	italic
	strike
	spoiler
)

// style is what a dialect makes of the elements of a text. Arguments called inner are rendered
// already, all others are not.
type style interface {
	manner() manner
	text(s string) string
	label(s string) string // text in a link
	span(k span, inner string) string
	code(s string) string
	block(language, body string) string
	link(inner, label, target string) string // target is a web address
	heading(level int, inner string) string
	quote(inner string, nested bool) string
	item(m itemMark) string
	table(t *tree, n *tableNode) string
	lines(inner string) string // the lines of a paragraph
	quiet(inner string) string // without what the pieces of a heading could notify people with
	finish(s string) string    // the whole text
}

// manner is how a dialect composes blocks.
type manner struct {
	liftsCode  bool   // code blocks cannot stand in quotes
	commonMark bool   // white space has the meaning it has in CommonMark
	rule       string // a thematic break
	indent     string // of what belongs to an item; "" = as wide as the item's mark
}

// itemMark tells what stands in front of an item of a list.
type itemMark struct {
	depth  int
	number int  // of an ordered list, -1 otherwise
	char   byte // the mark of the list in the source: - * + . )
	task   task
}

type task uint8

const (
	noTask task = iota
	openTask
	doneTask
)

// tree renders a parsed text in a style.
type tree struct {
	src   []byte
	doc   ast.Node // nil if it could not be parsed
	part  *source  // the text this is a part of
	style style
	// What is around the place being rendered: emphasis does not nest in itself, nothing nests in
	// links, quotes nest in a way of their own.
	within [spoiler + 1]bool
	link   bool
	quote  bool
	above  byte // the mark of the list right above
}

// renderLine renders one line in which there are no blocks.
func renderLine(md string, s style, src *source) string {
	return newTree(md, oneLine, src).render(s)
}

// newTree parses a text, which is a part of src or a text of its own.
func newTree(md string, p parser.Parser, src *source) (t *tree) {
	t = &tree{src: []byte(md), part: src}
	if src == nil {
		t.part = &source{}
	}
	defer func() {
		if recover() != nil { // a stranger's text met a fault of the parser
			t.doc = nil
		}
	}()
	t.doc, _ = parse(p, t.src, t.part.refs)
	return t
}

// render writes the text in a style.
func (t *tree) render(s style) (out string) {
	t.style, t.within, t.link, t.quote = s, [spoiler + 1]bool{}, false, false
	defer func() {
		if recover() != nil {
			out = s.finish(s.text(string(t.src)))
		}
	}()
	return s.finish(strings.Trim(join(t.blocks(t.doc, 0), s.manner()), "\n"))
}

// inlines renders the children of an inline element or a paragraph. Neighbouring pieces of text are
// rendered as one, because what a character means depends on those next to it.
func (t *tree) inlines(parent ast.Node) string {
	var out, text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			out.WriteString(t.text(text.String()))
			text.Reset()
		}
	}
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if s, ok := t.literal(n); ok {
			text.WriteString(s)
			continue
		}
		flush()
		out.WriteString(t.inline(n))
	}
	flush()
	return out.String()
}

// text renders text that has no meaning any more.
func (t *tree) text(s string) string {
	if t.link {
		return t.style.label(revealed(s))
	}
	return t.style.text(s)
}

// literal returns the text that a node is, if it is nothing else.
func (t *tree) literal(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.Text:
		s := unescape(string(n.Segment.Value(t.src)))
		if n.SoftLineBreak() || n.HardLineBreak() {
			s += "\n"
		}
		return s, true
	case *ast.String:
		return string(n.Value), true
	case *literalNode:
		return string(n.value), true
	case *ast.RawHTML:
		return t.rawHTML(n), true
	}
	return "", false
}

func (t *tree) inline(n ast.Node) string {
	switch n := n.(type) {
	case *extast.TaskCheckBox:
		return "" // stands in the mark of its item
	case *ast.CodeSpan:
		if code := t.rawText(n); t.link {
			return t.text(code)
		} else {
			return t.style.code(code)
		}
	case *ast.Emphasis:
		if n.Level == 2 {
			return t.span(bold, n)
		}
		return t.span(italic, n)
	case *extast.Strikethrough:
		return t.span(strike, n)
	case *spoilerNode:
		return t.span(spoiler, n)
	case *ast.Link:
		return t.anchor(n, unescape(string(n.Destination)))
	case *ast.Image:
		return t.anchor(n, unescape(string(n.Destination)))
	case *ast.AutoLink:
		return t.autoLink(string(n.Label(t.src)), string(n.URL(t.src)))
	default:
		return t.inlines(n)
	}
}

// span renders emphasis; inside of the same emphasis it adds nothing.
func (t *tree) span(k span, n ast.Node) string {
	if t.within[k] {
		return t.inlines(n)
	}
	t.within[k] = true
	inner := t.inlines(n)
	t.within[k] = false
	if strings.Trim(inner, zeroWidth+" \t\n") == "" {
		return inner
	}
	return t.style.span(k, inner)
}

// rawText is the text of a code span: nothing in it has a meaning.
func (t *tree) rawText(n ast.Node) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if s, ok := c.(*ast.Text); ok {
			b.Write(s.Segment.Value(t.src))
		}
	}
	return strings.ReplaceAll(b.String(), "\n", " ")
}

// rawHTML shows tags as they were written; only line breaks are understood.
func (t *tree) rawHTML(n *ast.RawHTML) string {
	var b strings.Builder
	for i := range n.Segments.Len() {
		seg := n.Segments.At(i)
		b.Write(seg.Value(t.src))
	}
	switch strings.ToLower(strings.ReplaceAll(b.String(), " ", "")) {
	case "<br>", "<br/>":
		return "\n"
	}
	return b.String()
}

const punctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

func isPunctuation(r rune) bool { return r < 0x80 && strings.IndexByte(punctuation, byte(r)) >= 0 }

// unescape resolves backslash escapes and character references, each at most once.
func unescape(s string) string {
	if !strings.ContainsAny(s, `\&`) {
		return s
	}
	const longest = 40 // of a character reference
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && isPunctuation(rune(s[i+1])):
			i++
			b.WriteByte(s[i])
		case s[i] == '&':
			name := reference.FindString(s[i+1 : min(i+longest, len(s))])
			ref := "&" + name
			if r := html.UnescapeString(ref); r != ref {
				ref = printable(r)
			}
			b.WriteString(ref)
			i += len(name)
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}
