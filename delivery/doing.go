package delivery

import (
	"strings"
	"unicode/utf8"

	"understudy/channels"
	"understudy/chat"
	"understudy/delivery/markup"
)

// A status draft (`streaming.mode: progress`, spec/chat.md §2.4) is a preview that shows what the turn does
// and not what it says. It never has the slot and never becomes the answer: once that stands, it goes.

// Bounds of a status draft.
const (
	mostDoing    = 8   // lines, the latest
	longestDoing = 120 // characters
)

// Doing tells what the turn does now, as one line of Markdown: which model is asked, which tool runs. It is
// shown where Settings.Progress wants it, and nowhere else; it must hold nothing that people of the
// conversation may not see.
func (t *Turn) Doing(line string) {
	line = oneOf(line)
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.doing)
	if !t.preview.status || t.over || line == "" || n > 0 && t.doing[n-1] == line {
		return
	}
	if t.first.IsZero() {
		t.first = t.s.clock.Now()
	}
	t.doing = append(t.doing, line)
	t.doing = t.doing[max(0, len(t.doing)-mostDoing):]
	t.schedule()
}

// Doing is Turn.Doing for a turn of this process, by its id; one that does not run does nothing.
func (s *Service) Doing(turnID, line string) {
	s.mu.Lock()
	t := s.turns[turnID]
	s.mu.Unlock()
	if t != nil {
		t.Doing(line)
	}
}

// oneOf makes a line of any text.
func oneOf(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) <= longestDoing {
		return text
	}
	return string([]rune(text)[:longestDoing-1]) + "…"
}

// status is what the draft shows, "" = nothing yet; t.mu is held.
func (t *Turn) status() string {
	return markup.CutPreview(strings.Join(t.doing, "\n"), t.a.limits().Units)
}

// draft is the piece of a status draft without its text: like a notice, it refers to nothing and is silent,
// and stands in the thread that the answer will open.
func (t *Turn) draft() channels.Piece {
	return channels.Piece{
		To: t.s.where(t.to), Class: chat.Progress, For: t.asker, ReplyTo: t.slot.Reference(chat.Notice, false),
		Silent: t.a.traits.SilentNotices,
	}
}
