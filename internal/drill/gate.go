package drill

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
)

// errDead is what the calls of a killed process end with.
var errDead = errors.New("the process was killed")

// gate stands between one process and the world, and closes when the process is killed.
type gate struct {
	dead context.Context
	next http.RoundTripper
	held *held
}

// held are the calls that never return, with the bot none the wiser.
type held struct {
	mu      sync.Mutex
	methods map[string]int // API methods whose next response is lost on the way
	calls   int            // so many calls were made
	freeze  int            // this call is frozen, and everything after it; 0 = none
	done    bool           // it is done before
}

// frozen counts a call and reports whether it freezes now, before (or after) it was done.
func (h *held) frozen(path string, counting bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if strings.HasSuffix(path, "/getUpdates") {
		return h.freeze > 0 && h.calls >= h.freeze && counting
	}
	if counting {
		h.calls++
		return h.freeze > 0 && (h.calls > h.freeze || h.calls == h.freeze && !h.done)
	}
	return h.freeze > 0 && h.calls >= h.freeze
}

func (h *held) add(method string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.methods == nil {
		h.methods = map[string]int{}
	}
	h.methods[method]++
}

func (h *held) take(path string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	method := path[strings.LastIndex(path, "/")+1:]
	if h.methods[method] == 0 {
		return false
	}
	h.methods[method]--
	return true
}

// RoundTrip implements http.RoundTripper.
func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	if g.dead.Err() != nil {
		return nil, errDead
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	stop := context.AfterFunc(g.dead, func() { cancel(errDead) })
	end := func() { stop(); cancel(nil) }
	if g.held.frozen(r.URL.Path, true) {
		<-ctx.Done()
		end()
		return nil, context.Cause(ctx)
	}
	resp, err := g.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		end()
		return nil, err
	}
	if g.held.frozen(r.URL.Path, false) || g.held.take(r.URL.Path) {
		_ = resp.Body.Close()
		<-ctx.Done()
		end()
		return nil, context.Cause(ctx)
	}
	resp.Body = &body{resp.Body, end}
	return resp, nil
}

// CloseIdleConnections lets a client free its connections.
func (g *gate) CloseIdleConnections() {
	if c, ok := g.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// body tells when a response has been read.
type body struct {
	io.ReadCloser
	end func()
}

// Close implements io.Closer.
func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}
