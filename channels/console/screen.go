package console

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"understudy/chat"
)

// screen prints a conversation and can take back the answer that is still growing: it knows how
// many rows of the terminal that answer covers.
type screen struct {
	w     io.Writer
	size  func() (width, height int)
	color bool

	current string // id of the growing answer; "" = none
	text    string // what of it is on the screen
	final   bool   // it has reached its end
	last    Event  // the newest answer, with the text that was shown of it
	busy    bool   // the sign of work is on the screen
}

const (
	dim    = "\x1b[2m"
	red    = "\x1b[31m"
	cyan   = "\x1b[36m"
	normal = "\x1b[0m"

	eraseLine = "\r\x1b[K"
	eraseDown = "\x1b[J"
)

func (s *screen) paint(style, text string) string {
	if !s.color {
		return text
	}
	return style + strings.ReplaceAll(text, "\n", normal+"\n"+style) + normal
}

// put writes to the terminal. A terminal that is gone is noticed by reading from it.
func (s *screen) put(text string) { _, _ = io.WriteString(s.w, text) }

// work shows that an answer is on its way.
func (s *screen) work() {
	if !s.busy && s.current == "" {
		s.busy = true
		s.put(s.paint(dim, "…"))
	}
}

func (s *screen) rest() {
	if s.busy {
		s.busy = false
		s.put(eraseLine)
	}
}

// show prints one event of a running turn.
func (s *screen) show(e Event) {
	switch e.Type {
	case Sent:
		if e.Class != chat.Assistant {
			s.insert(e)
			return
		}
		s.finish()
		s.rest()
		s.current, s.final, s.last = e.ID, false, e
		s.grow(e.Text)
	case Changed:
		s.change(e)
	case Deleted:
		if e.ID == s.current && s.current != "" {
			s.takeBack()
			s.current, s.text = "", ""
		}
	case Typing:
		s.work()
	}
}

func (s *screen) change(e Event) {
	switch {
	case e.ID == s.current:
		s.final, s.last = e.Final, e
		s.grow(e.Text)
	case e.ID == s.last.ID && e.Text != s.last.Text:
		s.late(e)
	}
}

// late prints what an answer has become after it was taken for finished.
func (s *screen) late(e Event) {
	more, grew := strings.CutPrefix(e.Text, s.last.Text)
	s.last = e
	if grew {
		e.Text = "…" + more
	}
	s.insert(e)
}

// grow brings the answer on the screen to a new text: by its end if it only grew, from its start if
// it has changed. A word that grew over the edge changes the last row only.
func (s *screen) grow(text string) {
	width, _ := s.size()
	text = fold(strings.TrimRight(flat(text), "\n"), width)
	last := strings.LastIndexByte(s.text, '\n') + 1
	if more, grew := strings.CutPrefix(text, s.text); grew {
		s.put(more)
	} else if s.text != "" && strings.HasPrefix(text, s.text[:last]) && rows(s.text[last:], width) == 1 {
		s.put(eraseLine + text[last:])
	} else {
		s.takeBack()
		s.put(text)
	}
	s.text = text
}

// takeBack erases the growing answer. One that has scrolled out of reach is closed off instead.
func (s *screen) takeBack() {
	if s.text == "" {
		return
	}
	width, height := s.size()
	up := rows(s.text, width) - 1
	switch {
	case up >= height:
		s.put("\n" + s.paint(dim, "(the answer starts over)") + "\n")
	case up > 0:
		s.put(fmt.Sprintf("\r\x1b[%dA%s", up, eraseDown))
	default:
		s.put("\r" + eraseDown)
	}
	s.text = ""
}

// insert prints a complete message; one that arrives while an answer grows is put above it.
func (s *screen) insert(e Event) {
	s.rest()
	growing := s.text
	s.takeBack()
	width, _ := s.size()
	text := fold(strings.TrimRight(flat(e.Text), "\n"), width)
	switch e.Class {
	case chat.Notice:
		text = s.paint(dim, text)
	case chat.Error:
		text = s.paint(red, text)
	case chat.Command:
		text = s.paint(cyan, text)
	}
	s.put(text + s.choices(e.Choices) + "\n\n")
	if growing != "" {
		s.put(growing)
		s.text = growing
	}
}

const (
	mostChoices = 40 // more would push what they belong to off the screen
	chosenSign  = "✓"
)

// choices lists the commands that are offered, the ones of a group together below its name.
func (s *screen) choices(list []chat.Button) string {
	rank := map[string]int{}
	for _, c := range list {
		if _, known := rank[c.Group]; !known {
			rank[c.Group] = len(rank)
		}
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(x, y chat.Button) int { return rank[x.Group] - rank[y.Group] })
	text, group := "", ""
	for i, c := range list {
		if i == mostChoices {
			return text + "\n  " + s.paint(dim, fmt.Sprintf("… and %d more", len(list)-i))
		}
		if len(rank) > 1 && c.Group != group && c.Group != "" {
			text += "\n" + s.paint(dim, line(c.Group)+":")
		}
		group = c.Group
		sign := " "
		if c.Chosen {
			sign = chosenSign
		}
		text += "\n" + sign + " " + s.paint(dim, line(c.Label)+"  "+line(c.Command))
	}
	return text
}

// line is a text that must not break the row it stands in.
func line(text string) string { return strings.ReplaceAll(flat(text), "\n", " ") }

// finish closes the growing answer: it stays as it is.
func (s *screen) finish() {
	s.rest()
	if s.current != "" {
		s.put("\n\n")
	}
	s.current, s.text = "", ""
}

// flat is text as it goes to a terminal: without control characters, tabs as blanks.
func flat(text string) string { return strings.ReplaceAll(printable(text), "\t", "    ") }

// rows is how many rows of a terminal text covers.
func rows(text string, width int) int {
	n := 0
	for line := range strings.SplitSeq(text, "\n") {
		n++
		column := 0
		for _, r := range line {
			c := cells(r)
			if column+c > width {
				n++
				column = 0
			}
			column += c
		}
	}
	return n
}

// cells is how many columns a character takes, as most terminals see it.
func cells(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r < 0x1100:
		return 1
	case r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
		r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6,
		r >= 0x1f300 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}
