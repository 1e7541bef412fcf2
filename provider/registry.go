package provider

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"understudy/internal/secret"
	"understudy/llm"
)

// ErrUnknownProvider says that a reference names a provider that is neither built in nor
// configured.
var ErrUnknownProvider = errors.New("unknown provider")

// The idle time-outs of spec/failover.md §8.4.
const (
	idleTimeout      = 120 * time.Second
	idleTimeoutLocal = 300 * time.Second
)

// Deps is what a Registry needs beside its configuration.
type Deps struct {
	// Factories builds clients, by API family. Every family that a configured provider uses must
	// be there.
	Factories map[API]Factory
	// Transport makes the transport of one provider; nil = NewTransport.
	Transport func(id string) http.RoundTripper
	// Catalogue is the list of models; nil = the embedded one.
	Catalogue *Catalogue
	// Now is the time; nil = time.Now.
	Now func() time.Time
}

// Registry answers what providers and models there are. It never changes: a new configuration
// makes a new Registry. It is safe for concurrent use.
type Registry struct {
	entries   map[string]*entry
	catalogue *Catalogue
}

type entry struct {
	cfg    Config
	def    Definition
	local  bool
	models map[string]ModelConfig
	client func() (llm.Client, error)
	// transport is made on first use and freed by Close.
	transport func() http.RoundTripper
	used      atomic.Bool
}

// New builds a Registry of all built-in providers and those of cfg, keyed by provider id. Clients
// are made on first use. The error names every fault of cfg by its key.
func New(cfg map[string]Config, deps Deps) (*Registry, error) {
	if deps.Catalogue == nil {
		deps.Catalogue = NewCatalogue()
	}
	if deps.Transport == nil {
		deps.Transport = func(string) http.RoundTripper { return NewTransport() }
	}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	r := &Registry{entries: map[string]*entry{}, catalogue: deps.Catalogue}
	for _, def := range definitions() {
		r.add(def.ID, Config{}.WithDefaults(def.ID), deps)
	}
	var errs []error
	named := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(cfg)) {
		id := llm.NormalizeProvider(key)
		if other, twice := named[id]; twice {
			errs = append(errs, fmt.Errorf("models.providers.%s: the same provider as %s", key, other))
			continue
		}
		named[id] = key
		c := cfg[key].WithDefaults(id)
		if err := checkID(id); err != nil {
			errs = append(errs, fmt.Errorf("models.providers.%s: %w", key, err))
		}
		if err := c.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("models.providers.%s: %w", key, err))
			continue
		}
		if deps.Factories[c.API] == nil {
			errs = append(errs, fmt.Errorf("models.providers.%s.api: no client for %q", key, c.API))
			continue
		}
		r.add(id, c, deps)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return r, nil
}

// checkID keeps ids usable in model references and profile ids.
func checkID(id string) error {
	if id == "" || strings.ContainsAny(id, "/:@ \t") {
		return fmt.Errorf("a provider id must not be empty or hold '/', ':', '@' or white space")
	}
	return nil
}

func (r *Registry) add(id string, c Config, deps Deps) {
	def, ok := Builtin(id)
	switch {
	case ok:
	case c.API == Bedrock:
		def = Definition{catalogue: bedrockCatalogue}
	default:
		def = sameHost(c.BaseURL)
	}
	e := &entry{cfg: c, def: def, local: isLocal(c), models: map[string]ModelConfig{}}
	for _, m := range c.Models {
		e.models[m.ID] = m
	}
	e.transport = sync.OnceValue(func() http.RoundTripper {
		e.used.Store(true)
		return deps.Transport(id)
	})
	e.client = sync.OnceValues(func() (llm.Client, error) {
		factory := deps.Factories[c.API]
		if factory == nil {
			return nil, fmt.Errorf("provider %s: no client for api %q", id, c.API)
		}
		client, err := factory(Spec{
			ID: id, API: c.API, BaseURL: c.BaseURL, Headers: maps.Clone(c.Headers), Quirks: e.quirks(),
			RefusalFallback: c.RefusalFallback != refusalOff, AWS: c.aws(), Transport: e.transport(), Now: deps.Now,
			Model: func(model string) ModelInfo { return r.Model(llm.ModelRef{Provider: id, Model: model}) },
		})
		if err != nil {
			return nil, fmt.Errorf("provider %s: %w", id, err)
		}
		return client, nil
	})
	r.entries[id] = e
}

// quirks returns the quirks of the host; one on the own network needs no key unless it was given
// one.
func (e *entry) quirks() Quirks {
	q := e.def.Quirks
	if e.local && e.cfg.APIKey.IsZero() {
		q.NoKey = true
	}
	return q
}

// Known reports whether id names a provider that can be asked.
func (r *Registry) Known(id string) bool {
	_, ok := r.entries[llm.NormalizeProvider(id)]
	return ok
}

// IDs returns the ids of all providers, sorted.
func (r *Registry) IDs() []string { return slices.Sorted(maps.Keys(r.entries)) }

// API returns the wire protocol of provider id, or "".
func (r *Registry) API(id string) API {
	if e, ok := r.entries[llm.NormalizeProvider(id)]; ok {
		return e.cfg.API
	}
	return ""
}

// Host returns the host, with a port if there is one, at which provider id is reached, or "".
func (r *Registry) Host(id string) string {
	if e, ok := r.entries[llm.NormalizeProvider(id)]; ok {
		if u, err := url.Parse(e.cfg.BaseURL); err == nil {
			return u.Host
		}
	}
	return ""
}

// Client returns the client of provider id. The error is ErrUnknownProvider or the factory's.
func (r *Registry) Client(id string) (llm.Client, error) {
	e, ok := r.entries[llm.NormalizeProvider(id)]
	if !ok {
		return nil, fmt.Errorf("%w %q", ErrUnknownProvider, id)
	}
	return e.client()
}

// Model tells what is known about ref: the catalogue, overridden by the configuration.
func (r *Registry) Model(ref llm.ModelRef) ModelInfo {
	e, ok := r.entries[llm.NormalizeProvider(ref.Provider)]
	if !ok {
		return unknownModel(false)
	}
	info, known := r.catalogue.lookup(e.def.catalogue, ref.Model)
	if !known {
		info = unknownModel(false)
	}
	info.Local = e.local
	if m, ok := e.models[ref.Model]; ok {
		info = m.apply(info)
	}
	info.Tools = info.Tools && !e.def.Quirks.NoTools
	return info
}

func (m ModelConfig) apply(info ModelInfo) ModelInfo {
	info.Known = true
	if m.Name != "" {
		info.Name = m.Name
	}
	if len(m.Input) > 0 {
		info.Images = slices.Contains(m.Input, "image")
	}
	if m.ContextWindow > 0 {
		info.ContextWindow = m.ContextWindow
	}
	if m.MaxTokens > 0 {
		info.MaxOutput = m.MaxTokens
	}
	if m.Reasoning != nil {
		info.Reasoning = *m.Reasoning
	}
	if m.Tools != nil {
		info.Tools = *m.Tools
	}
	if m.Cost != nil {
		price := *m.Cost
		info.Price = &price
	}
	return info
}

// Models returns the ids of the models that the configuration lists for provider id, in order.
func (r *Registry) Models(id string) []string {
	e, ok := r.entries[llm.NormalizeProvider(id)]
	if !ok {
		return nil
	}
	var ids []string
	for _, m := range e.cfg.Models {
		ids = append(ids, m.ID)
	}
	return ids
}

// Catalogued returns the ids of the models that the catalogue has of provider id, those that it
// recommends first. At Bedrock they depend on the configured region. The result must not be changed.
func (r *Registry) Catalogued(id string) []string {
	e, ok := r.entries[llm.NormalizeProvider(id)]
	if !ok {
		return nil
	}
	if e.def.catalogue == bedrockCatalogue {
		return r.catalogue.load()[bedrockShelf(e.cfg.Region)].ids
	}
	return r.catalogue.load()[e.def.catalogue].ids
}

// IdleTimeout returns how long a model of provider id may stay silent (spec/failover.md §8.4);
// 0 = for ever.
func (r *Registry) IdleTimeout(id string) time.Duration {
	e, ok := r.entries[llm.NormalizeProvider(id)]
	switch {
	case ok && e.cfg.TimeoutSeconds != nil:
		return time.Duration(*e.cfg.TimeoutSeconds) * time.Second
	case ok && e.local:
		return idleTimeoutLocal
	}
	return idleTimeout
}

// EnvKeys returns the names of the environment variables that may hold the key of provider id, in
// order of precedence.
func (r *Registry) EnvKeys(id string) []string {
	if e, ok := r.entries[llm.NormalizeProvider(id)]; ok {
		return slices.Clone(e.def.EnvKeys)
	}
	return nil
}

// Credential returns the credential that provider id has without a stored profile, named
// "<provider>:env" (spec/failover.md §5.1): the configured key, else one from the environment, else
// at Bedrock a token without a text, which stands for the credential chain of AWS, else none for a
// host that asks for none. ok is false when there is nothing to authenticate with.
func (r *Registry) Credential(id string, getenv func(string) string) (cred llm.Credential, ok bool) {
	id = llm.NormalizeProvider(id)
	e, ok := r.entries[id]
	if !ok {
		return llm.Credential{}, false
	}
	cred = llm.Credential{Profile: llm.ProfileID(id + ":env"), Kind: llm.KindAPIKey}
	if keys := e.keys(getenv); len(keys) > 0 {
		cred.Secret = keys[0]
		return cred, true
	}
	if e.cfg.usesChain(getenv) {
		cred.Kind = llm.KindToken
		return cred, true
	}
	cred.Kind = llm.KindNone
	return cred, e.quirks().NoKey || len(e.cfg.Headers) > 0
}

// Keys returns the further keys that the environment holds for provider id, in a list such as
// OPENAI_API_KEYS, named "<provider>:env-2" and so on.
func (r *Registry) Keys(id string, getenv func(string) string) []llm.Credential {
	id = llm.NormalizeProvider(id)
	e, ok := r.entries[id]
	if !ok {
		return nil
	}
	var list []llm.Credential
	for i, key := range e.keys(getenv) {
		if i > 0 {
			list = append(list, llm.Credential{Profile: llm.ProfileID(fmt.Sprintf("%s:env-%d", id, i+1)), Kind: llm.KindAPIKey, Secret: key})
		}
	}
	return list
}

// Providers returns the ids of all providers that can be called.
func (r *Registry) Providers() []string { return slices.Sorted(maps.Keys(r.entries)) }

// keys returns the configured key alone, or else those of the environment, each once: of the first
// variable that is set, and of the list that goes with it.
func (e *entry) keys(getenv func(string) string) []secret.String {
	if !e.cfg.APIKey.IsZero() {
		return []secret.String{e.cfg.APIKey}
	}
	var keys []secret.String
	for _, name := range e.def.EnvKeys {
		for _, text := range append([]string{getenv(name)}, SplitKeys(getenv(ListVar(name)))...) {
			if key := secret.New(text); !key.IsZero() && !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
		if len(keys) > 0 {
			break
		}
	}
	return keys
}

// ListVar names the environment variable that holds a list of keys beside the one for a single key.
func ListVar(name string) string { return name + "S" }

// SplitKeys takes a list of keys apart: commas, semicolons and white space separate.
func SplitKeys(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ';' || unicode.IsSpace(r) })
}

// Close frees idle connections. Attempts that run are not disturbed; a client may be used after it.
func (r *Registry) Close() {
	for _, e := range r.entries {
		if !e.used.Load() {
			continue
		}
		if t, ok := e.transport().(interface{ CloseIdleConnections() }); ok {
			t.CloseIdleConnections()
		}
	}
}

// sameHost returns what is known about the host of a provider with an id of the user's own: its
// quirks and models, not its environment variables.
func sameHost(baseURL string) Definition {
	u, err := url.Parse(baseURL)
	if err != nil || u.Host == "" {
		return Definition{}
	}
	for _, d := range slices.Concat(labs(), chineseLabs(), hosts()) {
		if known, err := url.Parse(d.BaseURL); err == nil && strings.EqualFold(known.Host, u.Host) {
			return Definition{Quirks: d.Quirks, catalogue: d.catalogue}
		}
	}
	return Definition{}
}

// isLocal reports whether the provider runs on this machine or in a private network.
func isLocal(c Config) bool {
	if c.API == Simulated {
		return true
	}
	u, err := url.Parse(c.BaseURL)
	if err != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || strings.HasSuffix(host, ".local") || host == "host.docker.internal" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && (ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast())
}
