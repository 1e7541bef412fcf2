package delivery

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"understudy/chat"
	"understudy/delivery/markup"
	"understudy/internal/clock"
)

// Turn is the way out of one turn: its signs of work, its preview, its notices and its one answer.
// None of its methods waits for the platform. It is safe for concurrent use, but the order of what
// is said is the order of the calls, so one goroutine should make them.
type Turn struct {
	s       *Service
	a       *account // nil = the channel is not registered
	id      string
	to      chat.Address
	target  string // the message it answers; "" = none
	asker   string // who wrote that message
	via     string // the interaction it answers; "" = none
	batched bool   // it answers several merged messages
	began   time.Time
	slot    *Slot // belongs to the destination's goroutine
	mark    *mark // the reactions to the message; nil = none

	mu        sync.Mutex
	text      strings.Builder // visible output of the candidate that speaks now
	first     time.Time       // when the first output came, or what it does was first told
	doing     []string        // what it did last, for a status draft
	over      bool            // Finish or Cancel was called
	final     int             // the Seq of the answer, once over
	committed bool
	working   bool          // Working was called
	seen      bool          // something of the answer is visible
	silent    bool          // the typing sign is not wanted any more
	signed    bool          // it was begun
	endTyping func()        // ends it
	recording bool          // it shows that the answer is being spoken
	wakeSign  func()        // repeats it at once; nil = that is not possible yet
	typed     chan struct{} // closed when it has ended; nil = there is none
	preview   preview
	timer     *clock.Timer
	dueAt     time.Time // of timer
	flushing  bool      // a flush is queued
}

// Begin opens the way out of a turn that answers in, or that nobody asked for (in == nil). It
// starts the reactions and, as Settings.Typing has it, the typing sign; call it when the message is
// queued, not when its turn begins (spec/chat.md §1.4). Every Turn ends with Finish or Cancel. turnID is stable over restarts.
func (s *Service) Begin(to chat.Address, in *chat.Inbound, turnID string) *Turn {
	t := &Turn{s: s, id: turnID, to: to, began: s.clock.Now()}
	if in != nil {
		t.target, t.asker, t.via, t.batched = in.ID, in.Sender.ID, in.Via, in.Batched
	}
	a, ok := s.account(to)
	if !ok {
		t.slot = NewSlot(Rule{})
		return t
	}
	t.a = a
	t.slot = NewSlot(a.rule(to, t.target, t.via, t.batched))
	t.preview.interval, t.preview.edits = a.editInterval(to.Kind), !a.streams()
	t.preview.status = a.set.Progress
	t.preview.off = !a.previews() || t.via != "" // what an interaction is answered with cannot be edited
	t.mark = newMark(a, in)
	t.stage(stageQueued)
	s.mu.Lock()
	s.turns[turnID] = t
	s.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.signs(TypingInstant)
	return t
}

// Working tells that the turn's message is not queued any more: a model works on it. The first
// streamed text tells it too.
func (t *Turn) Working() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.works()
}

// works is Working with t.mu held.
func (t *Turn) works() {
	if !t.working && !t.over {
		t.working = true
		t.stage(stageWorking)
		t.signs(TypingThinking)
	}
}

// Stream adds text to what the candidate has said so far, for the preview.
func (t *Turn) Stream(text string) {
	if text == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	t.works()
	if strings.TrimSpace(text) != "" {
		t.signs(TypingMessage)
	}
	t.text.WriteString(text)
	if t.preview.status {
		return
	}
	if t.first.IsZero() {
		t.first = t.s.clock.Now()
	}
	t.schedule()
}

// Hold keeps the text of the answer from being seen before it is finished, where its sound comes first
// (channels.Traits.VoiceCaption; spec/chat.md §4.5): it is certain to be spoken. Call it before the first
// text. What the turn does is shown all the same.
func (t *Turn) Hold() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.a != nil && t.a.traits.VoiceCaption > 0 && t.preview.id == "" && !t.preview.status {
		t.preview.off = true
	}
}

// Restart tells that the candidate failed: what it said goes from the preview, and no half answer
// of it stays (spec/chat.md §2.4, failover seam). The preview itself is kept for the next one; a
// native stream ends, and its message is edited from then on.
func (t *Turn) Restart() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	t.text.Reset()
	t.preview.seam = true
	t.schedule()
}

// Committed reports whether text has left for the channel that cannot be replaced: the answer was
// finished, or a preview was perhaps shown and cannot be reached. Then no other candidate may start
// (spec/failover.md §8).
func (t *Turn) Committed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.committed
}

// Notify sends a notice of the turn to where its answer goes: never the slot, never the preview,
// best effort (spec/chat.md §2.3). It keeps its place before an answer that is finished later; of
// class chat.Progress it is not sent any more once the turn is over. A notice without words, or to a
// channel that is not there, is dropped.
func (t *Turn) Notify(o chat.Outbound) {
	if o.Class != chat.Progress {
		o.Class = chat.Notice
	}
	o.To, o.TurnID, o.ReplyTo = t.to, t.id, t.target
	if err := t.s.notify(t, o); err != nil {
		t.s.log.Info("notice dropped", "channel", t.to.Channel, "turn", t.id, "error", err)
	}
}

// Finish says the turn's answer, or the error that stands in its place. It is in the outbox when
// Finish returns nil, and will be said once: also when an earlier run of the same turn had said its
// answer already, which then stands. An answer of nothing but NO_REPLY and tags ends the turn as
// Cancel does. On an error the turn is still open. The place of the answer is the Turn's; o needs no
// address.
func (t *Turn) Finish(ctx context.Context, o chat.Outbound) error {
	if !o.Class.Durable() {
		return fmt.Errorf("finishing a turn with class %s", o.Class)
	}
	o.To, o.TurnID, o.ReplyTo = t.to, t.id, t.target
	if o.Via == "" {
		o.Via = t.via
	}
	if o.Class == chat.Assistant {
		o.Markdown = markup.StripScaffolding(o.Markdown)
	}
	o, x := composed(o)
	x.Batched = t.batched
	silent := x.silent(o)
	if silent {
		o.Markdown = ""
	}
	if !t.end(o.Seq) {
		return ErrFinished
	}
	if silent && len(o.Media) == 0 {
		t.discard(stageSilent)
		return nil
	}
	isNew, err := t.s.submit(ctx, o, x.about)
	switch {
	case err != nil:
		t.reopen()
		return err
	case !isNew:
		t.discard(stageDone)
	}
	t.mu.Lock()
	t.committed = true
	t.mu.Unlock()
	return nil
}

// Cancel ends a turn that says nothing (aborted, or silent): its preview is taken away. After
// Finish it does nothing, so it may be deferred.
func (t *Turn) Cancel() {
	if t.end(-1) {
		t.discard(stageSilent)
	}
}

// end closes the turn for further output and reports whether it was open.
func (t *Turn) end(seq int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return false
	}
	t.over, t.final = true, seq
	t.timer.Stop()
	t.timer = nil
	return true
}

// isOver reports whether Finish or Cancel was called.
func (t *Turn) isOver() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.over
}

func (t *Turn) reopen() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = false
	t.schedule()
}

// discard takes the preview away, in the destination's order, and forgets the turn, whose message
// from now on shows the stage.
func (t *Turn) discard(g stage) {
	if t.a == nil {
		return
	}
	t.stage(g)
	t.hush()
	queued := t.s.push(t.to, true, func(ctx context.Context) {
		if p := t.settle(ctx); p.id != "" {
			t.s.erase(ctx, t.a, chat.Outbound{To: t.to, TurnID: t.id}, p)
			t.slot.Release()
		}
		t.s.forget(t)
	})
	if !queued {
		t.s.forget(t)
	}
}

// settle ends typing and previews and returns the preview that stands; its id is "" when none does.
// The destination's goroutine calls it.
func (t *Turn) settle(ctx context.Context) preview {
	t.quiet(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.preview
}

// visible takes in that people see something of the answer.
func (t *Turn) visible() {
	t.mu.Lock()
	first := !t.seen
	t.seen = true
	t.mu.Unlock()
	if first && t.s.deps.FirstVisible != nil {
		t.s.deps.FirstVisible(t.to.Channel, t.s.clock.Since(t.began))
	}
}

// answered takes in that the slot has been consumed.
func (t *Turn) answered(c chat.Class) {
	if c == chat.Error {
		t.stage(stageFailed)
		return
	}
	t.stage(stageDone)
	t.visible()
}

// running returns the turn of a parcel if it runs in this process, nil = it does not, and whether
// the parcel is its answer.
func (s *Service) running(p *parcel) (t *Turn, answers bool) {
	s.mu.Lock()
	t = s.turns[p.out.TurnID]
	s.mu.Unlock()
	if t == nil {
		return nil, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t, t.over && t.final == p.out.Seq
}

// forget drops a turn that has ended.
func (s *Service) forget(t *Turn) {
	t.hush()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turns[t.id] == t {
		delete(s.turns, t.id)
	}
}
