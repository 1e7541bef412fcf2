package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"understudy/chat"
	"understudy/internal/secret"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bot is a StatusSource with fixed answers.
type bot struct {
	state    Readiness
	problems []Problem
	fail     error
}

func (b *bot) Ready(context.Context) (Readiness, []Problem) { return b.state, b.problems }

func (b *bot) Status(_ context.Context, where chat.Address) (Status, error) {
	return Status{Readiness: b.state, Model: ModelStatus{Selected: "a/b", Source: where.Conversation}}, b.fail
}

const token = "a-token-of-some-length"

// rig is a running server.
type rig struct {
	t *testing.T
	*Server
	client *http.Client
	served chan string // paths that reached the guarded route
}

func start(t *testing.T, cfg Config, source StatusSource) *rig {
	t.Helper()
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	s, err := New(cfg, Deps{Status: source, Metrics: NewMetrics(MetricsConfig{Channels: []string{"web"}})})
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, Server: s, served: make(chan string, 64), client: &http.Client{Jar: jar}}
	s.Handle("/api/", Owner, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		r.served <- req.Method + " " + req.URL.Path
	}))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		r.client.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return r
}

// send makes a request; headers are "Name: value", and "Host" sets the host.
func (r *rig) send(method, path string, headers ...string) *http.Response {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, "http://"+r.Addr()+path, strings.NewReader("{}"))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Add(name, value)
		if name == "Host" {
			req.Host = value
		}
	}
	res, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { res.Body.Close() })
	return res
}

// signIn follows the printed address.
func (r *rig) signIn() {
	r.t.Helper()
	res, err := r.client.Get(r.SignInURL())
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK || res.Request.URL.RawQuery != "" {
		r.t.Fatalf("sign-in: status %d at %s", res.StatusCode, res.Request.URL.Redacted())
	}
}

func TestTheTokenBecomesACookie(t *testing.T) {
	r := start(t, Config{}, &bot{state: Ready})
	if got := r.send("GET", "/api/x").StatusCode; got != http.StatusUnauthorized {
		t.Errorf("without the cookie: status %d", got)
	}
	r.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := r.client.Get(r.SignInURL())
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "/" {
		t.Errorf("status %d to %q", res.StatusCode, res.Header.Get("Location"))
	}
	c := res.Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" {
		t.Errorf("cookie %v", c)
	}
	if _, secretPart, _ := strings.Cut(r.SignInURL(), "token="); strings.Contains(c.Value, secretPart) {
		t.Error("the cookie holds the token")
	}
	if got := r.send("GET", "/api/x").StatusCode; got != http.StatusOK {
		t.Errorf("with the cookie: status %d", got)
	}
}

func TestSignInForm(t *testing.T) {
	r := start(t, Config{Token: secret.New(token)}, &bot{state: Ready})
	for body, want := range map[string]int{
		`{"token":"wrong"}`: 401, `{"token":""}`: 401, `{}`: 401, `nonsense`: 401, `{"token":"` + token + `"}`: 204,
	} {
		res, err := r.client.Post("http://"+r.Addr()+"/login", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want || (len(res.Cookies()) == 1) != (want == 204) {
			t.Errorf("%s: status %d, %d cookies", body, res.StatusCode, len(res.Cookies()))
		}
	}
	if got := r.send("GET", "/?token=wrong").StatusCode; got != http.StatusUnauthorized {
		t.Errorf("a wrong link: status %d", got)
	}
}

func TestCookieOfAnotherToken(t *testing.T) {
	r := start(t, Config{Token: secret.New(token)}, &bot{state: Ready})
	other := newGuard(Config{Listen: "127.0.0.1:1"}, secret.New("another-token-entirely"), secret.String{}, "1")
	for _, value := range []string{other.cookie, "", token} {
		if got := r.send("GET", "/api/x", "Cookie: "+r.guard.name+"="+value).StatusCode; got != http.StatusUnauthorized {
			t.Errorf("cookie %q: status %d", value, got)
		}
	}
	same := newGuard(Config{Listen: "127.0.0.1:1", Token: secret.New(token)}, secret.New(token), secret.String{}, "1")
	if got := r.send("GET", "/api/x", "Cookie: "+r.guard.name+"="+same.cookie).StatusCode; got != http.StatusOK {
		t.Errorf("the cookie does not survive a restart: status %d", got)
	}
}

func TestForeignPagesAreRefused(t *testing.T) {
	r := start(t, Config{AllowedHosts: []string{"bot.example.com"}}, &bot{state: Ready})
	r.signIn()
	cookie := "Cookie: " + r.guard.name + "=" + r.guard.cookie
	own := "Origin: http://" + r.Addr()
	const foreignOrigin = "Origin: https://evil.example"
	for _, c := range []struct {
		name, method, path string
		headers            []string
		want               int
	}{
		{"our page", "POST", "/api/x", []string{own, "Sec-Fetch-Site: same-origin"}, 200},
		{"our page, old browser", "POST", "/api/x", []string{own}, 200},
		{"our page reads", "GET", "/api/events", []string{"Sec-Fetch-Site: same-origin"}, 200},
		{"our page behind a proxy", "POST", "/api/x", []string{cookie, "Host: bot.example.com", "Origin: https://bot.example.com"}, 200},
		{"our page by another loopback name", "POST", "/api/x", []string{cookie, "Host: localhost:8787", "Origin: http://localhost:8787"}, 200},
		{"foreign page posts", "POST", "/api/x", []string{foreignOrigin, "Sec-Fetch-Site: cross-site"}, 403},
		{"foreign page posts, old browser", "POST", "/api/x", []string{foreignOrigin}, 403},
		{"foreign page reads", "GET", "/api/x", []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"foreign page opens the stream", "GET", "/api/events", []string{foreignOrigin}, 403},
		{"another port of this machine posts", "POST", "/api/x", []string{"Origin: http://127.0.0.1:1", "Sec-Fetch-Site: same-site"}, 403},
		{"another port of this machine reads", "GET", "/api/x", []string{"Sec-Fetch-Site: same-site"}, 403},
		{"sandboxed page", "POST", "/api/x", []string{"Origin: null"}, 403},
		{"two origins", "POST", "/api/x", []string{own, foreignOrigin}, 403},
		{"cookie without origin", "POST", "/api/x", nil, 403},
		{"cookie without origin, delete", "DELETE", "/api/x", nil, 403},
		{"foreign page signs in", "POST", "/login", []string{foreignOrigin}, 403},
		{"foreign page embeds a file", "GET", "/app.js", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"}, 403},
		{"foreign page frames us", "GET", "/", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"}, 403},
		{"a link elsewhere is followed", "GET", "/", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}, 200},
		{"a link elsewhere to the API", "GET", "/api/x", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}, 403},
		{"rebound name", "GET", "/api/x", []string{cookie, "Host: evil.example"}, 421},
		{"rebound name posts as same origin", "POST", "/api/x", []string{cookie, "Host: evil.example:8787", "Origin: http://evil.example:8787"}, 421},
		{"rebound name reads health", "GET", "/healthz", []string{"Host: evil.example"}, 421},
		{"name that ends like ours", "GET", "/", []string{"Host: notlocalhost"}, 421},
		{"address that is not ours", "GET", "/", []string{"Host: 192.0.2.1"}, 421},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := r.send(c.method, c.path, c.headers...)
			if res.StatusCode != c.want {
				t.Errorf("status %d, want %d", res.StatusCode, c.want)
			}
			if len(r.served) > 0 && c.want != 200 {
				t.Errorf("%s reached the route", <-r.served)
			}
			for len(r.served) > 0 {
				<-r.served
			}
			if res.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Error("other origins may read the answer")
			}
		})
	}
}

func TestBearerToken(t *testing.T) {
	r := start(t, Config{Token: secret.New(token)}, &bot{state: Ready})
	for header, want := range map[string]int{
		"Bearer " + token: 200, "bearer " + token: 200, "Bearer wrong": 401, "Bearer ": 401, "Basic " + token: 401,
	} {
		if got := r.send("POST", "/api/x", "Authorization: "+header).StatusCode; got != want {
			t.Errorf("%q: status %d, want %d", header, got, want)
		}
	}
}

func TestSecurityHeaders(t *testing.T) {
	r := start(t, Config{}, &bot{state: Ready})
	for _, path := range []string{"/", "/app.js", "/api/x", "/nothing"} {
		h := r.send("GET", path).Header
		policy := h.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") {
			t.Errorf("%s: policy %q", path, policy)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("X-Frame-Options") != "DENY" || h.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: headers %v", path, h)
		}
	}
}

func TestPageIsSelfContained(t *testing.T) {
	r := start(t, Config{}, &bot{state: Ready})
	entries, err := pageFiles.ReadDir("page")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		path := "/" + strings.TrimSuffix(e.Name(), "index.html")
		res := r.send("GET", path)
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: status %d, %v", path, res.StatusCode, err)
		}
		text := strings.ReplaceAll(string(body), "http://www.w3.org/2000/svg", "")
		for _, bad := range []string{"http://", "https://", "<script>", "style=\"", "onclick=", "eval("} {
			if strings.Contains(text, bad) {
				t.Errorf("%s contains %q", path, bad)
			}
		}
		if got := r.send("GET", path, "If-None-Match: "+res.Header.Get("ETag")).StatusCode; got != http.StatusNotModified {
			t.Errorf("%s again: status %d", path, got)
		}
	}
}

func TestHealth(t *testing.T) {
	b := &bot{state: Ready, problems: []Problem{{"telegram/default", "token revoked"}}}
	r := start(t, Config{}, b)
	for _, c := range []struct {
		state  Readiness
		path   string
		header string
		want   int
		body   answer
	}{
		{Degraded, "/healthz", "Accept: */*", 200, answer{OK: true, Status: "live"}},
		{Ready, "/readyz", "X-Forwarded-For: 192.0.2.1", 200, answer{OK: true, Status: "ready"}},
		{Degraded, "/readyz", "X-Forwarded-For: 192.0.2.1", 503, answer{Status: "degraded"}},
		{Degraded, "/readyz", "Accept: */*", 503, answer{Status: "degraded", Problems: b.problems}},
		{Draining, "/readyz", "Via: proxy", 503, answer{Status: "draining"}},
		{Starting, "/startupz", "Accept: */*", 503, answer{Status: "starting"}},
		{Degraded, "/startupz", "Accept: */*", 200, answer{OK: true, Status: "started"}},
	} {
		b.state = c.state
		res := r.send("GET", c.path, c.header)
		var got answer
		if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != c.want {
			t.Errorf("%s while %s: status %d", c.path, c.state, res.StatusCode)
		}
		if d := cmp.Diff(c.body, got); d != "" {
			t.Errorf("%s while %s (-want +got):\n%s", c.path, c.state, d)
		}
	}
	if got := r.send("HEAD", "/healthz").StatusCode; got != http.StatusOK {
		t.Errorf("HEAD: status %d", got)
	}
}

func TestStatus(t *testing.T) {
	b := &bot{state: Ready}
	r := start(t, Config{Token: secret.New(token)}, b)
	if got := r.send("GET", "/status").StatusCode; got != http.StatusUnauthorized {
		t.Errorf("without token: status %d", got)
	}
	var s Status
	if err := json.NewDecoder(r.send("GET", "/status?session=s1", "Authorization: Bearer "+token).Body).Decode(&s); err != nil {
		t.Fatal(err)
	}
	if s.Model.Source != "s1" || s.Channels == nil {
		t.Errorf("status %+v", s)
	}
	b.fail = errors.New("secret detail")
	res := r.send("GET", "/status", "Authorization: Bearer "+token)
	body, _ := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusInternalServerError || strings.Contains(string(body), "secret") {
		t.Errorf("failing: status %d, %s", res.StatusCode, body)
	}
}

func TestMetricsAreLocal(t *testing.T) {
	r := start(t, Config{Token: secret.New(token)}, &bot{state: Ready})
	for header, want := range map[string]int{
		"Accept: */*": 200, "X-Forwarded-For: 192.0.2.1": 401, "Forwarded: for=192.0.2.1": 401,
	} {
		if got := r.send("GET", "/metrics", header).StatusCode; got != want {
			t.Errorf("%s: status %d, want %d", header, got, want)
		}
	}
	if got := r.send("GET", "/metrics", "Via: proxy", "Authorization: Bearer "+token).StatusCode; got != http.StatusOK {
		t.Errorf("with token: status %d", got)
	}
}

func TestBodiesAreCut(t *testing.T) {
	r := start(t, Config{Token: secret.New(token)}, &bot{state: Ready})
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+r.Addr()+"/api/x", strings.NewReader(strings.Repeat("x", maxBody+1)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d", res.StatusCode)
	}
}

func TestStreamsEndWithTheServer(t *testing.T) {
	s, err := New(Config{Listen: "127.0.0.1:0", Token: secret.New(token)}, Deps{Status: &bot{state: Ready}})
	if err != nil {
		t.Fatal(err)
	}
	open := make(chan struct{})
	s.Handle("GET /stream", Owner, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(open)
		<-r.Context().Done()
	}))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = io.WriteString(conn, "GET /stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+token+"\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	<-open
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("run: %v", err)
	}
}

func TestConfig(t *testing.T) {
	good := secret.New(token)
	for name, c := range map[string]struct {
		cfg  Config
		want string // part of the error; "" = valid
	}{
		"default":                  {Config{}, ""},
		"loopback without token":   {Config{Listen: "127.0.0.1:0"}, ""},
		"loopback, version 6":      {Config{Listen: "[::1]:80"}, ""},
		"localhost":                {Config{Listen: "localhost:80"}, ""},
		"everywhere without token": {Config{Listen: ":8787"}, "token: required"},
		"outside without token":    {Config{Listen: "192.0.2.1:80"}, "token: required"},
		"zero without token":       {Config{Listen: "0.0.0.0:80"}, "token: required"},
		"name without token":       {Config{Listen: "bot.example.com:80"}, "token: required"},
		"everywhere with token":    {Config{Listen: "0.0.0.0:8787", Token: good}, ""},
		"short token":              {Config{Token: secret.New("short")}, "token: too short"},
		"no port":                  {Config{Listen: "localhost"}, "listen:"},
		"bad port":                 {Config{Listen: "localhost:http"}, "listen:"},
		"hosts":                    {Config{AllowedHosts: []string{"bot.example.com", "192.0.2.1", "::1"}}, ""},
		"host with port":           {Config{AllowedHosts: []string{"bot.example.com:80"}}, "allowedHosts[0]:"},
		"wildcard host":            {Config{AllowedHosts: []string{"a", "*.example.com"}}, "allowedHosts[1]:"},
	} {
		err := c.cfg.Validate()
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New(Config{Listen: "0.0.0.0:0"}, Deps{Status: &bot{}}); !errors.Is(err, ErrNoToken) {
		t.Errorf("off loopback: %v", err)
	}
}

func TestExposedListenerTakesAddressesButNoNames(t *testing.T) {
	g := newGuard(Config{Listen: "0.0.0.0:80", AllowedHosts: []string{"Bot.example.com"}}, secret.New(token), secret.String{}, "80")
	for host, want := range map[string]bool{
		"192.0.2.1": true, "192.0.2.1:80": true, "[2001:db8::1]:80": true, "bot.example.com": true, "localhost:80": true,
		"evil.example": false, "evil.example:80": false, "": false, "192.0.2.1.evil.example": false,
	} {
		if got := g.knownHost(host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}

func TestURLs(t *testing.T) {
	s, err := New(Config{Listen: "0.0.0.0:0", Token: secret.New(token)}, Deps{Status: &bot{}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, port, _ := net.SplitHostPort(s.Addr())
	if want := "http://localhost:" + port + "/"; s.URL() != want || s.SignInURL() != want+"?token="+token {
		t.Errorf("%s and %s", s.URL(), s.SignInURL())
	}
	if _, err := New(Config{Listen: s.Addr(), Token: secret.New(token)}, Deps{Status: &bot{}}); err == nil {
		t.Error("a taken port is no error")
	}
	if a, b := NewToken(), NewToken(); a == b || len(a.Reveal()) < MinToken {
		t.Error("tokens are not random")
	}
}

func TestCookieKeyOutlivesARandomToken(t *testing.T) {
	key, random := secret.New("a key that outlives the process"), Config{Listen: "127.0.0.1:1"}
	first, second := newGuard(random, NewToken(), key, "1"), newGuard(random, NewToken(), key, "1")
	if first.cookie != second.cookie {
		t.Error("a restart with another random token signs browsers out")
	}
	one, two := random, random
	one.Token, two.Token = secret.New("configured-token-one"), secret.New("configured-token-two")
	if newGuard(one, one.Token, key, "1").cookie == newGuard(two, two.Token, key, "1").cookie {
		t.Error("another configured token does not sign browsers out")
	}
	if first.cookie == newGuard(random, NewToken(), secret.New("another key"), "1").cookie {
		t.Error("another key does not sign browsers out")
	}
}
