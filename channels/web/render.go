package web

import (
	"bytes"
	"fmt"
	"html"
	"net/url"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	markdown "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"
)

// Render turns a model's Markdown into HTML that is safe to insert into the page: HTML in the text
// is shown, not interpreted; links lead to http, https and mailto only, and tell the target
// nothing; images become links, because the page loads nothing from elsewhere. What cannot be
// rendered is shown as plain text.
func Render(text string) (safe string) {
	defer func() {
		if recover() != nil { // a stranger's text met a fault of the parser
			safe = plain(text)
		}
	}()
	if len(text) > maxRendered || deep(text) {
		return plain(text)
	}
	var b bytes.Buffer
	if err := newMarkdown().Convert([]byte(text), &b); err != nil {
		return plain(text)
	}
	return b.String()
}

// Parsing takes time that grows with the square of some hostile texts, so those are shown as they
// are: texts longer than any answer, lines nested deeper than anybody writes, and more links than
// anybody follows.
const (
	maxRendered = 64 << 10 // bytes
	maxNested   = 100      // characters of quote and list marks at the start of a line
	maxLinks    = 2000
)

// deep reports whether a line begins with too many marks, or the text may nest too many links.
func deep(text string) bool {
	if strings.Count(text, "](") > maxLinks {
		return true
	}
	for line := range strings.Lines(text) {
		marks := len(line) - len(strings.TrimLeft(line, "> -*+.)0123456789\t"))
		if marks-strings.Count(line[:marks], " ") > maxNested {
			return true
		}
	}
	return false
}

func plain(text string) string {
	return `<p class="plain">` + html.EscapeString(text) + "</p>\n"
}

func newMarkdown() goldmark.Markdown {
	return goldmark.New(
		goldmark.WithExtensions(
			// Inline styles are forbidden by the page's content policy: columns are aligned by attribute.
			extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
			extension.Strikethrough, extension.Linkify, extension.TaskList,
		),
		goldmark.WithRendererOptions(
			markdown.WithHardWraps(),
			renderer.WithNodeRenderers(util.Prioritized(safeNodes{}, 100)),
		),
	)
}

// safeNodes renders what goldmark's own renderer would trust too much.
type safeNodes struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (n safeNodes) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(ast.KindLink, n.link)
	reg.Register(ast.KindAutoLink, n.autoLink)
	reg.Register(ast.KindImage, n.image)
	reg.Register(ast.KindRawHTML, n.rawHTML)
	reg.Register(ast.KindHTMLBlock, n.htmlBlock)
}

func (safeNodes) link(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	anchor(w, string(node.(*ast.Link).Destination), entering)
	return ast.WalkContinue, nil
}

func (safeNodes) image(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	anchor(w, string(node.(*ast.Image).Destination), entering)
	return ast.WalkContinue, nil
}

func (safeNodes) autoLink(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	n := node.(*ast.AutoLink)
	target := string(n.URL(source))
	if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(target), "mailto:") {
		target = "mailto:" + target
	}
	anchor(w, target, true)
	_, _ = w.WriteString(html.EscapeString(string(n.Label(source))))
	anchor(w, target, false)
	return ast.WalkContinue, nil
}

// anchor writes the start or the end of a link; a target that is not allowed leaves a span.
func anchor(w util.BufWriter, target string, entering bool) {
	allowed := allowedTarget(target)
	switch {
	case allowed && entering:
		_, _ = fmt.Fprintf(w, `<a href="%s" target="_blank" rel="noopener noreferrer nofollow">`, html.EscapeString(target))
	case allowed:
		_, _ = w.WriteString("</a>")
	case entering:
		_, _ = w.WriteString(`<span class="nolink">`)
	default:
		_, _ = w.WriteString("</span>")
	}
}

func allowedTarget(target string) bool {
	u, err := url.Parse(target)
	if err != nil {
		return false
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		return u.Host != ""
	case "mailto":
		return true
	}
	return false
}

func (safeNodes) rawHTML(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		segments := node.(*ast.RawHTML).Segments
		for i := range segments.Len() {
			s := segments.At(i)
			_, _ = w.WriteString(html.EscapeString(string(s.Value(source))))
		}
	}
	return ast.WalkSkipChildren, nil
}

func (safeNodes) htmlBlock(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	n := node.(*ast.HTMLBlock)
	if !entering {
		if n.HasClosure() {
			_, _ = w.WriteString(html.EscapeString(string(n.ClosureLine.Value(source))))
		}
		_, _ = w.WriteString("</p>\n")
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString(`<p class="plain">`)
	lines := n.Lines()
	for i := range lines.Len() {
		s := lines.At(i)
		_, _ = w.WriteString(html.EscapeString(string(s.Value(source))))
	}
	return ast.WalkContinue, nil
}
