package discord

import (
	"slices"
	"strconv"
	"sync"
)

// newest knows the last message of each channel and thread, as a session told it when it began: each
// server's channels and active threads come with it. What is said later is heard. Of direct messages
// nothing is told to bots. It is for concurrent use.
type newest struct {
	mu     sync.Mutex
	places map[string]told
	silent map[string]bool // servers that READY named and that told nothing yet
}

// told is what a session told of a place.
type told struct{ place, server, last string }

// begin forgets what earlier sessions told. It reports whether there is nothing to wait for.
func (n *newest) begin(servers []string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.places, n.silent = map[string]told{}, map[string]bool{}
	for _, id := range servers {
		n.silent[id] = true
	}
	return len(n.silent) == 0
}

// learn takes what a server tells of its places. It reports whether it was the last one to do so.
func (n *newest) learn(g guild) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.places == nil { // no session has begun
		return false
	}
	for _, c := range slices.Concat(g.Channels, g.Threads) {
		if c.ID != "" && len(n.places) < most {
			n.places[c.ID] = told{c.ID, g.ID, c.Last}
		}
	}
	waited := n.silent[g.ID]
	delete(n.silent, g.ID)
	return waited && len(n.silent) == 0
}

// of returns the last message of a place, "" = there is none; false = that was not told.
func (n *newest) of(place string) (last string, known bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	t, ok := n.places[place]
	return t.last, ok
}

// since returns the places of some servers whose last message is newer than one, the newest first.
func (n *newest) since(id string, servers map[string]bool) []told {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []told
	for _, t := range n.places {
		if servers[t.server] && compareIDs(t.last, id) > 0 {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b told) int { return compareIDs(b.last, a.last) })
	return out
}

// later returns the newer one of two ids.
func later(a, b string) string {
	if compareIDs(a, b) >= 0 {
		return a
	}
	return b
}

// tolerance is how far the order of ids of different channels may differ from that of time, in the
// milliseconds of an id.
const tolerance = 10_000

// shortlyBefore is an id that is a little older than all that were given at the same time.
func shortlyBefore(id string) string {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil || n>>22 <= tolerance {
		return "1"
	}
	return strconv.FormatUint(n-tolerance<<22, 10)
}
