package markup

import (
	"bytes"
	"regexp"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// literalNode is text in which nothing has a meaning, though it is no code: formulas and the marks
// of footnotes.
type literalNode struct {
	ast.BaseInline
	value []byte // what is shown
	stop  int    // where it ends in the source
}

var literalKind = ast.NewNodeKind("Literal")

// Kind implements ast.Node.
func (*literalNode) Kind() ast.NodeKind { return literalKind }

// Dump implements ast.Node.
func (n *literalNode) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

// longestLiteral bounds the search for the end of one, in bytes.
const longestLiteral = 400

// mathParser finds formulas, which no platform draws: they are shown as they were written, and an
// underscore or a star in them is no emphasis. Prices are no formulas: $5 and $10.
type mathParser struct{}

var (
	mathDollars = regexp.MustCompile(`^(?:\$\$[^$\n]+\$\$|\$[^\s$](?:[^$\n]*[^\s$\\])?\$)`)
	mathEscapes = regexp.MustCompile(`^(?:\\\([^\n]+?\\\)|\\\[[^\n]+?\\\])`)
	formula     = regexp.MustCompile(`\\[A-Za-z]|[\^_*{}=]`)
	command     = regexp.MustCompile(`\\[A-Za-z]|[\^=]|_\{?[A-Za-z0-9]`)
)

// Trigger implements parser.InlineParser.
func (mathParser) Trigger() []byte { return []byte{'$', '\\'} }

// Parse implements parser.InlineParser.
func (mathParser) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	line, segment := block.PeekLine()
	if len(line) < 2 {
		return nil
	}
	near := line[:min(len(line), longestLiteral)]
	marks, content := mathDollars, formula
	if line[0] == '\\' {
		if line[1] != '(' && line[1] != '[' {
			return nil
		}
		marks, content = mathEscapes, command
	}
	m := marks.Find(near)
	if m == nil || !content.Match(m[1:]) || line[0] == '$' && len(line) > len(m) && isDigit(rune(line[len(m)])) {
		return nil
	}
	block.Advance(len(m))
	return &literalNode{value: m, stop: segment.Start + len(m)}
}

// footnoteParser finds the marks of footnotes and of their texts, [^1], which are shown as [1].
type footnoteParser struct{}

var footnoteMark = regexp.MustCompile(`^\[\^([^\]\[\s^]{1,64})\]`)

// Trigger implements parser.InlineParser.
func (footnoteParser) Trigger() []byte { return []byte{'['} }

// Parse implements parser.InlineParser.
func (footnoteParser) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	line, segment := block.PeekLine()
	m := footnoteMark.FindSubmatch(line[:min(len(line), longestLiteral)])
	if m == nil {
		return nil
	}
	block.Advance(len(m[0]))
	return &literalNode{value: bytes.Join([][]byte{[]byte("["), m[1], []byte("]")}, nil), stop: segment.Start + len(m[0])}
}

// nameParser finds the names of Python that would be bold otherwise: __init__.py, x.__len__().
type nameParser struct{}

var (
	doubleName = regexp.MustCompile(`^__([a-z][a-z0-9_]{0,40}?)__`)
	knownNames = regexp.MustCompile(`^(?:init|main|name|file|all|str|repr|call|dict|class|new|del|enter|exit|iter|next|len|getitem|setitem|eq|hash|doc|slots|future|version|import|proto|dirname|filename)$`)
)

// Trigger implements parser.InlineParser.
func (nameParser) Trigger() []byte { return []byte{'_'} }

// Parse implements parser.InlineParser.
func (nameParser) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	line, segment := block.PeekLine()
	m := doubleName.FindSubmatch(line[:min(len(line), longestLiteral)])
	if m == nil {
		return nil
	}
	rest := line[len(m[0]):]
	attribute := before == '.' || len(rest) > 0 && rest[0] == '(' || len(rest) > 1 && rest[0] == '.' && isWord(rune(rest[1]))
	if !attribute && !knownNames.Match(m[1]) {
		return nil
	}
	block.Advance(len(m[0]))
	return &literalNode{value: m[0], stop: segment.Start + len(m[0])}
}

// taskParser finds the boxes of task lists, [ ] and [x]; a link of that name is none.
type taskParser struct{ parser.InlineParser }

// Parse implements parser.InlineParser.
func (p taskParser) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	const box = len("[x]")
	line, _ := block.PeekLine()
	if len(line) > box && line[box] != ' ' && line[box] != '\t' && line[box] != '\n' {
		return nil
	}
	return p.InlineParser.Parse(parent, block, pc)
}
