package markup

import (
	"strings"
)

const ellipsis = " …"

// CutPreview makes unfinished Markdown fit to be shown: what the writer has begun and not ended is
// ended or left out, and what is longer than limit units is cut, with " …" behind it (spec/chat.md
// §2.4). A limit of 0 cuts nothing.
func CutPreview(md string, limit int) string {
	text := mend(clean(md))
	s := newSplitter(analyse(text), Limits{})
	if f := s.source.open; f != nil {
		text += "\n" + f.margin + f.fence
	}
	if limit <= 0 || Units(text) <= limit {
		return text
	}
	return (&preview{splitter: s, limit: max(limit, leastLimit)}).cut()
}

// preview is the start of a text.
type preview struct {
	*splitter
	limit int
	size  int // units of the lines before the one that is looked at
}

// cut returns the start of the text with an ellipsis.
func (p *preview) cut() string {
	last := 0 // the line that does not fit
	for ; last < len(p.lines)-1; last++ {
		n := Units(p.line(last))
		if p.size+n+p.closing(place{line: last + 1})+Units(ellipsis) > p.limit {
			break
		}
		p.size += n + 1
	}
	for room := p.limit; room > 0; {
		shown := p.shown(p.within(last, room))
		over := Units(shown) - p.limit
		if over <= 0 {
			return shown
		}
		room -= over
	}
	return "…"
}

// closing returns how long what ends the frame at a place is.
func (p *preview) closing(at place) int {
	if f := p.frameAt(at.line); f != nil && f.fence != "" {
		return Units(f.margin+f.fence) + 1
	}
	return 0
}

// within returns the last place on a line up to so many units of the whole text; places that cannot
// be shown are left out.
func (p *preview) within(i, room int) place {
	l, line := p.lines[i], p.line(i)
	room -= p.size + Units(ellipsis) + p.closing(place{line: i})
	if room <= 0 || l.opens != nil || l.closes || l.frame != nil && l.frame.fence == "" || l.keep && l.glued {
		return place{line: i}
	}
	off := len(prefix(line, room))
	if off < len(line) {
		off = characterEnd(line, off)
	}
	for _, e := range p.spans {
		at := l.start + off
		switch m := len(e.mark); {
		case at <= e.start || at >= e.end:
		case m == 0 || at <= e.start+m:
			off = e.start - l.start
		case at > e.end-m:
			off = e.end - m - l.start
		}
	}
	return place{line: i, off: max(0, off)}
}

// shown writes the text up to a place.
func (p *preview) shown(to place) string {
	offset := p.lines[to.line].start + to.off
	text := strings.TrimRight(p.text[:offset], " \t\n")
	last := p.at(len(text))
	for last >= 0 && p.lines[last].opens != nil { // nothing of its content would be seen
		text = strings.TrimRight(p.text[:p.lines[last].start], " \t\n")
		if last = p.at(len(text)); text == "" {
			return "…"
		}
	}
	if text == "" {
		return "…"
	}
	var ends string
	for _, e := range p.spans {
		if e.start < len(text) && len(text) < e.end {
			ends = e.mark + ends
		}
	}
	l := p.lines[last]
	if row := text[l.start:]; l.frame == nil && looksLikeFence(row) {
		text = text[:l.start] + zeroWidth + row
	}
	switch {
	case l.closes || l.keep && p.frameAt(last+1) != nil || l.frame != nil && l.frame.fence == "":
		text += "\n…"
	default:
		text += ellipsis + ends
	}
	if f := l.frame; f != nil && f.fence != "" && !l.closes {
		text += "\n" + f.margin + f.fence
	}
	return text
}
