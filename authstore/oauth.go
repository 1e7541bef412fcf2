package authstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy/internal/clock"
	"understudy/internal/secret"
	"understudy/llm"
)

const (
	maxTokenAnswer  = 1 << 20   // bytes of a token endpoint's answer
	defaultLifetime = time.Hour // of an access token whose endpoint does not say
	longestLifetime = 366 * 24 * time.Hour
)

// RefreshError is a refusal of a token endpoint. It holds no token and no text of the server's.
type RefreshError struct {
	Status int    // HTTP status; 0 = none
	Code   string // the server's error code, such as "invalid_grant"; "" = it gave none that is one
}

// Error names status and code.
func (e *RefreshError) Error() string {
	var b strings.Builder
	b.WriteString("the token endpoint refused")
	if e.Status != 0 {
		fmt.Fprintf(&b, " with status %d", e.Status)
	}
	if e.Code != "" {
		b.WriteString(": " + e.Code)
	}
	return b.String()
}

// Reused reports whether the refresh token had been spent before: somebody else may hold its
// successor.
func (e *RefreshError) Reused() bool { return e.Code == "refresh_token_reused" }

// Permanent reports whether no repetition can help: the user has to sign in again.
func (e *RefreshError) Permanent() bool {
	switch e.Code {
	case "invalid_grant", "refresh_token_reused", "refresh_token_expired", "refresh_token_invalidated",
		"refresh_token_revoked", "token_revoked", "revoked":
		return true
	}
	return false
}

func permanent(err error) bool {
	var e *RefreshError
	return errors.As(err, &e) && e.Permanent()
}

// signInError is a refresh that did not work, as policy wants it.
func signInError(id llm.ProfileID, err error) error {
	f := llm.Failure{
		Reason: llm.ReasonAuth, Rule: "oauth_refresh",
		Message: fmt.Sprintf("the sign-in of profile %s could not be refreshed", id),
	}
	var e *RefreshError
	if errors.As(err, &e) {
		f.Status, f.Code = e.Status, e.Code
	}
	if permanent(err) {
		f.Reason = llm.ReasonAuthPermanent
	}
	return &llm.Error{Failure: f, Err: err}
}

// TokenEndpoint is where a provider's sign-ins are refreshed.
type TokenEndpoint struct {
	URL          string // https, or http on loopback
	ClientID     string // a profile's own `clientId` wins
	ClientSecret secret.String
}

// OAuthClient is the standard Refresher (RFC 6749 §6) for providers with a token endpoint.
type OAuthClient struct {
	endpoints map[string]TokenEndpoint // by provider
	http      *http.Client
	clock     clock.Clock
}

// NewOAuthClient returns a client for the given endpoints by provider. It never follows a
// redirect: what it sends is for the named host only. It has no time-out of its own; the store
// allows 120 s for a call.
func NewOAuthClient(endpoints map[string]TokenEndpoint, rt http.RoundTripper, clk clock.Clock) (*OAuthClient, error) {
	c := &OAuthClient{endpoints: make(map[string]TokenEndpoint, len(endpoints)), clock: clk, http: &http.Client{
		Transport:     rt,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	for provider, e := range endpoints {
		if err := CheckAddress(e.URL); err != nil {
			return nil, fmt.Errorf("token endpoint of %s: %w", provider, err)
		}
		c.endpoints[llm.NormalizeProvider(provider)] = e
	}
	return c, nil
}

// CheckAddress reports whether secrets may be sent to an address: https, or http on loopback.
func CheckAddress(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || (u.Scheme != "https" && !loopback(u)) {
		return errors.New("an https address is needed")
	}
	return nil
}

func loopback(u *url.URL) bool {
	if u.Scheme != "http" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || (err == nil && ip.IsLoopback())
}

// Refresh implements Refresher.
func (c *OAuthClient) Refresh(ctx context.Context, p Profile) (Tokens, error) {
	e, ok := c.endpoints[p.ID.Provider()]
	if !ok {
		return Tokens{}, fmt.Errorf("no token endpoint is known for provider %s", p.ID.Provider())
	}
	if id := p.clientID(); id != "" && id != e.ClientID {
		e.ClientID, e.ClientSecret = id, secret.String{}
	}
	g, err := c.redeem(ctx, e, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {p.Refresh.Reveal()}})
	return g.Tokens, err
}

// Grant is what a token endpoint gives for a sign-in.
type Grant struct {
	Tokens
	IDToken secret.String // who signed in, where the provider tells; zero = it does not
}

// Redeem exchanges what a sign-in at the provider brought, such as a code, for tokens. The form
// holds grant_type and what belongs to it; the client is added. A rejection is a *RefreshError.
func (c *OAuthClient) Redeem(ctx context.Context, provider string, form url.Values) (Grant, error) {
	e, ok := c.endpoints[llm.NormalizeProvider(provider)]
	if !ok {
		return Grant{}, fmt.Errorf("no token endpoint is known for provider %s", provider)
	}
	return c.redeem(ctx, e, form)
}

func (c *OAuthClient) redeem(ctx context.Context, e TokenEndpoint, form url.Values) (Grant, error) {
	if e.ClientID != "" {
		form.Set("client_id", e.ClientID)
	}
	if !e.ClientSecret.IsZero() {
		form.Set("client_secret", e.ClientSecret.Reveal())
	}
	status, body, err := c.Post(ctx, e.URL, form)
	if err != nil {
		return Grant{}, err
	}
	return parseGrant(status, body, c.clock.Now())
}

// Post sends a form to an address of a sign-in server and returns status and body, of at most 1 MB.
func (c *OAuthClient) Post(ctx context.Context, address string, form url.Values) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, nil, fmt.Errorf("sign-in request: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("sign-in request: %w", err)
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxTokenAnswer))
	if err != nil {
		return 0, nil, fmt.Errorf("answer of the sign-in server: %w", err)
	}
	return resp.StatusCode, body, nil
}

// clientID returns the OAuth client an imported sign-in belongs to.
func (p Profile) clientID() string {
	for _, name := range []string{"clientId", "client_id"} {
		var id string
		if json.Unmarshal(p.Extra[name], &id) == nil && id != "" {
			return id
		}
	}
	return ""
}

// parseGrant reads a token endpoint's answer (RFC 6749 §5).
func parseGrant(status int, body []byte, now time.Time) (Grant, error) {
	var answer struct {
		Access  string          `json:"access_token"`
		Refresh string          `json:"refresh_token"`
		ID      string          `json:"id_token"`
		Seconds json.RawMessage `json:"expires_in"`
		Error   json.RawMessage `json:"error"`
		Code    string          `json:"code"`
	}
	err := json.Unmarshal(body, &answer)
	if status < 200 || status > 299 || len(answer.Error) > 0 && string(answer.Error) != "null" {
		return Grant{}, &RefreshError{Status: status, Code: errorCode(answer.Error, answer.Code)}
	}
	if err != nil || answer.Access == "" {
		return Grant{}, &RefreshError{Status: status, Code: "no_access_token"}
	}
	return Grant{IDToken: secret.New(answer.ID), Tokens: Tokens{
		Access: secret.New(answer.Access), Refresh: secret.New(answer.Refresh),
		Expires: now.Add(lifetime(answer.Seconds)),
	}}, nil
}

// lifetime reads expires_in: seconds, as a number or a text.
func lifetime(raw json.RawMessage) time.Duration {
	seconds, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	if err != nil || !(seconds > 0) {
		return defaultLifetime
	}
	if seconds >= longestLifetime.Seconds() {
		return longestLifetime
	}
	return time.Duration(seconds * float64(time.Second)).Truncate(time.Millisecond)
}

// errorCode finds the code in "error": "x" and in "error": {"code": "x"}; it must look like one,
// so that nothing a server echoes can travel in an error.
func errorCode(raw json.RawMessage, beside string) string {
	var text string
	var object struct{ Code, Type string }
	candidates := []string{beside}
	switch {
	case json.Unmarshal(raw, &text) == nil:
		candidates = append(candidates, text)
	case json.Unmarshal(raw, &object) == nil:
		candidates = append(candidates, object.Code, object.Type)
	}
	i := slices.IndexFunc(candidates, isCode)
	if i < 0 {
		return ""
	}
	return candidates[i]
}

func isCode(s string) bool {
	if s == "" || len(s) > 48 {
		return false
	}
	for _, c := range s {
		if (c < 'a' || c > 'z') && c != '_' {
			return false
		}
	}
	return true
}
