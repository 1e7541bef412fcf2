package markup

import (
	"strings"
	"unicode"
)

// Messages makes the messages of a text: tables expanded, split, rendered, and each checked
// against the visible limit; what is still too long is split again at half (spec/chat.md §2.5,
// rule 9). A text in which there is nothing to see gives no message.
func Messages(md string, d Dialect, l Limits) []Message {
	var out []Message
	for _, chunk := range Split(expand(md, d), l) {
		out = appendMessages(out, chunk, d, l)
	}
	return out
}

// leastRechunk is where splitting at half ends and the plain text is cut instead.
const leastRechunk = 64

func appendMessages(out []Message, chunk string, d Dialect, l Limits) []Message {
	m, seen := render(chunk, d)
	if !visible(m.Plain) {
		return out
	}
	if l.Visible == 0 || max(seen, Units(m.Plain)) <= l.Visible {
		return append(out, m)
	}
	half := l
	half.Units = Units(chunk) / 2
	if half.Units < leastRechunk {
		return appendPlain(out, m.Plain, d, l.Visible)
	}
	for _, part := range Split(chunk, half) {
		out = appendMessages(out, part, d, l)
	}
	return out
}

// appendPlain cuts text without markup to size; only the escaping is left to the dialect.
func appendPlain(out []Message, plain string, d Dialect, limit int) []Message {
	for plain != "" {
		head := prefix(plain, max(limit, leastLimit))
		plain = plain[len(head):]
		if visible(head) {
			out = append(out, Message{Text: escape(head, d), Plain: head, Source: head})
		}
	}
	return out
}

// Render renders one text without splitting it.
func Render(md string, d Dialect) string {
	m, _ := render(normalise(expand(md, d)), d)
	return m.Text
}

// render renders a normalised text and returns how much of it is to be seen. Markup that would
// leave nothing to see (a link definition, an empty code block) is shown as it was written.
func render(md string, d Dialect) (Message, int) {
	md = printable(md)
	m := Message{Text: md, Plain: md, Source: md}
	if d == Markdown { // passes through: nothing is parsed, whatever its length
		return m, Units(md)
	}
	m.Plain = renderTree(md, plainStyle{})
	if !visible(m.Plain) {
		m.Plain = md
		m.Text = escape(md, d)
		return m, Units(md)
	}
	switch d {
	case TelegramHTML:
		m.Text = renderTree(md, telegramStyle{})
		return m, htmlUnits(m.Text)
	case SlackMrkdwn:
		m.Text = renderTree(md, mrkdwnStyle{})
	case SlackMarkdown:
		m.Text = quietBroadcasts(md)
	case DiscordMarkdown:
		m.Text = smallHeadings(md)
	case Plain:
		m.Text = m.Plain
	}
	return m, Units(m.Text)
}

// escape returns text that shows itself in the dialect.
func escape(s string, d Dialect) string {
	switch d {
	case TelegramHTML:
		return telegramStyle{}.text(s)
	case SlackMrkdwn:
		return mrkdwnStyle{}.text(s)
	case SlackMarkdown:
		return quietBroadcasts(s)
	default:
		return s
	}
}

// visible reports whether a reader would see anything.
func visible(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) })
}

// printable drops control characters, which no platform shows and some reject.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, s)
}

// htmlUnits is the visible length of HTML that telegramStyle wrote.
func htmlUnits(s string) int {
	n := 0
	for i := 0; i < len(s); {
		switch s[i] {
		case '<':
			i += strings.IndexByte(s[i:], '>') + 1
		case '&':
			i += strings.IndexByte(s[i:], ';') + 1
			n++
		default:
			end := strings.IndexAny(s[i:], "<&")
			if end < 0 {
				end = len(s) - i
			}
			n += Units(s[i : i+end])
			i += end
		}
	}
	return n
}
