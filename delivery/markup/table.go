package markup

import (
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// widestPadding is the width up to which cells are padded; wider cells would only push their
// neighbours off the screen.
const widestPadding = 32

// tableNode is a table; its lines are its rows as they are written, the second is the row of
// dashes.
type tableNode struct{ ast.BaseBlock }

var tableKind = ast.NewNodeKind("Table")

// Kind implements ast.Node.
func (*tableNode) Kind() ast.NodeKind { return tableKind }

// IsRaw implements ast.Node.
func (*tableNode) IsRaw() bool { return true }

// Dump implements ast.Node.
func (n *tableNode) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

// tableParser makes tables of the paragraphs that are written like one. It makes no nodes of the
// cells, because a few rows of nothing but bars would become millions of them.
type tableParser struct{}

// delimiterRow is the second line of a table.
var delimiterRow = regexp.MustCompile(`^\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?$`)

// Transform implements parser.ParagraphTransformer.
func (tableParser) Transform(node *ast.Paragraph, reader text.Reader, _ parser.Context) {
	lines, src := node.Lines(), reader.Source()
	first := tableStart(lines, src)
	if first < 0 {
		return
	}
	table := &tableNode{}
	table.SetPos(lines.At(first).Start)
	table.SetBlankPreviousLines(first == 0 && node.HasBlankPreviousLines())
	end := first
	for ; end < lines.Len(); end++ {
		if row := lines.At(end); strings.Contains(string(row.Value(src)), "|") {
			table.Lines().Append(row)
			continue
		}
		break
	}
	parent := node.Parent()
	parent.InsertAfter(parent, node, table)
	if end < lines.Len() {
		rest := ast.NewParagraph()
		rest.SetPos(lines.At(end).Start)
		for i := end; i < lines.Len(); i++ {
			rest.Lines().Append(lines.At(i))
		}
		parent.InsertAfter(parent, table, rest)
	}
	lines.SetSliced(0, first)
	if first == 0 {
		parent.RemoveChild(parent, node)
		return
	}
	last := lines.At(first - 1)
	lines.Set(first-1, last.TrimRightSpace(src))
}

// tableStart returns the index of the first line that heads a table, -1 if there is none.
func tableStart(lines *text.Segments, src []byte) int {
	for i := 1; i < lines.Len(); i++ {
		line, head := lines.At(i), lines.At(i-1)
		dashes := strings.TrimSpace(string(line.Value(src)))
		if !strings.Contains(dashes, "|") || !delimiterRow.MatchString(dashes) {
			continue
		}
		header := string(head.Value(src))
		if strings.Contains(header, "|") && len(cells(header)) == len(cells(dashes)) {
			return i - 1
		}
	}
	return -1
}

// cells splits a row. A bar behind a backslash or in code belongs to its cell.
func cells(row string) []string {
	row = strings.TrimPrefix(strings.TrimSpace(row), "|")
	var out []string
	var cell strings.Builder
	for i := 0; i < len(row); i++ {
		switch {
		case row[i] == '\\' && i+1 < len(row):
			if row[i+1] != '|' {
				cell.WriteByte('\\')
			}
			cell.WriteByte(row[i+1])
			i++
		case row[i] == '`':
			code := codeSpan(row[i:])
			cell.WriteString(strings.ReplaceAll(code, `\|`, "|"))
			i += len(code) - 1
		case row[i] == '|':
			out = append(out, strings.TrimSpace(cell.String()))
			cell.Reset()
		default:
			cell.WriteByte(row[i])
		}
	}
	if last := strings.TrimSpace(cell.String()); last != "" || len(out) == 0 || !strings.HasSuffix(row, "|") {
		out = append(out, last)
	}
	return out
}

// codeSpan returns the code that s starts with, or only its backticks if it is not closed. It looks
// at few runs of backticks, which makes a row of them cheap.
func codeSpan(s string) string {
	const most = 8
	n := run(s)
	i := n
	for range most {
		j := strings.IndexByte(s[i:], '`')
		if j < 0 {
			break
		}
		i += j
		m := run(s[i:])
		if i += m; m == n {
			return s[:i]
		}
	}
	return s[:n]
}

// grid is a table as plain text: its cells without the row of dashes, and how each column is
// aligned.
type grid struct {
	rows  [][]string
	align []alignment
}

type alignment uint8

const (
	left alignment = iota
	right
	centre
)

// grid returns a table whose cells are rendered in a style.
func (t *tree) grid(n *tableNode, s style) grid {
	var g grid
	for i := range n.Lines().Len() {
		seg := n.Lines().At(i)
		row := cells(string(seg.Value(t.src)))
		if i == 1 {
			g.align = alignments(row)
			continue
		}
		for j, cell := range row {
			row[j] = t.cell(cell, s)
		}
		g.rows = append(g.rows, row)
	}
	return g
}

func alignments(dashes []string) []alignment {
	out := make([]alignment, len(dashes))
	for i, d := range dashes {
		switch {
		case !strings.HasSuffix(d, ":"):
		case strings.HasPrefix(d, ":"):
			out[i] = centre
		default:
			out[i] = right
		}
	}
	return out
}

// cell renders the text of a cell, which is one line.
func (t *tree) cell(md string, s style) string {
	if !strings.ContainsAny(md, "\\`*_~|[]<>&!$:@") {
		return s.text(md)
	}
	return strings.ReplaceAll(renderLine(md, s, t.part), "\n", " ")
}

// aligned writes a table for a font of fixed width.
func (g grid) aligned() string {
	var width []int
	for _, row := range g.rows {
		for j, cell := range row {
			if j == len(width) {
				width = append(width, 1)
			}
			width[j] = max(width[j], min(columnsOf(cell), widestPadding))
		}
	}
	var b strings.Builder
	for i, row := range g.rows {
		b.WriteString(g.padded(row, width))
		b.WriteByte('\n')
		if i == 0 {
			b.WriteString(ruler(width))
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func (g grid) padded(row []string, width []int) string {
	var b strings.Builder
	for j, cell := range row {
		if j > 0 {
			b.WriteString(" | ")
		}
		missing := max(0, width[j]-columnsOf(cell))
		before := 0
		if j < len(g.align) {
			switch g.align[j] {
			case right:
				before = missing
			case centre:
				before = missing / 2
			}
		}
		b.WriteString(strings.Repeat(" ", before))
		b.WriteString(cell)
		b.WriteString(strings.Repeat(" ", missing-before))
	}
	return strings.TrimRight(b.String(), " ")
}

func ruler(width []int) string {
	parts := make([]string, len(width))
	for j, w := range width {
		parts[j] = strings.Repeat("-", w)
	}
	return strings.Join(parts, "-+-")
}
