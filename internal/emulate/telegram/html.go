package telegram

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Entity is a part of a text with a meaning; offsets are UTF-16 code units.
type Entity struct {
	Type     string `json:"type"`
	Offset   int    `json:"offset"`
	Length   int    `json:"length"`
	URL      string `json:"url,omitempty"`
	Language string `json:"language,omitempty"`
	User     *User  `json:"user,omitempty"`
}

// tagTypes are the tags of the HTML parse mode.
var tagTypes = map[string]string{
	"b": "bold", "strong": "bold", "i": "italic", "em": "italic", "u": "underline", "ins": "underline",
	"s": "strikethrough", "strike": "strikethrough", "del": "strikethrough",
	"tg-spoiler": "spoiler", "span": "spoiler", "a": "text_link", "code": "code", "pre": "pre",
	"blockquote": "blockquote", "tg-emoji": "custom_emoji",
}

// openTag is a tag whose end has not been seen.
type openTag struct {
	name   string
	entity Entity
	nested bool // a code tag inside of pre gives the block its language
}

// htmlParser reads one text; pos is a byte offset into src, as in the server's messages.
type htmlParser struct {
	src   string
	pos   int
	text  strings.Builder
	units int
	open  []openTag
	found []Entity
}

// ParseHTML reads text of the HTML parse mode the way the real server does: unknown tags, wrong
// nesting and unclosed tags are errors, unknown character references are text. It returns the
// visible text and its entities.
func ParseHTML(s string) (string, []Entity, error) {
	if !utf8.ValidString(s) {
		return "", nil, fmt.Errorf("strings must be encoded in UTF-8")
	}
	p := htmlParser{src: s}
	for p.pos < len(s) {
		var err error
		switch c := s[p.pos]; {
		case c == '&':
			p.reference()
		case c == '<' && strings.HasPrefix(s[p.pos:], "</"):
			err = p.endTag()
		case c == '<':
			err = p.startTag()
		default:
			end := strings.IndexAny(s[p.pos:], "<&")
			if end < 0 {
				end = len(s) - p.pos
			}
			p.write(s[p.pos : p.pos+end])
			p.pos += end
		}
		if err != nil {
			return "", nil, err
		}
	}
	if n := len(p.open); n > 0 {
		return "", nil, fmt.Errorf("can't find end tag corresponding to start tag %q", p.open[n-1].name)
	}
	return p.text.String(), p.found, nil
}

func (p *htmlParser) write(s string) {
	p.text.WriteString(s)
	p.units += units(s)
}

func units(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// reference reads a character reference; what is none stays text.
func (p *htmlParser) reference() {
	rest := p.src[p.pos:]
	for ref, text := range map[string]string{"&lt;": "<", "&gt;": ">", "&amp;": "&", "&quot;": `"`} {
		if strings.HasPrefix(rest, ref) {
			p.write(text)
			p.pos += len(ref)
			return
		}
	}
	if digits, ok := strings.CutPrefix(rest, "&#"); ok {
		if end := strings.IndexByte(digits, ';'); end > 0 && end < 10 {
			n, err := strconv.ParseUint(strings.Replace(digits[:end], "x", "0x", 1), 0, 21)
			if r := rune(n); err == nil && n > 0 && utf8.ValidRune(r) {
				p.write(string(r))
				p.pos += len("&#") + end + 1
				return
			}
		}
	}
	p.write("&")
	p.pos++
}

func (p *htmlParser) startTag() error {
	start := p.pos
	p.pos++
	name := strings.ToLower(p.until(" \t\n>"))
	kind, ok := tagTypes[name]
	if !ok {
		return fmt.Errorf("unsupported start tag %q at byte offset %d", name, start)
	}
	attrs, err := p.attributes(start)
	if err != nil {
		return err
	}
	tag := openTag{name: name, entity: Entity{Type: kind, Offset: p.units}}
	switch name {
	case "span":
		if attrs["class"] != "tg-spoiler" {
			return fmt.Errorf("tag \"span\" must have class \"tg-spoiler\" at byte offset %d", start)
		}
	case "a":
		tag.entity.URL = attrs["href"]
	case "code":
		if lang, ok := strings.CutPrefix(attrs["class"], "language-"); ok && len(p.open) > 0 && p.open[len(p.open)-1].name == "pre" {
			p.open[len(p.open)-1].entity.Language = lang
			tag.nested = true
		}
	}
	p.open = append(p.open, tag)
	return nil
}

// until reads up to one of the bytes or the end.
func (p *htmlParser) until(stop string) string {
	end := strings.IndexAny(p.src[p.pos:], stop)
	if end < 0 {
		end = len(p.src) - p.pos
	}
	s := p.src[p.pos : p.pos+end]
	p.pos += end
	return s
}

func (p *htmlParser) attributes(start int) (map[string]string, error) {
	attrs := map[string]string{}
	for {
		for p.pos < len(p.src) && strings.IndexByte(" \t\n", p.src[p.pos]) >= 0 {
			p.pos++
		}
		if p.pos >= len(p.src) {
			return nil, fmt.Errorf("unclosed start tag at byte offset %d", start)
		}
		if p.src[p.pos] == '>' {
			p.pos++
			return attrs, nil
		}
		key := strings.ToLower(p.until("= \t\n>"))
		if key == "" {
			return nil, fmt.Errorf("empty attribute name in the tag at byte offset %d", start)
		}
		if p.pos >= len(p.src) || p.src[p.pos] != '=' {
			attrs[key] = "" // such as <blockquote expandable>
			continue
		}
		p.pos++
		if p.pos >= len(p.src) || p.src[p.pos] != '"' && p.src[p.pos] != '\'' {
			attrs[key] = p.until(" \t\n>")
			continue
		}
		quote := p.src[p.pos : p.pos+1]
		p.pos++
		value := p.until(quote)
		if p.pos >= len(p.src) {
			return nil, fmt.Errorf("unclosed attribute value at byte offset %d", start)
		}
		p.pos++
		inner := htmlParser{}
		for inner.src = value; inner.pos < len(value); {
			if value[inner.pos] == '&' {
				inner.reference()
				continue
			}
			inner.write(inner.until("&"))
		}
		attrs[key] = inner.text.String()
	}
}

func (p *htmlParser) endTag() error {
	start := p.pos
	p.pos += len("</")
	name := strings.ToLower(p.until(" \t\n>"))
	p.until(">")
	if p.pos >= len(p.src) {
		return fmt.Errorf("unclosed end tag at byte offset %d", start)
	}
	p.pos++
	n := len(p.open)
	if n == 0 {
		return fmt.Errorf("unexpected end tag at byte offset %d", start)
	}
	tag := p.open[n-1]
	if name != "" && name != tag.name {
		return fmt.Errorf("unmatched end tag at byte offset %d, expected \"</%s>\", found \"</%s>\"", start, tag.name, name)
	}
	p.open = p.open[:n-1]
	tag.entity.Length = p.units - tag.entity.Offset
	if tag.entity.Length > 0 && !tag.nested {
		p.found = slices.Insert(p.found, p.insertAt(tag.entity.Offset), tag.entity)
	}
	return nil
}

// insertAt keeps entities in the order of their start, outer ones first.
func (p *htmlParser) insertAt(offset int) int {
	i := len(p.found)
	for i > 0 && p.found[i-1].Offset >= offset {
		i--
	}
	return i
}
