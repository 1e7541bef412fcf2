package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"
)

// repostedFor is how long the page tries to post a message again.
const repostedFor = 5 * time.Minute

// postID is the id of a message of the page. It depends on the page's own id only, so that a message
// that is posted again to another process of the bot stays the same.
func postID(session, clientID string) string {
	sum := sha256.Sum256([]byte(session + "\x00" + clientID))
	return "p" + hex.EncodeToString(sum[:10])
}

// post appends the owner's message, which is not shown before it is confirmed: a page must not see
// what may have to be taken back. A repeated post (same id) returns the first one.
func (b *board) post(session string, p posted, at time.Time) (m Message, again bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.rooms[session]
	if r == nil {
		r = b.remembered(session, nil)
		b.rooms[session] = r
	}
	id := postID(session, p.ID)
	if old := r.find(id); old != nil {
		if old.Post == "" { // an earlier process took it in, and the page does not know that yet
			old.Post, old.Label, old.held = p.ID, p.Label, true
		}
		return *old, true
	}
	if old, answered := r.postedBefore(p.Text, at); old != nil {
		old.ID, old.Post, old.held, old.nameless = id, p.ID, true, false
		if answered {
			b.finished.add(id)
		}
		return *old, true
	}
	r.fresh = false
	own := &Message{ID: id, Session: session, Own: true, Post: p.ID, Text: p.Text, Label: p.Label, At: at, held: true}
	b.append(r, own)
	return *own, false
}

// dealtWith reports whether a message that was stored is known to wait for nothing: an earlier process
// dealt with it, and nobody says so in this one.
func (b *board) dealtWith(ctx context.Context, m Message) bool {
	if b.history == nil {
		return false
	}
	waits, err := b.history.Waits(ctx, m.Session, m.ID)
	return err == nil && !waits
}

// confirm shows a message that is stored.
func (b *board) confirm(m Message) Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.rooms[m.Session]
	if r == nil {
		return m
	}
	own := r.find(m.ID)
	if own == nil {
		return m
	}
	b.show(r, own)
	return *own
}

// show publishes an own message unless it is shown. The lock is held.
func (b *board) show(r *room, own *Message) {
	if !own.held {
		return
	}
	own.held = false
	r.entitle(own.Text)
	b.publish(r, own)
	if !b.finished.has(own.ID) {
		r.waiting[own.ID] = own.At
		return
	}
	// It was dealt with in the meantime, and the pages were told so before they saw it.
	if !r.busy() {
		b.log.add(event{Type: eventDone, Session: own.Session})
	}
}

// withdraw takes back a message that could not be stored; the page posts it again under the same id.
func (b *board) withdraw(m Message) {
	b.mu.Lock()
	r := b.rooms[m.Session]
	if r != nil {
		if own := r.find(m.ID); own != nil && own.held {
			r.messages = slices.DeleteFunc(r.messages, func(x *Message) bool { return x == own })
		}
	}
	b.mu.Unlock()
	b.remove(m.Session, m.ID) // in case it was shown already
}

// postedBefore finds a message that the page posts again because the bot restarted before it
// answered: it is in the history already, and so perhaps is its answer.
func (r *room) postedBefore(text string, at time.Time) (old *Message, answered bool) {
	if !r.fresh {
		return nil, false
	}
	for i := len(r.messages) - 1; i >= 0; i-- {
		switch m := r.messages[i]; {
		case !m.Own:
			answered = true
		case m.nameless && m.Text == text && at.Sub(m.At) < repostedFor:
			return m, answered
		default:
			return nil, false
		}
	}
	return nil, false
}
