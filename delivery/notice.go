package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/channels"
	"understudy/chat"
)

// Times of a notice (spec/chat.md §2.3): it has noticeBudget before what waits behind it goes on,
// then one more try.
const (
	noticeBudget = 5 * time.Second
	noticeRetry  = time.Second
	noticeLatest = 30 * time.Second // a platform that wants a longer wait gets no notice
)

// notify queues a notice; t is its turn, nil = none.
func (s *Service) notify(t *Turn, o chat.Outbound) error {
	a, ok := s.account(o.To)
	if !ok {
		return fmt.Errorf("sending to %s/%s: %w", o.To.Channel, o.To.Account, ErrNoChannel)
	}
	parts := a.parts(o)
	if len(parts) == 0 {
		return ErrEmpty
	}
	n := &notice{s: s, a: a, to: o.To, turn: t, out: o, parts: parts}
	if n.turn == nil {
		n.slot = NewSlot(a.rule(o.To, o.ReplyTo, o.Via, false))
	} else {
		n.slot = t.slot
	}
	s.mu.Lock()
	l := s.line(n.to)
	l.notices++
	n.number = l.notices
	s.mu.Unlock()
	n.queue()
	return nil
}

// notice is a notice on its way.
type notice struct {
	s       *Service
	a       *account
	to      chat.Address
	turn    *Turn
	slot    *Slot
	out     chat.Outbound
	parts   []part
	number  int // among those of its destination
	retried bool
	plain   bool
}

// errOldNews is why a notice gets no second try.
var errOldNews = errors.New("a newer notice was sent meanwhile")

// isOldNews reports whether a newer notice went to the same place.
func (n *notice) isOldNews() bool {
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	return n.s.line(n.to).notices > n.number
}

func (n *notice) queue() {
	if !n.s.push(n.to, false, n.send) {
		n.failed(&channels.SendError{Verdict: channels.Refused, Code: "queue_full", Err: errors.New("the destination has too much to say")})
	}
}

// send makes one try: a job of the destination.
func (n *notice) send(ctx context.Context) {
	if n.out.Class == chat.Progress && n.turn != nil && n.turn.isOver() {
		return // "still trying" is never said after the answer (spec/failover.md §9)
	}
	if n.retried && n.isOldNews() { // its words would contradict what was said since
		n.failed(&channels.SendError{Verdict: channels.Refused, Code: "outdated", Err: errOldNews})
		return
	}
	budget, cancel := n.s.clock.WithTimeout(ctx, noticeBudget, errOverdue)
	defer cancel()
	for len(n.parts) > 0 {
		e := n.next(budget)
		switch {
		case e == nil:
			n.parts = n.parts[1:]
		case e.Verdict == channels.Markups && !n.plain:
			n.plain = true
		case e.Verdict == channels.Moved && n.s.relocate(ctx, n.to, e.MovedTo):
		case e.Verdict == channels.Retry && !n.retried && e.After <= noticeLatest && ctx.Err() == nil:
			n.retried = true
			n.s.clock.AfterFunc(max(noticeRetry, e.After), n.queue)
			return
		default:
			n.failed(e)
			return
		}
	}
	if m := n.s.deps.Metrics; m != nil {
		m.Sent(n.to, chat.Notice)
	}
}

// next sends the next part within the budget. A part for which the pace leaves no time was not
// sent.
func (n *notice) next(budget context.Context) *channels.SendError {
	if err := n.s.await(budget, n.a, n.to); errors.Is(err, errStopped) {
		return &channels.SendError{Verdict: channels.Retry, Code: "pace", Err: context.Cause(budget)}
	} else if err != nil {
		return verdict(err)
	}
	p := n.parts[0]
	piece := channels.Piece{
		To: n.s.where(n.to), Class: chat.Notice, Text: p.Text, Plain: p.Plain, Media: p.Media, Buttons: p.Buttons,
		ReplyTo: n.slot.Reference(chat.Notice, false), Silent: n.a.traits.SilentNotices, Via: n.out.Via, For: n.out.For,
	}
	if n.plain {
		piece.Text = ""
	}
	_, err := n.a.adapter.Send(budget, piece)
	return n.s.reached(budget, n.to, callSend, err)
}

// failed counts and logs a notice that did not go out; nothing else depends on it.
func (n *notice) failed(e *channels.SendError) {
	n.s.log.Info("notice failed", "channel", n.to.Channel, "turn", n.out.TurnID, "code", e.Code, "error", e.Err)
	if m := n.s.deps.Metrics; m != nil {
		m.NoticeFailed(n.to)
	}
}
