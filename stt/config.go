package stt

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"

	"understudy/internal/secret"
)

// Ways to write down speech (Config.Provider).
const (
	OpenAI  = "openai"
	Command = "command"
)

// Bounds of the settings.
const (
	defaultMaxMB     = 20
	largestMaxMB     = 25 // of OpenAI's API
	defaultTimeoutMs = 60_000
	longestTimeoutMs = 600_000
)

// Config is the `stt` section. Without a provider nothing is written down.
type Config struct {
	Provider string `yaml:"provider,omitempty" enum:"openai|command"`
	Language string `yaml:"language,omitempty"` // ISO 639-1, such as en; "" = the provider finds out
	MaxMB    int    `yaml:"maxMb,omitempty"`    // of a voice note
	// TimeoutMs is how long a voice note may take.
	TimeoutMs int `yaml:"timeoutMs,omitempty"`

	Model string `yaml:"model,omitempty"`
	// BaseURL is a service's address up to /v1. One that is given gets APIKey or no key at all; without
	// it the service and its key are those of the model provider Auth ("" = openai).
	BaseURL string        `yaml:"baseUrl,omitempty"`
	APIKey  secret.String `yaml:"apiKey,omitempty"`
	Auth    string        `yaml:"auth,omitempty"`

	// Command is a program, never a shell line. In Args, {{InputPath}}, {{OutputPath}}, {{OutputDir}} and
	// {{Language}} are replaced. It writes the text to {{OutputPath}} or to its standard output.
	Command string                   `yaml:"command,omitempty"`
	Args    []string                 `yaml:"args,omitempty"`
	Cwd     string                   `yaml:"cwd,omitempty"` // "" = a private folder
	Env     map[string]secret.String `yaml:"env,omitempty"` // beside PATH, HOME, LANG and TZ
}

// WithDefaults returns the config with every absent key at its default.
func (c Config) WithDefaults() Config {
	if c.MaxMB == 0 {
		c.MaxMB = defaultMaxMB
	}
	if c.TimeoutMs == 0 {
		c.TimeoutMs = defaultTimeoutMs
	}
	if c.Provider == OpenAI {
		if c.Model == "" {
			c.Model = "gpt-4o-mini-transcribe"
		}
		if c.Auth == "" && c.BaseURL == "" {
			c.Auth = OpenAI
		}
		c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	}
	return c
}

var (
	languageCode = regexp.MustCompile(`^[a-z]{2,3}(-[A-Za-z0-9]{2,8})?$`)
	envName      = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Validate reports every wrong value, with its key.
func (c Config) Validate() error {
	c = c.WithDefaults()
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.MaxMB < 1 || c.MaxMB > largestMaxMB {
		bad("maxMb: %d is not between 1 and %d", c.MaxMB, largestMaxMB)
	}
	if c.TimeoutMs < 1 || c.TimeoutMs > longestTimeoutMs {
		bad("timeoutMs: %d is not between 1 and %d", c.TimeoutMs, longestTimeoutMs)
	}
	if c.Language != "" && !languageCode.MatchString(c.Language) {
		bad("language: %q is not a code such as en or de", c.Language)
	}
	switch c.Provider {
	case "":
	case OpenAI:
		errs = append(errs, c.serviceProblems()...)
	case Command:
		errs = append(errs, c.programProblems()...)
	default:
		bad("provider: %q is not one of %s, %s", c.Provider, OpenAI, Command)
	}
	return errors.Join(errs...)
}

func (c Config) serviceProblems() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	u, err := url.Parse(c.BaseURL)
	switch {
	case c.BaseURL == "":
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		bad("baseUrl: an http or https URL is needed")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		bad("baseUrl: it is an address only, without a key in it")
	}
	if c.BaseURL != "" && c.Auth != "" {
		bad("auth: the key of a model provider goes to that provider only; write apiKey beside baseUrl")
	}
	if c.Command != "" || len(c.Args) > 0 || len(c.Env) > 0 || c.Cwd != "" {
		bad("command: a program is asked with provider: command only")
	}
	return errs
}

func (c Config) programProblems() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch {
	case c.Command == "":
		bad("command: a program is needed")
	case strings.Contains(c.Command, "{{"):
		bad("command: the program itself cannot be replaced")
	case strings.ContainsAny(c.Command, " \t\n") && !filepath.IsAbs(c.Command):
		bad("command: this is one program, not a shell line; arguments belong in args")
	}
	if !strings.Contains(strings.Join(c.Args, "\n"), "{{InputPath}}") {
		bad("args: {{InputPath}} is needed, or the program hears nothing")
	}
	if c.BaseURL != "" || c.Auth != "" || !c.APIKey.IsZero() || c.Model != "" {
		bad("provider: baseUrl, auth, apiKey and model belong to a service")
	}
	for name := range c.Env {
		if !envName.MatchString(name) {
			bad("env: %q cannot be the name of a variable", name)
		}
	}
	return errs
}
