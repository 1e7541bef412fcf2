package markup

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"
)

const rule = "──────────"

// block is a rendered block.
type block struct {
	text  string
	kind  blockKind
	loose bool // a blank line stood above it
	list  byte // the mark of the list it is
}

type blockKind uint8

const (
	paragraph blockKind = iota
	heading
	codeBlock // its lines are not to be touched
	quotation
	listing
	tabular
)

// blocks renders the children of a block.
func (t *tree) blocks(parent ast.Node, depth int) []block {
	var out []block
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		loose := n.HasBlankPreviousLines()
		if t.above = 0; len(out) > 0 {
			t.above = out[len(out)-1].list
		}
		for _, b := range t.block(n, depth) {
			if b.text != "" {
				b.loose = b.loose || loose
				out = append(out, b)
				loose = false
			}
		}
	}
	return out
}

func (t *tree) block(n ast.Node, depth int) []block {
	one := func(k blockKind, s string) []block { return []block{{text: s, kind: k}} }
	switch n := n.(type) {
	case *ast.Heading:
		t.within[bold] = true
		inner := strings.ReplaceAll(t.inlines(n), "\n", " ")
		t.within[bold] = false
		if strings.TrimSpace(inner) == "" {
			return nil
		}
		return one(heading, t.style.heading(n.Level, t.style.quiet(inner)))
	case *ast.Paragraph, *ast.TextBlock:
		return one(paragraph, t.style.lines(strings.Trim(t.inlines(n), "\n")))
	case *ast.FencedCodeBlock:
		return one(codeBlock, t.style.block(string(n.Language(t.src)), t.lines(n)))
	case *ast.CodeBlock:
		return one(codeBlock, t.style.block("", t.lines(n)))
	case *ast.ThematicBreak:
		return one(heading, t.style.manner().rule)
	case *ast.Blockquote:
		return t.quotation(n)
	case *ast.List:
		return t.list(n, depth)
	case *tableNode:
		return one(tabular, t.style.table(t, n))
	case *ast.LinkReferenceDefinition:
		return t.definition(n)
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
	return strings.Trim(b.String(), "\n")
}

// definition shows the definition of a link that no link refers to: perhaps it was meant as text.
func (t *tree) definition(n *ast.LinkReferenceDefinition) []block {
	if t.part.used[string(normalised(n.Label))] {
		return nil
	}
	s := "[" + strings.TrimPrefix(unescape(string(n.Label)), "^") + "]: "
	target := unescape(string(n.Destination))
	text := t.text(s) + t.autoLink(target, target)
	if len(n.Title) > 0 {
		text += t.text(` "` + unescape(string(n.Title)) + `"`)
	}
	return []block{{text: t.style.lines(text), kind: paragraph}}
}

// normalised is the form in which labels of definitions are compared.
func normalised(label []byte) []byte { return []byte(util.ToLinkReference(label)) }

// quotation renders a quote. Code leaves it where the dialect cannot quote code.
func (t *tree) quotation(n *ast.Blockquote) []block {
	nested := t.quote
	t.quote = true
	inner := t.blocks(n, 0)
	t.quote = nested
	m := t.style.manner()
	var out []block
	for from := 0; from < len(inner); {
		if m.liftsCode && inner[from].kind.code() {
			out = append(out, inner[from])
			from++
			continue
		}
		to := from + 1
		for to < len(inner) && (!m.liftsCode || !inner[to].kind.code()) {
			to++
		}
		loose := inner[from].loose && from > 0
		out = append(out, block{text: t.style.quote(join(inner[from:to], m), nested), kind: quotation, loose: loose})
		from = to
	}
	return out
}

// join puts blocks below each other, with a blank line where one stood in the source.
func join(blocks []block, m manner) string {
	var b strings.Builder
	for i, x := range blocks {
		if i > 0 {
			b.WriteByte('\n')
			if x.loose || m.commonMark && apart(blocks[i-1].kind, x.kind) {
				b.WriteByte('\n')
			}
		}
		b.WriteString(x.text)
	}
	return b.String()
}

// apart reports whether CommonMark would take two blocks for one without a blank line.
func apart(a, b blockKind) bool {
	return a == quotation || a == listing || a == tabular || b == tabular || a == paragraph && b == paragraph
}

// list renders items, what belongs to an item indented. Where code blocks are not part of an item
// they stand at the left, because the indentation would end up in the code.
func (t *tree) list(l *ast.List, depth int) []block {
	m := t.style.manner()
	mark := itemMark{depth: depth, number: -1, char: l.Marker}
	if l.IsOrdered() {
		mark.number = l.Start
	}
	if t.above == mark.char { // or two lists would become one
		mark.char = map[byte]byte{'-': '*', '*': '-', '+': '-', '.': ')', ')': '.'}[mark.char]
	}
	var out []block
	for item := l.FirstChild(); item != nil; item = item.NextSibling() {
		mark.task = taskOf(item)
		blocks := t.item(t.blocks(item, depth+1), mark)
		blocks[0].loose = len(out) > 0 && !l.IsTight && (item.HasBlankPreviousLines() || m.commonMark)
		out = append(out, blocks...)
		if mark.number >= 0 {
			mark.number++
		}
	}
	if m.commonMark {
		return []block{{text: join(out, manner{}), kind: listing, list: mark.char}}
	}
	return out
}

// item puts the mark in front of an item and indents it.
func (t *tree) item(inner []block, mark itemMark) []block {
	m := t.style.manner()
	sign := t.style.item(mark)
	indent := m.indent
	if indent == "" {
		indent = strings.Repeat(" ", strings.IndexByte(sign, ' ')+1)
	}
	if mark.depth >= deepestIndent {
		indent = ""
	}
	if m.commonMark {
		return []block{{text: strings.TrimRight(sign+indented(join(inner, m), indent), " "), kind: listing}}
	}
	if len(inner) == 0 || inner[0].kind.solid() {
		inner = append([]block{{kind: listing}}, inner...)
	}
	for i, x := range inner {
		switch {
		case i == 0:
			inner[0].text = strings.TrimRight(sign+indented(x.text, indent), " ")
		case !x.kind.solid():
			inner[i].text = indent + indented(x.text, indent)
		}
		if !x.kind.solid() {
			inner[i].kind = listing
		}
	}
	return inner
}

// deepestIndent is the depth behind which lists are not indented further.
const deepestIndent = 8

// solid reports whether the lines of a block are not to be touched.
func (k blockKind) solid() bool { return k == codeBlock || k == tabular || k == quotation }

// code reports whether a block is code where a dialect has no tables.
func (k blockKind) code() bool { return k == codeBlock || k == tabular }

// indented indents all lines but the first.
func indented(text, indent string) string {
	if indent == "" {
		return text
	}
	text = strings.ReplaceAll(text, "\n", "\n"+indent)
	return strings.ReplaceAll(text, "\n"+indent+"\n", "\n\n")
}

// taskOf reads the box of an item.
func taskOf(item ast.Node) task {
	if item.FirstChild() == nil {
		return noTask
	}
	box, ok := item.FirstChild().FirstChild().(*extast.TaskCheckBox)
	switch {
	case !ok:
		return noTask
	case box.IsChecked:
		return doneTask
	default:
		return openTask
	}
}
