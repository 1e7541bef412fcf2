package web

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"understudy/chat"
)

// board is everything the page can see. Its lock is never held across I/O or rendering.
type board struct {
	limits  Config
	history History

	mu       sync.Mutex
	log      *eventLog
	rooms    map[string]*room
	finished finished
	nextID   uint64
	epoch    string // makes ids of this process differ from those of earlier ones
}

// room is what is remembered of one session.
type room struct {
	info     Session
	messages []*Message
	sent     map[string]string    // piece key → message id, for pieces that are sent twice
	waiting  map[string]time.Time // message ids that wait for their answer, since when
	fresh    bool                 // nothing was sent since it came from the history
}

// waitsFor is how long a message counts as waiting: longer than any turn.
const waitsFor = 15 * time.Minute

// busy reports whether a message waits for its answer.
func (r *room) busy() bool {
	for id, since := range r.waiting {
		if time.Since(since) > waitsFor {
			delete(r.waiting, id)
		}
	}
	return len(r.waiting) > 0
}

func newBoard(cfg Config, h History, epoch string) *board {
	return &board{limits: cfg, history: h, log: newEventLog(cfg.Events), rooms: map[string]*room{}, epoch: epoch}
}

// open makes sure that the session is in memory, reading its past from the history if need be.
func (b *board) open(ctx context.Context, session string) error {
	b.mu.Lock()
	_, known := b.rooms[session]
	b.mu.Unlock()
	if known {
		return nil
	}
	var past []Entry
	if b.history != nil {
		var err error
		if past, err = b.history.Transcript(ctx, session, b.limits.Messages); err != nil {
			return fmt.Errorf("transcript of session %s: %w", session, err)
		}
	}
	r := b.remembered(session, past)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rooms[session] == nil {
		for _, own := range r.messages {
			if _, waits := r.waiting[own.ID]; waits && b.finished.has(own.ID) { // in the meantime
				delete(r.waiting, own.ID)
			}
		}
		b.rooms[session] = r
		b.forgetOldest(session)
	}
	return nil
}

func (b *board) remembered(session string, past []Entry) *room {
	r := &room{
		info: Session{ID: session}, fresh: true,
		sent: map[string]string{}, waiting: map[string]time.Time{},
	}
	if extra := len(past) - b.limits.Messages; extra > 0 {
		past = past[extra:]
	}
	for i, e := range past {
		m := &Message{ID: e.ID, Session: session, Own: e.Own, Class: e.Class, Text: e.Text, At: e.At}
		if m.ID == "" {
			m.ID, m.nameless = fmt.Sprintf("h%d-%s", i, b.epoch), true
		} else {
			r.waiting[m.ID] = time.Now()
		}
		switch {
		case e.Own:
			m.Class = 0
			r.entitle(e.Text)
		case e.Class == 0:
			m.Class = chat.Assistant
			fallthrough
		default:
			m.HTML = Render(e.Text)
		}
		r.info.UpdatedAt = e.At
		r.messages = append(r.messages, m)
	}
	return r
}

// forgetOldest keeps the number of sessions in memory bounded. Sessions that wait for an
// answer stay.
func (b *board) forgetOldest(keep string) {
	for len(b.rooms) > b.limits.Sessions {
		oldest := ""
		for id, r := range b.rooms {
			if id == keep || r.busy() {
				continue
			}
			if oldest == "" || r.info.UpdatedAt.Before(b.rooms[oldest].info.UpdatedAt) {
				oldest = id
			}
		}
		if oldest == "" {
			return
		}
		delete(b.rooms, oldest)
	}
}

// publish numbers the message's new state and tells every page. The lock is held.
func (b *board) publish(r *room, m *Message) {
	shown := *m
	m.Rev = b.log.add(event{Type: eventMessage, Session: m.Session, Message: &shown})
	r.info.UpdatedAt = m.At
}

// append adds a message, which gets an id unless it has one. The lock is held.
func (b *board) append(r *room, m *Message) {
	if m.ID == "" {
		b.nextID++
		m.ID = fmt.Sprintf("m%d-%s", b.nextID, b.epoch)
	}
	r.messages = append(r.messages, m)
	if extra := len(r.messages) - b.limits.Messages; extra > 0 {
		for _, old := range r.messages[:extra] {
			r.unlink(old.ID)
		}
		r.messages = slices.Clone(r.messages[extra:])
	}
	if !m.held {
		b.publish(r, m)
	}
}

// unlink forgets the keys that lead to a message that is gone.
func (r *room) unlink(id string) {
	for k, v := range r.sent {
		if v == id {
			delete(r.sent, k)
		}
	}
}

func (r *room) find(id string) *Message {
	for i := len(r.messages) - 1; i >= 0; i-- {
		if r.messages[i].ID == id {
			return r.messages[i]
		}
	}
	return nil
}

// entitle names the session after its first message. A command says nothing about the subject.
func (r *room) entitle(text string) {
	if r.info.Title == "" && !strings.HasPrefix(text, "/") {
		r.info.Title = title(text)
	}
}

const titleLength = 60 // in characters

func title(text string) string {
	t := []rune(strings.Join(strings.Fields(text), " "))
	if len(t) > titleLength {
		return string(t[:titleLength-1]) + "…"
	}
	return string(t)
}

// say appends what the bot sent and returns its id. A piece that was sent before keeps its id.
func (b *board) say(session, key string, m Message) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.rooms[session]
	if r == nil { // forgotten a moment ago
		r = b.remembered(session, nil)
		b.rooms[session] = r
	}
	if id, again := r.sent[key]; again && key != "" {
		if old := r.find(id); old != nil {
			return id
		}
	}
	if old := r.lastFromHistory(m); old != nil {
		return old.ID
	}
	r.fresh = false
	for _, own := range r.messages { // what is answered is stored, and stands above
		b.show(r, own)
	}
	b.append(r, &m)
	if key != "" {
		r.sent[key] = m.ID
	}
	return m.ID
}

// lastFromHistory finds an answer that was stored before it was sent: after a restart it is in the
// history already when it finally leaves.
func (r *room) lastFromHistory(m Message) *Message {
	if !r.fresh || !m.Class.Remembered() {
		return nil
	}
	for _, last := range slices.Backward(r.messages) {
		if _, waits := r.waiting[last.ID]; waits {
			continue
		}
		if !last.Own && last.Text == m.Text {
			return last
		}
		return nil
	}
	return nil
}

// change replaces the content of a message; false means that it is not there any more.
func (b *board) change(session, id string, m Message) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.rooms[session]
	if r == nil {
		return false
	}
	old := r.find(id)
	if old == nil || old.Own {
		return false
	}
	old.Class, old.Text, old.HTML, old.Buttons = m.Class, m.Text, m.HTML, m.Buttons
	b.publish(r, old)
	return true
}

// remove deletes a message; false means that it was not there.
func (b *board) remove(session, id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.rooms[session]
	if r == nil || r.find(id) == nil {
		return false
	}
	r.messages = slices.DeleteFunc(r.messages, func(m *Message) bool { return m.ID == id })
	r.unlink(id)
	delete(r.waiting, id)
	b.log.drop(func(e event) bool { return e.Message != nil && e.Message.ID == id && e.Session == session })
	b.log.add(event{Type: eventDelete, Session: session, ID: id})
	return true
}

// typing tells the pages that the bot works on an answer.
func (b *board) typing(session string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log.add(event{Type: eventTyping, Session: session})
}

// finish notes that a message has been dealt with.
func (b *board) finish(session, id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.finished.add(id)
	if r := b.rooms[session]; r != nil {
		delete(r.waiting, id)
		if r.busy() {
			return
		}
	}
	b.log.add(event{Type: eventDone, Session: session})
}

// snapshot is a session as it stands, and the number of the last change it contains.
type snapshot struct {
	Session  Session   `json:"session"`
	Messages []Message `json:"messages"`
	Cursor   uint64    `json:"cursor"`
}

func (b *board) snapshot(session string) snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := snapshot{Session: Session{ID: session}, Messages: []Message{}, Cursor: b.log.last}
	if r := b.rooms[session]; r != nil {
		s.Session = r.shown()
		for _, m := range r.messages {
			if !m.held {
				s.Messages = append(s.Messages, *m)
			}
		}
	}
	return s
}

func (r *room) shown() Session {
	info := r.info
	info.Busy = r.busy()
	return info
}

// list returns the sessions, the latest first: those of the history and those in memory.
func (b *board) list(ctx context.Context) ([]Session, error) {
	byID := map[string]Session{}
	if b.history != nil {
		stored, err := b.history.Sessions(ctx)
		if err != nil {
			return nil, fmt.Errorf("stored sessions: %w", err)
		}
		for _, s := range stored {
			s.Title = title(s.Title)
			byID[s.ID] = s
		}
	}
	b.mu.Lock()
	for id, r := range b.rooms {
		if len(r.messages) == 0 {
			continue
		}
		s := r.shown()
		if old, stored := byID[id]; stored && old.Title != "" {
			s.Title = old.Title
		}
		byID[id] = s
	}
	b.mu.Unlock()
	all := make([]Session, 0, len(byID))
	for _, s := range byID {
		all = append(all, s)
	}
	slices.SortFunc(all, func(x, y Session) int {
		if c := y.UpdatedAt.Compare(x.UpdatedAt); c != 0 {
			return c
		}
		return strings.Compare(x.ID, y.ID)
	})
	return all[:min(len(all), b.limits.Listed)], nil
}
