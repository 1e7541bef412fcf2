package tts

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	providerID = regexp.MustCompile(`^[a-z0-9]([a-z0-9_-]{0,62}[a-z0-9])?$`)
	envName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// voiceName is a voice that a model may name: no path, and nothing that a program takes for an option.
	voiceName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.+()-]{0,63}$`)
)

// Validate reports every wrong value, with its key and, where it is not plain, what to do about it.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	c = c.WithDefaults()
	oneOf := func(key, value string, of ...string) {
		if !slices.Contains(of, value) {
			bad("%s: %q is not one of %s", key, value, strings.Join(of, ", "))
		}
	}
	between := func(key string, n, least, most int) {
		if n < least || n > most {
			bad("%s: %d is not between %d and %d", key, n, least, most)
		}
	}
	oneOf("auto", c.Auto, Off, Always, Inbound, Tagged)
	oneOf("mode", c.Mode, modeFinal, modeAll)
	between("maxTextLength", c.MaxTextLength, leastLength, longestText)
	between("maxLength", c.MaxLength, leastLength, longestText)
	between("timeoutMs", c.TimeoutMs, 1, longestTimeoutMs)
	for _, id := range slices.Sorted(maps.Keys(c.Providers)) {
		at := "providers." + id
		if !providerID.MatchString(id) {
			bad("%s: a provider's name has lower-case letters, digits, - and _, at most 64", at)
		}
		for _, err := range c.Providers[id].problems() {
			bad("%s.%w", at, err)
		}
	}
	switch p, known := c.Providers[c.Provider]; {
	case c.Provider != "" && !known:
		bad("provider: there is no %q: %s", c.Provider, c.remedy("add it to providers"))
	case c.Provider != "" && !*p.Enabled:
		bad("provider: %q is switched off: %s", c.Provider, c.remedy("switch it on"))
	case c.Auto != Off && len(c.Order("")) == 0:
		bad("provider: none is configured, so nobody can speak: write provider: openai, or add one to providers")
	}
	return errors.Join(errs...)
}

// remedy says what to do about a provider that cannot speak: this, or to choose another one. openai needs
// no settings, so it can always be chosen.
func (c Config) remedy(this string) string {
	ids := c.Order("")
	if _, known := c.Providers[string(OpenAI)]; !known {
		ids = append(ids, string(OpenAI))
	}
	if len(ids) == 0 {
		return this
	}
	slices.Sort(ids)
	return this + ", or choose " + strings.Join(ids, " or ")
}

// problems are the mistakes in a complete provider.
func (p Provider) problems() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if p.TimeoutMs < 1 || p.TimeoutMs > longestTimeoutMs {
		bad("timeoutMs: %d is not between 1 and %d", p.TimeoutMs, longestTimeoutMs)
	}
	if p.Speed != 0 && (p.Speed < slowest || p.Speed > fastest) {
		bad("speed: %v is not between %v and %v", p.Speed, slowest, fastest)
	}
	if p.Kind() == Command {
		return append(errs, p.programProblems()...)
	}
	u, err := url.Parse(p.BaseURL)
	switch {
	case p.BaseURL == "":
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		bad("baseUrl: an http or https URL is needed")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		bad("baseUrl: it is an address only, without a key in it")
	}
	if p.BaseURL != "" && p.Auth != "" {
		bad("auth: the key of a model provider goes to that provider only; write apiKey beside baseUrl")
	}
	if len(p.Args) > 0 || len(p.Env) > 0 || p.OutputFormat != "" || p.Cwd != "" {
		bad("command: a program is needed for args, env, outputFormat and cwd")
	}
	return errs
}

func (p Provider) programProblems() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if p.BaseURL != "" || p.Auth != "" || !p.APIKey.IsZero() {
		bad("baseUrl: a provider is a program or a service, not both")
	}
	switch p.Preset {
	case "", presetEspeak:
	case presetPiper:
		if len(p.Args) == 0 {
			bad("model: piper needs the path of a voice, such as /usr/share/piper/en_US-amy-medium.onnx")
		}
	default:
		bad("preset: %q is not one of %s, %s", p.Preset, presetEspeak, presetPiper)
	}
	if !slices.Contains(Formats(), Format(p.OutputFormat)) {
		bad("outputFormat: %q is not one of wav, mp3, opus, aac, m4a, flac", p.OutputFormat)
	}
	if strings.ContainsAny(p.Command, " \t\n") && !filepath.IsAbs(p.Command) {
		bad("command: this is one program, not a shell line; arguments belong in args")
	}
	if strings.Contains(p.Command, "{{") {
		bad("command: the program itself cannot be replaced")
	}
	for name := range p.Env {
		if !envName.MatchString(name) {
			bad("env: %q cannot be the name of a variable", name)
		}
	}
	return errs
}

// Order is in which order providers are asked: first, where that is one of them, then the configured
// one, then the rest by name.
func (c Config) Order(first string) []string {
	var ids []string
	for id, p := range c.Providers {
		if p.Enabled == nil || *p.Enabled {
			ids = append(ids, id)
		}
	}
	rank := func(id string) int {
		switch id {
		case first:
			return 0
		case c.Provider:
			return 1
		}
		return 2
	}
	slices.SortFunc(ids, func(a, b string) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return ids
}
