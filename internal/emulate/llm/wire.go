package llm

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
)

// wire is an in-memory network with one server on it.
type wire struct {
	server *http.Server
	conns  chan net.Conn
	closed chan struct{}
	done   chan struct{}

	mu     sync.Mutex
	finish []func()
	once   sync.Once
}

func newWire(h http.Handler) *wire {
	w := &wire{conns: make(chan net.Conn), closed: make(chan struct{}), done: make(chan struct{})}
	w.server = &http.Server{Handler: h}
	go func() {
		defer close(w.done)
		_ = w.server.Serve(w)
	}()
	return w
}

var errWireClosed = errors.New("the emulator is closed")

func (w *wire) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case w.conns <- server:
		return client, nil
	case <-w.closed:
		return nil, errWireClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (w *wire) onClose(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.finish = append(w.finish, f)
}

func (w *wire) close() {
	w.once.Do(func() {
		w.mu.Lock()
		finish := w.finish
		w.mu.Unlock()
		for _, f := range finish {
			f()
		}
		close(w.closed)
		_ = w.server.Close()
	})
	<-w.done
}

// Accept implements net.Listener.
func (w *wire) Accept() (net.Conn, error) {
	select {
	case c := <-w.conns:
		return c, nil
	case <-w.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (w *wire) Close() error { return nil }

// Addr implements net.Listener.
func (w *wire) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "emulator" }
