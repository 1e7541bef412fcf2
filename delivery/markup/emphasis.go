package markup

import (
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// spoilerNode is text between double bars, ||hidden||, as Discord writes it.
type spoilerNode struct{ ast.BaseInline }

var spoilerKind = ast.NewNodeKind("Spoiler")

// Kind implements ast.Node.
func (*spoilerNode) Kind() ast.NodeKind { return spoilerKind }

// Dump implements ast.Node.
func (n *spoilerNode) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

// doubledParser finds spoilers and strikethrough: text between two bars or two tildes. A single
// one means nothing, so that "a | b" and "10~20, 30~40" stay what they are.
type doubledParser struct{ char byte }

// Trigger implements parser.InlineParser.
func (p doubledParser) Trigger() []byte { return []byte{p.char} }

// Parse implements parser.InlineParser.
func (p doubledParser) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	line, segment := block.PeekLine()
	d := parser.ScanDelimiter(line, before, 2, p)
	if d == nil || d.OriginalLength != 2 || before == rune(p.char) {
		return nil
	}
	return push(d, block, segment, pc)
}

// IsDelimiter implements parser.DelimiterProcessor.
func (p doubledParser) IsDelimiter(b byte) bool { return b == p.char }

// CanOpenCloser implements parser.DelimiterProcessor.
func (doubledParser) CanOpenCloser(opener, closer *parser.Delimiter) bool {
	return opener.Char == closer.Char && opener.Length == closer.Length
}

// OnMatch implements parser.DelimiterProcessor.
func (p doubledParser) OnMatch(int) ast.Node {
	if p.char == '|' {
		return &spoilerNode{}
	}
	return extast.NewStrikethrough()
}

// emphasisParser finds bold and italic text by the rules of CommonMark, with two differences that
// what models write asks for: a star between letters or digits is a star (2*3*4), and bold text
// may end in punctuation where no space follows, as in Chinese and Japanese.
type emphasisParser struct{}

// Trigger implements parser.InlineParser.
func (emphasisParser) Trigger() []byte { return []byte{'*', '_'} }

// Parse implements parser.InlineParser.
func (p emphasisParser) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	line, segment := block.PeekLine()
	d := parser.ScanDelimiter(line, before, 1, p)
	if d == nil {
		return nil
	}
	after := ' '
	if d.OriginalLength < len(line) {
		after, _ = utf8.DecodeRune(line[d.OriginalLength:])
	}
	switch {
	case line[0] == '*' && isOperator(before, after, d.OriginalLength):
		last := pc.LastDelimiter()
		d.CanClose = d.OriginalLength == 1 && last != nil && last.Char == '*' && !isDigit(before) && !isDigit(after) // *word*s
		d.CanOpen = false
	case line[0] == '*' && (isCJK(before) || isCJK(after)):
		space := util.IsSpaceRune(after)
		d.CanOpen = d.CanOpen || !space && isCJK(before)
		d.CanClose = d.CanClose || !util.IsSpaceRune(before) && isCJK(after)
	}
	return push(d, block, segment, pc)
}

// IsDelimiter implements parser.DelimiterProcessor.
func (emphasisParser) IsDelimiter(b byte) bool { return b == '*' || b == '_' }

// CanOpenCloser implements parser.DelimiterProcessor.
func (emphasisParser) CanOpenCloser(opener, closer *parser.Delimiter) bool {
	return opener.Char == closer.Char
}

// OnMatch implements parser.DelimiterProcessor.
func (emphasisParser) OnMatch(consumes int) ast.Node { return ast.NewEmphasis(consumes) }

// isOperator reports whether stars between two characters calculate: one between letters or
// digits, two next to a digit.
func isOperator(before, after rune, stars int) bool {
	return isWord(before) && isWord(after) && (stars == 1 || stars == 2 && (isDigit(before) || isDigit(after)))
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

// isWord reports whether a character is an ASCII letter or digit.
func isWord(r rune) bool {
	return isDigit(r) || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

func isCJK(r rune) bool {
	return r >= 0x1100 && (unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) ||
		r >= 0x3000 && r <= 0x303F || r >= 0xFF01 && r <= 0xFF60)
}

var delimiterCount = parser.NewContextKey()

// push takes a delimiter into account, unless its paragraph has too many: then it is text.
func push(d *parser.Delimiter, block text.Reader, segment text.Segment, pc parser.Context) ast.Node {
	count := 0
	if pc.LastDelimiter() != nil {
		count, _ = pc.Get(delimiterCount).(int)
	}
	pc.Set(delimiterCount, count+1)
	d.Segment = segment.WithStop(segment.Start + d.OriginalLength)
	block.Advance(d.OriginalLength)
	if count >= mostDelimiters || !d.CanOpen && !d.CanClose {
		return ast.NewTextSegment(d.Segment)
	}
	pc.PushDelimiter(d)
	return d
}
