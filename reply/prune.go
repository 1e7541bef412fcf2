package reply

import (
	"fmt"
	"slices"
	"time"

	"understudy/llm"
	"understudy/session"
)

// What becomes of large results of tools that ran long ago (spec/chat.md §1.8).
const (
	cacheTTL       = 5 * time.Minute // after so long a pause no provider remembers the beginning
	keepAssistants = 3               // the last messages of the assistant before a pause are spared
	largeResult    = 4_000           // bytes
	resultEdge     = 1_500           // bytes that stay at either end
	textCleared    = "[Old tool result content cleared]"
)

// pruned returns the entries that models are shown. What of them is shortened depends on the
// transcript alone, and changes only where a pause has let the providers' caches run out anyway: large
// results (and pictures) from before the last pause are trimmed, those from before the pause before
// that are cleared. So the beginning of the requests stays the same while people talk.
//
// tight trims every large result, also those of this turn: the last resort of an overflow.
func pruned(tight bool, entries ...[]session.Entry) []session.Entry {
	list := slices.DeleteFunc(slices.Concat(entries...), func(e session.Entry) bool { return e.Kind == session.KindNote })
	trim, clearTo := pauses(list)
	for i := range list {
		switch {
		case i < clearTo:
			list[i].Message = lighter(list[i].Message, func(string) string { return textCleared }, true)
		case i < trim:
			list[i].Message = lighter(list[i].Message, trimmed, true)
		case tight:
			list[i].Message = lighter(list[i].Message, trimmed, false)
		}
	}
	return list
}

// pauses returns how many entries, from the first on, are old at the last pause and at the one before.
func pauses(list []session.Entry) (last, before int) {
	found := 0
	for i := len(list) - 1; i > 0; i-- {
		e := list[i]
		begins := e.Kind == session.KindMessage && e.Message.Role == llm.RoleUser
		if !begins || list[i-1].Kind != session.KindMessage || e.At.Sub(list[i-1].At) <= cacheTTL {
			continue
		}
		old := spared(list[:i])
		if found++; found == 1 {
			last = old
			continue
		}
		return last, old
	}
	return last, 0
}

// spared returns how many of the entries stand before the last messages of the assistant.
func spared(list []session.Entry) int {
	n := 0
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Message.Role == llm.RoleAssistant {
			if n++; n == keepAssistants {
				return i
			}
		}
	}
	return 0
}

// lighter returns a message with its large results changed, and its pictures replaced by their names
// where that is wanted. It changes nothing in m.
func lighter(m llm.Message, change func(string) string, pictures bool) llm.Message {
	var parts []llm.Part
	set := func(i int, p llm.Part) {
		if parts == nil {
			parts = slices.Clone(m.Parts)
		}
		parts[i] = p
	}
	for i, p := range m.Parts {
		switch {
		case p.ToolResult != nil && len(p.ToolResult.Text) > largeResult:
			r := *p.ToolResult
			r.Text = change(r.Text)
			set(i, llm.Part{ToolResult: &r})
		case p.Image != nil && pictures:
			set(i, llm.Part{Text: imageLabel(*p.Image)})
		}
	}
	if parts != nil {
		m.Parts = parts
	}
	return m
}

func imageLabel(img llm.Image) string {
	if img.Name == "" {
		return "[image]"
	}
	return "[image: " + img.Name + "]"
}

// trimmed keeps both ends of a text.
func trimmed(s string) string {
	head, tail := cutText(s, resultEdge), s[len(s)-resultEdge:]
	for range 4 { // not inside of a character
		if len(tail) > 0 && tail[0]&0xC0 == 0x80 {
			tail = tail[1:]
		}
	}
	return fmt.Sprintf("%s\n[%d bytes are left out]\n%s", head, len(s)-len(head)-len(tail), tail)
}

// isLarge reports whether a message has a result that tight would trim.
func isLarge(m llm.Message) bool {
	return slices.ContainsFunc(m.Parts, func(p llm.Part) bool { return p.ToolResult != nil && len(p.ToolResult.Text) > largeResult })
}
