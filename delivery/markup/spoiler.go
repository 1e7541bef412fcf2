package markup

import (
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// spoilerNode is text between double bars, ||hidden||, as Discord writes it.
type spoilerNode struct{ ast.BaseInline }

var spoilerKind = ast.NewNodeKind("Spoiler")

// Kind implements ast.Node.
func (*spoilerNode) Kind() ast.NodeKind { return spoilerKind }

// Dump implements ast.Node.
func (n *spoilerNode) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

// spoilerParser finds spoilers the way emphasis is found: a bar with a space behind it opens
// nothing, so "a || b" stays what it is.
type spoilerParser struct{}

// Trigger implements parser.InlineParser.
func (spoilerParser) Trigger() []byte { return []byte{'|'} }

// Parse implements parser.InlineParser.
func (spoilerParser) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	line, segment := block.PeekLine()
	d := parser.ScanDelimiter(line, before, 2, spoilerDelimiters{})
	if d == nil || d.OriginalLength != 2 || before == '|' {
		return nil
	}
	d.Segment = segment.WithStop(segment.Start + d.OriginalLength)
	block.Advance(d.OriginalLength)
	pc.PushDelimiter(d)
	return d
}

type spoilerDelimiters struct{}

// IsDelimiter implements parser.DelimiterProcessor.
func (spoilerDelimiters) IsDelimiter(b byte) bool { return b == '|' }

// CanOpenCloser implements parser.DelimiterProcessor.
func (spoilerDelimiters) CanOpenCloser(opener, closer *parser.Delimiter) bool {
	return opener.Char == closer.Char && opener.Length == closer.Length
}

// OnMatch implements parser.DelimiterProcessor.
func (spoilerDelimiters) OnMatch(int) ast.Node { return &spoilerNode{} }
