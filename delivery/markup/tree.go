package markup

import (
	"html"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdown is the parser of the Markdown that models write. It holds no state between texts.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Strikethrough, extension.Linkify),
	goldmark.WithParserOptions(parser.WithInlineParsers(util.Prioritized(spoilerParser{}, 450))),
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
	text(s string) string
	span(k span, inner string) string
	code(s string) string
	block(language, body string) string
	link(inner, label, target string) string
	quote(inner string) string
}

const (
	bullet      = "• "
	rule        = "──────────"
	deepestList = 6 // deeper lists are not indented further
)

// tree renders the parsed text in a style.
type tree struct {
	src   []byte
	style style
	// What is around the place being rendered: emphasis does not nest in itself, nothing nests in
	// links, quotes do not nest.
	within [spoiler + 1]bool
	link   bool
	quote  bool
}

// renderTree renders a text in a style. A text that the parser cannot cope with is shown as it is.
func renderTree(md string, s style) (out string) {
	defer func() {
		if recover() != nil { // a stranger's text met a fault of the parser
			out = s.text(md)
		}
	}()
	src := []byte(md)
	t := tree{src: src, style: s}
	return strings.Trim(t.blocks(markdown.Parser().Parse(text.NewReader(src)), 0), "\n")
}

// blocks renders the children of a block, a blank line between them.
func (t *tree) blocks(parent ast.Node, depth int) string {
	var b strings.Builder
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		s := t.block(n, depth)
		if s == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(s)
	}
	return b.String()
}

func (t *tree) block(n ast.Node, depth int) string {
	switch n := n.(type) {
	case *ast.Heading:
		return t.span(bold, n)
	case *ast.Paragraph, *ast.TextBlock:
		return t.inlines(n)
	case *ast.FencedCodeBlock:
		return t.style.block(string(n.Language(t.src)), t.lines(n))
	case *ast.CodeBlock:
		return t.style.block("", t.lines(n))
	case *ast.HTMLBlock:
		raw := t.lines(n)
		if n.HasClosure() {
			raw += string(n.ClosureLine.Value(t.src))
		}
		return t.style.text(strings.TrimRight(raw, "\n"))
	case *ast.ThematicBreak:
		return t.style.text(rule)
	case *ast.Blockquote:
		if t.quote {
			return t.blocks(n, depth)
		}
		t.quote = true
		inner := t.blocks(n, depth)
		t.quote = false
		return t.style.quote(inner)
	case *ast.List:
		return t.list(n, depth)
	case *ast.LinkReferenceDefinition:
		return ""
	default:
		return t.blocks(n, depth)
	}
}

func (t *tree) lines(n ast.Node) string {
	var b strings.Builder
	lines := n.Lines()
	for i := range lines.Len() {
		seg := lines.At(i)
		b.Write(seg.Value(t.src))
	}
	return b.String()
}

// list renders items as lines, nested lists indented. Only the first line of an item has the
// marker: what follows stays at the left, because an indentation would end up in code blocks.
func (t *tree) list(l *ast.List, depth int) string {
	gap := "\n\n"
	if l.IsTight {
		gap = "\n"
	}
	indent := strings.Repeat("  ", min(depth, deepestList))
	number := l.Start
	var b strings.Builder
	for item := l.FirstChild(); item != nil; item = item.NextSibling() {
		if b.Len() > 0 {
			b.WriteString(gap)
		}
		b.WriteString(indent)
		if l.IsOrdered() {
			b.WriteString(strconv.Itoa(number) + ". ")
			number++
		} else {
			b.WriteString(bullet)
		}
		for n := item.FirstChild(); n != nil; n = n.NextSibling() {
			if n.PreviousSibling() != nil {
				b.WriteString(gap)
			}
			b.WriteString(t.block(n, depth+1))
		}
	}
	return b.String()
}

func (t *tree) inlines(parent ast.Node) string {
	var b strings.Builder
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		b.WriteString(t.inline(n))
	}
	return b.String()
}

func (t *tree) inline(n ast.Node) string {
	switch n := n.(type) {
	case *ast.Text:
		s := t.style.text(unescape(string(n.Segment.Value(t.src))))
		if n.SoftLineBreak() || n.HardLineBreak() {
			s += "\n"
		}
		return s
	case *ast.String:
		return t.style.text(string(n.Value))
	case *ast.CodeSpan:
		code := t.rawText(n)
		if t.link {
			return t.style.text(code)
		}
		return t.style.code(code)
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
		label := string(n.Label(t.src))
		if t.link {
			return t.style.text(label)
		}
		return t.style.link(t.style.text(label), label, string(n.URL(t.src)))
	case *ast.RawHTML:
		return t.rawHTML(n)
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
	if strings.TrimSpace(inner) == "" {
		return inner
	}
	return t.style.span(k, inner)
}

// anchor renders a link or an image, which is a link to the picture.
func (t *tree) anchor(n ast.Node, target string) string {
	if t.link {
		return t.inlines(n)
	}
	plain := tree{src: t.src, style: plainStyle{}, link: true}
	label := strings.ReplaceAll(plain.inlines(n), "\n", " ")
	if strings.TrimSpace(label) == "" {
		return t.style.link(t.style.text(target), target, target)
	}
	t.link = true
	inner := t.inlines(n)
	t.link = false
	return t.style.link(inner, label, target)
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
	return t.style.text(b.String())
}

const punctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

// unescape resolves backslash escapes and character references, each at most once.
func unescape(s string) string {
	if !strings.ContainsAny(s, `\&`) {
		return s
	}
	const longest = 40 // of a character reference
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && strings.IndexByte(punctuation, s[i+1]) >= 0:
			i++
			b.WriteByte(s[i])
		case s[i] == '&':
			end := strings.IndexByte(s[i:min(i+longest, len(s))], ';')
			if end < 0 {
				b.WriteByte('&')
				continue
			}
			b.WriteString(printable(html.UnescapeString(s[i : i+end+1])))
			i += end
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}
