package web

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"pgregory.net/rapid"
)

func TestRender(t *testing.T) {
	const link = ` target="_blank" rel="noopener noreferrer nofollow">`
	for name, c := range map[string]struct{ in, want string }{
		"emphasis":     {"a **b** *c* ~~d~~ `e`", "<p>a <strong>b</strong> <em>c</em> <del>d</del> <code>e</code></p>\n"},
		"line break":   {"a\nb", "<p>a<br>\nb</p>\n"},
		"link":         {"[x](https://e.org/?a=1&b=2)", `<p><a href="https://e.org/?a=1&amp;b=2"` + link + "x</a></p>\n"},
		"bare link":    {"see https://e.org.", `<p>see <a href="https://e.org"` + link + "https://e.org</a>.</p>\n"},
		"mail":         {"<me@e.org>", `<p><a href="mailto:me@e.org"` + link + "me@e.org</a></p>\n"},
		"script link":  {"[x](javascript:alert(1))", `<p><span class="nolink">x</span></p>` + "\n"},
		"data link":    {"[x](data:text/html,hi)", `<p><span class="nolink">x</span></p>` + "\n"},
		"our own link": {"[x](/login)", `<p><span class="nolink">x</span></p>` + "\n"},
		"image":        {"![pic](https://e.org/p.png)", `<p><a href="https://e.org/p.png"` + link + "pic</a></p>\n"},
		"inline HTML":  {"a <b onclick=x>c</b>", "<p>a &lt;b onclick=x&gt;c&lt;/b&gt;</p>\n"},
		"HTML block":   {"<script>\nalert(1)\n</script>", "<p class=\"plain\">&lt;script&gt;\nalert(1)\n&lt;/script&gt;</p>\n"},
		"code":         {"```go\na < b\n```", "<pre><code class=\"language-go\">a &lt; b\n</code></pre>\n"},
		"open fence":   {"```\nstill", "<pre><code>still\n</code></pre>\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Render(c.in); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestRenderAlignsWithoutStyle(t *testing.T) {
	got := Render("| a | b |\n| --- | ---: |\n| 1 | 2 |")
	if !strings.Contains(got, `<td align="right">2</td>`) || strings.Contains(got, "style") {
		t.Errorf("got %s", got)
	}
}

func TestRenderOfTooMuchIsPlain(t *testing.T) {
	for name, text := range map[string]string{
		"long":   strings.Repeat("*<", maxRendered),
		"quotes": "a\n" + strings.Repeat("> ", 200),
		"lists":  strings.Repeat("1. ", 100),
		"links":  strings.Repeat("[a](", maxLinks+1),
	} {
		if got := Render(text); !strings.HasPrefix(got, `<p class="plain">`) {
			t.Errorf("%s: %.40q", name, got)
		}
	}
	if got := Render("a rule\n\n" + strings.Repeat("-", 80)); !strings.Contains(got, "<hr>") {
		t.Errorf("a rule: %q", got)
	}
}

var allowed = map[string][]string{
	"p": {"class"}, "br": nil, "strong": nil, "em": nil, "del": nil, "code": {"class"}, "pre": nil, "a": {"href", "target", "rel"},
	"span": {"class"}, "ul": nil, "ol": {"start"}, "li": nil, "blockquote": nil, "hr": nil,
	"h1": nil, "h2": nil, "h3": nil, "h4": nil, "h5": nil, "h6": nil,
	"table": nil, "thead": nil, "tbody": nil, "tr": nil, "th": {"align"}, "td": {"align"},
	"input": {"type", "checked", "disabled"},
}

// unsafeNode names what a browser would build from HTML that must not be in the page.
func unsafeNode(fragment string) string {
	nodes, err := html.ParseFragment(strings.NewReader(fragment), &html.Node{Type: html.ElementNode, Data: "div", DataAtom: atom.Div})
	if err != nil {
		return err.Error()
	}
	bad := ""
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.CommentNode {
			bad = "comment"
		}
		if n.Type == html.ElementNode {
			attributes, known := allowed[n.Data]
			if !known {
				bad = "<" + n.Data + ">"
			}
			for _, a := range n.Attr {
				if !slices.Contains(attributes, a.Key) {
					bad = n.Data + " " + a.Key
				}
				if a.Key == "href" && !allowedTarget(a.Val) {
					bad = "href " + a.Val
				}
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	for _, n := range nodes {
		walk(n)
	}
	return bad
}

func TestRenderIsSafe(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"<", ">", "\"", "'", "&", "`", "```", "*", "_", "[", "]", "(", ")", "!", "|", "\n", "\n\n", " ", "- ", "> ", "# ", "1. ", "\\",
		"<script>", "</p>", "<!--", "-->", "<img src=x onerror=y>", "javascript:", "JaVaScRiPt&#58;", "data:", "https://e.org", "//e.org",
		"| a |\n| - |\n", "[x]", "(javascript:y)", "[r]: javascript:y\n", "<https://e.org/\"onx=y>", "<a@b.c>", "- [x] ", "\x00", "\u2028", "a",
	})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(t, "pieces"), "")
		if bad := unsafeNode(Render(text)); bad != "" {
			t.Fatalf("%q contains %s", Render(text), bad)
		}
	})
}

// TestUnsafeNodeCanFail shows that the check above notices what it must.
func TestUnsafeNodeCanFail(t *testing.T) {
	for _, bad := range []string{
		"<script>x</script>", "<p onclick=x>", `<a href="javascript:x">`, "<!-- x -->", `<td style="a">`, "<img src=x>", `<a href="/login">`,
	} {
		if strings.HasPrefix(bad, "<td") {
			bad = "<table><tr>" + bad
		}
		if unsafeNode(bad) == "" {
			t.Errorf("%s passes", bad)
		}
	}
}

func FuzzRender(f *testing.F) {
	f.Add("# a\n<b>\n```x\n[y](z)")
	f.Add("| a |\n|---|\n<td>")
	f.Fuzz(func(t *testing.T, text string) {
		if bad := unsafeNode(Render(text)); bad != "" {
			t.Errorf("%q contains %s", Render(text), bad)
		}
	})
}
