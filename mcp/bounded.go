package mcp

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"understudy/internal/secret"
)

// bounded adds the configured headers to requests and bounds answers that are no streams; those are
// bounded event by event.
type bounded struct {
	base    http.RoundTripper
	headers map[string]secret.String
}

// RoundTrip implements http.RoundTripper.
func (b *bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	for name, value := range b.headers {
		req.Header.Set(name, value.Reveal())
	}
	res, err := b.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		res.Body = &limited{ReadCloser: res.Body, left: largestAnswer}
	}
	return res, nil
}

// limited fails, rather than ends, where there is too much to read.
type limited struct {
	io.ReadCloser
	left int
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("the answer has more than %d bytes", largestAnswer)
	}
	n, err := l.ReadCloser.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

// CloseIdleConnections lets go of connections that nobody uses.
func (b *bounded) CloseIdleConnections() {
	if c, ok := b.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
