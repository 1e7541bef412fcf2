package delivery

import (
	"context"
	"time"

	"understudy/channels"
	"understudy/chat"
)

// Bounds of reactions. They are best effort and never hold up anything else.
const (
	reactWorkers = 8 // goroutines for all of them
	reactTimeout = 10 * time.Second
	reactTries   = 3
	reactWait    = time.Second
	reactLatest  = 30 * time.Second // a platform that wants a longer pause gets no further try
)

// The signs that a message can carry, one reaction for each.
const (
	signStage  = iota // what becomes of it
	signTyping        // that somebody works on it
	signs
)

// mark is what the bot shows on the message of a turn by reactions. Its calls are made one at a time
// and in order; of several wishes in a row only the last is fulfilled. Its fields below the line
// belong to Service.mu.
type mark struct {
	a      *account
	to     chat.Address
	id     string
	staged bool // it shows what becomes of the message

	want, have [signs]string // emojis, "" = none
	busy       bool          // queued, being worked on, or waiting for its next try
	off        bool          // the platform does not let us
	tries      int           // that failed in a row
}

// newMark returns the mark of a turn's message, nil = it gets no reactions. The scope is about the signs of
// what becomes of a message; the one for typing stands wherever typing would.
func newMark(a *account, in *chat.Inbound) *mark {
	if a.reactor == nil || !markable(in) {
		return nil
	}
	return &mark{a: a, to: in.Address, id: in.ID, staged: a.set.AckScope.holds(in)}
}

// stages of a message.
type stage uint8

const (
	stageQueued stage = iota
	stageWorking
	stageDone
	stageFailed
	stageSilent
)

// emoji is what shows a stage; keep = what is there stays.
func (a *account) emoji(g stage) (emoji string, keep bool) {
	r := a.set.StatusReactions
	switch g {
	case stageQueued:
		if emoji = r.Queued; emoji == "" {
			emoji = a.set.AckReaction
		}
		return emoji, false
	case stageWorking:
		return r.Working, r.Working == ""
	case stageDone:
		return r.Done, false
	case stageFailed:
		return r.Failed, false
	}
	return "", false
}

// stage shows what became of the turn's message.
func (t *Turn) stage(g stage) {
	if t.mark == nil || !t.mark.staged {
		return
	}
	if emoji, keep := t.a.emoji(g); !keep {
		t.s.wish(t.mark, signStage, emoji)
	}
}

// typingSign shows by a reaction that the bot works, where it cannot be shown otherwise.
func (t *Turn) typingSign(on bool) {
	if t.mark == nil || t.a.set.TypingReaction == "" || !t.a.set.Typing.wanted() {
		return
	}
	emoji := ""
	if on {
		emoji = t.a.set.TypingReaction
	}
	t.s.wish(t.mark, signTyping, emoji)
}

// wish asks for an emoji on a message, "" = none.
func (s *Service) wish(m *mark, sign int, emoji string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.want[sign] == emoji {
		return
	}
	m.want[sign], m.tries = emoji, 0
	if !m.busy {
		s.queueMark(m)
	}
}

// queueMark gives a mark to the workers; s.mu is held.
func (s *Service) queueMark(m *mark) {
	if s.stopped {
		return
	}
	m.busy = true
	s.marks = append(s.marks, m)
	if s.reacting < reactWorkers {
		s.reacting++
		s.spawn(s.reactions)
	}
}

// reactions works off marks until none waits.
func (s *Service) reactions(ctx context.Context) {
	for {
		s.mu.Lock()
		if len(s.marks) == 0 || ctx.Err() != nil {
			s.reacting--
			s.mu.Unlock()
			return
		}
		m := s.marks[0]
		s.marks[0] = nil
		s.marks = s.marks[1:]
		s.mu.Unlock()
		s.fulfil(ctx, m)
	}
}

// change is one call that a mark needs.
type change struct {
	sign   int
	emoji  string
	remove bool
}

// nextChange returns what is to be done next; without anything it takes the mark out of work.
func (s *Service) nextChange(m *mark) (change, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range m.want {
		switch {
		case m.off || m.have[i] == m.want[i]:
		case m.have[i] != "": // first away: some platforms have room for one
			return change{i, m.have[i], true}, true
		default:
			return change{i, m.want[i], false}, true
		}
	}
	m.busy = false
	return change{}, false
}

// fulfil makes a message look as it is wished.
func (s *Service) fulfil(ctx context.Context, m *mark) {
	for ctx.Err() == nil {
		c, ok := s.nextChange(m)
		if !ok {
			return
		}
		if again := s.changed(m, c, s.change(ctx, m, c)); !again {
			return
		}
	}
}

// change makes one call.
func (s *Service) change(ctx context.Context, m *mark, c change) *channels.SendError {
	if wait := s.held(m.to, callReact); wait > 0 {
		return &channels.SendError{Verdict: channels.Retry, After: wait, Code: "held", Err: errHeld}
	}
	call, cancel := s.begun(ctx, reactTimeout)
	defer cancel()
	do := m.a.reactor.React
	if c.remove {
		do = m.a.reactor.Unreact
	}
	return s.heard(m.to, callReact, do(call, s.where(m.to), m.id, c.emoji))
}

// changed takes in what came of a call and reports whether the next may follow at once.
func (s *Service) changed(m *mark, c change, e *channels.SendError) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case e == nil || e.Verdict == channels.Unsure:
		m.tries = 0
		if m.have[c.sign] = c.emoji; c.remove {
			m.have[c.sign] = ""
		}
		return true
	case e.Verdict == channels.Retry && e.After <= reactLatest && m.tries+1 < reactTries:
		m.tries++
		s.clock.AfterFunc(max(reactWait, e.After), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.queueMark(m)
		})
		return false
	}
	s.log.Debug("reaction failed", "channel", m.to.Channel, "code", e.Code)
	m.off = true
	return true // to be taken out of work
}
