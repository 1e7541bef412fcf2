package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/emulate/pipe"
	"understudy/internal/secret"
)

// called runs a server that platforms may call, and returns its address.
func called(t *testing.T, handlers map[string]http.Handler) (*Server, string) {
	t.Helper()
	s, err := New(Config{Listen: "127.0.0.1:0", Token: secret.New("0123456789abcdef")}, Deps{Status: &bot{}})
	if err != nil {
		t.Fatal(err)
	}
	s.SetWebhooks(handlers)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s, s.Addr()
}

// echo answers with what it read.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}
		return
	}
	fmt.Fprintf(w, "%s %s", r.URL.Path, body)
})

// call posts like a platform does: from elsewhere, under the name of a proxy, without a token.
func call(t *testing.T, addr, path, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "bot.example.com"
	r.Header.Set("X-Forwarded-For", "203.0.113.7")
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(got)
}

func TestPlatformsCallPastTheGuard(t *testing.T) {
	s, addr := called(t, map[string]http.Handler{"/slack/events": echo})
	if status, text := call(t, addr, "/slack/events", "hello"); status != http.StatusOK || text != "/slack/events hello" {
		t.Errorf("%d %q", status, text)
	}
	for _, path := range []string{"/", "/api/state", "/slack/events/", "/slack", "/status"} {
		if status, _ := call(t, addr, path, ""); status != http.StatusMisdirectedRequest {
			t.Errorf("%s: the guard lets a strange host through: %d", path, status)
		}
	}
	if status, _ := call(t, addr, "/slack/events", strings.Repeat("x", maxBody+1)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a body over the limit: %d", status)
	}
	s.SetWebhooks(map[string]http.Handler{"/telegram-webhook": echo})
	if status, _ := call(t, addr, "/slack/events", "hello"); status != http.StatusMisdirectedRequest {
		t.Errorf("an account that is gone is still served: %d", status)
	}
	if status, text := call(t, addr, "/telegram-webhook", "x"); status != http.StatusOK || text != "/telegram-webhook x" {
		t.Errorf("a new account: %d %q", status, text)
	}
}

func TestSlowCallersAreCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := make(chan error, 1)
		s := &Server{}
		s.SetWebhooks(map[string]http.Handler{"/hook": http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			read <- err
		})})
		l := pipe.New()
		server := &http.Server{Handler: s.route(http.NotFoundHandler())}
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(l) }()
		conn, err := l.Dial(t.Context(), "tcp", "bot.test:80")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "POST /hook HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nbegins"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var timeout net.Error
		if err := <-read; !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("the body is waited for: %v", err)
		}
		if waited := time.Since(began); waited != hookReadTime {
			t.Errorf("cut off after %s", waited)
		}
		_ = conn.Close()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		<-ended
	})
}

func TestWebhookPaths(t *testing.T) {
	for path, want := range map[string]string{
		"/slack/events": "", "/telegram-webhook": "", "/a": "", "/apis": "",
		"": "is not a path", "slack": "is not a path", "/a/": "is not a path", "/a/../b": "is not a path", "/a?b": "is not a path", "/{x}": "is not a path",
		"/": "belongs to the bot itself", "/api/slack": "belongs to the bot itself", "/metrics": "belongs to the bot itself", "/healthz": "belongs to the bot itself",
		"/app.js": "is a file of the page", "/index.html": "is a file of the page",
	} {
		err := CheckWebhook(path)
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestReservedPathsAreAllRoutes(t *testing.T) {
	s, _ := called(t, nil)
	for _, path := range []string{"/healthz", "/readyz", "/startupz", "/status", "/metrics", "/login", "/style.css"} {
		_, pattern := s.mux.Handler(&http.Request{Method: http.MethodGet, URL: &url.URL{Path: path}, Host: "localhost"})
		if pattern != "" && CheckWebhook(path) == nil {
			t.Errorf("%s is a route, and a platform may take it", path)
		}
	}
}
