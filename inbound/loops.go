package inbound

import (
	"sync"
	"time"
)

// Bounds of what passes between this bot and another one (spec/chat.md §2.1, §8, S12).
const (
	loopEvents   = 20
	loopSpan     = time.Minute
	loopCooldown = time.Minute
	maxLoops     = 1024
)

// loops ends conversations of bots with each other: after 20 messages of one bot within a minute the
// account does not hear it for a minute.
type loops struct {
	mu   sync.Mutex
	bots map[string]*chatter
}

type chatter struct {
	at    [loopEvents]time.Time // a ring of the latest messages
	next  int
	until time.Time // not heard before
}

func newLoops() *loops { return &loops{bots: map[string]*chatter{}} }

// admit counts a message of another bot and reports whether it is heard.
func (l *loops) admit(bot string, now time.Time) bool {
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
	oldest := c.at[c.next]
	switch {
	case now.Before(c.until):
		return false
	case !oldest.IsZero() && now.Sub(oldest) < loopSpan:
		*c = chatter{until: now.Add(loopCooldown)}
		return false
	}
	c.at[c.next] = now
	c.next = (c.next + 1) % loopEvents
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
