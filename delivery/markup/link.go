package markup

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// anchor renders a link or an image, which is a link to the picture. What a link shows must not
// say that it leads elsewhere, and only web addresses are links: other schemes could mention
// people or start programs (spec/chat.md §8).
func (t *tree) anchor(n ast.Node, target string) string {
	if t.link {
		return t.inlines(n)
	}
	plain := tree{src: t.src, style: plainStyle{}, link: true}
	label := strings.Join(strings.Fields(plain.inlines(n)), " ")
	t.link = true
	inner := strings.TrimSpace(t.inlines(n))
	t.link = false
	target = strings.ReplaceAll(target, " ", "%20")
	switch harmful := isHarmful(target); {
	case !visible(label) && harmful:
		return t.text("(link)")
	case !visible(label):
		return t.autoLink(target, target)
	case harmful:
		return inner
	case !webLink(target):
		return inner + t.behind(label, target)
	case isDeceptive(label, target):
		return inner + t.text(" (") + t.style.link(t.style.label(target), target, target) + t.text(")")
	default:
		return t.style.link(inner, label, target)
	}
}

// autoLink renders an address that shows itself.
func (t *tree) autoLink(label, target string) string {
	switch {
	case t.link || !webLink(target):
		return t.text(label)
	default:
		return t.style.link(t.style.label(label), label, target)
	}
}

// longestAddress bounds an address that is shown as text, in bytes.
const longestAddress = 300

// behind shows the target of something that cannot be a link, unless its label says the same.
func (t *tree) behind(label, target string) string {
	if target == "" || len(target) > longestAddress || sameAddress(label, target) {
		return ""
	}
	return t.text(" (" + target + ")")
}

func sameAddress(label, target string) bool {
	return label == target || "mailto:"+label == target || "http://"+label == target || "https://"+label == target
}

// harmfulSchemes are those whose addresses are not even shown: they run something, hold something,
// or mean a person.
var harmfulSchemes = regexp.MustCompile(`(?i)^\s*(?:javascript|vbscript|data|blob|file|tg|ton|slack|discord|intent)\s*:`)

func isHarmful(target string) bool { return harmfulSchemes.MatchString(revealed(target)) }

// webLink reports whether a target is something to be opened in a browser.
func webLink(target string) bool {
	u, err := url.Parse(target)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && !strings.ContainsAny(target, " \n\t")
}

// address is a text that looks like the address of a site.
var address = regexp.MustCompile(`(?i)^(https?://|www\.)?(?:[^\s/@:?#]*@)?((?:[\p{L}\p{N}_-]+\.)+(\p{L}{2,18}|xn--[a-z0-9-]+))\.?(?::\d+)?(?:[/?#]\S*)?$`)

// siteEnds are endings that make a bare name the name of a site. Others, such as .md and .go, are
// as often those of files.
var siteEnds = regexp.MustCompile(`(?i)^(?:com|org|net|edu|gov|mil|int|io|co|dev|app|ai|me|info|biz|xyz|online|site|shop|store|cloud|tech|uk|de|fr|it|es|nl|be|ch|at|pl|cz|se|no|fi|dk|eu|us|ca|au|nz|jp|kr|cn|tw|hk|in|br|mx|ru|ua|tr|il|za|ir)$`)

// isDeceptive reports whether a label is the address of another site than the target's.
func isDeceptive(label, target string) bool {
	if strings.HasSuffix(target, "/"+label) {
		return false // a file that is called like a site
	}
	for word := range strings.FieldsSeq(strings.Trim(label, "<>()[]\"'“”«»")) {
		m := address.FindStringSubmatch(strings.Trim(word, "<>()[]\"'“”«»,;:!?"))
		if m == nil || m[1] == "" && !siteEnds.MatchString(m[3]) {
			continue
		}
		u, err := url.Parse(target)
		if err != nil {
			return true
		}
		says, leads := strings.ToLower(strings.TrimPrefix(m[2], "www.")), strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
		if leads != says && !strings.HasSuffix(leads, "."+says) {
			return true
		}
	}
	return false
}

// isInvisible reports whether a character shows nothing and only changes what is around it.
func isInvisible(r rune) bool {
	switch {
	case r == '\u00AD', r == '\u061C', r == '\u180E', r == '\uFEFF', r >= '\u200B' && r <= '\u200F',
		r >= '\u202A' && r <= '\u202E', r >= '\u2060' && r <= '\u206F':
		return true
	}
	return false
}

// revealed removes from the text of a link what only makes it look like something else. Joiners
// stay, because emoji and many scripts need them.
func revealed(s string) string {
	return strings.Map(func(r rune) rune {
		if isInvisible(r) && r != joiner && r != '\u200c' {
			return -1
		}
		return r
	}, s)
}
