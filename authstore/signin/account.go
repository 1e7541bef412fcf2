package signin

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"

	"understudy/authstore"
	"understudy/internal/clock"
	"understudy/llm"
)

// Errors of a sign-in.
var (
	ErrDenied     = errors.New("the sign-in was refused at the page")
	ErrExpired    = errors.New("the sign-in took too long; begin again")
	ErrWrongPaste = errors.New("this is not the address the browser was sent to after this sign-in")
	ErrNoFlow     = errors.New("the provider has no sign-in of this kind")
)

var errSilent = errors.New("the token endpoint did not answer in time")

// answerWithin is how long a token endpoint may take.
const answerWithin = 30 * time.Second

// Client signs in at one provider.
type Client struct {
	provider Provider
	oauth    *authstore.OAuthClient
	clock    clock.Clock
}

// New returns a Client. oauth must know the provider's token endpoint (see Endpoints).
func New(p Provider, oauth *authstore.OAuthClient, clk clock.Clock) *Client {
	return &Client{provider: p, oauth: oauth, clock: clk}
}

// Account is who signed in, with the tokens.
type Account struct {
	authstore.Grant
	Email     string // "" = the provider does not tell
	AccountID string
}

// Profile returns the account as it is stored: under id, or as "<provider>:<email>" when id is
// empty, or as "<provider>:default" (spec/failover.md §5.1).
func (a Account) Profile(provider string, id llm.ProfileID) authstore.Profile {
	if id == "" {
		name := "default"
		if a.Email != "" {
			name = a.Email
		}
		id = llm.ProfileID(llm.NormalizeProvider(provider) + ":" + name)
	}
	return authstore.Profile{
		ID: id, Kind: llm.KindOAuth, Secret: a.Access, Refresh: a.Refresh, Expires: a.Expires, Email: a.Email, AccountID: a.AccountID,
	}
}

// redeem exchanges a code or device code for the account.
func (c *Client) redeem(ctx context.Context, form url.Values) (Account, error) {
	if c.provider.Audience != "" {
		form.Set("audience", c.provider.Audience)
	}
	ctx, cancel := c.clock.WithTimeout(ctx, answerWithin, errSilent)
	defer cancel()
	g, err := c.oauth.Redeem(ctx, c.provider.ID, form)
	if err != nil && ctx.Err() != nil {
		return Account{}, context.Cause(ctx)
	}
	if err != nil {
		return Account{}, err
	}
	a := Account{Grant: g}
	a.read(g.IDToken.Reveal())
	if a.AccountID == "" {
		a.read(g.Access.Reveal())
	}
	return a, nil
}

// read takes what a token tells about its owner. It came from the token endpoint itself over TLS,
// so its signature says nothing more (OpenID Connect Core §3.1.3.7).
func (a *Account) read(token string) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return
	}
	var claims struct {
		Email  string `json:"email"`
		OpenAI struct {
			Account string `json:"chatgpt_account_id"`
		} `json:"https://api.openai.com/auth"`
	}
	if json.Unmarshal(payload, &claims) != nil {
		return
	}
	if a.Email == "" && showable(claims.Email) {
		a.Email = strings.ToLower(claims.Email)
	}
	if a.AccountID == "" && showable(claims.OpenAI.Account) {
		a.AccountID = claims.OpenAI.Account
	}
}

// showable reports whether a stranger's text may become part of an id.
func showable(s string) bool {
	return s != "" && len(s) <= 254 && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || unicode.IsSpace(r) })
}

// refusal turns the `error` of a redirect into an error.
func refusal(code string) error {
	if code == "access_denied" {
		return ErrDenied
	}
	if !showable(code) || len(code) > 48 {
		code = "an error"
	}
	return fmt.Errorf("the sign-in page answered with %s", code)
}
