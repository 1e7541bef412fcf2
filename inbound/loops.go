package inbound

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// Loops bounds what passes between this bot and another one (spec/chat.md §2.1, §8, S12): after so many
// events of one bot within the window the account does not hear it for the cooldown.
type Loops struct {
	Events           int
	Window, Cooldown time.Duration
}

// Bounds of Loops.
const (
	maxLoopEvents = 1000
	maxLoopSpan   = 24 * time.Hour
)

// DefaultLoops are the bounds where nothing else is said.
func DefaultLoops() Loops { return Loops{Events: 20, Window: time.Minute, Cooldown: time.Minute} }

func (l Loops) validate() error {
	var errs []error
	if l.Events < 1 || l.Events > maxLoopEvents {
		errs = append(errs, fmt.Errorf("messages.botLoopProtection.events: %d is not between 1 and %d", l.Events, maxLoopEvents))
	}
	for key, span := range map[string]time.Duration{"windowSeconds": l.Window, "cooldownSeconds": l.Cooldown} {
		if span < time.Second || span > maxLoopSpan {
			errs = append(errs, fmt.Errorf("messages.botLoopProtection.%s: %d is not between 1 and %d", key, int64(span/time.Second), int64(maxLoopSpan/time.Second)))
		}
	}
	return errors.Join(errs...)
}

const maxLoops = 1024 // bots that are remembered

// loops ends conversations of bots with each other.
type loops struct {
	mu   sync.Mutex
	bots map[string]*chatter
}

type chatter struct {
	at    []time.Time // a ring of the latest messages
	next  int
	until time.Time // not heard before
}

func newLoops() *loops { return &loops{bots: map[string]*chatter{}} }

// admit counts a message of another bot and reports whether it is heard.
func (l *loops) admit(bot string, within Loops, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.bots[bot]
	if c == nil {
		if len(l.bots) >= maxLoops {
			clear(l.bots)
		}
		c = &chatter{}
		l.bots[bot] = c
	}
	if len(c.at) != within.Events { // new, or the configuration has changed
		c.at, c.next = make([]time.Time, within.Events), 0
	}
	oldest := c.at[c.next]
	switch {
	case now.Before(c.until):
		return false
	case !oldest.IsZero() && now.Sub(oldest) < within.Window:
		*c = chatter{until: now.Add(within.Cooldown)}
		return false
	}
	c.at[c.next] = now
	c.next = (c.next + 1) % len(c.at)
	return true
}

// Bounds of the memory of gaps.
const (
	gapQuiet = time.Minute // without a message that was missed, the gap is closed
	maxGaps  = 1024
)

// gaps counts what is answered of each conversation after a gap in the connection.
type gaps struct {
	mu     sync.Mutex
	places map[string]*gap
}

type gap struct {
	n  int
	at time.Time
}

func newGaps() *gaps { return &gaps{places: map[string]*gap{}} }

// admit counts a message that was missed and reports whether it is one of the first so many.
func (g *gaps) admit(place string, most int, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	x := g.places[place]
	if x == nil || now.Sub(x.at) > gapQuiet {
		if len(g.places) >= maxGaps {
			clear(g.places)
		}
		x = &gap{}
		g.places[place] = x
	}
	x.n++
	x.at = now
	return x.n <= most
}
