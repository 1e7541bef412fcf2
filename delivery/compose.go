package delivery

import (
	"understudy/chat"
	"understudy/delivery/markup"
)

// composition is what became of a thing on the way from its sender to the outbox.
type composition struct {
	about
	said bool // there was text before the tags were taken out
}

// composed takes the tags out of a text that a model wrote; texts of our own have none.
func composed(o chat.Outbound) (chat.Outbound, composition) {
	if !o.Class.Remembered() {
		return o, composition{}
	}
	x := composition{said: !blank(o.Markdown)}
	text, p := takeTags(o.Markdown)
	o.Markdown, x.Chosen = text, p.target(o.ReplyTo)
	return o, x
}

// silent reports whether the model has chosen to say nothing (spec/chat.md §1.7).
func (x composition) silent(o chat.Outbound) bool {
	return o.Class == chat.Assistant && x.said && (blank(o.Markdown) || markup.IsSilent(o.Markdown))
}
