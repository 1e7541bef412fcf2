package channelstest

import (
	"context"
	"errors"
	"hash/fnv"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy/channels"
	"understudy/chat"
)

// patience is how long, in virtual time, an event may take to arrive.
const patience = 10 * time.Minute

// Recorder is a channels.Sink that keeps what it gets.
type Recorder struct {
	accepted chan chat.Inbound
	refused  chan chat.Inbound

	marks *Marks // nil = not kept

	mu       sync.Mutex
	err      error
	statuses []channels.Status
	changed  chan struct{} // closed and replaced with every report
}

// NewRecorder makes a recorder that accepts everything.
func NewRecorder() *Recorder {
	return &Recorder{accepted: make(chan chat.Inbound, 256), refused: make(chan chat.Inbound, 256), changed: make(chan struct{})}
}

// Accept implements channels.Sink.
func (r *Recorder) Accept(_ context.Context, m chat.Inbound) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		r.refused <- m
		return r.err
	}
	if r.marks != nil {
		r.marks.saw(m)
	}
	r.accepted <- m
	return nil
}

// Status implements channels.Sink.
func (r *Recorder) Status(s channels.Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.statuses = append(r.statuses, s)
	close(r.changed)
	r.changed = make(chan struct{})
}

// await waits until the account is in a state, and reports whether it is.
func (r *Recorder) await(t *testing.T, want channels.State) bool {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		got := r.State()
		if got == want {
			return true
		}
		select {
		case <-changed:
		case <-timer.C:
			t.Errorf("state %q, want %q", got, want)
			return false
		}
	}
}

// Refuse makes Accept fail; nil makes it work again.
func (r *Recorder) Refuse(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

// State is the last reported state.
func (r *Recorder) State() channels.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.statuses) == 0 {
		return ""
	}
	return r.statuses[len(r.statuses)-1].State
}

// Statuses returns all reports.
func (r *Recorder) Statuses() []channels.Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]channels.Status(nil), r.statuses...)
}

// Next waits for the next accepted message.
func (r *Recorder) Next(t *testing.T) chat.Inbound {
	t.Helper()
	return wait(t, r.accepted)
}

// Refused waits for the next message that was refused.
func (r *Recorder) Refused(t *testing.T) chat.Inbound {
	t.Helper()
	return wait(t, r.refused)
}

// Pending returns how many accepted messages were not read.
func (r *Recorder) Pending() int { return len(r.accepted) }

// nothing checks that no further message has been accepted.
func (r *Recorder) nothing(t *testing.T) {
	t.Helper()
	synctest.Wait()
	for r.Pending() > 0 {
		m := <-r.accepted
		t.Errorf("one message too many: %q with key %q", m.Text, m.EventKey)
	}
}

func wait(t *testing.T, from <-chan chat.Inbound) chat.Inbound {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case m := <-from:
		return m
	case <-timer.C:
		t.Error("nothing arrived")
		return chat.Inbound{}
	}
}

// piece is a message whose key is that of its text, since a platform may take two pieces of one key
// for one.
func piece(to chat.Address, text string) channels.Piece {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return channels.Piece{To: to, Class: chat.Assistant, Text: text, Plain: text, Key: strconv.FormatUint(h.Sum64(), 36)}
}

// send sends plain text and returns the message id.
func (s *Subject) send(t *testing.T, to chat.Address, text string) string {
	t.Helper()
	got, err := s.Adapter.Send(t.Context(), piece(to, text))
	if err != nil || len(got.IDs) == 0 {
		t.Errorf("send: %v, receipt %v", err, got)
		return ""
	}
	return got.IDs[0]
}

// last is the last message at a destination.
func (s *Subject) last(t *testing.T, to chat.Address) Said {
	t.Helper()
	all := s.Platform.Transcript(to)
	if len(all) == 0 {
		t.Error("nothing was said")
		return Said{}
	}
	return all[len(all)-1]
}

// count is how many messages of the bot are at a destination.
func (s *Subject) count(to chat.Address) int {
	n := 0
	for _, m := range s.Platform.Transcript(to) {
		if m.ByBot {
			n++
		}
	}
	return n
}

func wantVerdict(t *testing.T, err error, want channels.Verdict) {
	t.Helper()
	var e *channels.SendError
	if !errors.As(err, &e) {
		t.Errorf("got %v (%T), want a *channels.SendError", err, err)
		return
	}
	if e.Verdict != want || e.Code == "" {
		t.Errorf("verdict %d with code %q, want %d: %v", e.Verdict, e.Code, want, err)
	}
}
