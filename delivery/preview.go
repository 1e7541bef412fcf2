package delivery

import (
	"context"
	"errors"
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
	ref      string // what it refers to
	shown    string // the Markdown it shows; "" with an id = that is not known
	interval time.Duration
	next     time.Time // no call before
	off      bool      // no more previews in this turn
	plain    bool      // the channel rejected our markup
	grows    bool      // it is a native stream, not stopped yet
	edits    bool      // it is not, or no more, to be a native stream
	seam     bool      // the text that the stream shows was taken back
	restored bool      // an earlier process made it: ref and shown are not known
	status   bool      // it is a status draft
}

// due returns when the preview is to be shown next.
func (t *Turn) due() time.Time {
	at := t.preview.next
	if t.preview.id != "" {
		return at
	}
	start := t.first.Add(previewLate)
	switch {
	case t.a.editInterval(t.to.Kind) < quickEdits:
		start = t.first
	case t.preview.status:
		start = t.first.Add(previewEarly) // a turn that ends before needs none
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
	nothing := t.preview.id == "" && t.text.Len() == 0 && len(t.doing) == 0
	if t.over || t.flushing || nothing || t.a == nil || t.preview.off {
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
	p, raw, status := t.preview, t.text.String(), t.status()
	begins := p.id == ""
	if begins {
		t.preview.seam = false // nothing of what was taken back is to be seen
	}
	t.mu.Unlock()
	if p.status {
		t.flushStatus(ctx, p, status)
		return
	}
	text, chosen := unfinished(raw)
	t.slot.Choose(chosen.target(t.target))
	if begins && !p.edits {
		p.edits = t.tooLong(text) || !t.a.stream.Streams(t.piece())
	}
	text = t.fit(text, p)
	switch {
	case p.grows:
		t.grow(ctx, p, text)
	case text == p.shown, begins && !t.s.mayNow(t.a, t.to):
		t.flushed(ctx, p, nil)
	case begins && !p.edits:
		t.startStream(ctx, p, text)
	default:
		now, e := t.show(ctx, p, text)
		t.flushed(ctx, now, e)
	}
}

// flushStatus shows the newest status.
func (t *Turn) flushStatus(ctx context.Context, p preview, text string) {
	if text == p.shown || p.id == "" && !t.s.mayNow(t.a, t.to) {
		t.flushed(ctx, p, nil)
		return
	}
	now, e := t.show(ctx, p, text)
	t.flushed(ctx, now, e)
}

// wanted returns the Markdown that the preview is to show, "" = none yet; t.mu is held.
func (t *Turn) wanted() string {
	if t.preview.status {
		return t.status()
	}
	text, _ := unfinished(t.text.String())
	return t.fit(text, t.preview)
}

// fit makes unfinished text fit for a preview.
func (t *Turn) fit(text string, p preview) string {
	switch {
	case text == "" && p.id != "":
		return restartText
	case text == "":
		return ""
	case p.edits:
		return markup.CutPreview(text, t.a.limits().Units)
	}
	text = growable(text)
	if t.tooLong(text) {
		return p.shown // the rest comes with the answer
	}
	return text
}

// tooLong reports whether text is more than a message holds.
func (t *Turn) tooLong(text string) bool {
	limit := t.a.limits().Units
	return limit > 0 && markup.Units(text) > limit
}

// piece is a preview without its text.
func (t *Turn) piece() channels.Piece {
	if t.preview.status {
		return t.draft()
	}
	return channels.Piece{
		To: t.s.where(t.to), Class: chat.Assistant, For: t.asker, ReplyTo: t.slot.Reference(chat.Assistant, false),
	}
}

// show makes the platform call for a preview that is edited, and returns what stands then.
func (t *Turn) show(ctx context.Context, p preview, text string) (preview, *channels.SendError) {
	msgs := markup.Messages(text, t.a.dialect(), t.a.limits())
	if len(msgs) == 0 {
		return p, nil
	}
	piece := t.piece()
	piece.Text, piece.Plain, piece.Key = msgs[0].Text, msgs[0].Plain, pieceKey(t.id+"/preview")
	if p.plain {
		piece.Text = ""
	}
	call, cancel := t.s.begun(ctx, previewTimeout)
	defer cancel()
	if p.id != "" {
		if wait := t.s.held(t.to, callEdit); wait > 0 {
			return p, &channels.SendError{Verdict: channels.Retry, After: wait, Code: "held", Err: errHeld}
		}
		if e := t.s.heard(t.to, callEdit, t.a.editor.Edit(call, piece.To, p.id, piece)); e != nil {
			return p, e
		}
		p.shown = text
		return p, nil
	}
	r, err := t.a.adapter.Send(call, piece)
	if e := t.s.reached(ctx, t.to, callSend, err); e != nil {
		return p, e
	}
	if p.shown, p.ref = text, piece.ReplyTo; len(r.IDs) > 0 {
		p.id = r.IDs[0]
	}
	return p, nil
}

// flushed takes in what came of a flush, after which p stands, and plans the next one.
func (t *Turn) flushed(ctx context.Context, p preview, e *channels.SendError) {
	t.mu.Lock()
	begins := t.preview.id == ""
	if e == nil {
		t.shown(p)
	} else {
		t.shownNot(p, e)
	}
	isGone := e != nil && t.preview.id == "" && !begins
	t.mu.Unlock()
	switch {
	case e == nil && begins && p.id != "":
		if !p.status {
			t.slot.Reserve(p.id)
		}
		t.s.stored(t.s.store.putPreview(ctx, t.id, t.to, p.id, p.grows, t.s.clock.Now()))
		if !p.status {
			t.visible()
		}
	case isGone:
		t.slot.Release()
		t.s.stored(t.s.store.dropPreview(ctx, t.id))
	}
}

// shown takes in a preview that looks as it should; t.mu is held.
func (t *Turn) shown(now preview) {
	p := &t.preview
	p.id, p.ref, p.shown, p.grows, p.edits = now.id, now.ref, now.shown, now.grows, now.edits
	p.next = t.s.clock.Now().Add(t.pause())
	if p.id == "" && p.shown != "" { // shown, and cannot be reached again
		p.off, t.committed = true, t.committed || !p.status
	}
	if t.wanted() != p.shown || p.seam && p.grows {
		t.schedule()
	}
}

// pause is the least time between two calls; t.mu is held.
func (t *Turn) pause() time.Duration {
	if t.preview.grows {
		return max(leastPace, t.a.traits.StreamInterval)
	}
	return t.preview.interval
}

// shownNot takes in that a preview could not be shown or changed; t.mu is held.
func (t *Turn) shownNot(now preview, e *channels.SendError) {
	p := &t.preview
	begins := p.id == ""
	p.next, p.edits = t.s.clock.Now().Add(p.interval), now.edits
	switch e.Verdict {
	case channels.Retry:
		if e.After > 0 && !errors.Is(e, errHeld) {
			p.interval = min(longestPace, 2*p.interval)
		}
		p.next = t.s.clock.Now().Add(max(p.interval, e.After))
		t.schedule()
	case channels.Unsure:
		if begins && !t.a.traits.Idempotent {
			p.off, t.committed = true, t.committed || !p.status
			return
		}
		t.schedule()
	case channels.Markups:
		p.off, p.plain = p.plain, true
		t.schedule()
	case channels.Missing:
		p.id, p.shown, p.off = "", "", true
	default:
		p.off = true
	}
}

// unfinished makes the output of a model that still writes fit to be shown, "" = there is nothing to
// show yet, and returns what its tags choose.
func unfinished(raw string) (string, pointer) {
	text, p := takeTags(withoutTagStart(markup.StripScaffolding(raw)))
	text = strings.TrimSpace(text)
	if isSilentSoFar(text) {
		return "", p
	}
	return text, p
}

// isSilentSoFar reports whether the output may still become the reply that says nothing.
func isSilentSoFar(text string) bool {
	return strings.HasPrefix(markup.SilentReply, strings.ToUpper(strings.TrimSpace(text)))
}
