package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"understudy/failover/policy"
	"understudy/internal/wildcard"
	"understudy/llm"
)

// Errors of Resolve. Their texts are fit for chat once wrapped with what was typed.
var (
	ErrUnknownModel  = errors.New("there is no such model")
	ErrWrongProvider = errors.New("the profile belongs to another provider")
)

// AgentIDs returns the ids of all agents, in the order of the file.
func (c *Config) AgentIDs() []string { return slices.Clone(c.agentIDs) }

// DefaultAgent returns the id of the agent that answers when nothing else is said.
func (c *Config) DefaultAgent() string { return c.defaultAgent }

// Agent returns the settings of an agent; an unknown or empty id is the default agent.
func (c *Config) Agent(id string) Agent {
	if a, ok := c.agents[id]; ok {
		return a
	}
	return c.agents[c.defaultAgent]
}

// Selection returns what a session of the agent asks for when nobody chose a model
// (spec/failover.md §3).
func (a Agent) Selection() policy.Selection {
	sel := policy.Selection{Ref: a.Models.Primary, Source: policy.SourceDefault}
	if a.Models.Own {
		sel.Source = policy.SourceAgent
	}
	return sel
}

// Known is what Resolve has to be told, because it is not in the configuration. Nil functions
// know nothing.
type Known struct {
	// Profile reports whether a profile is stored.
	Profile func(llm.ProfileID) bool
	// Bare returns the models of callable providers that have this id without a provider.
	Bare func(id string) []llm.ModelRef
	// Agent is whose default provider an id without one belongs to; "" = the default agent's.
	Agent string
}

// Choice is what a person named.
type Choice struct {
	Ref     llm.ModelRef
	Profile llm.ProfileID // "" = none given
	// Guessed tells that only a bare model id was given and the default provider was assumed.
	Guessed bool
}

// Resolve reads a model as a person types it behind /model: an alias, a reference, a model id that
// only one provider has, or any other id of the agent's default provider; each perhaps followed by
// @profile (spec/failover.md §3, spec/chat.md §3.4). Several words are no model, unless the
// configuration lists one of that name. It checks neither Allowed nor whether the profile exists. The
// error wraps ErrUnknownModel or ErrWrongProvider.
func (c *Config) Resolve(text string, known Known) (Choice, error) {
	text = strings.TrimSpace(text)
	if ref, ok := c.aliases[strings.ToLower(text)]; ok {
		return Choice{Ref: ref}, nil
	}
	model, tail := c.splitProfile(text, known)
	choice, err := c.resolveModel(model, known)
	if err != nil || tail == "" {
		return choice, err
	}
	choice.Profile = c.profileID(tail, choice.Ref.Provider, known)
	if choice.Profile.Provider() != choice.Ref.Provider {
		return Choice{}, fmt.Errorf("%s cannot use profile %s: %w", choice.Ref, choice.Profile, ErrWrongProvider)
	}
	return choice, nil
}

func (c *Config) resolveModel(text string, known Known) (Choice, error) {
	if ref, ok := c.aliases[strings.ToLower(text)]; ok {
		return Choice{Ref: ref}, nil
	}
	unknown := fmt.Errorf("%s: %w", quote(text), ErrUnknownModel)
	words := strings.ContainsFunc(text, unicode.IsSpace)
	if strings.Contains(text, "/") {
		ref, err := llm.ParseRef(text)
		switch {
		case err != nil, words && !slices.Contains(c.Configured(), ref):
			return Choice{}, unknown
		case c.known(ref.Provider):
			return Choice{Ref: ref}, nil
		}
	}
	if text == "" || words {
		return Choice{}, unknown
	}
	found := c.bare(text, known)
	switch def := c.Agent(known.Agent).Models.Primary; {
	case len(found) == 1:
		return Choice{Ref: found[0]}, nil
	case strings.Contains(text, "/") || def.IsZero():
		return Choice{}, unknown
	default:
		return Choice{Ref: llm.ModelRef{Provider: def.Provider, Model: text}, Guessed: true}, nil
	}
}

// bare returns the models that have this id, whatever their provider: configured ones first, and
// only if there are none, what the catalogue knows.
func (c *Config) bare(id string, known Known) []llm.ModelRef {
	var found []llm.ModelRef
	for _, ref := range c.Configured() {
		if strings.EqualFold(ref.Model, id) {
			found = append(found, ref)
		}
	}
	if len(found) == 0 && known.Bare != nil {
		found = known.Bare(id)
	}
	return found
}

// Configured returns every model the configuration names, each once: chains first, then aliases
// and provider lists.
func (c *Config) Configured() []llm.ModelRef {
	var out []llm.ModelRef
	add := func(refs ...llm.ModelRef) {
		for _, r := range refs {
			if !r.IsZero() && !slices.Contains(out, r) {
				out = append(out, r)
			}
		}
	}
	for _, id := range c.agentIDs {
		a := c.agents[id]
		add(a.Models.Primary)
		add(a.Models.Fallbacks...)
		add(a.ImageModels.Primary)
		add(a.ImageModels.Fallbacks...)
		add(a.Heartbeat.Model)
	}
	add(c.listed...)
	for _, id := range slices.Sorted(maps.Keys(c.Models.Providers)) {
		for _, m := range c.Models.Providers[id].Models {
			add(llm.ModelRef{Provider: id, Model: m.ID})
		}
	}
	return out
}

// Alias returns the short name of a model, or "".
func (c *Config) Alias(ref llm.ModelRef) string {
	for key, e := range c.Agents.Defaults.Models {
		if r, err := llm.ParseRef(key); err == nil && r == ref {
			return strings.TrimSpace(e.Alias)
		}
	}
	return ""
}

// splitProfile cuts "@profile" off: behind the last slash it begins at the first @ whose tail is a
// stored profile id or begins with a known provider; else at the first @ that does not belong to
// the model id, as a date or number does.
func (c *Config) splitProfile(text string, known Known) (model, tail string) {
	from := strings.LastIndex(text, "/") + 1
	for i := from; i < len(text); i++ {
		if text[i] != '@' {
			continue
		}
		tail := text[i+1:]
		owner, _, qualified := strings.Cut(tail, ":")
		stored := known.Profile != nil && known.Profile(llm.ProfileID(tail))
		if stored || (qualified && c.known(llm.NormalizeProvider(owner)) && isProviderWord(owner)) {
			return text[:i], tail
		}
	}
	for i := from; i < len(text); i++ {
		if text[i] != '@' {
			continue
		}
		first, _, _ := strings.Cut(text[i+1:], "@")
		if first != "" && !numberOrDate(first) {
			return text[:i], text[i+1:]
		}
	}
	return text, ""
}

func isProviderWord(s string) bool { return s != "" && !strings.ContainsAny(s, "@/ ") }

func (c *Config) profileID(tail, provider string, known Known) llm.ProfileID {
	id := llm.ProfileID(tail)
	if known.Profile != nil && known.Profile(id) {
		return id
	}
	if owner, name, ok := strings.Cut(tail, ":"); ok && isProviderWord(owner) && c.known(llm.NormalizeProvider(owner)) {
		return llm.ProfileID(llm.NormalizeProvider(owner) + ":" + name)
	}
	return llm.ProfileID(provider + ":" + tail)
}

// numberOrDate reports whether s is all digits or a date such as 2026-01-31.
func numberOrDate(s string) bool {
	if strings.Trim(s, "0123456789") == "" {
		return true
	}
	for _, layout := range [...]string{time.DateOnly, "2006-01", "2006.01.02", "2006_01_02"} {
		if _, err := time.Parse(layout, s); err == nil {
			return true
		}
	}
	return false
}

// resolvePolicy reads `agents.defaults.modelPolicy.allow`.
func (c *Config) resolvePolicy(d *decoder) {
	allow := c.Agents.Defaults.ModelPolicy.Allow
	if allow == nil {
		return
	}
	c.allow = []string{}
	for i, entry := range allow {
		at := fmt.Sprintf("agents.defaults.modelPolicy.allow[%d]", i)
		text := strings.TrimSpace(entry)
		if ref, ok := c.aliases[strings.ToLower(text)]; ok {
			c.allow = append(c.allow, ref.String())
			continue
		}
		provider, model, ok := strings.Cut(text, "/")
		switch {
		case text == "*":
			c.allow = append(c.allow, text)
		case !ok || provider == "" || model == "":
			d.fail(at, fmt.Sprintf("%s is neither a model reference nor a pattern", quote(entry)), "for example anthropic/*")
		default:
			if !strings.Contains(provider, "*") {
				c.checkProvider(d, llm.NormalizeProvider(provider), at)
			}
			c.allow = append(c.allow, llm.NormalizeProvider(provider)+"/"+model)
		}
	}
}

// Allowed reports whether people may select ref (`agents.defaults.modelPolicy.allow`). It says
// nothing about fallbacks, which are never filtered (spec/failover.md §4).
func (c *Config) Allowed(ref llm.ModelRef) bool {
	if c.allow == nil {
		return true
	}
	return slices.ContainsFunc(c.allow, func(pattern string) bool { return wildcard.Match(pattern, ref.String()) })
}
