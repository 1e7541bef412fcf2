package markup

import (
	"strings"
	"unicode"
)

// leastRechunk is where making chunks smaller ends and the plain text is cut instead.
const leastRechunk = 64

// Messages makes the messages of a text: split, rendered, and each checked against what a message
// may hold and show; a part that became too long is made again from less (spec/chat.md §2.5, rule
// 9). A text in which there is nothing to see gives no message.
func Messages(md string, d Dialect, l Limits) []Message {
	src := analyse(clean(md))
	s := newSplitter(src, l)
	r := renderer{dialect: d, limits: s.limits, src: src}
	var out []Message
	for at := (place{}); !s.done(at); {
		var made []Message
		made, at = r.next(s, at)
		out = append(out, made...)
	}
	if len(out) == 0 && visible(src.text) { // nothing but definitions and empty blocks
		for at := (place{}); !s.done(at); {
			var chunk string
			chunk, at = s.next(at)
			out = r.cutPlain(out, chunk)
		}
	}
	return out
}

// renderer renders the chunks of one text.
type renderer struct {
	dialect Dialect
	limits  Limits
	src     *source
}

// next makes the messages of the chunk at a place, and returns where the next one starts.
func (r renderer) next(s *splitter, at place) ([]Message, place) {
	defer func(l Limits) {
		s.limits.Lines = l.Lines
		if s.limits.Units != l.Units {
			s.limit(l.Units)
		}
	}(s.limits)
	for {
		chunk, to := s.next(at)
		m, seen := r.render(chunk)
		if !visible(m.Plain) {
			return nil, to
		}
		have, bound := max(seen, Units(m.Plain)), r.bound()
		if n := r.spans(m); r.limits.Spans > 0 && n > r.limits.Spans {
			have, bound = n, r.limits.Spans
		}
		over := bound > 0 && have > bound
		if !over && !s.fewerLines(r, m) {
			return []Message{m}, to
		}
		if !over {
			continue
		}
		n := Units(chunk)
		if n <= leastRechunk {
			return r.cutPlain(nil, m.Plain), to
		}
		s.limit(max(leastRechunk, min(n/2, n*bound/have)))
	}
}

// fewerLines lowers the soft limit of lines once where rendering added some, and reports whether
// the chunk is to be made again.
func (s *splitter) fewerLines(r renderer, m Message) bool {
	most := r.limits.Lines
	over := strings.Count(m.Text, "\n") + 1 - most
	if most <= 1 || over <= 0 || s.limits.Lines != most {
		return false
	}
	s.limits.Lines = max(1, most-over)
	return true
}

// spans counts the stretches of a message that have a format of their own.
func (r renderer) spans(m Message) int {
	if r.dialect != TelegramHTML {
		return 0
	}
	return telegramSpans(m.Text)
}

// bound is what a message may show, and hold where the platform counts the markup.
func (r renderer) bound() int {
	if r.limits.Visible == 0 && r.dialect != TelegramHTML {
		return r.limits.Units
	}
	return r.limits.Visible
}

// cutPlain cuts text without markup to size; only the escaping is left to the dialect. Directional
// runs, which a cut would open, are given up.
func (r renderer) cutPlain(out []Message, plain string) []Message {
	plain = strings.Map(func(c rune) rune {
		if isDirection(c) {
			return -1
		}
		return c
	}, plain)
	limit := r.bound()
	if units := r.limits.Units; limit == 0 || units > 0 && units < limit {
		limit = units
	}
	if limit == 0 {
		limit = Units(plain)
	}
	for plain != "" {
		head := prefix(plain, max(limit, leastLimit))
		head = head[:characterEnd(plain, len(head))]
		for text := r.escape(head); r.dialect != TelegramHTML && Units(text) > limit && Units(head) > 1; text = r.escape(head) {
			half := prefix(head, Units(head)/2)
			head = half[:max(1, characterEnd(head, len(half)))]
		}
		plain = plain[len(head):]
		if visible(head) {
			out = append(out, Message{Text: r.escape(head), Plain: head, Source: head})
		}
	}
	return out
}

// Render renders one text without splitting it.
func Render(md string, d Dialect) string {
	src := analyse(clean(md))
	r := renderer{dialect: d, src: src}
	m, _ := r.render(src.text)
	if !visible(m.Plain) {
		return r.escape(src.text)
	}
	return m.Text
}

// style returns how a dialect is written, nil if it shows its source.
func (d Dialect) style() style {
	switch d {
	case TelegramHTML:
		return telegramStyle{}
	case SlackMrkdwn:
		return mrkdwnStyle{}
	case SlackMarkdown:
		return slackMarkdownStyle{}
	case DiscordMarkdown:
		return discordStyle{}
	case Plain:
		return plainStyle{}
	default:
		return nil
	}
}

// render renders a clean text and returns how much of it is to be seen.
func (r renderer) render(md string) (Message, int) {
	m := Message{Text: md, Plain: md, Source: md}
	s := r.dialect.style()
	if s == nil { // passes through: nothing is parsed, whatever its length
		return m, Units(md)
	}
	t := newTree(md, markdown, r.src)
	m.Plain = t.render(plainStyle{})
	if !visible(m.Plain) {
		return m, 0
	}
	if m.Text = m.Plain; r.dialect != Plain {
		m.Text = t.render(s)
	}
	if r.dialect == TelegramHTML {
		return m, htmlUnits(m.Text)
	}
	return m, Units(m.Text)
}

// escape returns text that shows itself in the dialect.
func (r renderer) escape(text string) string {
	s := r.dialect.style()
	if s == nil {
		return text
	}
	return s.finish(s.lines(s.text(text)))
}

// visible reports whether a reader would see anything.
func visible(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) })
}

// htmlUnits is the visible length of HTML that telegramStyle wrote.
func htmlUnits(s string) int {
	n := 0
	for i := 0; i < len(s); {
		switch s[i] {
		case '<':
			i += max(1, strings.IndexByte(s[i:], '>')+1)
		case '&':
			i += max(1, strings.IndexByte(s[i:], ';')+1)
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
