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

// Turn is the way out of one turn: its typing sign, its preview, its notices and its one answer.
// None of its methods waits for the platform. It is safe for concurrent use, but the order of what
// is said is the order of the calls, so one goroutine should make them.
type Turn struct {
	s      *Service
	a      *account // nil = the channel is not registered
	id     string
	to     chat.Address
	target string        // the message it answers; "" = none
	slot   *Slot         // belongs to the destination's goroutine
	quiet  chan struct{} // closed when the typing sign ends

	mu        sync.Mutex
	text      strings.Builder // visible output of the candidate that speaks now
	first     time.Time       // when the first output came
	over      bool            // Finish or Cancel was called
	final     int             // the Seq of the answer, once over
	committed bool
	silent    bool // the typing sign has ended
	preview   preview
	timer     *clock.Timer
	dueAt     time.Time // of timer
	flushing  bool      // a flush is queued
}

// Begin opens the way out of a turn that answers in, or that nobody asked for (in == nil). It
// starts the typing sign; call it when the message is queued, not when its turn begins (spec/chat.md
// §1.4). Every Turn ends with Finish or Cancel. turnID is stable over restarts.
func (s *Service) Begin(to chat.Address, in *chat.Inbound, turnID string) *Turn {
	t := &Turn{s: s, id: turnID, to: to, quiet: make(chan struct{})}
	if in != nil {
		t.target = in.ID
	}
	a, ok := s.account(to)
	if !ok {
		t.slot = NewSlot(Rule{})
		return t
	}
	t.a = a
	// Messages are not merged before they come here, so `batched` never attaches a reference.
	t.slot = NewSlot(a.rule(to, t.target))
	t.preview.interval = a.editInterval()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns[turnID] = t
	if a.typer != nil {
		s.spawn(t.typing)
	}
	return t
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
	t.text.WriteString(text)
	if t.first.IsZero() {
		t.first = t.s.clock.Now()
	}
	t.schedule()
}

// Restart tells that the candidate failed: what it said goes from the preview, and no half answer
// of it stays (spec/chat.md §2.4, failover seam). The preview itself is kept for the next one.
func (t *Turn) Restart() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	t.text.Reset()
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
// answer already, which then stands. On an error the turn is still open. The place of the answer is
// the Turn's; o needs no address.
func (t *Turn) Finish(ctx context.Context, o chat.Outbound) error {
	if !o.Class.Durable() {
		return fmt.Errorf("finishing a turn with class %s", o.Class)
	}
	o.To, o.TurnID, o.ReplyTo = t.to, t.id, t.target
	if o.Class == chat.Assistant {
		o.Markdown = markup.StripScaffolding(o.Markdown)
	}
	if !t.end(o.Seq) {
		return ErrFinished
	}
	isNew, err := t.s.submit(ctx, o)
	switch {
	case err != nil:
		t.reopen()
		return err
	case !isNew:
		t.discard()
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
		t.discard()
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

// discard takes the preview away, in the destination's order, and forgets the turn.
func (t *Turn) discard() {
	if t.a == nil {
		return
	}
	t.hush()
	queued := t.s.push(t.to, true, func(ctx context.Context) {
		if id := t.settle(); id != "" {
			t.s.erase(ctx, t.a, chat.Outbound{To: t.to, TurnID: t.id}, id)
			t.slot.Release()
		}
		t.s.forget(t)
	})
	if !queued {
		t.s.forget(t)
	}
}

// settle ends typing and previews and returns the preview that stands, "" = none. The destination's
// goroutine calls it.
func (t *Turn) settle() string {
	t.hush()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.preview.id
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
