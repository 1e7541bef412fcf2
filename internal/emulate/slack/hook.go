package slack

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"understudy/internal/emulate/pipe"
)

// hook is where events go over HTTP.
type hook struct {
	url    string
	queue  chan *envelope
	client *http.Client
	server *http.Server
	close  func()
}

// PostTo delivers everything from now on over HTTP, signed, to a handler that is served at path. It
// has to be called before anybody speaks.
func (s *Server) PostTo(h http.Handler, path string) {
	network := pipe.New()
	mux := http.NewServeMux()
	mux.Handle(path, h)
	transport := network.Transport()
	k := &hook{
		url:    "http://bot.test" + path,
		queue:  make(chan *envelope, mostFrames),
		client: &http.Client{Transport: transport},
		server: &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute},
	}
	k.close = func() {
		transport.CloseIdleConnections()
		_ = k.server.Close()
	}
	s.tasks.Go(func() { _ = k.server.Serve(network) }) // always ends with ErrServerClosed
	s.tasks.Go(func() {
		for {
			select {
			case e := <-k.queue:
				s.postFirst(k, e)
			case <-s.ctx.Done():
				return
			}
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = k
}

// Hook returns where the events go, and a client that gets there, for requests of a test's own.
func (s *Server) Hook() (address string, client *http.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hook.url, s.hook.client
}

// Verify sends the request that Slack sends when an address is entered, and returns the answer.
func (s *Server) Verify() (status int, body string) {
	s.mu.Lock()
	k := s.hook
	s.mu.Unlock()
	return s.post(k, "application/json", []byte(`{"token":"verification","challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P","type":"url_verification"}`), nil)
}

// postFirst makes the first attempt in order, and the others on the side.
func (s *Server) postFirst(k *hook, e *envelope) {
	if s.postOnce(k, e, "") || e.kind != kindEvent {
		return
	}
	s.tasks.Go(func() {
		for _, wait := range retries {
			if !s.pause(max(wait, time.Millisecond)) || s.postOnce(k, e, "http_error") {
				return
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lost++
		s.touch()
	})
}

// postOnce makes one attempt and reports whether it was acknowledged in time.
func (s *Server) postOnce(k *hook, e *envelope, reason string) bool {
	s.mu.Lock()
	attempt := len(e.attempts)
	e.attempts = append(e.attempts, Delivery{Envelope: e.id, Kind: e.kind, Reason: reason, Attempt: attempt, At: time.Now()})
	s.touch()
	s.mu.Unlock()
	kind, body := "application/json", []byte(e.payload)
	if e.kind != kindEvent {
		kind, body = "application/x-www-form-urlencoded", e.form()
	}
	extra := http.Header{}
	if attempt > 0 {
		extra.Set("X-Slack-Retry-Num", strconv.Itoa(attempt))
		extra.Set("X-Slack-Retry-Reason", reason)
	}
	status, _ := s.post(k, kind, body, extra)
	if status != http.StatusOK {
		return false
	}
	s.ack(e.id)
	return true
}

// post sends a signed request and returns its answer; status 0 = none in time.
func (s *Server) post(k *hook, kind string, body []byte, extra http.Header) (int, string) {
	req, err := http.NewRequestWithContext(s.ctx, http.MethodPost, k.url, bytes.NewReader(body))
	if err != nil {
		return 0, ""
	}
	req.Header = s.Sign(body, s.now())
	req.Header.Set("Content-Type", kind)
	for name, values := range extra {
		req.Header[name] = values
	}
	client := *k.client
	client.Timeout = ackWindow
	resp, err := client.Do(req)
	if err != nil {
		return 0, ""
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, ""
	}
	return resp.StatusCode, string(text)
}

// Sign returns the headers that prove a body to come from Slack at a time.
func (s *Server) Sign(body []byte, at time.Time) http.Header {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(s.cfg.SigningSecret))
	_, _ = fmt.Fprintf(mac, "v0:%s:%s", stamp, body) // a hash takes everything
	h := http.Header{}
	h.Set("X-Slack-Request-Timestamp", stamp)
	h.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	return h
}

// form is the envelope's payload as Slack posts it: a slash command as fields, everything else as
// one field with JSON.
func (e *envelope) form() []byte {
	if e.kind == kindSlash {
		return []byte(fields(e.payload).Encode())
	}
	return []byte(url.Values{"payload": {string(e.payload)}}.Encode())
}
