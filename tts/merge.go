package tts

import (
	"maps"
	"slices"
)

// Merge lays settings over each other, the later over the earlier: tts, agent, channel, account
// (spec/chat.md §4.1). What a layer does not set stays. Call WithDefaults on the result, and
// WithPrefs on that.
func Merge(layers ...Config) Config {
	var out Config
	for _, l := range layers {
		out = out.under(l)
	}
	return out
}

// under returns c with the layer l over it.
func (c Config) under(l Config) Config {
	over(&c.Auto, l.Auto)
	over(&c.Mode, l.Mode)
	over(&c.Provider, l.Provider)
	over(&c.MaxTextLength, l.MaxTextLength)
	over(&c.MaxLength, l.MaxLength)
	over(&c.Summarize, l.Summarize)
	over(&c.SummaryModel, l.SummaryModel)
	over(&c.TimeoutMs, l.TimeoutMs)
	over(&c.ModelOverrides.Enabled, l.ModelOverrides.Enabled)
	over(&c.ModelOverrides.AllowProvider, l.ModelOverrides.AllowProvider)
	if len(l.Providers) == 0 {
		return c
	}
	all := maps.Clone(c.Providers)
	if all == nil {
		all = make(map[string]Provider, len(l.Providers))
	}
	for id, p := range l.Providers {
		all[id] = all[id].under(p)
	}
	c.Providers = all
	return c
}

// under returns p with the layer l over it. Another address does not get the key, another program not
// the environment of the one below; and where one is a program and the other a service, nothing of the
// lower one makes sense.
func (p Provider) under(l Provider) Provider {
	if isService := l.BaseURL != "" || l.Auth != ""; l.Kind() != p.Kind() && (isService || l.Kind() == Command) {
		p = Provider{Enabled: p.Enabled}
	}
	if l.BaseURL != "" && l.BaseURL != p.BaseURL {
		p.APIKey, p.Auth = l.APIKey, ""
	}
	if l.Auth != "" {
		p.BaseURL = ""
		p.APIKey = l.APIKey
	}
	if l.Command != "" && l.Command != p.Command || l.Preset != "" && l.Preset != p.Preset {
		p.Command, p.Preset, p.Args, p.Env, p.OutputFormat = "", "", nil, nil, ""
	}
	over(&p.Enabled, l.Enabled)
	over(&p.BaseURL, l.BaseURL)
	over(&p.APIKey, l.APIKey)
	over(&p.Auth, l.Auth)
	over(&p.Model, l.Model)
	over(&p.Voice, l.Voice)
	over(&p.Speed, l.Speed)
	over(&p.Instructions, l.Instructions)
	over(&p.Preset, l.Preset)
	over(&p.Command, l.Command)
	over(&p.OutputFormat, l.OutputFormat)
	over(&p.Cwd, l.Cwd)
	over(&p.TimeoutMs, l.TimeoutMs)
	if l.Args != nil {
		p.Args = l.Args
	}
	if l.Env != nil {
		p.Env = l.Env
	}
	return p
}

// WithPrefs returns a complete policy with what people chose with /tts over it. A choice is made for all
// conversations: a provider that the policy does not have, or has switched off, is not chosen.
func (c Config) WithPrefs(p Prefs) Config {
	over(&c.Auto, p.Auto)
	over(&c.MaxLength, p.Limit)
	if p.Provider != "" && slices.Contains(c.Order(""), p.Provider) {
		c.Provider = p.Provider
	}
	return c
}

func over[T comparable](p *T, v T) {
	var zero T
	if v != zero {
		*p = v
	}
}
