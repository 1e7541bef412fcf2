package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"syscall"
	"time"

	"understudy/internal/secret"
)

// maxBody is the largest request body any route gets to see, in bytes (spec/chat.md §8 S6).
const maxBody = 1 << 20

const (
	headerTime = 5 * time.Second
	readTime   = 30 * time.Second
	writeTime  = 60 * time.Second // streams set their own limit per write
	idleTime   = 2 * time.Minute
	closeTime  = 5 * time.Second
	maxHeader  = 32 << 10
)

// Deps are what the gateway works with.
type Deps struct {
	Status  StatusSource // required
	Metrics *Metrics     // nil: no /metrics
	// CookieKey makes the cookies that keep a browser signed in. One that outlives the process
	// keeps them valid over a restart although the printed token changes; empty: they end with the token.
	CookieKey secret.String
	Log       *slog.Logger // nil: silent
}

// Server is the HTTP listener.
type Server struct {
	listener net.Listener
	guard    *guard
	mux      *http.ServeMux
	token    secret.String
	log      *slog.Logger
	hooks    atomic.Pointer[map[string]http.Handler] // of platforms, by path
}

// New checks the configuration and binds the listener, so that a taken port is an error at the
// start. Nothing is answered before Run.
func New(cfg Config, deps Deps) (*Server, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	if deps.Status == nil {
		return nil, errors.New("gateway: a status source is required")
	}
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	token := cfg.Token
	if token.IsZero() {
		token = NewToken()
	}
	listener, err := net.Listen("tcp", cfg.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("gateway: another program listens on %s: stop it, or choose another address with --listen or gateway.listen (%w)", cfg.Listen, err)
	}
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	s := &Server{
		listener: listener, guard: newGuard(cfg, token, deps.CookieKey, port), mux: http.NewServeMux(), token: token, log: deps.Log,
	}
	h := health{source: deps.Status, guard: s.guard, log: deps.Log}
	s.Handle("GET /healthz", Public, http.HandlerFunc(h.live))
	s.Handle("GET /readyz", Public, http.HandlerFunc(h.ready))
	s.Handle("GET /startupz", Public, http.HandlerFunc(h.started))
	s.Handle("GET /status", Owner, http.HandlerFunc(h.status))
	if deps.Metrics != nil {
		s.Handle("GET /metrics", Local, deps.Metrics.Handler())
	}
	s.servePage()
	return s, nil
}

// Handle adds a route behind the guard. The pattern is that of http.ServeMux; a pattern that is
// invalid or taken panics, since only code can choose it. Bodies are cut at 1 MiB.
func (s *Server) Handle(pattern string, access Access, h http.Handler) {
	s.mux.Handle(pattern, s.guard.protect(access, h))
}

// Addr is the bound address, "host:port".
func (s *Server) Addr() string { return s.listener.Addr().String() }

// URL is the page's address, without the token.
func (s *Server) URL() string { return s.url().String() }

func (s *Server) url() *url.URL {
	host, port, _ := net.SplitHostPort(s.Addr())
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "localhost"
	}
	return &url.URL{Scheme: "http", Host: net.JoinHostPort(host, port), Path: "/"}
}

// SignInURL is the address to print for the owner: opening it signs the browser in. It holds the
// token, so it belongs on the owner's screen and in no log (spec/chat.md §12 D13).
func (s *Server) SignInURL() string {
	u := s.url()
	u.RawQuery = url.Values{"token": {s.token.Reveal()}}.Encode()
	return u.String()
}

// Run answers requests until ctx ends. Then it lets running ones finish for a few seconds; streams
// end at once.
func (s *Server) Run(ctx context.Context) error {
	requests, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	server := &http.Server{
		Handler: s.route(s.guard.admit(s.mux)), ReadHeaderTimeout: headerTime, ReadTimeout: readTime, WriteTimeout: writeTime,
		IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ErrorLog:    slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return requests },
	}
	return serve(ctx, server, s.listener, stop)
}

// serve runs an HTTP server until ctx ends; cut is called when its requests shall end.
func serve(ctx context.Context, server *http.Server, l net.Listener, cut func()) error {
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }() // ends with Shutdown or Close below
	select {
	case err := <-ended:
		return fmt.Errorf("gateway: %w", err)
	case <-ctx.Done():
	}
	cut()
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	err := server.Shutdown(limit)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	<-ended
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	return nil
}

// Close frees the listener of a server that never ran.
func (s *Server) Close() error { return s.listener.Close() }
