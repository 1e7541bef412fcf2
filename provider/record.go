package provider

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
)

// How much of a body is kept: of an error, and of a success that may turn out to be one.
const (
	maxErrorBody   = 64 << 10
	maxSuccessBody = 4 << 10
)

// Exchange is what one attempt's request and response were, as far as errors are concerned.
type Exchange struct {
	Status    int               // 0 = no response
	Header    map[string]string // lower-case names, only those that classification or support needs
	RequestID string            // the provider's own id of the request
	// Body is the beginning of the response body that was read so far: 64 KB of an error, 4 KB of
	// a success.
	Body []byte
	// Written tells that the request's headers left this machine.
	Written bool
	// Stream tells that the response said it is a stream of events.
	Stream bool
}

// Recorder is the http.RoundTripper of one attempt. SDKs lose status, headers and body of some
// failures; the recorder keeps them. It makes no request of its own and must not be reused.
type Recorder struct {
	base http.RoundTripper

	mu sync.Mutex
	ex Exchange
}

// NewRecorder returns a recorder over the provider's transport.
func NewRecorder(base http.RoundTripper) *Recorder { return &Recorder{base: base} }

// HTTPClient returns a client that records. It follows no redirect, because a redirect would carry
// keys to another host, and it has no time-out: the context is the limit.
func (r *Recorder) HTTPClient() *http.Client {
	return &http.Client{
		Transport:     r,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Exchange returns what was recorded so far.
func (r *Recorder) Exchange() Exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	ex := r.ex
	ex.Body = append([]byte(nil), ex.Body...)
	return ex
}

// errReused guards "one attempt, one request".
var errReused = errors.New("a second request within one attempt")

// RoundTrip implements http.RoundTripper.
func (r *Recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	again := r.ex.Written || r.ex.Status != 0
	r.mu.Unlock()
	if again {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, errReused
	}
	trace := &httptrace.ClientTrace{WroteHeaders: func() {
		r.mu.Lock()
		r.ex.Written = true
		r.mu.Unlock()
	}}
	res, err := r.base.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ex.Written = true
	r.ex.Status = res.StatusCode
	r.ex.Header = keptHeaders(res.Header)
	r.ex.RequestID = requestID(r.ex.Header)
	r.ex.Stream = res.StatusCode < 300 && strings.HasPrefix(strings.ToLower(res.Header.Get("Content-Type")), "text/event-stream")
	t := &tee{ReadCloser: res.Body, rec: r, limit: maxErrorBody, bounded: true}
	if res.StatusCode < 300 {
		t.limit, t.bounded = maxSuccessBody, false
	}
	res.Body = t
	return res, nil
}

// tee copies the beginning of a body into its recorder. A bounded one ends there: SDKs read error
// bodies to the end, and a broken host may never end one.
type tee struct {
	io.ReadCloser
	rec     *Recorder
	limit   int
	bounded bool
}

// Read implements io.Reader.
func (t *tee) Read(p []byte) (int, error) {
	if t.bounded {
		if t.limit <= 0 {
			return 0, io.EOF
		}
		p = p[:min(len(p), t.limit)]
	}
	n, err := t.ReadCloser.Read(p)
	if n > 0 && t.limit > 0 {
		k := min(n, t.limit)
		t.limit -= k
		t.rec.mu.Lock()
		t.rec.ex.Body = append(t.rec.ex.Body, p[:k]...)
		t.rec.mu.Unlock()
	}
	return n, err
}

// ReadError reads the body of an error response, at most 64 KB, and closes it, so that the
// recorder has it.
func ReadError(res *http.Response) error {
	_, err := io.Copy(io.Discard, io.LimitReader(res.Body, maxErrorBody))
	if cerr := res.Body.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("reading the error body: %w", err)
	}
	return nil
}

// keptHeaders picks the headers that explain failures. It is a list of what is kept, not of what
// is hidden: nothing else can leak.
func keptHeaders(h http.Header) map[string]string {
	kept := map[string]string{}
	for name, values := range h {
		name = strings.ToLower(name)
		if len(values) > 0 && keeps(name) {
			kept[name] = values[0]
		}
	}
	return kept
}

func keeps(name string) bool {
	switch name {
	case "content-type", "date", "retry-after", "retry-after-ms", "x-should-retry", "cf-ray", "cf-mitigated", "server",
		"request-id", "x-request-id", "x-amzn-requestid", "x-amzn-errortype", "x-goog-request-id", "x-ms-request-id", "apim-request-id",
		"ratelimit-reset", "x-error-code", "x-error-type", "x-error-json", "location":
		return true
	}
	for _, prefix := range []string{"x-ratelimit-", "ratelimit", "anthropic-ratelimit-", "x-codex-", "x-ms-retry-after"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func requestID(kept map[string]string) string {
	for _, name := range []string{"x-request-id", "request-id", "x-amzn-requestid", "apim-request-id", "x-goog-request-id", "cf-ray"} {
		if id := kept[name]; id != "" {
			return id
		}
	}
	return ""
}
