package provider

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"understudy/internal/secret"
	"understudy/llm"
)

// API names a wire protocol, the family of clients that speaks it.
type API string

// The families. The values are those of `models.providers.<id>.api` and of `bot classify`.
const (
	OpenAIChat        API = "openai-chat"
	OpenAIResponses   API = "openai-responses"
	AnthropicMessages API = "anthropic-messages"
	Bedrock           API = "bedrock" // Anthropic's models at Amazon Bedrock
	Simulated         API = "sim"     // no network: provider/sim
)

// UnmarshalText reads an API name; the spelling "openai-completions" of older configurations is
// understood.
func (a *API) UnmarshalText(b []byte) error {
	name := API(strings.ToLower(strings.TrimSpace(string(b))))
	if name == "openai-completions" {
		name = OpenAIChat
	}
	if !slices.Contains(apis(), name) {
		return fmt.Errorf("unknown api %q: use one of %s", name, joined(apis()))
	}
	*a = name
	return nil
}

func apis() []API { return []API{OpenAIChat, OpenAIResponses, AnthropicMessages, Bedrock, Simulated} }

func joined(list []API) string {
	var names []string
	for _, a := range list {
		names = append(names, string(a))
	}
	return strings.Join(names, ", ")
}

// Spec is everything a Factory needs to build the client of one provider. No part of it is shared
// with another provider (spec/failover.md §8.1).
type Spec struct {
	ID      string
	API     API
	BaseURL string // without a trailing slash
	Headers map[string]secret.String
	Quirks  Quirks
	// RefusalFallback allows Anthropic's server-side fallback for refusals (spec/failover.md §6.1).
	RefusalFallback bool
	// AWS is for Bedrock only.
	AWS AWS
	// Transport carries the requests of this provider and of no other.
	Transport http.RoundTripper
	// Model tells what is known about a model of this provider; never nil.
	Model func(id string) ModelInfo
	// Now is the time; never nil.
	Now func() time.Time
}

// WithDefaults fills the fields that must not be nil, so that a Spec written by hand works.
func (s Spec) WithDefaults() Spec {
	s.BaseURL = strings.TrimRight(s.BaseURL, "/")
	if s.Transport == nil {
		s.Transport = NewTransport()
	}
	if s.Model == nil {
		s.Model = func(string) ModelInfo { return unknownModel(false) }
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	return s
}

// Factory builds the client of one provider. It must do no I/O.
type Factory func(Spec) (llm.Client, error)
