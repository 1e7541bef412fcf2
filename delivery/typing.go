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
)

// errTick is the cause of the context that ends a pause between two typing signs.
var errTick = errors.New("typing is due")

// typing shows that the bot works until the turn ends. It is best effort: only a refusal for good
// ends it early.
func (t *Turn) typing(ctx context.Context) {
	every := max(leastTyping, t.a.typer.TypingTTL()*4/5)
	for {
		if t.isQuiet() || ctx.Err() != nil {
			return
		}
		call, cancel := t.s.clock.WithTimeout(ctx, typingTimeout, errOverdue)
		err := t.a.typer.Typing(call, t.s.where(t.to))
		cancel()
		if e := verdict(err); e != nil && (e.Verdict == channels.Gone || e.Verdict == channels.Refused) {
			return
		} else if e != nil {
			every = max(every, e.After)
		}
		pause, stop := t.s.clock.WithTimeout(ctx, every, errTick)
		err = t.s.clock.Await(pause, t.quiet)
		stop()
		if err == nil {
			return
		}
	}
}

func (t *Turn) isQuiet() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.silent
}

// hush ends the typing sign.
func (t *Turn) hush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.silent {
		t.silent = true
		close(t.quiet)
	}
}
