package gateway

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"

	"understudy/chat"
)

// ControlSocket is the name of the control socket in the state directory (spec/chat.md §7.1).
const ControlSocket = "control.sock"

// ErrControlInUse is returned when another process answers on the control socket.
var ErrControlInUse = errors.New("another bot answers on the control socket")

// ControlDeps are what the control socket works with.
type ControlDeps struct {
	Status StatusSource // required
	// Reload reads the configuration again; its error is shown to the caller. nil: not offered.
	Reload func(ctx context.Context) error
	Log    *slog.Logger // nil: silent
}

// Control is the Unix socket that the command line talks to, HTTP with JSON. Only processes of the
// bot's own user and of root are heard: the file's mode keeps others out, and the kernel says who
// is calling (spec/chat.md §8 S16).
type Control struct {
	listener net.Listener
	mux      *http.ServeMux
	log      *slog.Logger
}

// NewControl binds the socket at path, replacing one that a dead process left behind. Nothing is
// answered before Run.
//
//	GET  /v1/health   as /readyz, with details
//	GET  /v1/status   Status
//	POST /v1/reload   204, or 422 with {"error"}
func NewControl(path string, deps ControlDeps) (*Control, error) {
	if deps.Status == nil {
		return nil, errors.New("control socket: a status source is required")
	}
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	l, err := listenControl(path, func(uid int) bool { return uid == os.Geteuid() || uid == 0 }, deps.Log)
	if err != nil {
		return nil, fmt.Errorf("control socket %s: %w", path, err)
	}
	c := &Control{listener: l, mux: http.NewServeMux(), log: deps.Log}
	h := health{source: deps.Status, log: deps.Log}
	c.Handle("GET /v1/health", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		state, problems := h.source.Ready(r.Context())
		writeJSON(w, code(state == Ready), answer{OK: state == Ready, Status: string(state), Problems: problems})
	}))
	c.Handle("GET /v1/status", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.writeStatus(w, r, chat.Address{})
	}))
	if deps.Reload != nil {
		c.Handle("POST /v1/reload", reload(deps.Reload))
	}
	return c, nil
}

func reload(f func(context.Context) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := f(r.Context()); err != nil {
			writeJSON(w, http.StatusUnprocessableEntity, map[string]string{"error": err.Error()})
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
}

// Handle adds a verb's route, for example "POST /v1/pairing". A pattern that is invalid or taken
// panics, since only code can choose it. Answers must hold no secret; bodies are cut at 1 MiB.
func (c *Control) Handle(pattern string, h http.Handler) { c.HandleLarge(pattern, maxBody, h) }

// HandleLarge is Handle for a route whose bodies may be larger, in bytes.
func (c *Control) HandleLarge(pattern string, most int64, h http.Handler) {
	c.mux.Handle(pattern, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, most)
		h.ServeHTTP(w, r)
	}))
}

// Run answers until ctx ends, and removes the socket.
func (c *Control) Run(ctx context.Context) error {
	requests, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	server := &http.Server{
		Handler: c.mux, ReadHeaderTimeout: headerTime, MaxHeaderBytes: maxHeader,
		ErrorLog:    slog.NewLogLogger(c.log.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return requests },
	}
	return serve(ctx, server, c.listener, stop)
}

// Close frees the socket of a Control that never ran.
func (c *Control) Close() error { return c.listener.Close() }

// listenControl binds the socket and makes it ours alone.
func listenControl(path string, allowed func(uid int) bool, log *slog.Logger) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	short, release, err := shortPath(path)
	if err != nil {
		return nil, err
	}
	defer release()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // it would use the short path, which is gone by then
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close() // the chmod error is the one to report
		return nil, err
	}
	return &peerListener{UnixListener: l, path: path, allowed: allowed, log: log}, nil
}

// removeStale removes a socket that nobody answers on. Anything but a socket is left alone.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSocket == 0:
		return errors.New("the file is not a socket")
	}
	conn, err := dialControl(context.Background(), path)
	if err == nil {
		_ = conn.Close() // it was opened only to see whether somebody is there
		return ErrControlInUse
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}

// peerListener hands out the connections of allowed users only.
type peerListener struct {
	*net.UnixListener
	path    string
	allowed func(uid int) bool
	log     *slog.Logger
}

// Accept implements net.Listener.
func (l *peerListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		uid, err := peerUID(conn)
		if err == nil && l.allowed(uid) {
			return conn, nil
		}
		l.log.Warn("control connection refused", "uid", uid, "error", err)
		_ = conn.Close() // refused: nothing was said on it
	}
}

// Close implements net.Listener and removes the socket: before it is closed, so that the next
// process to bind it cannot lose its own.
func (l *peerListener) Close() error {
	_ = os.Remove(l.path) // a later start removes it otherwise
	return l.UnixListener.Close()
}
