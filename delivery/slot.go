package delivery

import (
	"fmt"

	"understudy/chat"
)

// Mode is `replyToMode`: which messages of a turn refer to the message they answer
// (spec/chat.md §2.3).
type Mode string

// The modes. The zero Mode is ModeOff.
const (
	ModeOff     Mode = "off"
	ModeFirst   Mode = "first"
	ModeAll     Mode = "all"
	ModeBatched Mode = "batched" // as first, but only when the turn answers several merged messages
)

// Validate reports an unknown mode.
func (m Mode) Validate() error {
	switch m {
	case "", ModeOff, ModeFirst, ModeAll, ModeBatched:
		return nil
	}
	return fmt.Errorf("replyToMode: %q is none of off, first, all, batched", string(m))
}

// Rule is what a turn's slot depends on; it does not change during the turn.
type Rule struct {
	Mode Mode
	// References and OpensThreads are the channel's traits of the same names.
	References, OpensThreads bool
	InThread                 bool   // the turn is inside a thread or topic already
	Batched                  bool   // it answers several merged messages
	Target                   string // the message it answers; "" = none
}

type slotState uint8

const (
	slotOpen slotState = iota
	slotReserved
	slotConsumed
)

// Slot is the right to be the turn's first assistant message (spec/chat.md §2.3):
//
//	open ── Reserve(preview) ──► reserved ── Consume ──► consumed
//	  ▲                             │
//	  └────────── Release ──────────┘     open ── Consume ──► consumed
//
// Only classes that TakesSlot reports may move it; a notice never does. It is not safe for
// concurrent use.
type Slot struct {
	rule   Rule
	state  slotState
	holder string
	chosen string // the message that the model's text chose; "" = none
}

// NewSlot returns an open slot.
func NewSlot(r Rule) *Slot { return &Slot{rule: r} }

// Reserve gives the open slot to a preview; it reports whether the slot was open.
func (s *Slot) Reserve(preview string) bool {
	if s.state != slotOpen {
		return false
	}
	s.state, s.holder = slotReserved, preview
	return true
}

// Release opens a reserved slot again, because its preview does not become the answer.
func (s *Slot) Release() {
	if s.state == slotReserved {
		s.state, s.holder = slotOpen, ""
	}
}

// Consume makes a message the slot's owner for good; it reports whether the message is the owner.
// The preview that holds a reserved slot may consume it, another message may not.
func (s *Slot) Consume(c chat.Class, message string) bool {
	switch {
	case !c.TakesSlot(), s.state == slotConsumed, s.state == slotReserved && s.holder != message:
		return false
	}
	s.state, s.holder = slotConsumed, message
	return true
}

// Consumed reports whether the turn has been answered.
func (s *Slot) Consumed() bool { return s.state == slotConsumed }

// Owner returns the message that owns the slot, or the preview that has it reserved; "" = nobody.
func (s *Slot) Owner() string { return s.holder }

// Choose makes the model's own choice of what the answer refers to hold in any mode; "" takes it
// back. It means nothing where a reference opens a thread: the mode alone decides on threads.
func (s *Slot) Choose(target string) { s.chosen = target }

// Reference returns the message that the next message of class c is to refer to, "" = none.
// Continued tells that it is a later message of an answer whose first one is sent.
func (s *Slot) Reference(c chat.Class, continued bool) string {
	if s.rule.OpensThreads {
		return s.thread(c, continued)
	}
	target := s.rule.Target
	chosen := s.chosen != "" && c == chat.Assistant
	if chosen {
		target = s.chosen
	}
	switch {
	case !s.rule.References || !c.TakesSlot():
		return ""
	case s.rule.Mode == ModeAll:
		return target
	case continued || s.state == slotConsumed || !chosen && !s.attaches():
		return ""
	}
	return target
}

// attaches reports whether the mode attaches anything at all.
func (s *Slot) attaches() bool {
	switch s.rule.Mode {
	case ModeFirst, ModeAll:
		return true
	case ModeBatched:
		return s.rule.Batched
	}
	return false
}

// thread decides for a channel on which the reference opens a thread. One answer is one owner of
// the slot, so all its messages stay in the thread; notices and command replies go there too, which
// keeps the room clean, and leave the slot as it is.
func (s *Slot) thread(c chat.Class, continued bool) string {
	switch {
	case !s.attaches() || s.rule.InThread: // inside a thread the address says it already
		return ""
	case c.TakesSlot() && s.state == slotConsumed && !continued && s.rule.Mode != ModeAll:
		return ""
	case c == chat.Heartbeat || c == chat.Cron:
		return ""
	}
	return s.rule.Target
}
