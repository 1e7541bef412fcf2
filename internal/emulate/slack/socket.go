package slack

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

const mostFrames = 1024

// socket is one Socket Mode connection.
type socket struct {
	conn   *websocket.Conn
	out    chan []byte
	closed chan struct{}
	once   sync.Once
	silent atomic.Bool // says nothing any more and hears nothing, but stays open
}

func (k *socket) write(frame []byte) {
	select {
	case k.out <- frame:
	default: // nobody reads so far behind
	}
}

func (k *socket) close() {
	k.once.Do(func() {
		close(k.closed)
		_ = k.conn.Close()
	})
}

func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	ticket := r.URL.Query().Get("ticket")
	s.mu.Lock()
	ok := s.tickets[ticket]
	delete(s.tickets, ticket) // works once
	s.mu.Unlock()
	if !ok {
		http.Error(w, "invalid ticket", http.StatusUnauthorized)
		return
	}
	up := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	conn, err := up.Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has answered
	}
	k := &socket{conn: conn, out: make(chan []byte, mostFrames), closed: make(chan struct{})}
	hello, _ := json.Marshal(map[string]any{
		"type": "hello", "num_connections": 1, "connection_info": map[string]any{"app_id": s.cfg.SocketApp},
		"debug_info": map[string]any{"host": "applink-1", "approximate_connection_time": 18060},
	})
	k.write(hello)
	s.mu.Lock()
	if s.ctx.Err() != nil { // Close has seen those that there were, and this one is new
		s.mu.Unlock()
		_ = conn.Close()
		return
	}
	s.sockets = append(s.sockets, k)
	for _, e := range s.envelopes {
		if e.waits && !e.done {
			s.send(e, "")
		}
	}
	s.touch()
	s.mu.Unlock()
	s.tasks.Go(func() { s.talk(k) })
	s.listen(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sockets = slices.DeleteFunc(s.sockets, func(o *socket) bool { return o == k })
	s.touch()
}

// talk writes what is to be said, and pings.
func (s *Server) talk(k *socket) {
	defer k.close()
	ticker := time.NewTicker(s.cfg.PingEvery)
	defer ticker.Stop()
	for {
		var err error
		select {
		case <-k.closed:
			return
		case frame := <-k.out:
			if !k.silent.Load() {
				err = k.conn.WriteMessage(websocket.TextMessage, frame)
			}
		case <-ticker.C:
			if !k.silent.Load() {
				err = k.conn.WriteControl(websocket.PingMessage, []byte("ping"), time.Now().Add(time.Second))
			}
		}
		if err != nil {
			return
		}
	}
}

// listen reads acknowledgements until the connection ends.
func (s *Server) listen(k *socket) {
	defer k.close()
	for {
		var frame struct {
			EnvelopeID string `json:"envelope_id"`
		}
		if err := k.conn.ReadJSON(&frame); err != nil {
			return
		}
		if !k.silent.Load() {
			s.ack(frame.EnvelopeID)
		}
	}
}

// Sockets returns how many connections are open.
func (s *Server) Sockets() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sockets)
}

// each calls f for every open connection.
func (s *Server) each(f func(*socket)) {
	s.mu.Lock()
	open := slices.Clone(s.sockets)
	s.mu.Unlock()
	for _, k := range open {
		f(k)
	}
}

// DropSockets cuts the open connections without a word. What is told from now on waits for the next
// one.
func (s *Server) DropSockets() {
	s.mu.Lock()
	open := s.sockets
	s.sockets = nil
	s.touch()
	s.mu.Unlock()
	for _, k := range open {
		k.close()
	}
}

// Silence lets the open connections stay open but say and hear nothing any more, like those behind a
// dead link.
func (s *Server) Silence() { s.each(func(k *socket) { k.silent.Store(true) }) }

// Disconnect tells the bot that its connection will end, for "warning" or "refresh_requested".
func (s *Server) Disconnect(reason string) {
	frame, _ := json.Marshal(map[string]any{"type": "disconnect", "reason": reason, "debug_info": map[string]any{"host": "applink-1"}})
	s.each(func(k *socket) { k.write(frame) })
}

// WriteFrame sends any text to the open connections.
func (s *Server) WriteFrame(text string) { s.each(func(k *socket) { k.write([]byte(text)) }) }
