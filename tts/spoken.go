package tts

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Bounds that keep the work for hostile texts small.
const (
	longestMarkdown = 24 << 10 // bytes; what is behind is not spoken
	deepestMarkdown = 16       // quotes and lists inside of each other
)

const codeOmitted = "(code omitted)"

// markdown reads what models write. It keeps no state between texts.
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
	parser.WithInlineParsers(
		util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
		util.Prioritized(parser.NewCodeSpanParser(), 100),
		util.Prioritized(parser.NewLinkParser(), 200),
		util.Prioritized(parser.NewAutoLinkParser(), 300),
		util.Prioritized(parser.NewRawHTMLParser(), 400),
		util.Prioritized(parser.NewEmphasisParser(), 500),
		util.Prioritized(extension.NewStrikethroughParser(), 500),
		util.Prioritized(extension.NewLinkifyParser(), 999),
	),
	parser.WithParagraphTransformers(
		util.Prioritized(parser.LinkReferenceParagraphTransformer, 100),
		util.Prioritized(extension.NewTableParagraphTransformer(), 200),
	),
	parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
)

// shallow keeps blocks from nesting without end.
type shallow struct{ parser.BlockParser }

// Open implements parser.BlockParser.
func (s shallow) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	depth := 0
	for n := parent; n != nil; n = n.Parent() {
		depth++
	}
	if depth > 2*deepestMarkdown {
		return nil, parser.NoChildren
	}
	return s.BlockParser.Open(parent, reader, pc)
}

// speakable turns Markdown into words that can be read aloud, a line for each block: no markup, a host
// for an address, a remark for code, no emoji (spec/chat.md §4.2). "" = there are no words, or nothing
// but code.
func speakable(md string) (words string) {
	if strings.TrimSpace(md) == "" {
		return ""
	}
	defer func() {
		if recover() != nil { // a stranger's text met a fault of the parser
			words = plainWords(clip(md, longestMarkdown))
		}
	}()
	r := reader{src: []byte(clip(plainText(md), longestMarkdown))}
	_ = ast.Walk(markdown.Parse(text.NewReader(r.src)), r.visit) // visit returns no errors
	var lines []string
	words = ""
	for line := range strings.SplitSeq(r.out.String(), "\n") {
		line = plainWords(line)
		if line == "" || line == codeOmitted && len(lines) > 0 && lines[len(lines)-1] == codeOmitted {
			continue
		}
		lines = append(lines, line)
		if line != codeOmitted && strings.IndexFunc(line, isSaid) >= 0 {
			words = line
		}
	}
	if words == "" {
		return ""
	}
	return strings.Join(lines, "\n")
}

// isSaid reports whether a character is more than punctuation.
func isSaid(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// reader writes down what of a parsed text is read aloud.
type reader struct {
	src []byte
	out strings.Builder
}

func (r *reader) visit(n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		r.leave(n)
		return ast.WalkContinue, nil
	}
	switch n := n.(type) {
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		r.out.WriteString("\n" + codeOmitted + "\n")
		return ast.WalkSkipChildren, nil
	case *ast.Text:
		r.out.Write(util.UnescapePunctuations(util.ResolveEntityNames(util.ResolveNumericReferences(n.Segment.Value(r.src)))))
		if n.SoftLineBreak() {
			r.out.WriteByte(' ')
		}
		if n.HardLineBreak() {
			r.out.WriteByte('\n')
		}
	case *ast.String:
		r.out.Write(n.Value)
	case *ast.CodeSpan:
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			if t, ok := c.(*ast.Text); ok {
				r.out.Write(t.Segment.Value(r.src))
			}
		}
		return ast.WalkSkipChildren, nil
	case *ast.AutoLink:
		r.out.WriteString(address(string(n.URL(r.src)), string(n.Label(r.src))))
		return ast.WalkSkipChildren, nil
	case *extast.Strikethrough: // was taken back
		return ast.WalkSkipChildren, nil
	case *ast.RawHTML:
		r.out.WriteByte(' ')
		return ast.WalkSkipChildren, nil
	}
	return ast.WalkContinue, nil
}

// leave ends an element. A line ends where a voice should pause.
func (r *reader) leave(n ast.Node) {
	switch n := n.(type) {
	case *extast.TableCell:
		if n.NextSibling() != nil {
			r.out.WriteString(", ")
		}
	case *extast.TableRow, *extast.TableHeader:
		r.out.WriteByte('\n')
	default:
		if n.Type() == ast.TypeBlock {
			r.out.WriteByte('\n')
		}
	}
}

// address is how an address is read aloud: its host.
func address(target, label string) string {
	u, err := url.Parse(target)
	if err != nil || u.Hostname() == "" { // a mail address
		return label
	}
	return strings.TrimPrefix(u.Hostname(), "www.")
}

// plainText replaces what no parser should see.
func plainText(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || r == utf8.RuneError) {
			return -1
		}
		return r
	}, s)
}

// plainWords returns the words of one line: without emoji and control characters, single blanks.
func plainWords(s string) string {
	joined := false
	s = strings.Map(func(r rune) rune {
		emoji := isEmoji(r) || joined && r == '\u200d' // joins emoji, and letters of some scripts
		joined = emoji
		switch {
		case emoji, unicode.IsControl(r) && !unicode.IsSpace(r), unicode.Is(bidi, r):
			return -1
		case unicode.IsSpace(r):
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return strings.Join(strings.Fields(s), " ")
}

// bidi are invisible characters that steer the direction of text, and the byte order mark.
var bidi = &unicode.RangeTable{R16: []unicode.Range16{{0x200e, 0x200f, 1}, {0x202a, 0x202e, 1}, {0x2066, 0x2069, 1}, {0xfeff, 0xfeff, 1}}}

// emoji are the blocks of pictures and what belongs to them: selectors, key caps, tags.
var emoji = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x20e3, 0x20e3, 1}, {0x231a, 0x231b, 1}, {0x23e9, 0x23fa, 1}, {0x25fd, 0x25fe, 1}, {0x2600, 0x27bf, 1}, {0x2b00, 0x2bff, 1}, {0xfe0e, 0xfe0f, 1},
	},
	R32: []unicode.Range32{{0x1f000, 0x1faff, 1}, {0xe0020, 0xe007f, 1}},
}

func isEmoji(r rune) bool { return r >= 0x20e3 && unicode.Is(emoji, r) }

// clip returns at most n bytes of s, whole characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// shorten returns at most n characters of words. It ends with a sentence where one ends in the second
// half, else with a word.
func shorten(words string, n int) string {
	if utf8.RuneCountInString(words) <= n {
		return words
	}
	end := 0
	for i := range words {
		if n--; n < 0 {
			end = i
			break
		}
	}
	cut := words[:end]
	stop := 0 // behind the last sentence
	for i, r := range cut {
		after := i + utf8.RuneLen(r)
		switch next := words[after]; r {
		case '.', '!', '?':
			if next == ' ' || next == '\n' {
				stop = after
			}
		case '。', '！', '？':
			stop = after
		case '\n':
			stop = i
		}
	}
	if stop > len(cut)/2 {
		return strings.TrimSpace(cut[:stop])
	}
	if i := strings.LastIndexAny(words[:end+1], " \n"); i > len(cut)/2 {
		cut = cut[:i]
	}
	return strings.TrimSpace(cut)
}
