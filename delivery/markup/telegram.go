package markup

import "strings"

// telegramStyle writes Telegram's HTML parse mode. The platform knows the tags used here and the
// four references of htmlEscaper; anything else rejects the whole message.
type telegramStyle struct{}

var htmlEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

var telegramTags = [...]string{bold: "b", italic: "i", strike: "s", spoiler: "tg-spoiler"}

func (telegramStyle) manner() manner { return manner{rule: rule, indent: "  "} }

func (telegramStyle) text(s string) string { return htmlEscaper.Replace(s) }

func (telegramStyle) label(s string) string { return htmlEscaper.Replace(s) }

func (telegramStyle) span(k span, inner string) string {
	return "<" + telegramTags[k] + ">" + inner + "</" + telegramTags[k] + ">"
}

func (t telegramStyle) code(s string) string { return "<code>" + t.text(s) + "</code>" }

func (t telegramStyle) block(language, body string) string {
	if body = t.text(body); body == "" {
		return ""
	}
	if language = languageName(language); language == "" || len(language) > 32 {
		return "<pre>" + body + "</pre>"
	}
	return `<pre><code class="language-` + language + `">` + body + "</code></pre>"
}

func (t telegramStyle) link(inner, _, target string) string {
	return `<a href="` + t.text(target) + `">` + inner + "</a>"
}

func (t telegramStyle) heading(_ int, inner string) string { return t.span(bold, inner) }

// quote writes a quote; one inside of another is not possible and gets the usual mark.
func (t telegramStyle) quote(inner string, nested bool) string {
	switch {
	case inner == "":
		return ""
	case !nested:
		return "<blockquote>" + inner + "</blockquote>"
	case strings.Contains(inner, "<pre>"):
		return inner
	default:
		return quoteLines(inner, t.text("> "))
	}
}

func (telegramStyle) item(m itemMark) string { return m.symbol() }

func (t telegramStyle) table(tr *tree, n *tableNode) string {
	return t.block("", strings.TrimRight(tr.grid(n, plainStyle{}).aligned(), "\n"))
}

func (telegramStyle) lines(inner string) string { return inner }

func (telegramStyle) quiet(inner string) string { return inner }

func (telegramStyle) finish(s string) string { return s }

// languageName returns the language of a code block if it is a plain name, "" otherwise.
func languageName(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !isWord(r) && !strings.ContainsRune("+-#._", r) }) {
		return ""
	}
	return s
}

// telegramSpans counts the entities that Telegram makes of a text: one for each tag that opens, but that
// which names the language of a block.
func telegramSpans(html string) int {
	return strings.Count(html, "<") - strings.Count(html, "</") - strings.Count(html, "<pre><code")
}
