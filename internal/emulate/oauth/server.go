package oauth

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"time"
)

// Paths of the endpoints.
const (
	AuthorizePath = "/oauth/authorize"
	TokenPath     = "/oauth/token"
	DevicePath    = "/oauth/device"
	RevokePath    = "/oauth/revoke"
)

// Server is a sign-in server. Its fields may be set before the first request; the methods are safe
// for concurrent use.
type Server struct {
	ClientID     string // "" = any
	ClientSecret string // "" = none is asked for
	// Email and Account are who signs in.
	Email, Account string
	// Lifetime is that of access tokens; 0 = an hour.
	Lifetime time.Duration
	// Grace is how long a refresh token that was spent is accepted once more.
	Grace time.Duration
	// Deny refuses every sign-in at the page.
	Deny bool
	// ReuseCode is what a spent refresh token is answered with; "" = refresh_token_reused.
	ReuseCode string

	mu       sync.Mutex
	faults   []*Fault
	log      []Request
	codes    map[string]*grant
	devices  map[string]*grant
	families map[string]*family // by every refresh token they ever had
	access   map[string]*family
	serial   int
}

// Request is one call that was received.
type Request struct {
	Path  string
	Grant string // grant_type of the token endpoint
	Form  url.Values
}

// Fault makes requests of a path fail.
type Fault struct {
	Path  string // "" = every path
	Grant string // only this grant_type; "" = every one
	After int    // requests that pass before
	Times int    // 0 = for ever

	Status int           // of the answer; 0 = the real one
	Body   string        // instead of the answer
	Delay  time.Duration // before the answer
	Hang   bool          // no answer until the client leaves
	// Drop does what was asked for and cuts the line instead of telling.
	Drop bool

	seen int
}

// Fault adds faults; the first that applies counts.
func (s *Server) Fault(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		s.faults = append(s.faults, &f)
	}
}

// Requests returns every call so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.log...)
}

// Count returns how many calls of the token endpoint used a grant.
func (s *Server) Count(grant string) int {
	n := 0
	for _, r := range s.Requests() {
		if r.Grant == grant {
			n++
		}
	}
	return n
}

// Listen serves on loopback and returns the server's address and how to stop it.
func (s *Server) Listen() (base string, stop func()) {
	h := httptest.NewServer(s)
	return h.URL, func() {
		h.CloseClientConnections()
		h.Close()
	}
}

// Transport serves over an in-memory network, for synctest bubbles. Every host is this server.
func (s *Server) Transport() (rt *http.Transport, stop func()) {
	p := &pipe{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: s}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(p)
	}()
	rt = &http.Transport{DialContext: p.dial}
	return rt, func() {
		rt.CloseIdleConnections()
		close(p.closed)
		_ = server.Close()
		<-done
	}
}

// pipe is an in-memory network with one server on it.
type pipe struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipe) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept implements net.Listener.
func (p *pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipe) Close() error { return nil }

// Addr implements net.Listener.
func (p *pipe) Addr() net.Addr { return &net.UnixAddr{Name: "emulator", Net: "pipe"} }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, "unreadable form", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.log = append(s.log, Request{Path: r.URL.Path, Grant: r.PostForm.Get("grant_type"), Form: r.Form})
	fault := s.fault(r)
	s.mu.Unlock()
	if fault != nil {
		if fault.Hang {
			<-r.Context().Done()
			return
		}
		if !pause(r.Context(), fault.Delay) {
			return
		}
		if fault.Drop {
			s.answer(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		if fault.Status != 0 || fault.Body != "" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(max(fault.Status, http.StatusOK))
			_, _ = w.Write([]byte(fault.Body))
			return
		}
	}
	s.answer(w, r)
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// fault returns the fault that applies; mu is held.
func (s *Server) fault(r *http.Request) *Fault {
	for _, f := range s.faults {
		if (f.Path != "" && f.Path != r.URL.Path) || (f.Grant != "" && f.Grant != r.PostForm.Get("grant_type")) {
			continue
		}
		f.seen++
		if f.seen <= f.After || (f.Times > 0 && f.seen > f.After+f.Times) {
			continue
		}
		return f
	}
	return nil
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.URL.Path == AuthorizePath && r.Method == http.MethodGet:
		s.authorize(w, r)
	case r.URL.Path == TokenPath && r.Method == http.MethodPost:
		s.token(w, r)
	case r.URL.Path == DevicePath && r.Method == http.MethodPost:
		s.device(w, r)
	case r.URL.Path == RevokePath && r.Method == http.MethodPost:
		if f := s.families[r.PostForm.Get("token")]; f != nil {
			f.revoked = true
		}
	default:
		http.NotFound(w, r)
	}
}
