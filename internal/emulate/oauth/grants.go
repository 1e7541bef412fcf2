package oauth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// grant is a permission that was not redeemed yet: a code, or a device that waits.
type grant struct {
	client, redirect, challenge string
	user                        string // user code of a device
	approved, denied            bool
	expires, polled             time.Time
	interval                    time.Duration
}

// family is one sign-in: the tokens that followed each other.
type family struct {
	current, previous string
	rotated           time.Time
	revoked           bool
}

const codeLifetime = time.Minute

// authorize is the page of the sign-in: the person has pressed "allow" already.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	redirect, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || !loopback(redirect) || (s.ClientID != "" && q.Get("client_id") != s.ClientID) {
		http.Error(w, "unknown client or redirect", http.StatusBadRequest)
		return
	}
	back := redirect.Query()
	back.Set("state", q.Get("state"))
	switch {
	case s.Deny:
		back.Set("error", "access_denied")
	case q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43 || q.Get("state") == "":
		back.Set("error", "invalid_request")
	default:
		code := "code-" + rand.Text()
		if s.codes == nil {
			s.codes = map[string]*grant{}
		}
		s.codes[code] = &grant{
			client: q.Get("client_id"), redirect: q.Get("redirect_uri"), challenge: q.Get("code_challenge"), expires: time.Now().Add(codeLifetime),
		}
		back.Set("code", code)
	}
	redirect.RawQuery = back.Encode()
	http.Redirect(w, r, redirect.String(), http.StatusFound)
}

func loopback(u *url.URL) bool {
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "http" && (u.Hostname() == "localhost" || err == nil && ip.IsLoopback())
}

func refuse(w http.ResponseWriter, code string) {
	reply(w, http.StatusBadRequest, map[string]any{"error": code, "error_description": "refused: " + code})
}

func reply(w http.ResponseWriter, status int, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	form := r.PostForm
	if (s.ClientID != "" && form.Get("client_id") != s.ClientID) || (s.ClientSecret != "" && form.Get("client_secret") != s.ClientSecret) {
		reply(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	}
	switch form.Get("grant_type") {
	case "authorization_code":
		g := s.codes[form.Get("code")]
		delete(s.codes, form.Get("code"))
		sum := sha256.Sum256([]byte(form.Get("code_verifier")))
		if g == nil || time.Now().After(g.expires) || g.client != form.Get("client_id") || g.redirect != form.Get("redirect_uri") ||
			g.challenge != base64.RawURLEncoding.EncodeToString(sum[:]) {
			refuse(w, "invalid_grant")
			return
		}
		s.issue(w, &family{})
	case "refresh_token":
		s.refresh(w, form.Get("refresh_token"))
	case "urn:ietf:params:oauth:grant-type:device_code":
		s.poll(w, form.Get("device_code"))
	default:
		refuse(w, "unsupported_grant_type")
	}
}

// refresh rotates. A token that was spent revokes the family, unless its grace is not over.
func (s *Server) refresh(w http.ResponseWriter, token string) {
	f := s.families[token]
	switch {
	case f == nil || f.revoked:
		refuse(w, "invalid_grant")
	case token == f.current, token == f.previous && s.Grace > 0 && time.Since(f.rotated) < s.Grace:
		s.issue(w, f)
	default:
		f.revoked = true
		code := s.ReuseCode
		if code == "" {
			code = "refresh_token_reused"
		}
		refuse(w, code)
	}
}

// issue gives a family new tokens.
func (s *Server) issue(w http.ResponseWriter, f *family) {
	s.serial++
	access, refresh := fmt.Sprintf("access-%d-%s", s.serial, rand.Text()), fmt.Sprintf("refresh-%d-%s", s.serial, rand.Text())
	s.enter(f, access, refresh)
	lifetime := s.Lifetime
	if lifetime == 0 {
		lifetime = time.Hour
	}
	reply(w, http.StatusOK, map[string]any{
		"access_token": access, "refresh_token": refresh, "token_type": "Bearer",
		"expires_in": int(lifetime.Seconds()), "id_token": s.idToken(),
	})
}

func (s *Server) enter(f *family, access, refresh string) {
	if s.families == nil {
		s.families, s.access = map[string]*family{}, map[string]*family{}
	}
	f.previous, f.current, f.rotated = f.current, refresh, time.Now()
	s.families[refresh], s.access[access] = f, f
}

// idToken says who signed in, unsigned.
func (s *Server) idToken() string {
	part := func(v any) string {
		b, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(b)
	}
	claims := map[string]any{"iss": "emulator"}
	if s.Email != "" {
		claims["email"] = s.Email
	}
	if s.Account != "" {
		claims["https://api.openai.com/auth"] = map[string]any{"chatgpt_account_id": s.Account}
	}
	return part(map[string]string{"alg": "none"}) + "." + part(claims) + "."
}

// SignIn returns the tokens of a sign-in that happened before.
func (s *Server) SignIn() (access, refresh string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial++
	access, refresh = fmt.Sprintf("access-%d-%s", s.serial, rand.Text()), fmt.Sprintf("refresh-%d-%s", s.serial, rand.Text())
	s.enter(&family{}, access, refresh)
	return access, refresh
}

// Alive reports whether an access token belongs to a sign-in that was not revoked.
func (s *Server) Alive(access string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.access[access]
	return f != nil && !f.revoked
}

// device begins a device flow.
func (s *Server) device(w http.ResponseWriter, r *http.Request) {
	if s.ClientID != "" && r.PostForm.Get("client_id") != s.ClientID {
		reply(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	}
	code, user := "device-"+rand.Text(), rand.Text()[:8]
	if s.devices == nil {
		s.devices = map[string]*grant{}
	}
	g := &grant{user: user, expires: time.Now().Add(10 * time.Minute), interval: 5 * time.Second}
	s.devices[code] = g
	reply(w, http.StatusOK, map[string]any{
		"device_code": code, "user_code": user, "verification_uri": "https://sign-in.example/device",
		"expires_in": 600, "interval": 5,
	})
}

// Approve answers the device flow with a user code, as the person at the page does.
func (s *Server) Approve(user string, yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.devices {
		if g.user == user {
			g.approved, g.denied = yes, !yes
		}
	}
}

func (s *Server) poll(w http.ResponseWriter, code string) {
	g := s.devices[code]
	if g == nil {
		refuse(w, "invalid_grant")
		return
	}
	early := !g.polled.IsZero() && time.Since(g.polled) < g.interval
	g.polled = time.Now()
	switch {
	case time.Now().After(g.expires):
		refuse(w, "expired_token")
	case early:
		g.interval += 5 * time.Second
		refuse(w, "slow_down")
	case g.denied:
		refuse(w, "access_denied")
	case !g.approved:
		refuse(w, "authorization_pending")
	default:
		delete(s.devices, code)
		s.issue(w, &family{})
	}
}
