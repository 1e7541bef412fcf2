package slack

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// unescaper turns back the three characters that Slack escapes, in one pass: "&amp;lt;" is "&lt;".
var unescaper = strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">")

// escaper escapes text so that Slack shows it as it is.
var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// said is what a text says and whom it names.
type said struct {
	text     string // for the model, without a leading mention of the bot
	mentions bool   // it names the bot
	others   bool   // it names somebody else
	users    []string
}

// mostNamed bounds how many people of one text are remembered.
const mostNamed = 20

// reader turns Slack's notation into text.
type reader struct {
	self string // the bot's user id
	name func(user string) string
}

// read turns the notation of a text into what people see: mentions become names, links their labels
// and addresses, and escaped characters themselves.
func (r reader) read(text string) said {
	var out said
	text, out.mentions = r.withoutLeading(strings.TrimSpace(text))
	var b strings.Builder
	for text != "" {
		open := strings.IndexByte(text, '<')
		if open < 0 {
			break
		}
		b.WriteString(unescaper.Replace(text[:open]))
		text = text[open:]
		end := strings.IndexAny(text[1:], "<>")
		if end < 0 || text[1+end] == '<' || end == 0 { // Slack escapes every other one
			b.WriteByte('<')
			text = text[1:]
			continue
		}
		b.WriteString(r.token(text[1:1+end], &out))
		text = text[end+2:]
	}
	b.WriteString(unescaper.Replace(text))
	out.text = strings.TrimSpace(b.String())
	return out
}

// withoutLeading removes the mentions of the bot that a text begins with, and what separates them
// from the rest.
func (r reader) withoutLeading(text string) (rest string, mentioned bool) {
	for r.self != "" {
		tail, ok := strings.CutPrefix(text, "<@"+r.self)
		end := strings.IndexByte(tail, '>')
		if !ok || end < 0 || end > 0 && tail[0] != '|' {
			break
		}
		mentioned = true
		text = strings.TrimSpace(strings.TrimLeft(tail[end+1:], " ,:\u00a0"))
	}
	return text, mentioned
}

// token turns one <…> into text.
func (r reader) token(token string, out *said) string {
	body, label, labelled := strings.Cut(token, "|")
	body, label = unescaper.Replace(body), unescaper.Replace(label)
	if body == "" {
		return "<" + unescaper.Replace(token) + ">"
	}
	switch body[0] {
	case '@':
		return "@" + r.person(body[1:], label, out)
	case '#':
		if label == "" {
			label = body[1:]
		}
		return "#" + label
	case '!':
		return r.special(body[1:], label, out)
	}
	target := strings.TrimPrefix(body, "mailto:")
	if !labelled || label == "" || strings.HasSuffix(strings.TrimSuffix(target, "/"), strings.TrimSuffix(label, "/")) {
		if labelled && label != "" && !strings.Contains(label, "://") && target != label {
			return label // Slack made a link of what somebody typed
		}
		return target
	}
	return label + " (" + target + ")"
}

func (r reader) person(id, label string, out *said) string {
	switch {
	case id == r.self:
		out.mentions = true
	default:
		out.others = true
		if len(out.users) < mostNamed {
			out.users = append(out.users, id)
		}
	}
	if label = strings.TrimPrefix(label, "@"); label != "" {
		return label
	}
	if name := r.name(id); name != "" {
		return name
	}
	return id
}

// special reads a broadcast, a user group or a date.
func (r reader) special(body, label string, out *said) string {
	kind, rest, _ := strings.Cut(body, "^")
	switch kind {
	case "here", "channel", "everyone":
		return "@" + kind
	case "subteam":
		out.others = true
		if label == "" {
			label = rest
		}
		return "@" + strings.TrimPrefix(label, "@")
	}
	if label != "" { // a date, for one
		return label
	}
	return "@" + body
}

// zeroWidth keeps a mention from being one without changing what is to be seen.
const zeroWidth = "\u200b"

// quiet makes mentions in a piece of a stream harmless (spec/chat.md §8, S5). A mention may be cut in
// two by the pieces, so what could become one with the next piece counts as one.
func quiet(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		b.WriteByte(s[i])
		rest := s[i+1:]
		switch s[i] {
		case '<':
			if rest == "" || rest[0] == '!' || rest[0] == '@' || rest[0] == '#' {
				b.WriteString(zeroWidth)
			}
		case '@':
			if slices.ContainsFunc(broadcasts, func(word string) bool { return begins(rest, word) }) {
				b.WriteString(zeroWidth)
			}
		}
	}
	return b.String()
}

// broadcasts notify everybody when they stand behind an @.
var broadcasts = []string{"channel", "here", "everyone"}

// begins reports whether a text begins with a word, or may do so once it goes on.
func begins(text, word string) bool {
	if tail, ok := strings.CutPrefix(text, word); ok {
		next, _ := utf8.DecodeRuneInString(tail)
		return tail == "" || !(next == '_' || next < utf8.RuneSelf && (unicode.IsLetter(next) || unicode.IsDigit(next)))
	}
	return strings.HasPrefix(word, text)
}

// shorten cuts a label to what Slack shows, in characters.
func shorten(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	r := []rune(s)
	return string(r[:most-1]) + "…"
}
