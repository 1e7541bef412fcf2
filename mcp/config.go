package mcp

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"understudy/internal/secret"
	"understudy/internal/wildcard"
)

// Defaults and bounds of a server's settings.
const (
	defaultTimeout   = 60 * time.Second
	longestTimeout   = time.Hour
	defaultMaxOutput = 64 << 10
	largestMaxOutput = 1 << 20
)

// Config is the `mcp` section of the configuration.
type Config struct {
	// Servers are the tool servers, by name: lower-case letters, digits and hyphens.
	Servers map[string]Server `yaml:"servers,omitempty"`
}

// Server is one tool server: either a command that is started, or a URL.
type Server struct {
	Enabled *bool `yaml:"enabled,omitempty"` // nil = true

	Command string                   `yaml:"command,omitempty"` // a program, never a shell line
	Args    []string                 `yaml:"args,omitempty"`
	Env     map[string]secret.String `yaml:"env,omitempty"` // beside PATH, HOME, LANG and TMPDIR
	Cwd     string                   `yaml:"cwd,omitempty"`

	URL     string                   `yaml:"url,omitempty"` // streamable HTTP
	Headers map[string]secret.String `yaml:"headers,omitempty"`

	TimeoutSeconds int `yaml:"timeoutSeconds,omitempty"` // of one call; default 60
	MaxOutputBytes int `yaml:"maxOutputBytes,omitempty"` // of one result; default 65536

	Tools Filter `yaml:"tools,omitempty"`
	// Agents and Channels limit who gets the tools; empty = all. Groups allows them in conversations
	// of several people, which is off by default: everybody there could make the bot use them.
	Agents   []string `yaml:"agents,omitempty"`
	Channels []string `yaml:"channels,omitempty"`
	Groups   bool     `yaml:"groups,omitempty"`
}

// Filter chooses among a server's tools by name; * stands for anything, slashes included, and every other
// character for itself. A tool is offered if Allow is empty or matches, and Deny does not. One that Approve
// matches runs only after a person said yes. The server chooses the names.
type Filter struct {
	Allow   []string `yaml:"allow,omitempty"`
	Deny    []string `yaml:"deny,omitempty"`
	Approve []string `yaml:"approve,omitempty"`
}

// offers reports whether a tool may be used at all.
func (f Filter) offers(tool string) bool {
	return (len(f.Allow) == 0 || matches(f.Allow, tool)) && !matches(f.Deny, tool)
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return wildcard.Match(p, name) })
}

// WithDefaults fills what is not set.
func (c Config) WithDefaults() Config {
	out := Config{Servers: make(map[string]Server, len(c.Servers))}
	for name, s := range c.Servers {
		if s.TimeoutSeconds == 0 {
			s.TimeoutSeconds = int(defaultTimeout / time.Second)
		}
		if s.MaxOutputBytes == 0 {
			s.MaxOutputBytes = defaultMaxOutput
		}
		out.Servers[name] = s
	}
	return out
}

var (
	serverName = regexp.MustCompile(`^[a-z0-9](-?[a-z0-9]){0,31}$`)
	envName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
)

// Validate reports every wrong value, with its key.
func (c Config) Validate() error {
	var errs []error
	c = c.WithDefaults()
	for _, name := range slices.Sorted(maps.Keys(c.Servers)) {
		at := "servers." + name
		if !serverName.MatchString(name) {
			errs = append(errs, fmt.Errorf("%s: a server's name has lower-case letters, digits and single hyphens, at most 32", at))
		}
		for _, err := range c.Servers[name].problems() {
			errs = append(errs, fmt.Errorf("%s.%w", at, err))
		}
	}
	return errors.Join(errs...)
}

func (s Server) problems() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch u, err := url.Parse(s.URL); {
	case s.Command == "" && s.URL == "":
		bad("command: either a command or a url is needed")
	case s.Command != "" && s.URL != "":
		bad("url: a server has a command or a url, not both")
	case s.URL != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https"):
		bad("url: an http or https URL is needed")
	case s.URL != "" && u.User != nil:
		bad("url: put credentials into headers, where they stay secret")
	}
	if s.URL != "" && (len(s.Args) > 0 || len(s.Env) > 0 || s.Cwd != "") {
		bad("args: args, env and cwd belong to a command")
	}
	if s.Command != "" && len(s.Headers) > 0 {
		bad("headers: headers belong to a url")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if !envName.MatchString(name) {
			bad("env.%s: is not the name of an environment variable", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		if !headerName.MatchString(name) || strings.ContainsAny(s.Headers[name].Reveal(), "\r\n\x00") {
			bad("headers.%s: is not a header", name)
		}
	}
	if d := time.Duration(s.TimeoutSeconds) * time.Second; d <= 0 || d > longestTimeout {
		bad("timeoutSeconds: must be between 1 and %d", int(longestTimeout/time.Second))
	}
	if s.MaxOutputBytes < 1024 || s.MaxOutputBytes > largestMaxOutput {
		bad("maxOutputBytes: must be between 1024 and %d", largestMaxOutput)
	}
	for list, patterns := range map[string][]string{"allow": s.Tools.Allow, "deny": s.Tools.Deny, "approve": s.Tools.Approve} {
		for _, p := range patterns {
			if p == "" || strings.ContainsAny(p, notInPatterns) {
				bad("tools.%s: %q is not a pattern; use names and *", list, p)
			}
		}
	}
	return errs
}

// notInPatterns are signs that mean something in other kinds of patterns. Read as themselves they would
// match nothing, so that what was meant to be denied would be allowed.
const notInPatterns = `?[]{}\`

// enabled reports whether the server is to run.
func (s Server) enabled() bool { return s.Enabled == nil || *s.Enabled }

// serves reports whether an agent may use the server in a place.
func (s Server) serves(agent, channel string, group bool) bool {
	return (len(s.Agents) == 0 || slices.Contains(s.Agents, agent)) &&
		(len(s.Channels) == 0 || slices.Contains(s.Channels, channel)) &&
		(s.Groups || !group)
}
