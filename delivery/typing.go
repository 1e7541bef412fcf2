package delivery

import (
	"context"
	"errors"
	"time"

	"understudy/channels"
)

// The typing sign is repeated after four fifths of its life; leastTyping bounds how often.
const (
	typingTimeout = 10 * time.Second
	leastTyping   = time.Second
	// quietTime is how long the answer waits for the sign to be taken back.
	quietTime = time.Second
)

// errQuietLate is why the answer does not wait for the typing sign any longer.
var errQuietLate = errors.New("the typing sign is not taken back in time")

// signs begins the sign of work if this is the moment for it; t.mu is held.
func (t *Turn) signs(from Typing) {
	if t.a == nil || t.a.set.Typing != from || t.signed || t.silent {
		return
	}
	t.signed = true
	if t.a.typer == nil {
		t.typingSign(true)
		return
	}
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if !t.s.stopped {
		t.typed = make(chan struct{})
		t.s.spawn(t.typing)
	}
}

// typing shows that the bot works until the turn ends, and takes the sign back where that is
// possible. It is best effort.
func (t *Turn) typing(ctx context.Context) {
	defer close(t.typed)
	if !t.sign(ctx) {
		return
	}
	if q, ok := t.a.typer.(channels.Quieter); ok {
		call, cancel := t.s.begun(ctx, typingTimeout)
		defer cancel()
		_ = t.s.heard(t.to, callTyping, q.Quiet(call, t.s.where(t.to)))
	}
}

// sign repeats the sign and reports whether it was perhaps shown. Only a refusal for good ends it
// early: then a reaction shows the same.
func (t *Turn) sign(ctx context.Context) (shown bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !t.hushedBy(cancel) {
		return false
	}
	every := max(leastTyping, t.a.typer.TypingTTL()*4/5)
	for ctx.Err() == nil {
		wait := t.s.held(t.to, callTyping)
		if wait == 0 {
			call, done := t.s.clock.WithTimeout(ctx, typingTimeout, errOverdue)
			e := t.s.heard(t.to, callTyping, t.showWork(call))
			done()
			switch {
			case e == nil:
				shown = true
			case e.Verdict == channels.Gone || e.Verdict == channels.Refused:
				t.signInstead()
				return shown
			default:
				shown = true // perhaps
				wait = e.After
			}
		}
		t.rest(ctx, max(every, wait), wait == 0)
	}
	return shown
}

// showWork makes the call that shows the sign.
func (t *Turn) showWork(ctx context.Context) error {
	t.mu.Lock()
	recording := t.recording
	t.mu.Unlock()
	if r, ok := t.a.typer.(channels.Recorder); ok && recording {
		return r.Recording(ctx, t.s.where(t.to))
	}
	return t.a.typer.Typing(ctx, t.s.where(t.to))
}

// rest waits until the sign is to be repeated, or, if it may be sooner, until it becomes another one. The
// end of ctx is seen by the caller.
func (t *Turn) rest(ctx context.Context, d time.Duration, maySooner bool) {
	nap, wake := context.WithCancel(ctx)
	defer wake()
	if maySooner {
		t.mu.Lock()
		t.wakeSign = wake
		t.mu.Unlock()
	}
	_ = t.s.clock.Sleep(nap, d)
}

// records tells that the answer is being spoken, which the sign of work shows where the channel can
// (channels.Recorder).
func (t *Turn) records() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recording = true
	if t.a == nil || t.wakeSign == nil {
		return
	}
	if _, ok := t.a.typer.(channels.Recorder); ok {
		t.wakeSign()
	}
}

// hushedBy says what ends the typing sign, and reports whether it may begin.
func (t *Turn) hushedBy(cancel context.CancelFunc) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endTyping = cancel
	return !t.silent
}

// signInstead shows by a reaction what the channel cannot show, unless it is not wanted any more.
func (t *Turn) signInstead() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.typingSign(!t.silent)
}

// hush ends the typing sign.
func (t *Turn) hush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.silent {
		return
	}
	t.silent = true
	if t.endTyping != nil {
		t.endTyping()
	}
	t.typingSign(false)
}

// quiet ends the typing sign and waits, not for long, until nothing of it is under way: no sign
// may come behind the answer.
func (t *Turn) quiet(ctx context.Context) {
	t.hush()
	t.mu.Lock()
	typed := t.typed
	t.mu.Unlock()
	if typed == nil {
		return
	}
	patience, cancel := t.s.clock.WithTimeout(ctx, quietTime, errQuietLate)
	defer cancel()
	_ = t.s.clock.Await(patience, typed)
}
