package provider

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"understudy/internal/secret"
)

// Config is one entry of `models.providers.<id>`. Every field is optional for a provider with a
// built-in definition; any other needs baseUrl, unless its api is bedrock.
type Config struct {
	BaseURL string        `yaml:"baseUrl,omitempty"`
	API     API           `yaml:"api,omitempty"`
	APIKey  secret.String `yaml:"apiKey,omitempty"`
	// Headers are sent with every request to this provider and to no other.
	Headers map[string]secret.String `yaml:"headers,omitempty"`
	// TimeoutSeconds is how long the model may stay silent; nil = 120, 300 for a local provider,
	// 0 = for ever (spec/failover.md §8.4).
	TimeoutSeconds *int `yaml:"timeoutSeconds,omitempty"`
	// RefusalFallback is "" or "auto" (where the model offers it) or "off" (spec/failover.md §6.1).
	RefusalFallback string `yaml:"refusalFallback,omitempty"`
	// Region, Profile and IMDS belong to the api bedrock; see AWS.
	Region  string        `yaml:"region,omitempty"`
	Profile string        `yaml:"profile,omitempty"`
	IMDS    bool          `yaml:"imds,omitempty"`
	Models  []ModelConfig `yaml:"models,omitempty"`
}

// ModelConfig says what a model of the provider takes; it overrides the catalogue field by field.
type ModelConfig struct {
	ID            string   `yaml:"id"`
	Name          string   `yaml:"name,omitempty"`
	Input         []string `yaml:"input,omitempty"` // "text", "image"; empty = as the catalogue says
	ContextWindow int      `yaml:"contextWindow,omitempty"`
	MaxTokens     int      `yaml:"maxTokens,omitempty"`
	Reasoning     *bool    `yaml:"reasoning,omitempty"`
	Tools         *bool    `yaml:"tools,omitempty"`
	Cost          *Price   `yaml:"cost,omitempty"`
}

// Price is US dollars per million tokens.
type Price struct {
	Input      float64 `yaml:"input"`
	Output     float64 `yaml:"output"`
	CacheRead  float64 `yaml:"cacheRead,omitempty"`
	CacheWrite float64 `yaml:"cacheWrite,omitempty"`
}

// The values of RefusalFallback.
const (
	refusalAuto = "auto"
	refusalOff  = "off"
)

// WithDefaults completes c with the built-in definition of provider id, if there is one.
func (c Config) WithDefaults(id string) Config {
	def, _ := Builtin(id)
	if c.BaseURL == "" {
		c.BaseURL = def.BaseURL
	}
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	if c.API == "" {
		c.API = def.API
	}
	if c.API == "" {
		c.API = OpenAIChat
	}
	if c.RefusalFallback == "" {
		c.RefusalFallback = refusalAuto
	}
	return c
}

// Validate reports every fault of c, completed with WithDefaults; the texts name the key.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.API != Simulated && (c.API != Bedrock || c.BaseURL != "") {
		if err := checkBaseURL(c.BaseURL); err != nil {
			bad("baseUrl: %w", err)
		}
	}
	if c.API != "" && !slices.Contains(apis(), c.API) {
		bad("api: unknown api %q", c.API)
	}
	for name, value := range c.Headers {
		switch {
		case !isToken(name):
			bad("headers: %q is not a header name", name)
		case strings.ContainsFunc(value.Reveal(), unicode.IsControl):
			bad("headers.%s: the value holds characters that no header may", name)
		case slices.Contains(ownHeaders(), http.CanonicalHeaderKey(name)):
			bad("headers.%s: this header is set by the bot itself", name)
		}
	}
	if c.TimeoutSeconds != nil && *c.TimeoutSeconds < 0 {
		bad("timeoutSeconds: %d is negative", *c.TimeoutSeconds)
	}
	if c.RefusalFallback != "" && c.RefusalFallback != refusalAuto && c.RefusalFallback != refusalOff {
		bad("refusalFallback: %q is neither %q nor %q", c.RefusalFallback, refusalAuto, refusalOff)
	}
	errs = append(errs, c.checkAWS(), c.checkModels())
	return errors.Join(errs...)
}

func (c Config) checkModels() error {
	var errs []error
	seen := map[string]bool{}
	for i, m := range c.Models {
		at := fmt.Sprintf("models[%d]", i)
		if m.ID == "" {
			errs = append(errs, fmt.Errorf("%s.id: is missing", at))
		} else if seen[m.ID] {
			errs = append(errs, fmt.Errorf("%s.id: %q is there twice", at, m.ID))
		}
		seen[m.ID] = true
		for _, kind := range m.Input {
			if kind != "text" && kind != "image" {
				errs = append(errs, fmt.Errorf("%s.input: %q is neither \"text\" nor \"image\"", at, kind))
			}
		}
		if m.ContextWindow < 0 || m.MaxTokens < 0 {
			errs = append(errs, fmt.Errorf("%s: contextWindow and maxTokens cannot be negative", at))
		}
		if p := m.Cost; p != nil && min(p.Input, p.Output, p.CacheRead, p.CacheWrite) < 0 {
			errs = append(errs, fmt.Errorf("%s.cost: a price cannot be negative", at))
		}
	}
	return errors.Join(errs...)
}

// ownHeaders are decided per attempt; a configured value would fight with them.
func ownHeaders() []string {
	return []string{"Content-Length", "Content-Type", "Host", "Connection", "Transfer-Encoding"}
}

// checkBaseURL keeps credentials out of URLs: those would end in errors and logs.
func checkBaseURL(s string) error {
	if s == "" {
		return errors.New("is missing (this provider has no built-in one)")
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return errors.New("is not a URL")
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return errors.New("must begin with http:// or https:// and name a host")
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return errors.New("must hold no user, query or fragment; put keys into apiKey or headers")
	}
	return nil
}

// isToken reports whether s can be the name of a header (RFC 9110 §5.6.2).
func isToken(s string) bool {
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}
