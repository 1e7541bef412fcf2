package markup

import (
	"regexp"
	"strings"
)

// mrkdwnStyle writes Slack's mrkdwn. Slack has no escape for its own emphasis characters; the three
// references keep text from becoming a mention, a broadcast or a link.
type mrkdwnStyle struct{}

var (
	mrkdwnEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	mrkdwnTarget  = strings.NewReplacer("&", "&amp;", "<", "%3C", ">", "%3E", "|", "%7C")
	mrkdwnMarks   = [...]string{bold: "*", italic: "_", strike: "~", spoiler: ""}

	// broadcast is what notifies people: <!channel>, <!subteam^S1>, <@U1>, @everyone.
	broadcast = regexp.MustCompile(`<!(?:channel|here|everyone|group|subteam)|<@[A-Z0-9]|@(?:channel|here|everyone)\b`)
)

func (mrkdwnStyle) text(s string) string { return mrkdwnEscaper.Replace(quietBroadcasts(s)) }

func (mrkdwnStyle) span(k span, inner string) string { return mrkdwnMarks[k] + inner + mrkdwnMarks[k] }

func (mrkdwnStyle) code(s string) string {
	return "`" + mrkdwnEscaper.Replace(strings.ReplaceAll(s, "`", "ˋ")) + "`"
}

func (mrkdwnStyle) block(_, body string) string {
	body = strings.ReplaceAll(strings.TrimRight(body, "\n"), "```", "``"+zeroWidth+"`")
	if body == "" {
		return ""
	}
	return "```\n" + mrkdwnEscaper.Replace(body) + "\n```"
}

func (s mrkdwnStyle) link(inner, label, target string) string {
	if !webLink(target) {
		return withTarget(inner, label, s.text(target), target)
	}
	if label == target {
		return "<" + mrkdwnTarget.Replace(target) + ">"
	}
	return "<" + mrkdwnTarget.Replace(target) + "|" + s.text(strings.ReplaceAll(label, "|", "¦")) + ">"
}

func (mrkdwnStyle) quote(inner string) string { return quoteLines(inner) }

// quietBroadcasts makes mentions harmless without changing what is to be seen
// (spec/chat.md §8, S5).
func quietBroadcasts(s string) string {
	return broadcast.ReplaceAllStringFunc(s, func(m string) string { return m[:1] + zeroWidth + m[1:] })
}

func quoteLines(inner string) string {
	if inner == "" {
		return ""
	}
	return "> " + strings.ReplaceAll(inner, "\n", "\n> ")
}
