package providertest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	emulator "understudy/internal/emulate/llm"
	"understudy/llm"
	"understudy/provider"
)

func (s Suite) statuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		fault  emulator.Fault
		reason llm.Reason
		detail llm.Detail
		after  time.Duration
	}{
		{"401", emulator.Fault{Status: 401}, llm.ReasonAuth, "", 0},
		{"403", emulator.Fault{Status: 403}, llm.ReasonAuth, "", 0},
		{"402", emulator.Fault{Status: 402}, llm.ReasonBilling, "", 0},
		{"429", emulator.Fault{Status: 429, RetryAfter: 7 * time.Second}, llm.ReasonRateLimit, "", 7 * time.Second},
		{"500", emulator.Fault{Status: 500}, llm.ReasonTimeout, llm.DetailServerError, 0},
		{"503", emulator.Fault{Status: 503, Body: "Service Unavailable", ContentType: "text/plain"}, llm.ReasonTimeout, llm.DetailServerError, 0},
		{"529", emulator.Fault{Status: 529}, llm.ReasonOverloaded, "", 0},
		{"502 page", emulator.Fault{Status: 502, Body: "<html><body><h1>502 Bad Gateway</h1></body></html>", ContentType: "text/html"}, llm.ReasonTimeout, llm.DetailServerError, 0},
		{"400", emulator.Fault{Status: 400}, llm.ReasonFormat, "", 0},
		{"error without an object", emulator.Fault{Status: 429, Body: `{"error":"slow down, too many requests"}`}, llm.ReasonRateLimit, "", 0},
	} {
		s.bubble(t, tt.name, func(w world) {
			w.srv.Fault(tt.fault)
			a := w.ask(w.request("hi"))
			w.failed(a, tt.reason, tt.detail)
			if a.Err.Status != tt.fault.Status || a.Err.RetryAfter != tt.after || a.Err.NotSent {
				w.Errorf("failure = %+v", a.Err.Failure)
			}
			if n := len(w.srv.Requests()); n != 1 {
				w.Errorf("%d requests in one attempt", n)
			}
		})
	}
	s.bubble(t, "unknown model", func(w world) {
		w.srv.Models = []string{"another"}
		w.failed(w.ask(w.request("hi")), llm.ReasonModelNotFound, "")
	})
	s.bubble(t, "unknown key", func(w world) {
		w.srv.Keys = []string{keyTwo}
		w.failed(w.ask(w.request("hi")), llm.ReasonAuth, "")
	})
	s.bubble(t, "redirects are not followed", func(w world) {
		w.srv.Fault(emulator.Fault{Status: 307, Body: "moved", ContentType: "text/plain", Header: map[string]string{"Location": "http://elsewhere.test/v1"}})
		a := w.ask(w.request("hi"))
		if a.Err == nil || !strings.Contains(a.Err.Err.Error(), "elsewhere.test") || len(w.srv.Requests()) != 1 {
			w.Errorf("error = %v after %d requests", a.Err, len(w.srv.Requests()))
		}
	})
}

func (s Suite) brokenStreams(t *testing.T) {
	for _, tt := range []struct {
		name   string
		fault  emulator.Fault
		text   string
		reason llm.Reason
		detail llm.Detail
	}{
		{"error first", emulator.Fault{Error: overloaded}, "", llm.ReasonOverloaded, ""},
		{"error behind content", emulator.Fault{Say: "half an ans", Error: overloaded}, "half an ans", llm.ReasonOverloaded, ""},
		{"ends before content", emulator.Fault{Cut: true}, "", llm.ReasonTimeout, llm.DetailNetwork},
		{"ends behind content", emulator.Fault{Say: "half an ans", Cut: true}, "half an ans", llm.ReasonTimeout, llm.DetailNetwork},
		{"reset at once", emulator.Fault{Reset: true}, "", llm.ReasonTimeout, llm.DetailNetwork},
		{"reset behind content", emulator.Fault{Say: "half an ans", Reset: true}, "half an ans", llm.ReasonTimeout, llm.DetailNetwork},
		{"complete but empty", emulator.Fault{Empty: true}, "", llm.ReasonEmptyResponse, ""},
	} {
		s.bubble(t, tt.name, func(w world) {
			w.srv.Fault(tt.fault)
			a := w.ask(w.request("hi"))
			w.failed(a, tt.reason, tt.detail)
			if a.Text != tt.text || a.Err.NotSent {
				w.Errorf("text %q, failure %+v", a.Text, a.Err.Failure)
			}
		})
	}
}

func (s Suite) notAnAnswer(t *testing.T) {
	for _, tt := range []struct {
		name        string
		contentType string
		body        string
		reason      llm.Reason
	}{
		{"web page", "text/html; charset=utf-8", "<!DOCTYPE html><html><body>Welcome to nginx!</body></html>", llm.ReasonTimeout},
		{"web page as a stream", "text/event-stream", "<html><body>bad gateway</body></html>", llm.ReasonTimeout},
		{"nothing", "application/json", "", llm.ReasonEmptyResponse},
		{"nothing as a stream", "text/event-stream", "\n\n", llm.ReasonEmptyResponse},
		{"error with 200", "application/json", overloaded, llm.ReasonOverloaded},
	} {
		s.bubble(t, tt.name, func(w world) {
			w.srv.Fault(emulator.Fault{Status: http.StatusOK, ContentType: tt.contentType, Body: tt.body, Raw: true})
			w.failed(w.ask(w.request("hi")), tt.reason, "")
		})
	}
}

// silence: the timers live in the runner; the client must end when its context does, and say what
// the cause means.
func (s Suite) silence(t *testing.T) {
	for _, tt := range []struct {
		name   string
		fault  emulator.Fault
		cause  error
		reason llm.Reason
		detail llm.Detail
	}{
		{"no response", emulator.Fault{Hang: true}, llm.ErrFirstByte, llm.ReasonTimeout, llm.DetailDeadline},
		{"pings only", emulator.Fault{Hang: true, PingEvery: 5 * time.Second}, llm.ErrFirstByte, llm.ReasonTimeout, llm.DetailDeadline},
		{"pings behind content", emulator.Fault{Say: "half an ans", Hang: true, PingEvery: 5 * time.Second}, llm.ErrIdle, llm.ReasonTimeout, llm.DetailDeadline},
		{"turn limit", emulator.Fault{Hang: true}, llm.ErrTurnTimeout, llm.ReasonTimeout, llm.DetailDeadline},
		{"stopped by the user", emulator.Fault{Hang: true}, llm.ErrStopped, llm.ReasonAborted, ""},
		{"interrupted in the answer", emulator.Fault{Say: "half an ans", Hang: true}, llm.ErrInterrupted, llm.ReasonAborted, ""},
		{"shutdown", emulator.Fault{Hang: true, PingEvery: time.Second}, llm.ErrShutdown, llm.ReasonAborted, ""},
		{"slow to begin", emulator.Fault{Latency: time.Hour}, llm.ErrFirstByte, llm.ReasonTimeout, llm.DetailDeadline},
	} {
		s.bubble(t, tt.name, func(w world) {
			w.srv.Fault(tt.fault)
			ctx, cancel := context.WithCancelCause(w.Context())
			defer cancel(nil)
			timer := time.AfterFunc(120*time.Second, func() { cancel(tt.cause) })
			defer timer.Stop()
			a := Collect(w.client.Stream(ctx, w.suite.credential(keyOne), w.request("hi")))
			w.failed(a, tt.reason, tt.detail)
			if !errors.Is(a.Err, tt.cause) || a.Text != tt.fault.Say || a.Progress != 0 {
				w.Errorf("answer = %+v, error %v", a, a.Err)
			}
			synctest.Wait()
			if n := w.srv.InFlight(); n != 0 {
				w.Errorf("%d requests still run at the provider", n)
			}
		})
	}
}

// leaving: a consumer that goes takes the request with it.
func (s Suite) leaving(t *testing.T) {
	s.bubble(t, "consumer breaks off", func(w world) {
		w.srv.Reply(emulator.Reply{Text: strings.Repeat("on and on ", 50), ChunkDelay: time.Second})
		for ev, err := range w.client.Stream(w.Context(), w.suite.credential(keyOne), w.request("hi")) {
			if err != nil {
				w.Fatal(err)
			}
			if ev.Text != "" {
				break
			}
		}
		synctest.Wait()
		if n := w.srv.InFlight(); n != 0 {
			w.Errorf("%d requests still run at the provider", n)
		}
	})
	s.bubble(t, "context over before the start", func(w world) {
		ctx, cancel := context.WithCancelCause(w.Context())
		cancel(llm.ErrStopped)
		a := Collect(w.client.Stream(ctx, w.suite.credential(keyOne), w.request("hi")))
		w.failed(a, llm.ReasonAborted, "")
		if n := len(w.srv.Requests()); n != 0 {
			w.Errorf("%d requests", n)
		}
	})
}

// failing is a transport that reaches nobody.
type failing struct{ err error }

func (f failing) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return nil, f.err
}

// noConnection: what never left marks no health (spec/failover.md §6.1).
func (s Suite) noConnection(t *testing.T) {
	refused, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := refused.Addr().String()
	_ = refused.Close()
	for _, tt := range []struct {
		name      string
		transport http.RoundTripper
	}{
		{"refused", provider.NewTransport()},
		{"no such host", failing{&net.DNSError{Err: "no such host", Name: "api.invalid", IsNotFound: true}}},
		{"dial time-out", failing{&net.OpError{Op: "dial", Net: "tcp", Err: context.DeadlineExceeded}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := s.Spec
			spec.BaseURL, spec.Transport = "http://"+address+"/v1", tt.transport
			client, err := s.New(spec.WithDefaults())
			if err != nil {
				t.Fatal(err)
			}
			w := world{T: t, suite: s, client: client}
			a := w.ask(w.request("hi"))
			w.failed(a, llm.ReasonTimeout, llm.DetailNetwork)
			if !a.Err.NotSent {
				t.Errorf("failure = %+v, want NotSent", a.Err.Failure)
			}
		})
	}
}
