package provider_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"understudy/llm"
	"understudy/provider"
)

func spec() provider.Spec {
	return provider.Spec{ID: "alpha", API: provider.OpenAIChat}.WithDefaults()
}

func TestTransportOf(t *testing.T) {
	wrap := func(err error) error { return &url.Error{Op: "Post", URL: "http://x.test/v1", Err: err} }
	for _, tt := range []struct {
		err  error
		want llm.Transport
	}{
		{nil, llm.TransportNone},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, llm.TransportRefused},
		{&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, llm.TransportReset},
		{&net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.EPIPE)}, llm.TransportReset},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host"}}, llm.TransportDNS},
		{&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, llm.TransportDial},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}, llm.TransportDial},
		{&tls.CertificateVerificationError{Err: errors.New("expired")}, llm.TransportTLS},
		{errors.New("net/http: TLS handshake timeout"), llm.TransportTLS},
		{io.EOF, llm.TransportEOF},
		{io.ErrUnexpectedEOF, llm.TransportEOF},
		{net.ErrClosed, llm.TransportEOF},
		{errors.New("http2: server sent GOAWAY and closed the connection"), llm.TransportGoAway},
		{errors.New("stream error: stream ID 5; INTERNAL_ERROR"), llm.TransportGoAway},
		{os.ErrDeadlineExceeded, llm.TransportDeadline},
		{errors.New("something else"), llm.TransportOther},
	} {
		if got := provider.TransportOf(tt.err); got != tt.want {
			t.Errorf("%v: %d, want %d", tt.err, got, tt.want)
		}
		if tt.err != nil {
			if got := provider.TransportOf(wrap(fmt.Errorf("more: %w", tt.err))); got != tt.want {
				t.Errorf("wrapped %v: %d, want %d", tt.err, got, tt.want)
			}
		}
	}
}

// Our own context decides before anything the provider said (spec/failover.md §6, principle 1).
func TestOurContextDecidesFirst(t *testing.T) {
	for cause, want := range map[error]llm.Reason{
		llm.ErrStopped: llm.ReasonAborted, llm.ErrInterrupted: llm.ReasonAborted, llm.ErrShutdown: llm.ReasonAborted, context.Canceled: llm.ReasonAborted,
		llm.ErrIdle: llm.ReasonTimeout, llm.ErrFirstByte: llm.ReasonTimeout, llm.ErrTurnTimeout: llm.ReasonTimeout, context.DeadlineExceeded: llm.ReasonTimeout,
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		e := spec().Fail(ctx, provider.Evidence{
			Exchange: provider.Exchange{Status: 429, Body: []byte(`{"error":{"message":"slow down"}}`), Written: true}, Err: context.Canceled,
		})
		if e.Reason != want || !errors.Is(e, cause) {
			t.Errorf("%v: %v", cause, e)
		}
		if want == llm.ReasonTimeout && e.Detail != llm.DetailDeadline {
			t.Errorf("%v: detail %q", cause, e.Detail)
		}
	}
}

func TestUnwrittenRequestMarksNothing(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(llm.ErrFirstByte)
	if e := spec().Fail(ctx, provider.Evidence{Err: context.Canceled}); !e.NotSent {
		t.Errorf("failure = %+v, want NotSent: it was still connecting", e.Failure)
	}
	if e := spec().Fail(ctx, provider.Evidence{Exchange: provider.Exchange{Written: true}, Err: context.Canceled}); e.NotSent {
		t.Errorf("failure = %+v, want it counted", e.Failure)
	}
}

func TestErrorsShowNoURL(t *testing.T) {
	e := spec().Fail(t.Context(), provider.Evidence{Err: &url.Error{Op: "Post", URL: "http://host.test/v1?key=SECRET", Err: io.EOF}})
	if strings.Contains(e.Error()+e.Err.Error()+e.Message, "SECRET") {
		t.Errorf("error = %v", e)
	}
}

func TestRecorderKeepsWhatExplains(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.Header().Set("X-Request-Id", "req_9")
		w.Header().Set("Set-Cookie", "session=private")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, strings.Repeat("x", 200<<10))
	}))
	defer srv.Close()
	rec := provider.NewRecorder(http.DefaultTransport)
	client := rec.HTTPClient()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil || len(body) != 64<<10 {
		t.Errorf("an SDK reads %d bytes of an error body, %v", len(body), err)
	}
	ex := rec.Exchange()
	if ex.Status != 429 || ex.RequestID != "req_9" || !ex.Written || len(ex.Body) != 64<<10 || ex.Header["retry-after"] != "7" {
		t.Errorf("exchange = %d %q %v, %d bytes, %v", ex.Status, ex.RequestID, ex.Written, len(ex.Body), ex.Header)
	}
	if _, kept := ex.Header["set-cookie"]; kept {
		t.Error("a cookie was kept")
	}
	again := req.Clone(t.Context())
	again.Body = io.NopCloser(strings.NewReader("{}"))
	if res, err := client.Do(again); err == nil {
		_ = res.Body.Close()
		t.Error("a second request within one attempt was sent")
	}
}
