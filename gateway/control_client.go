package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"syscall"
)

// ErrNoServer is returned when no bot answers on the control socket.
var ErrNoServer = errors.New("no running bot answers on the control socket")

// ControlClient talks to a running bot. It is safe for concurrent use.
type ControlClient struct {
	path string
	http *http.Client
}

// NewControlClient returns a client of the socket at path; it connects when used.
func NewControlClient(path string) *ControlClient {
	return &ControlClient{path: path, http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dialControl(ctx, path) },
		// Verbs make a handful of calls; a kept connection would outlive them.
		DisableKeepAlives: true,
	}}}
}

func dialControl(ctx context.Context, path string) (net.Conn, error) {
	short, release, err := shortPath(path)
	if err != nil {
		return nil, err
	}
	defer release()
	var d net.Dialer
	return d.DialContext(ctx, "unix", short)
}

// HTTP returns the client for routes with their own protocol. Use URL for its addresses.
func (c *ControlClient) HTTP() *http.Client { return c.http }

// URL returns the address of a route, for example "/v1/chat".
func (c *ControlClient) URL(route string) string { return "http://control" + route }

// ControlError is a refusal by the running bot. Message is fit for the operator.
type ControlError struct {
	Status  int // HTTP status
	Message string
}

// Error implements error.
func (e *ControlError) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("the bot answered with status %d", e.Status)
	}
	return e.Message
}

// Get asks for a route and decodes the answer into out, which may be nil.
func (c *ControlClient) Get(ctx context.Context, route string, out any) error {
	return c.call(ctx, http.MethodGet, route, nil, out)
}

// Post sends in as JSON (nil: no body) and decodes the answer into out, which may be nil.
func (c *ControlClient) Post(ctx context.Context, route string, in, out any) error {
	return c.call(ctx, http.MethodPost, route, in, out)
}

// Status asks how the bot is doing.
func (c *ControlClient) Status(ctx context.Context) (Status, error) {
	var s Status
	return s, c.Get(ctx, "/v1/status", &s)
}

// Health returns nil when the bot is ready, and a *ControlError that says why it is not.
func (c *ControlClient) Health(ctx context.Context) error { return c.Get(ctx, "/v1/health", nil) }

// Reload makes the bot read its configuration again.
func (c *ControlClient) Reload(ctx context.Context) error {
	return c.Post(ctx, "/v1/reload", nil, nil)
}

const maxAnswer = 16 << 20 // bytes of a JSON answer

func (c *ControlClient) call(ctx context.Context, method, route string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("control request %s: %w", route, err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.URL(route), body)
	if err != nil {
		return fmt.Errorf("control request %s: %w", route, err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(req)
	if err != nil {
		return c.unreached(route, err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("control request %s: %w", route, err)
	}
	if res.StatusCode >= http.StatusBadRequest {
		return &ControlError{Status: res.StatusCode, Message: message(data)}
	}
	if out == nil || len(data) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("control answer %s: %w", route, err)
	}
	return nil
}

// unreached is the error of a request that brought no answer.
func (c *ControlClient) unreached(what string, err error) error {
	if absent(err) {
		return fmt.Errorf("%w %s (start one with: bot run; or set OPENCLAW_STATE_DIR to the directory of the one that runs)", ErrNoServer, c.path)
	}
	return fmt.Errorf("control request %s: %w", what, err)
}

func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

// message reads the reason out of a refusal.
func message(data []byte) string {
	var b struct {
		Error    string    `json:"error"`
		Status   string    `json:"status"`
		Problems []Problem `json:"problems"`
	}
	if json.Unmarshal(data, &b) != nil {
		return ""
	}
	if b.Error != "" {
		return b.Error
	}
	for _, p := range b.Problems {
		b.Status += "; " + p.Subject + ": " + p.Detail
	}
	return b.Status
}
