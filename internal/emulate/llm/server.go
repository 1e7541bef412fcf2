package llm

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxBody bounds a request, as real APIs do.
const maxBody = 32 << 20

// Server emulates model APIs. The fields may be set before the first request; everything else is
// safe for concurrent use.
type Server struct {
	// Models are the ids that exist; empty = every id does. Another is answered with 404.
	Models []string
	// Keys are the credentials that are accepted; empty = any, and none. Another is answered with 401.
	Keys []string
	// Strict rejects what the real APIs reject: unknown fields, malformed transcripts.
	Strict bool
	// ToolIDs, when set, is the length that tool-call ids must have, letters and digits only, as
	// Mistral wants it.
	ToolIDLength int
	// Alternate rejects transcripts in which user and assistant do not take turns.
	Alternate bool
	// NoImages rejects pictures.
	NoImages bool

	mu       sync.Mutex
	faults   []*faultEntry
	replies  []*replyEntry
	log      []Request
	serial   int
	inflight int
	wire     *wire
	closed   chan struct{}
	closing  sync.Once
}

type faultEntry struct {
	Fault
	counter
}

type replyEntry struct {
	Reply
	counter
}

// New returns a server that answers every request with "ok".
func New() *Server { return &Server{closed: make(chan struct{})} }

// Fault adds faults.
func (s *Server) Fault(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		s.faults = append(s.faults, &faultEntry{Fault: f})
	}
}

// Reply adds replies.
func (s *Server) Reply(replies ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range replies {
		s.replies = append(s.replies, &replyEntry{Reply: r})
	}
}

// Heal removes all faults. Requests that already hang stay so.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// Forget removes all replies.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies = nil
}

// Requests returns the log, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// ClearRequests empties the log, which otherwise grows for as long as the server lives.
func (s *Server) ClearRequests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = nil
}

// InFlight returns how many requests are being answered right now, hanging ones included.
func (s *Server) InFlight() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inflight
}

// Transport returns a transport whose every connection, to any host and without TLS, ends at s
// in memory. It belongs to s: Close ends its connections.
func (s *Server) Transport() *http.Transport {
	s.mu.Lock()
	if s.wire == nil {
		s.wire = newWire(s)
	}
	w := s.wire
	s.mu.Unlock()
	t := &http.Transport{DialContext: w.dial, DialTLSContext: w.dial, DisableCompression: true}
	w.onClose(t.CloseIdleConnections)
	return t
}

// Close ends hanging requests and the connections of Transport.
func (s *Server) Close() {
	s.closing.Do(func() { close(s.closed) })
	s.mu.Lock()
	w := s.wire
	s.mu.Unlock()
	if w != nil {
		w.close()
	}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.begin(1)
	defer s.begin(-1)
	p := protocolFor(r.URL.Path)
	if p == nil || r.Method != http.MethodPost {
		http.Error(w, `{"error":{"message":"Unknown request URL","type":"invalid_request_error","param":null,"code":"unknown_url"}}`, http.StatusNotFound)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		p.reject(w, &refusal{status: http.StatusRequestEntityTooLarge, kind: "invalid_request_error", message: "request body too large"})
		return
	}
	req := &Request{
		At: time.Now(), Host: hostOnly(r.Host), Path: r.URL.Path, Key: p.key(r.Header),
		Header: map[string][]string(r.Header.Clone()), Body: body,
	}
	c, bad := p.parse(s, req)
	if c == nil {
		c = &call{Request: req}
	}
	fault, reply := s.take(req, bad == nil)
	if !s.wait(r, fault.Latency) {
		return
	}
	if s.fail(w, r, p, c, fault) {
		return
	}
	if bad == nil {
		bad = s.admit(req)
	}
	if bad != nil {
		p.reject(w, bad)
		return
	}
	s.answer(w, r, p, c, fault, reply)
}

func (s *Server) begin(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inflight += n
}

// take logs r and picks its fault and its reply. A reply is not used up by a request that is
// rejected or that a fault answers.
func (s *Server) take(r *Request, good bool) (Fault, Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, *r)
	s.serial++
	var fault Fault
	for _, f := range s.faults {
		if f.takes(f.Match, r) {
			fault = f.Fault
			break
		}
	}
	if !good || fault.Status != 0 || fault.Reset || fault.Hang || fault.breaks() || fault.Empty {
		return fault, Reply{}
	}
	for _, e := range s.replies {
		if e.takes(e.Match, r) {
			return fault, e.Reply
		}
	}
	return fault, Reply{Text: "ok"}
}

func (s *Server) nextID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial++
	return s.serial
}

// admit checks the key and the model.
func (s *Server) admit(r *Request) *refusal {
	switch {
	case len(s.Keys) > 0 && !slices.Contains(s.Keys, r.Key):
		return &refusal{status: http.StatusUnauthorized, kind: "invalid_request_error", code: "invalid_api_key", message: "Incorrect API key provided."}
	case len(s.Models) > 0 && !slices.Contains(s.Models, r.Model):
		return &refusal{
			status: http.StatusNotFound, kind: "invalid_request_error", code: "model_not_found",
			message: fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", r.Model),
		}
	}
	return nil
}

// wait lets d pass and reports whether the client is still there.
func (s *Server) wait(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
	case <-s.closed:
	}
	return false
}

// gone waits until the client leaves or the server closes.
func (s *Server) gone(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-s.closed:
	}
}

func hostOnly(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		return strings.ToLower(hostport)
	}
	return strings.ToLower(host)
}
