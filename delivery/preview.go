package delivery

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"understudy/channels"
	"understudy/chat"
	"understudy/delivery/markup"
)

// Times of a preview (spec/chat.md §2.4).
const (
	previewChars   = 200                     // a preview starts with so much text …
	previewEarly   = 1200 * time.Millisecond // … not before this …
	previewLate    = 3 * time.Second         // … and at the latest after this, whatever there is
	previewTimeout = 15 * time.Second        // one call
	longestPace    = 15 * time.Second        // the slowest pace after rate limits
	leastPace      = 50 * time.Millisecond
	quickEdits     = time.Second // below this pace, a channel has no notifications to spare
)

// restartText stands in a preview whose text was taken back.
const restartText = "…"

// preview is the message that shows the answer while it is being written. Its fields belong to
// Turn.mu; only the destination's goroutine makes its calls.
type preview struct {
	id       string // the message; "" = none stands
	shown    string // the Markdown it shows
	interval time.Duration
	next     time.Time // no call before
	off      bool      // no more previews in this turn
	plain    bool      // the channel rejected our markup
}

// editInterval is the least time between two edits of a preview.
func (a *account) editInterval() time.Duration { return max(leastPace, a.traits.EditInterval) }

// due returns when the preview is to be shown next.
func (t *Turn) due() time.Time {
	at := t.preview.next
	if t.preview.id != "" {
		return at
	}
	start := t.first.Add(previewLate)
	switch {
	case t.a.editInterval() < quickEdits:
		start = t.first
	case utf8.RuneCountInString(t.text.String()) >= previewChars:
		start = t.first.Add(previewEarly)
	}
	if start.After(at) {
		return start
	}
	return at
}

// schedule sees to it that the preview will show the newest text; t.mu is held.
func (t *Turn) schedule() {
	nothing := t.preview.id == "" && t.text.Len() == 0
	if t.over || t.flushing || nothing || t.a == nil || !t.a.previews() || t.preview.off {
		return
	}
	at := t.due()
	if t.timer != nil && !at.Before(t.dueAt) {
		return
	}
	t.timer.Stop()
	t.timer = nil
	wait := at.Sub(t.s.clock.Now())
	if wait <= 0 {
		t.queueFlush()
		return
	}
	t.dueAt = at
	t.timer = t.s.clock.AfterFunc(wait, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.timer = nil; !t.over && !t.flushing {
			t.queueFlush()
		}
	})
}

// queueFlush queues one flush; t.mu is held.
func (t *Turn) queueFlush() {
	t.flushing = t.s.push(t.to, false, t.flush)
	if !t.flushing {
		t.preview.next = t.s.clock.Now().Add(t.preview.interval)
	}
}

// flush shows the newest text. It is a job of the destination.
func (t *Turn) flush(ctx context.Context) {
	t.mu.Lock()
	t.flushing = false
	if t.over || t.preview.off {
		t.mu.Unlock() // what follows in the queue takes over
		return
	}
	p, text := t.preview, t.wanted()
	t.mu.Unlock()
	var msgs []markup.Message
	if text != p.shown && (p.id != "" || t.s.mayNow(t.a, t.to)) {
		msgs = markup.Messages(text, t.a.dialect(), t.a.limits())
	}
	if len(msgs) == 0 {
		t.flushed(p.id, p.shown, nil)
		return
	}
	id, err := t.show(ctx, p, msgs[0])
	e := verdict(err)
	t.flushed(id, text, e)
	switch {
	case e == nil && p.id == "" && id != "":
		t.slot.Reserve(id)
		t.s.stored(t.s.store.putPreview(ctx, t.id, t.to, id, t.s.clock.Now()))
	case e != nil && e.Verdict == channels.Missing:
		t.slot.Release()
		t.s.stored(t.s.store.dropPreview(ctx, t.id))
	}
}

// wanted returns the Markdown that the preview is to show, "" = none yet; t.mu is held.
func (t *Turn) wanted() string {
	text := previewText(t.text.String(), t.a.limits().Units)
	if text == "" && t.preview.id != "" {
		return restartText
	}
	return text
}

// show makes the platform call and returns the message's id.
func (t *Turn) show(ctx context.Context, p preview, m markup.Message) (string, error) {
	piece := channels.Piece{
		To: t.s.where(t.to), Class: chat.Assistant, Text: m.Text, Plain: m.Plain, Key: pieceKey(t.id + "/preview"),
	}
	if p.plain {
		piece.Text = ""
	}
	call, cancel := t.s.begun(ctx, previewTimeout)
	defer cancel()
	if p.id != "" {
		return p.id, t.a.editor.Edit(call, piece.To, p.id, piece)
	}
	piece.ReplyTo = t.slot.Reference(chat.Assistant, false)
	r, err := t.a.adapter.Send(call, piece)
	if err != nil || len(r.IDs) == 0 {
		return "", err
	}
	return r.IDs[0], nil
}

// flushed takes in what came of a flush and plans the next one.
func (t *Turn) flushed(id, shown string, e *channels.SendError) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := &t.preview
	now := t.s.clock.Now()
	first := p.id == ""
	p.next = now.Add(p.interval)
	if e == nil {
		p.id, p.shown = id, shown
		if id == "" && shown != "" { // shown, and cannot be reached again
			p.off, t.committed = true, true
		}
		if t.wanted() != shown {
			t.schedule()
		}
		return
	}
	switch e.Verdict {
	case channels.Retry:
		if e.After > 0 {
			p.interval = min(longestPace, 2*p.interval)
			p.next = now.Add(max(p.interval, e.After))
		}
		t.schedule()
	case channels.Unsure:
		if first && !t.a.traits.Idempotent {
			p.off, t.committed = true, true
			return
		}
		t.schedule()
	case channels.Markups:
		p.off, p.plain = p.plain, true
		t.schedule()
	case channels.Missing:
		p.id, p.off = "", true
	default:
		p.off = true
	}
}

// previewText makes unfinished output fit to be shown; "" = there is nothing to show yet.
func previewText(raw string, limit int) string {
	text := markup.StripScaffolding(raw)
	if blank(text) || isSilentSoFar(text) {
		return ""
	}
	return markup.CutPreview(text, limit)
}

// isSilentSoFar reports whether the output may still become the reply that says nothing.
func isSilentSoFar(text string) bool {
	return strings.HasPrefix(markup.SilentReply, strings.ToUpper(strings.TrimSpace(text)))
}
