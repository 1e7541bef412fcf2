// Package discover finds models for a bot that was started without a configuration.
//
// It looks in three places and takes the first that has something (spec/chat.md §12, D14 and D15):
//
//  1. keys in the environment and stored credentials, in the fixed order of Keys;
//  2. an Ollama on this machine;
//  3. the built-in offline models, sim/lead with sim/understudy behind it.
//
// Places are not mixed: somebody with a key gets no local model behind it unasked, and nobody gets
// sim behind a real one.
package discover

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"understudy/llm"
	"understudy/provider"
)

// Source says where the models were found.
type Source string

// The sources, in order of precedence.
const (
	SourceEnv    Source = "env"
	SourceOllama Source = "ollama"
	SourceSim    Source = "sim"
)

// Key is an environment variable that holds a provider's key.
type Key struct {
	Env      string
	Provider string
}

// Keys lists the variables that are looked at. The order decides which provider leads when several
// are set; the others stand behind it in the same order.
func Keys() []Key {
	return []Key{
		{"ANTHROPIC_API_KEY", "anthropic"},
		{"OPENAI_API_KEY", "openai"},
		{"OPENROUTER_API_KEY", "openrouter"},
		{"GEMINI_API_KEY", "gemini"},
		{"GROQ_API_KEY", "groq"},
		{"MISTRAL_API_KEY", "mistral"},
		{"DEEPSEEK_API_KEY", "deepseek"},
		{"XAI_API_KEY", "xai"},
	}
}

// Deps are what Find looks through.
type Deps struct {
	// Getenv reads an environment variable; "" = not set.
	Getenv func(name string) string
	// Stored tells whether a credential of a provider is stored. nil = none is.
	Stored func(provider string) bool
	// Catalogue returns the models that are recommended for a provider, best first, of those that
	// are known to exist; a model id is never guessed. nil = the embedded catalogue.
	Catalogue func(provider string) []string
	// HTTP asks Ollama. nil = a client of its own that uses no proxy.
	HTTP *http.Client
}

// Found is one provider that can be used.
type Found struct {
	Provider string
	Env      string   // the variable that holds its key; "" for a stored one, Ollama and sim
	BaseURL  string   // for Ollama: the root of its OpenAI-compatible API
	Models   []string // best first; empty when a key is set but no model is known
}

// Result is what was found. Primary is never zero.
type Result struct {
	Source    Source
	Primary   llm.ModelRef
	Fallbacks []llm.ModelRef
	Providers []Found
	// Lines tell the person at the terminal what was found and why this model leads. They hold
	// names of variables, never their values.
	Lines []string
}

// Find looks for models. It asks the network only for Ollama, only on loopback, only when no key
// was found, and for at most a second. It always finds something.
func Find(ctx context.Context, d Deps) Result {
	if d.Catalogue == nil {
		d.Catalogue = embeddedModels()
	}
	r := fromEnv(d)
	if r.Source == "" {
		fromOllama(ctx, d, &r)
	}
	if r.Source == "" {
		fromSim(&r)
	}
	return r
}

// fromEnv looks for keys. The source stays empty when none leads to a known model.
func fromEnv(d Deps) Result {
	var r Result
	var order []string
	for _, k := range Keys() {
		order = append(order, k.Provider)
		f, what := Found{Provider: k.Provider}, k.Env+" is set"
		switch {
		case strings.TrimSpace(d.Getenv(k.Env)+d.Getenv(provider.ListVar(k.Env))) != "":
			f.Env = k.Env
		case d.Stored != nil && d.Stored(k.Provider):
			what = "a credential of " + k.Provider + " is stored"
		default:
			continue
		}
		if f.Models = d.Catalogue(k.Provider); len(f.Models) > 0 {
			r.Lines = append(r.Lines, fmt.Sprintf("%s: %s/%s", what, k.Provider, f.Models[0]))
		} else {
			r.Lines = append(r.Lines, fmt.Sprintf("%s, but I know no default model of %s: name one as agents.defaults.model.primary", what, k.Provider))
		}
		r.Providers = append(r.Providers, f)
	}
	usable := 0
	for _, f := range r.Providers {
		if len(f.Models) == 0 {
			continue
		}
		usable++
		ref := llm.ModelRef{Provider: f.Provider, Model: f.Models[0]}
		if r.Primary.IsZero() {
			r.Source, r.Primary = SourceEnv, ref
		} else {
			r.Fallbacks = append(r.Fallbacks, ref)
		}
	}
	switch {
	case usable == 1:
		r.Fallbacks = smallerSibling(r)
	case usable > 1:
		r.Lines = append(r.Lines, "the first of these leads: "+strings.Join(order, ", "))
	}
	return r
}

// smallerSibling puts the small model of the only provider behind its large one: it has limits of
// its own, so it often still answers.
func smallerSibling(r Result) []llm.ModelRef {
	for _, f := range r.Providers {
		if f.Provider == r.Primary.Provider && len(f.Models) > 1 {
			return []llm.ModelRef{{Provider: f.Provider, Model: f.Models[1]}}
		}
	}
	return nil
}

func fromSim(r *Result) {
	r.Source = SourceSim
	r.Primary = llm.ModelRef{Provider: "sim", Model: "lead"}
	r.Fallbacks = []llm.ModelRef{{Provider: "sim", Model: "understudy"}}
	r.Providers = append(r.Providers, Found{Provider: "sim", Models: []string{"lead", "understudy"}})
	r.Lines = append(r.Lines, "no key (ANTHROPIC_API_KEY, OPENAI_API_KEY, …), no stored credential, no Ollama")
}
