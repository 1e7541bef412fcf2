package discord

import (
	"hash/maphash"

	"understudy/chat"
)

const mostRecent = 4096

// seen is what is remembered of a message that was passed on.
type seen struct {
	address chat.Address
	sender  chat.Sender
	text    uint64 // fingerprint
}

// recent remembers the latest messages. Discord reports a message as changed when only its link
// previews came; those are recognised by their equal text. Of a removal it tells no more than the id.
// It belongs to the worker.
type recent struct {
	seed  maphash.Seed
	known map[string]seen
	order []string // ring, oldest at next
	next  int
}

func newRecent() *recent {
	return &recent{seed: maphash.MakeSeed(), known: map[string]seen{}}
}

func (r *recent) get(id string) (seen, bool) {
	s, ok := r.known[id]
	return s, ok
}

func (r *recent) drop(id string) { delete(r.known, id) }

// same reports whether a message is known with this text.
func (r *recent) same(id, text string) bool {
	s, ok := r.known[id]
	return ok && s.text == maphash.String(r.seed, text)
}

// put remembers a message, in place of the one that has been known the longest.
func (r *recent) put(id string, in chat.Inbound, text string) {
	_, known := r.known[id]
	r.known[id] = seen{in.Address, in.Sender, maphash.String(r.seed, text)}
	switch {
	case known:
	case len(r.order) < mostRecent:
		r.order = append(r.order, id)
	default:
		delete(r.known, r.order[r.next])
		r.order[r.next] = id
		r.next = (r.next + 1) % mostRecent
	}
}
