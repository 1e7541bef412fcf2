package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"understudy/internal/guard"
	"understudy/internal/secret"
)

// outside is an internet of one server, which is found under every public address.
type outside struct {
	server *httptest.Server
	names  map[string][]string

	mu       sync.Mutex
	lookups  []string
	dialled  []string
	requests []*http.Request
	bodies   []Message
}

func newOutside(t *testing.T, answer http.HandlerFunc) *outside {
	o := &outside{names: map[string][]string{"example.com": {"93.184.216.34"}}}
	o.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m Message
		_ = json.NewDecoder(r.Body).Decode(&m)
		o.mu.Lock()
		o.requests, o.bodies = append(o.requests, r), append(o.bodies, m)
		o.mu.Unlock()
		if answer != nil {
			answer(w, r)
		}
	}))
	t.Cleanup(o.server.Close)
	return o
}

// LookupNetIP implements Resolver.
func (o *outside) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lookups = append(o.lookups, host)
	var out []netip.Addr
	for _, text := range o.names[host] {
		out = append(out, netip.MustParseAddr(text))
	}
	if len(out) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host}
	}
	return out, nil
}

func (o *outside) dial(ctx context.Context, network, address string) (net.Conn, error) {
	o.mu.Lock()
	o.dialled = append(o.dialled, address)
	o.mu.Unlock()
	return (&net.Dialer{}).DialContext(ctx, network, o.server.Listener.Addr().String())
}

func (o *outside) poster() *Poster {
	pool := x509.NewCertPool()
	pool.AddCert(o.server.Certificate())
	return New(Deps{Resolver: o, Dial: o.dial, TLS: &tls.Config{RootCAs: pool}})
}

var token = secret.New("webhook-token-1234")

func TestPostsWithTokenAndKeyToTheAddressThatWasLookedAt(t *testing.T) {
	o := newOutside(t, nil)
	if err := o.poster().Post(t.Context(), "https://example.com/in?k=1", token, Message{Run: "j1-7", Job: "j1", Text: "done"}); err != nil {
		t.Fatal(err)
	}
	if len(o.dialled) != 1 || o.dialled[0] != "93.184.216.34:443" {
		t.Errorf("dialled %v", o.dialled)
	}
	r, m := o.requests[0], o.bodies[0]
	if r.Header.Get("Authorization") != "Bearer webhook-token-1234" || r.Header.Get("Idempotency-Key") != "j1-7" || r.URL.RawQuery != "k=1" {
		t.Errorf("headers %v, url %v", r.Header, r.URL)
	}
	if m.Run != "j1-7" || m.Job != "j1" || m.Text != "done" {
		t.Errorf("body %+v", m)
	}
}

func TestNothingBehindTheBotIsReached(t *testing.T) {
	for _, address := range []string{
		"127.0.0.1", "127.8.9.1", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.100.100.200", "224.0.0.1",
		"255.255.255.255", "192.0.0.192", "198.18.0.1", "::1", "::", "fe80::1", "fe80::1%eth0", "fd00:ec2::254", "fc00::1", "ff02::1",
		"::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::1", "2001:db8::1", "fec0::1",
	} {
		o := newOutside(t, nil)
		o.names["inside.example"] = []string{address}
		literal := address
		if strings.Contains(address, ":") {
			literal = "[" + strings.ReplaceAll(address, "%", "%25") + "]"
		}
		for _, target := range []string{"https://inside.example/", "https://" + literal + "/"} {
			if err := o.poster().Post(t.Context(), target, token, Message{}); !errors.Is(err, guard.ErrForbidden) {
				t.Errorf("%s: %v", target, err)
			}
		}
		if len(o.dialled) != 0 {
			t.Errorf("%s was dialled: %v", address, o.dialled)
		}
	}
}

func TestANameWithOneClosedAddressIsRefused(t *testing.T) {
	o := newOutside(t, nil)
	o.names["mixed.example"] = []string{"93.184.216.34", "10.0.0.1"}
	if err := o.poster().Post(t.Context(), "https://mixed.example/", token, Message{}); !errors.Is(err, guard.ErrForbidden) || len(o.dialled) != 0 {
		t.Errorf("%v, dialled %v", err, o.dialled)
	}
}

func TestEveryRedirectIsLookedAtAnew(t *testing.T) {
	o := newOutside(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/in":
			http.Redirect(w, r, "https://inside.example/", http.StatusTemporaryRedirect)
		case "/plain":
			http.Redirect(w, r, "http://example.com/", http.StatusTemporaryRedirect)
		case "/away":
			http.Redirect(w, r, "https://www.example.com/ok", http.StatusTemporaryRedirect)
		case "/loop":
			http.Redirect(w, r, "https://example.com/loop", http.StatusTemporaryRedirect)
		}
	})
	o.names["inside.example"] = []string{"169.254.169.254"}
	o.names["www.example.com"] = []string{"93.184.216.35"}
	// The test server's certificate is good for example.com only.
	p := o.poster()
	p.client.Transport.(*http.Transport).TLSClientConfig.InsecureSkipVerify = true
	if err := p.Post(t.Context(), "https://example.com/in", token, Message{}); !errors.Is(err, guard.ErrForbidden) {
		t.Errorf("into the network: %v", err)
	}
	if err := p.Post(t.Context(), "https://example.com/plain", token, Message{}); err == nil {
		t.Error("without https: followed")
	}
	o.requests, o.bodies = nil, nil
	if err := p.Post(t.Context(), "https://example.com/away", token, Message{Run: "r"}); err != nil {
		t.Fatal(err)
	}
	if last := o.requests[len(o.requests)-1]; last.Header.Get("Authorization") != "" || o.bodies[len(o.bodies)-1].Run != "r" {
		t.Errorf("another host got %v and %v", last.Header, o.bodies)
	}
	o.requests = nil
	if err := p.Post(t.Context(), "https://example.com/loop", token, Message{}); err == nil || len(o.requests) != maxRedirects+1 {
		t.Errorf("%d requests in a loop: %v", len(o.requests), err)
	}
}

func TestWhatMayBeRepeated(t *testing.T) {
	for status, again := range map[int]bool{500: true, 503: true, 429: true, 408: true, 400: false, 401: false, 404: false, 410: false} {
		o := newOutside(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		err := o.poster().Post(t.Context(), "https://example.com/", token, Message{})
		var no *Refusal
		if err == nil || errors.As(err, &no) == again {
			t.Errorf("%d: %v", status, err)
		}
	}
}

func TestNoErrorRepeatsTheURL(t *testing.T) {
	o := newOutside(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://example.com/very-secret", http.StatusTemporaryRedirect)
	})
	for _, target := range []string{"https://nobody.example/very-secret", "https://example.com/very-secret", "http://example.com/very-secret", "https://very-secret\x7f/", ":very-secret"} {
		if err := o.poster().Post(t.Context(), target, token, Message{}); err == nil || strings.Contains(err.Error(), "very-secret") || strings.Contains(err.Error(), "nobody") {
			t.Errorf("%q: %v", target, err)
		}
	}
}
