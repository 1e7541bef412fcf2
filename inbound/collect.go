package inbound

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Bounds of what waits for more (spec/chat.md §1.6, §2.9).
const (
	albumWindow  = 800 * time.Millisecond // after the last part of an album
	maxParts     = 20                     // messages that are answered as one
	maxWindows   = 5                      // windows that the first part waits at most
	maxGroups    = 4096                   // groups that wait at a time; further messages do not wait
	retryHanding = time.Second
)

// part is a message as the collector sees it.
type part struct {
	place         string // where it was written; messages of one place leave in order
	sender, album string
	window        time.Duration // how long it waits for more; 0 = not at all
	bytes         int           // of its text
}

// group is a number of messages that will be answered as one, or a single one that waits for more.
// Its messages are in the journal; here is only what decides whether another one belongs to it.
type group struct {
	part
	lead  int64 // its number in the journal
	parts int
	since time.Time
	timer *time.Timer
	// leaving is not nil while the group is being handed over, and closed afterwards.
	leaving chan struct{}
}

// takes reports whether a message may become a part of the group: of an album all that belongs to it,
// of texts what fits.
func (g *group) takes(x part) bool {
	switch {
	case x.window == 0, g.sender != x.sender, g.album != x.album, g.parts >= maxParts:
		return false
	}
	return g.album != "" || g.bytes+1+x.bytes <= maxText
}

// collector lets messages wait for what belongs to them: the rest of an album, or the next text of a
// person who writes in several.
//
//	join ─► is there a group that takes it? ── yes ─► the journal puts it there ─► extend
//	              │ no: the group of this place is handed over first
//	              └─► the journal makes it a group ─► open (waits) or the Handler
//
// One place has one group at a time, so that its messages leave in the order in which they came. A
// group ends with its timer, with a message that it does not take, or with the process: then it is
// still in the journal.
type collector struct {
	hand func(ctx context.Context, lead int64) error
	log  *slog.Logger

	mu      sync.Mutex // never held while something waits
	groups  map[string]*group
	closed  bool
	handing sync.WaitGroup // groups whose time was over
}

func newCollector(log *slog.Logger, hand func(context.Context, int64) error) *collector {
	return &collector{hand: hand, log: log, groups: map[string]*group{}}
}

// join returns the number of the group that takes a message, 0 = none: then nothing of the message's
// place waits any more.
func (c *collector) join(ctx context.Context, x part) (int64, error) {
	for {
		c.mu.Lock()
		g := c.groups[x.place]
		if g == nil {
			c.mu.Unlock()
			return 0, nil
		}
		if g.leaving == nil && g.takes(x) {
			c.mu.Unlock()
			return g.lead, nil
		}
		if err := c.clear(ctx, g); err != nil {
			return 0, err
		}
	}
}

// clear hands a group over, or waits until somebody else has done it. mu is held, and released.
func (c *collector) clear(ctx context.Context, g *group) error {
	if g.leaving == nil {
		c.leave(g)
		c.mu.Unlock()
		return c.deliver(ctx, g)
	}
	left := g.leaving
	c.mu.Unlock()
	select {
	case <-left:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leave marks a group as being handed over; mu is held.
func (c *collector) leave(g *group) {
	g.leaving = make(chan struct{})
	g.timer.Stop()
}

// deliver hands over a group that is marked. One that cannot be read waits again.
func (c *collector) deliver(ctx context.Context, g *group) error {
	err := c.hand(ctx, g.lead)
	c.mu.Lock()
	defer c.mu.Unlock()
	close(g.leaving)
	switch {
	case err == nil:
		delete(c.groups, g.place)
	case !c.closed:
		g.leaving = nil
		g.timer.Reset(retryHanding)
	}
	return err
}

// expire hands over a group whose time is over.
func (c *collector) expire(g *group) {
	c.mu.Lock()
	if c.closed || c.groups[g.place] != g || g.leaving != nil {
		c.mu.Unlock()
		return
	}
	c.handing.Add(1)
	defer c.handing.Done()
	c.leave(g)
	c.mu.Unlock()
	if err := c.deliver(context.Background(), g); err != nil {
		c.log.Error("message not handed over yet", "seq", g.lead, "error", err)
	}
}

// extend counts a message that the journal has put into a group. One that has been handed over in the
// meantime needs nothing: its turn will find the message there.
func (c *collector) extend(lead int64, x part) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.groups[x.place]
	if g == nil || g.lead != lead || g.leaving != nil {
		return
	}
	g.parts++
	g.bytes += 1 + x.bytes
	left := max(0, time.Until(g.since.Add(maxWindows*x.window)))
	g.timer.Reset(min(x.window, left))
}

// open lets a message wait that is a group of its own; it reports whether it does.
func (c *collector) open(ctx context.Context, lead int64, parts int, x part) bool {
	for x.window > 0 {
		c.mu.Lock()
		old := c.groups[x.place]
		switch {
		case c.closed, old == nil && len(c.groups) >= maxGroups:
			c.mu.Unlock()
			return false
		case old == nil:
			g := &group{part: x, lead: lead, parts: parts, since: time.Now()}
			g.timer = time.AfterFunc(x.window, func() { c.expire(g) })
			c.groups[x.place] = g
			c.mu.Unlock()
			return true
		}
		if err := c.clear(ctx, old); err != nil { // two at once; there is no order between them
			return false
		}
	}
	return false
}

// waits reports whether a group waits whose album a message belongs to.
func (c *collector) waits(x part) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.groups[x.place]
	return g != nil && x.album != "" && g.leaving == nil && g.takes(x)
}

// holds reports whether a group still waits.
func (c *collector) holds(lead int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.groups {
		if g.lead == lead {
			return true
		}
	}
	return false
}

// close ends the waiting without handing anything over.
func (c *collector) close() {
	c.mu.Lock()
	c.closed = true
	for place, g := range c.groups {
		g.timer.Stop()
		if g.leaving == nil {
			delete(c.groups, place)
		}
	}
	c.mu.Unlock()
	c.handing.Wait()
}
