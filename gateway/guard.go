package gateway

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"understudy/internal/secret"
)

// Access says who may use a route.
type Access uint8

// The kinds of access.
const (
	Public Access = iota + 1 // everybody who reaches the listener
	Local                    // callers on this machine, and holders of the token
	Owner                    // holders of the token or of the cookie made from it
)

// guard decides who gets through. Its fields do not change after construction.
type guard struct {
	key     [sha256.Size]byte // of the token
	cookie  string            // the cookie's value
	name    string            // the cookie's name
	hosts   map[string]bool
	exposed bool // the listener can be reached from other machines
}

const cookieAge = 90 * 24 * time.Hour

func newGuard(c Config, token, cookieKey secret.String, port string) *guard {
	g := &guard{
		key:   sha256.Sum256([]byte(token.Reveal())),
		name:  "understudy-" + port, // cookies know no ports: two bots on one machine must not share one
		hosts: map[string]bool{},
	}
	// The cookie proves that the token was known, without containing it. A configured token is part
	// of it, so that a change signs everybody out; a random one is not.
	key := token
	if !cookieKey.IsZero() {
		key = cookieKey
	}
	mac := hmac.New(sha256.New, []byte(key.Reveal()))
	mac.Write([]byte("understudy web cookie 1\x00" + c.Token.Reveal()))
	g.cookie = hex.EncodeToString(mac.Sum(nil))
	host, _, _ := net.SplitHostPort(c.Listen)
	g.exposed = !loopbackName(host)
	for _, h := range append([]string{host}, c.AllowedHosts...) {
		g.hosts[strings.ToLower(h)] = true
	}
	return g
}

// knownHost reports whether the Host header names this server. A page of a foreign name that an
// attacker lets resolve to our address carries the foreign name here (DNS rebinding); an IP address
// cannot be rebound.
func (g *guard) knownHost(hostport string) bool {
	host := hostOnly(hostport)
	if host == "" {
		return false
	}
	return loopbackName(host) || g.hosts[strings.ToLower(host)] || (g.exposed && isIP(host))
}

func hostOnly(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
}

// foreign reports whether a browser says that the request comes from a page that is not ours. Pages
// of other ports of this machine count as foreign, although cookies and "same-site" do not.
func foreign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin":
	case "none": // typed, or from a bookmark
		if !readOnly(r) {
			return true
		}
	default:
		// Following a link from elsewhere to the page itself is harmless.
		if r.URL.Path != "/" || !readOnly(r) || r.Header.Get("Sec-Fetch-Mode") != "navigate" ||
			r.Header.Get("Sec-Fetch-Dest") != "document" {
			return true
		}
	}
	if origins := r.Header.Values("Origin"); len(origins) > 0 {
		return len(origins) > 1 || !sameOrigin(origins[0], r.Host)
	}
	return false
}

func readOnly(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead
}

// sameOrigin compares host and port. The scheme is only used for its default port: behind a proxy
// that speaks TLS it is not ours to know.
func sameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return false
	}
	port := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
	return strings.EqualFold(strings.TrimSuffix(u.Host, port), strings.TrimSuffix(host, port))
}

// bearer reports whether the request carries the token in its Authorization header.
func (g *guard) bearer(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer") && g.isToken(strings.TrimSpace(token))
}

// isToken compares in constant time, whatever the length.
func (g *guard) isToken(token string) bool {
	sum := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(sum[:], g.key[:]) == 1
}

func (g *guard) hasCookie(r *http.Request) bool {
	for _, c := range r.CookiesNamed(g.name) {
		if subtle.ConstantTimeCompare([]byte(c.Value), []byte(g.cookie)) == 1 {
			return true
		}
	}
	return false
}

// setCookie signs the browser in.
func (g *guard) setCookie(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{
		Name: g.name, Value: g.cookie, Path: "/", MaxAge: int(cookieAge / time.Second),
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https"),
	})
}

// local reports whether the caller is a program on this machine. What a proxy on this machine
// passes on comes from somewhere else.
func local(r *http.Request) bool {
	for _, h := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via"} {
		if r.Header.Get(h) != "" {
			return false
		}
	}
	addr, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && addr.Addr().Unmap().IsLoopback()
}

// trusted reports whether the caller may see details: local, or the owner.
func (g *guard) trusted(r *http.Request) bool { return local(r) || g.bearer(r) || g.hasCookie(r) }

// allows returns 0, or the status of the refusal.
func (g *guard) allows(r *http.Request, a Access) (status int) {
	switch {
	case a == Public:
		return 0
	case a == Local && g.trusted(r), g.bearer(r):
		return 0
	case a == Local || !g.hasCookie(r):
		return http.StatusUnauthorized
	}
	// A browser always says where a changing request comes from; the cookie alone does not prove
	// that our page sent it.
	if !readOnly(r) && r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Site") == "" {
		return http.StatusForbidden
	}
	return 0
}

// refusal is the text of the guard's answer.
func refusal(status int) string {
	switch status {
	case http.StatusMisdirectedRequest:
		return "This name is not served here. If it should be, add it to gateway.allowedHosts.\n"
	case http.StatusForbidden:
		return "Requests from other pages are not accepted.\n"
	default:
		return "Open the link that the bot printed at its start, or send its token as bearer token.\n"
	}
}

func refuse(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="understudy"`)
	}
	w.WriteHeader(status)
	_, _ = w.Write([]byte(refusal(status))) // the caller may be gone
}

// contentPolicy lets the page load nothing but its own files and no inline code.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
	"connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

func harden(h http.Header) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
}

// protect puts the guard in front of a route.
func (g *guard) protect(a Access, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status := g.allows(r, a); status != 0 {
			refuse(w, status)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// admit is the first gate: it stands in front of all routes, even unknown ones.
func (g *guard) admit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		harden(w.Header())
		switch {
		case !g.knownHost(r.Host):
			refuse(w, http.StatusMisdirectedRequest)
		case foreign(r):
			refuse(w, http.StatusForbidden)
		default:
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			next.ServeHTTP(w, r)
		}
	})
}
