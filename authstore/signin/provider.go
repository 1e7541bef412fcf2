package signin

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"understudy/authstore"
	"understudy/internal/secret"
	"understudy/llm"
)

// Config is one entry of `auth.providers.<id>`: how one signs in at a provider. Fields of a provider
// that is built in need not be repeated.
type Config struct {
	// AuthorizeURL is the page that a browser opens.
	AuthorizeURL string `yaml:"authorizeUrl"`
	// TokenURL gives and renews tokens.
	TokenURL string `yaml:"tokenUrl"`
	// DeviceURL begins the device flow; "" = the provider has none.
	DeviceURL    string        `yaml:"deviceUrl"`
	ClientID     string        `yaml:"clientId"`
	ClientSecret secret.String `yaml:"clientSecret"`
	Scopes       []string      `yaml:"scopes"`
	// Audience is sent along where a server asks for it.
	Audience string `yaml:"audience"`
}

// Validate reports every fault; the texts name the key.
func (c Config) Validate() error {
	var errs []error
	for _, x := range [...]struct{ key, address string }{
		{"authorizeUrl", c.AuthorizeURL}, {"tokenUrl", c.TokenURL}, {"deviceUrl", c.DeviceURL},
	} {
		if x.address == "" {
			continue
		}
		if err := authstore.CheckAddress(x.address); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", x.key, err))
		}
	}
	for _, s := range c.Scopes {
		if s == "" || strings.ContainsAny(s, " \t\r\n\"\\") {
			errs = append(errs, fmt.Errorf("scopes: %q is not a scope: write one per entry", s))
		}
	}
	return errors.Join(errs...)
}

// Provider is how one signs in at a provider.
type Provider struct {
	ID string
	Config
	// redirect is the only address that the provider sends a browser back to; "" = any on loopback.
	redirect string
	extra    map[string]string // of the page's address
	need     string            // what a person must do first, when the client id is missing
}

// builtin are the providers whose public facts are known. A client id is public: it names the
// program, it proves nothing.
func builtin() []Provider {
	const google = "Google wants an OAuth client of your own: create one of the type Desktop app in the Google Cloud console"
	gemini := Config{
		AuthorizeURL: "https://accounts.google.com/o/oauth2/v2/auth", TokenURL: "https://oauth2.googleapis.com/token",
		Scopes: []string{"openid", "email", "https://www.googleapis.com/auth/cloud-platform"},
	}
	offline := map[string]string{"access_type": "offline", "prompt": "consent"}
	return []Provider{
		{
			// A ChatGPT subscription, as the provider's own command line tool signs in.
			ID: "openai", Config: Config{
				AuthorizeURL: "https://auth.openai.com/oauth/authorize", TokenURL: "https://auth.openai.com/oauth/token",
				ClientID: "app_EMoamEEZ73f0CkXaXp7hrann", Scopes: []string{"openid", "profile", "email", "offline_access"},
			},
			redirect: "http://localhost:1455/auth/callback",
			extra:    map[string]string{"id_token_add_organizations": "true", "codex_cli_simplified_flow": "true"},
		},
		{ID: "gemini", Config: gemini, extra: offline, need: google},
		{ID: "google", Config: gemini, extra: offline, need: google},
	}
}

// Lookup returns how one signs in at a provider: what is built in, overlaid with the configuration
// by provider. The error tells a person what is missing.
func Lookup(id string, own map[string]Config) (Provider, error) {
	id = llm.NormalizeProvider(id)
	p := Provider{ID: id}
	known := false
	for _, b := range builtin() {
		if b.ID == id {
			p, known = b, true
		}
	}
	for _, written := range slices.Sorted(maps.Keys(own)) {
		if llm.NormalizeProvider(written) == id {
			known = true
			p.overlay(own[written])
		}
	}
	switch {
	case id == "anthropic" && !known:
		return p, errors.New("a setup token takes the place of a sign-in: run `claude setup-token`, then `bot auth add anthropic:default --type token`")
	case !known:
		return p, fmt.Errorf("no sign-in is known for %q; describe it under auth.providers.%s, or add a key with `bot auth add %s:default`", id, id, id)
	case p.TokenURL == "":
		return p, fmt.Errorf("auth.providers.%s.tokenUrl is missing", id)
	case p.ClientID == "" && p.need != "":
		return p, fmt.Errorf("%s, and set auth.providers.%s.clientId and clientSecret", p.need, id)
	case p.ClientID == "":
		return p, fmt.Errorf("auth.providers.%s.clientId is missing", id)
	case p.AuthorizeURL == "" && p.DeviceURL == "":
		return p, fmt.Errorf("auth.providers.%s needs an authorizeUrl or a deviceUrl", id)
	}
	return p, nil
}

// overlay takes over what is configured. Another client has other redirects.
func (p *Provider) overlay(c Config) {
	set := func(to *string, s string) {
		if s != "" {
			*to = s
		}
	}
	if c.ClientID != "" && c.ClientID != p.ClientID || c.AuthorizeURL != "" && c.AuthorizeURL != p.AuthorizeURL {
		p.redirect = ""
	}
	set(&p.AuthorizeURL, c.AuthorizeURL)
	set(&p.TokenURL, c.TokenURL)
	set(&p.DeviceURL, c.DeviceURL)
	set(&p.ClientID, c.ClientID)
	set(&p.Audience, c.Audience)
	if !c.ClientSecret.IsZero() {
		p.ClientSecret = c.ClientSecret
	}
	if c.Scopes != nil {
		p.Scopes = c.Scopes
	}
}

// Endpoints returns where the sign-ins of every known provider are renewed.
func Endpoints(own map[string]Config) map[string]authstore.TokenEndpoint {
	out := map[string]authstore.TokenEndpoint{}
	ids := slices.Collect(maps.Keys(own))
	for _, b := range builtin() {
		ids = append(ids, b.ID)
	}
	for _, id := range ids {
		p := Provider{ID: llm.NormalizeProvider(id)}
		for _, b := range builtin() {
			if b.ID == p.ID {
				p = b
			}
		}
		for written, c := range own {
			if llm.NormalizeProvider(written) == p.ID {
				p.overlay(c)
			}
		}
		if p.TokenURL != "" {
			out[p.ID] = authstore.TokenEndpoint{URL: p.TokenURL, ClientID: p.ClientID, ClientSecret: p.ClientSecret}
		}
	}
	return out
}
