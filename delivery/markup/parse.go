package markup

import (
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Bounds that keep the work for hostile texts linear. What is beyond them is shown as it is
// written.
const (
	deepestNesting = 16       // quotes and lists inside of each other
	longestInlines = 24 << 10 // bytes of one paragraph; a longer one has no emphasis, links or code
	mostLines      = 500      // of a paragraph that may define links
	mostDelimiters = 1000     // characters that could start or end emphasis in one paragraph
)

// markdown is the parser of the Markdown that models write: CommonMark with tables, task lists,
// bare links, strikethrough, spoilers and footnotes, without HTML blocks. It holds no state
// between texts.
var markdown = parser.NewParser(
	parser.WithBlockParsers(
		util.Prioritized(parser.NewSetextHeadingParser(), 100),
		util.Prioritized(parser.NewThematicBreakParser(), 200),
		util.Prioritized(shallow{parser.NewListParser()}, 300),
		util.Prioritized(parser.NewListItemParser(), 400),
		util.Prioritized(parser.NewCodeBlockParser(), 500),
		util.Prioritized(parser.NewATXHeadingParser(), 600),
		util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
		util.Prioritized(shallow{parser.NewBlockquoteParser()}, 800),
		util.Prioritized(parser.NewParagraphParser(), 1000),
	),
	inlines(),
	parser.WithParagraphTransformers(
		util.Prioritized(definitions{parser.LinkReferenceParagraphTransformer}, 100),
		util.Prioritized(tableParser{}, 200),
	),
)

// oneLine is the parser of one line of text in which only inline Markdown has a meaning.
var oneLine = parser.NewParser(
	parser.WithBlockParsers(util.Prioritized(parser.NewParagraphParser(), 1000)),
	inlines(),
)

func inlines() parser.Option {
	return parser.WithInlineParsers(
		util.Prioritized(short{taskParser{extension.NewTaskCheckBoxParser()}}, 0),
		util.Prioritized(short{mathParser{}}, 50),
		util.Prioritized(short{parser.NewCodeSpanParser()}, 100),
		util.Prioritized(short{footnoteParser{}}, 150),
		util.Prioritized(short{parser.NewLinkParser()}, 200),
		util.Prioritized(short{parser.NewAutoLinkParser()}, 300),
		util.Prioritized(short{parser.NewRawHTMLParser()}, 400),
		util.Prioritized(short{nameParser{}}, 450),
		util.Prioritized(short{emphasisParser{}}, 500),
		util.Prioritized(short{doubledParser{'|'}}, 500),
		util.Prioritized(short{doubledParser{'~'}}, 500),
		util.Prioritized(short{extension.NewLinkifyParser()}, 999),
	)
}

// references are the link definitions of a whole text, for the parts it is cut into.
type references []parser.Reference

// parse parses a clean text, which knows the definitions of the text it is a part of too.
func parse(p parser.Parser, src []byte, refs references) (ast.Node, parser.Context) {
	pc := parser.NewContext()
	for _, r := range refs {
		pc.AddReference(r)
	}
	return p.Parse(text.NewReader(src), parser.WithContext(pc)), pc
}

// shallow keeps blocks from nesting without end.
type shallow struct{ parser.BlockParser }

// Open implements parser.BlockParser.
func (s shallow) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	depth := 0
	for n := parent; n != nil; n = n.Parent() {
		depth++
	}
	if depth > 2*deepestNesting {
		return nil, parser.NoChildren
	}
	return s.BlockParser.Open(parent, reader, pc)
}

// short leaves paragraphs alone that are too long to be looked at.
type short struct{ parser.InlineParser }

// Parse implements parser.InlineParser.
func (s short) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	if tooLong(parent) {
		return nil
	}
	return s.InlineParser.Parse(parent, block, pc)
}

func tooLong(parent ast.Node) bool {
	lines := parent.Lines()
	n := lines.Len()
	return n > 0 && lines.At(n-1).Stop-lines.At(0).Start > longestInlines
}

// CloseBlock implements parser.CloseBlocker for parsers that want to know where a paragraph ends.
func (s short) CloseBlock(parent ast.Node, block text.Reader, pc parser.Context) {
	if c, ok := s.InlineParser.(parser.CloseBlocker); ok {
		c.CloseBlock(parent, block, pc)
	}
}

// definitions leaves paragraphs alone that are too long to be definitions of links.
type definitions struct{ parser.ParagraphTransformer }

// Transform implements parser.ParagraphTransformer.
func (d definitions) Transform(node *ast.Paragraph, reader text.Reader, pc parser.Context) {
	if node.Lines().Len() <= mostLines {
		d.ParagraphTransformer.Transform(node, reader, pc)
	}
}
