package web

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	keepAlive  = 20 * time.Second // a comment this often shows both ends that the other is there
	writeLimit = 15 * time.Second // a reader that takes nothing for so long is gone
)

// serveEvents streams the changes behind Last-Event-ID (or the parameter "after") until the reader
// leaves or the channel stops. Without either, or when the log does not reach back that far, it
// begins with a reset.
func (a *Adapter) serveEvents(w http.ResponseWriter, r *http.Request) {
	if !a.enter() {
		w.Header().Set("Retry-After", "5")
		reply(w, http.StatusServiceUnavailable, problem{"Too many open pages."})
		return
	}
	defer a.leave()
	s := &stream{w: w, control: http.NewResponseController(w), epoch: a.board.epoch}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	if s.write("retry: 1000\n\n") != nil {
		return
	}
	from := r.Header.Get("Last-Event-ID")
	if from == "" {
		from = r.URL.Query().Get("after")
	}
	seq, known := s.position(from)
	alive := time.NewTicker(keepAlive)
	defer alive.Stop()
	for {
		missed, next, changed := a.board.changes(seq, known)
		known, seq = true, next
		if s.send(missed) != nil {
			return
		}
		select {
		case <-changed:
		case <-alive.C:
			if s.write(": \n\n") != nil {
				return
			}
		case <-r.Context().Done():
			return
		case <-a.done:
			return
		}
	}
}

// changes returns what happened behind seq and the position after it. A position that is not known,
// or lies too far back, yields one reset event.
func (b *board) changes(seq uint64, known bool) (missed []event, next uint64, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	missed, changed, ok := b.log.after(seq)
	if !ok || !known {
		missed = []event{{Seq: b.log.last, Type: eventReset}}
	}
	return missed, b.log.last, changed
}

// stream writes server-sent events.
type stream struct {
	w       io.Writer
	control *http.ResponseController
	epoch   string
}

// position reads an event id, "<epoch>.<number>". Ids of another process are unknown.
func (s *stream) position(id string) (seq uint64, known bool) {
	epoch, number, ok := strings.Cut(id, ".")
	if !ok || epoch != s.epoch {
		return 0, false
	}
	seq, err := strconv.ParseUint(number, 10, 64)
	return seq, err == nil
}

func (s *stream) send(events []event) error {
	var b strings.Builder
	for _, e := range events {
		body, err := json.Marshal(e)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "id: %s.%d\ndata: %s\n\n", s.epoch, e.Seq, body)
	}
	if b.Len() == 0 {
		return nil
	}
	return s.write(b.String())
}

// write sends text at once. Without a deadline a reader that stopped reading would keep the stream
// for ever.
func (s *stream) write(text string) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeLimit)) // not every writer has deadlines
	if _, err := io.WriteString(s.w, text); err != nil {
		return err
	}
	return s.control.Flush()
}
