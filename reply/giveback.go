package reply

import (
	"errors"
	"slices"

	"understudy/chat"
	"understudy/session"
)

// spoken is a message of somebody in what a turn adds to the conversation.
type spoken struct {
	in *chat.Inbound
	at int // its index in turn.fresh
	// late tells that the turn took it over on its way.
	late bool
}

// hold notes that the next entry is what somebody said; in is nil where nobody did.
func (t *turn) hold(in *chat.Inbound) {
	if in != nil {
		t.spoken = append(t.spoken, spoken{in, len(t.fresh), t.late > 0})
	}
}

// giveBack takes what others said out of a turn that one person stopped, as far as nothing was done for it
// yet: whoever runs it again does nothing twice. A tool that ran worked for all who had spoken by then.
func (t *turn) giveBack(cause error) (back []*chat.Inbound) {
	unheard := t.steered
	t.nSteered, t.steered = t.nSteered+len(unheard), nil
	var by *session.StoppedBy
	if !errors.As(cause, &by) {
		return nil
	}
	undone := 0
	if t.acted {
		undone = len(t.fresh)
	}
	if t.acted && t.late > 0 {
		undone = t.lateAt
	}
	for _, s := range slices.Backward(t.spoken) {
		if s.at < undone || s.in.Sender.ID == by.Owner {
			continue
		}
		t.fresh = slices.Delete(t.fresh, s.at, s.at+1)
		back = append(back, s.in)
		if s.late {
			t.nSteered--
		}
	}
	slices.Reverse(back)
	for _, s := range unheard {
		if s.In != nil && s.In.Sender.ID != by.Owner {
			back = append(back, s.In)
			t.nSteered--
		}
	}
	return back
}
