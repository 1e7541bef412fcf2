package telegram

import (
	"hash/maphash"
	"sync"
)

// mostIDs bounds an idSet.
const mostIDs = 10_000

// idSet is a set of chat ids for concurrent use. What is in it can be found out again, so it starts
// anew when it is full.
type idSet struct {
	mu  sync.Mutex
	ids map[string]bool
}

func newIDSet() *idSet { return &idSet{ids: map[string]bool{}} }

// add puts an id into the set and reports whether it is new there.
func (s *idSet) add(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids[id] {
		return false
	}
	if len(s.ids) >= mostIDs {
		clear(s.ids)
	}
	s.ids[id] = true
	return true
}

func (s *idSet) has(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids[id]
}

const mostTexts = 4096

// texts remembers the fingerprints of recent messages. Telegram reports a message as edited when
// only its link preview or its reactions changed; those are recognised by their equal text. It
// belongs to whoever handles an update.
type texts struct {
	seed  maphash.Seed
	known map[string]uint64
	order []string // ring, oldest at next
	next  int
}

func newTexts() *texts {
	return &texts{seed: maphash.MakeSeed(), known: map[string]uint64{}}
}

// same reports whether a message is known with this text.
func (t *texts) same(key, text string) bool {
	old, known := t.known[key]
	return known && old == maphash.String(t.seed, text)
}

// put remembers the text of a message, in place of the one that has been known the longest.
func (t *texts) put(key, text string) {
	_, known := t.known[key]
	t.known[key] = maphash.String(t.seed, text)
	switch {
	case known:
	case len(t.order) < mostTexts:
		t.order = append(t.order, key)
	default:
		delete(t.known, t.order[t.next])
		t.order[t.next] = key
		t.next = (t.next + 1) % mostTexts
	}
}
