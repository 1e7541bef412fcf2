package markup

import (
	"net/url"
	"strings"
)

// telegramStyle writes Telegram's HTML parse mode. The platform knows the tags used here and the
// four references of htmlEscaper; anything else rejects the whole message.
type telegramStyle struct{}

var htmlEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

var telegramTags = [...]string{bold: "b", italic: "i", strike: "s", spoiler: "tg-spoiler"}

func (telegramStyle) text(s string) string { return htmlEscaper.Replace(s) }

func (telegramStyle) span(k span, inner string) string {
	return "<" + telegramTags[k] + ">" + inner + "</" + telegramTags[k] + ">"
}

func (t telegramStyle) code(s string) string { return "<code>" + t.text(s) + "</code>" }

func (t telegramStyle) block(language, body string) string {
	body = t.text(strings.TrimRight(body, "\n"))
	if body == "" {
		return ""
	}
	if language = languageName(language); language == "" {
		return "<pre>" + body + "</pre>"
	}
	return `<pre><code class="language-` + language + `">` + body + "</code></pre>"
}

func (t telegramStyle) link(inner, label, target string) string {
	if !webLink(target) {
		return withTarget(inner, label, t.text(target), target)
	}
	return `<a href="` + t.text(target) + `">` + inner + "</a>"
}

func (telegramStyle) quote(inner string) string {
	if inner == "" {
		return ""
	}
	return "<blockquote>" + inner + "</blockquote>"
}

// languageName returns the language of a code block if it is a plain name, "" otherwise.
func languageName(s string) string {
	const longest = 32
	ok := len(s) <= longest && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("+-#._", r)
	})
	if !ok {
		return ""
	}
	return s
}

// webLink reports whether a target is something to be opened in a browser; other schemes could
// mention people or start programs.
func webLink(target string) bool {
	u, err := url.Parse(target)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && !strings.ContainsAny(target, " \n\t")
}

// withTarget shows a link that cannot be one: its text, and its target unless that says the same.
func withTarget(inner, label, shown, target string) string {
	if target == "" || label == target || "mailto:"+label == target || "http://"+label == target || "https://"+label == target {
		return inner
	}
	return inner + " (" + shown + ")"
}
