package signin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"understudy/authstore"
	"understudy/internal/clock"
	"understudy/internal/emulate/oauth"
	"understudy/internal/secret"
	"understudy/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// config is how one signs in at an emulator.
func config(base string) map[string]Config {
	return map[string]Config{"house": {
		AuthorizeURL: base + oauth.AuthorizePath, TokenURL: base + oauth.TokenPath, DeviceURL: base + oauth.DevicePath,
		ClientID: "bot", ClientSecret: secret.New("client-secret"), Scopes: []string{"chat", "offline_access"}, Audience: "models",
	}}
}

func client(t *testing.T, own map[string]Config, rt http.RoundTripper) *Client {
	t.Helper()
	p, err := Lookup("house", own)
	if err != nil {
		t.Fatal(err)
	}
	o, err := authstore.NewOAuthClient(Endpoints(own), rt, clock.Clock{})
	if err != nil {
		t.Fatal(err)
	}
	return New(p, o, clock.Clock{})
}

// browser follows a page like a person's browser does and returns the last text.
func browser(t *testing.T, address string) string {
	tr := &http.Transport{DisableKeepAlives: true}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr}).Get(address)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

func serve(t *testing.T, s *oauth.Server) (string, http.RoundTripper) {
	t.Helper()
	base, stop := s.Listen()
	tr := &http.Transport{}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		stop()
	})
	return base, tr
}

func emulator() *oauth.Server {
	return &oauth.Server{ClientID: "bot", ClientSecret: "client-secret", Email: "Me@Example.com", Account: "acc-1"}
}

func TestBrowserSignIn(t *testing.T) {
	s := emulator()
	base, rt := serve(t, s)
	c := client(t, config(base), rt)
	var wg sync.WaitGroup
	defer wg.Wait()
	before := time.Now()
	a, err := c.Browser(t.Context(), func(address string) {
		wg.Go(func() {
			u, err := url.Parse(address)
			if err != nil {
				t.Error(err)
			}
			back := u.Query().Get("redirect_uri")
			if text := browser(t, back+"?code=stolen&state=guessed"); !strings.Contains(text, "another sign-in") {
				t.Errorf("a stranger on this machine was told %q", text)
			}
			if text := browser(t, strings.TrimSuffix(back, "/callback")+"/x"); !strings.Contains(text, "Nothing") {
				t.Errorf("another path: %q", text)
			}
			if text := browser(t, address); !strings.Contains(text, "received") {
				t.Errorf("the page says %q", text)
			}
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	p := a.Profile("house", "")
	if p.ID != "house:me@example.com" || p.Kind != llm.KindOAuth || p.AccountID != "acc-1" || p.Refresh.IsZero() || !s.Alive(p.Secret.Reveal()) {
		t.Errorf("%+v", p)
	}
	if p.Expires.Before(before.Add(50*time.Minute)) || p.Expires.After(time.Now().Add(time.Hour)) {
		t.Errorf("expires %v", p.Expires)
	}
	asked := s.Requests()[0].Form
	if asked.Get("scope") != "chat offline_access" || asked.Get("audience") != "models" || asked.Get("client_secret") != "" {
		t.Errorf("the page was asked with %v", asked)
	}
	if other := a.Profile("house", "house:work"); other.ID != "house:work" {
		t.Errorf("named %s", other.ID)
	}
}

func TestBrowserRefusals(t *testing.T) {
	cases := map[string]struct {
		change func(*oauth.Server)
		want   error
		text   string
	}{
		"denied":        {func(s *oauth.Server) { s.Deny = true }, ErrDenied, ""},
		"server broken": {func(s *oauth.Server) { s.Fault(oauth.Fault{Path: oauth.TokenPath, Status: 500, Body: "canary"}) }, nil, "500"},
		"wrong client":  {func(s *oauth.Server) { s.ClientSecret = "other" }, nil, "invalid_client"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := emulator()
			c.change(s)
			base, rt := serve(t, s)
			var wg sync.WaitGroup
			defer wg.Wait()
			_, err := client(t, config(base), rt).Browser(t.Context(), func(address string) { wg.Go(func() { browser(t, address) }) })
			if err == nil || (c.want != nil && !errors.Is(err, c.want)) || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "canary") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestBrowserIsNotWaitedForForever(t *testing.T) {
	base, rt := serve(t, emulator())
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := client(t, config(base), rt).Browser(ctx, func(string) { cancel(llm.ErrStopped) })
	if !errors.Is(err, llm.ErrStopped) {
		t.Errorf("got %v", err)
	}
}

// redirected follows a page up to where it would send the browser.
func redirected(t *testing.T, rt http.RoundTripper, address string) string {
	t.Helper()
	hc := &http.Client{Transport: rt, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := hc.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.Header.Get("Location")
}

func TestPastedSignIn(t *testing.T) {
	s := emulator()
	base, rt := serve(t, s)
	other := emulator()
	otherBase, otherRT := serve(t, other)
	cases := map[string]struct {
		paste func(location string) string
		ok    bool
	}{
		"the whole address": {func(l string) string { return " " + l + "\r" }, true},
		"its query":         {func(l string) string { _, q, _ := strings.Cut(l, "?"); return q }, true},
		"the bare code": {func(l string) string {
			u, _ := url.Parse(l)
			return u.Query().Get("code")
		}, true},
		"another sign-in's address": {func(string) string {
			var location string
			_, _ = client(t, config(otherBase), otherRT).Paste(t.Context(), func(a string) { location = redirected(t, otherRT, a) }, func() (string, error) { return "", io.EOF })
			return location
		}, false},
		"nothing":  {func(string) string { return "" }, false},
		"the page": {func(string) string { return base + oauth.AuthorizePath }, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var location string
			a, err := client(t, config(base), rt).Paste(t.Context(),
				func(address string) { location = redirected(t, rt, address) },
				func() (string, error) { return c.paste(location), nil })
			if (err == nil) != c.ok {
				t.Fatalf("got %v", err)
			}
			if !c.ok && !errors.Is(err, ErrWrongPaste) {
				t.Errorf("got %v", err)
			}
			if c.ok && !s.Alive(a.Access.Reveal()) {
				t.Error("no token")
			}
		})
	}
}

func TestDeviceSignIn(t *testing.T) {
	cases := map[string]struct {
		after  time.Duration // until the person answers; 0 = never
		yes    bool
		faults []oauth.Fault
		want   error
		took   time.Duration
	}{
		"approved":        {after: 12 * time.Second, yes: true, took: 15 * time.Second},
		"denied":          {after: 12 * time.Second, want: ErrDenied, took: 15 * time.Second},
		"never":           {want: ErrExpired, took: 10 * time.Minute},
		"server down":     {after: time.Second, yes: true, faults: []oauth.Fault{{Path: oauth.TokenPath, Status: 503, Times: 2}}, took: 35 * time.Second},
		"asked too often": {after: time.Second, yes: true, faults: []oauth.Fault{{Path: oauth.TokenPath, Status: 400, Body: `{"error":"slow_down"}`, Times: 1}}, took: 15 * time.Second},
		"silent":          {after: time.Second, yes: true, faults: []oauth.Fault{{Path: oauth.TokenPath, Hang: true, Times: 1}}, took: 45 * time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := emulator()
				s.Fault(c.faults...)
				rt, stop := s.Transport()
				defer stop()
				start := time.Now()
				a, err := client(t, config("http://127.0.0.1:1"), rt).Device(t.Context(), func(code Code) {
					if code.Page != "https://sign-in.example/device" || code.User == "" {
						t.Errorf("shown %+v", code)
					}
					if c.after > 0 {
						time.AfterFunc(c.after, func() { s.Approve(code.User, c.yes) })
					}
				})
				if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || time.Since(start) != c.took {
					t.Errorf("%v after %v", err, time.Since(start))
				}
				if err == nil && a.Email != "me@example.com" {
					t.Errorf("%+v", a)
				}
			})
		})
	}
}

func TestLookup(t *testing.T) {
	if p, err := Lookup("OpenAI-Codex", nil); err != nil || p.TokenURL != "https://auth.openai.com/oauth/token" || p.redirect == "" {
		t.Errorf("openai: %+v %v", p, err)
	}
	mine := map[string]Config{"openai": {ClientID: "mine"}, "gemini": {ClientID: "g", ClientSecret: secret.New("s")}}
	if p, err := Lookup("openai", mine); err != nil || p.ClientID != "mine" || p.redirect != "" || p.AuthorizeURL == "" {
		t.Errorf("own client: %+v %v", p, err)
	}
	if p, err := Lookup("gemini", mine); err != nil || p.extra["access_type"] != "offline" {
		t.Errorf("gemini: %+v %v", p, err)
	}
	for id, want := range map[string]string{"gemini": "Google", "anthropic": "setup token", "nobody": "auth.providers.nobody", "half": "tokenUrl"} {
		if _, err := Lookup(id, map[string]Config{"half": {ClientID: "x"}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", id, err)
		}
	}
	e := Endpoints(map[string]Config{"openai": {ClientID: "mine"}, "half": {ClientID: "x"}})
	if e["openai"].ClientID != "mine" || e["gemini"].URL == "" || len(e) != 3 {
		t.Errorf("endpoints %v", e)
	}
}

func TestConfigValidate(t *testing.T) {
	bad := Config{AuthorizeURL: "http://example.com", TokenURL: "ftp://x", DeviceURL: "https://u:p@x", Scopes: []string{"a b"}}
	err := bad.Validate()
	for _, key := range []string{"authorizeUrl", "tokenUrl", "deviceUrl", "scopes"} {
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s is not named in %v", key, err)
		}
	}
	if err := config("http://127.0.0.1:1")["house"].Validate(); err != nil {
		t.Error(err)
	}
}

func FuzzAccount(f *testing.F) {
	f.Add("a.eyJlbWFpbCI6IngifQ.")
	f.Add("..")
	f.Fuzz(func(t *testing.T, token string) {
		var a Account
		a.read(token)
		if a.Email != "" && !showable(a.Email) {
			t.Errorf("%q", a.Email)
		}
	})
}

func FuzzPasted(f *testing.F) {
	f.Add("http://localhost/cb?code=x&state=s")
	f.Add("code=x#s")
	f.Fuzz(func(t *testing.T, line string) {
		a := attempt{state: "s"}
		if code, err := a.pasted(line); err == nil && code == "" {
			t.Error("success without a code")
		}
	})
}
