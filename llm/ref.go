package llm

import (
	"fmt"
	"strings"
)

// ModelRef names one model of one provider, written "provider/model" (spec/failover.md §1).
// Provider is stored in lower case; Model is kept as written, since hosts compare it exactly.
type ModelRef struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
}

// ParseRef splits s at its first slash, so "openrouter/moonshotai/kimi-k2" is provider
// "openrouter" and model "moonshotai/kimi-k2". It does not resolve aliases.
func ParseRef(s string) (ModelRef, error) {
	provider, model, ok := strings.Cut(strings.TrimSpace(s), "/")
	provider, model = NormalizeProvider(provider), strings.TrimSpace(model)
	if !ok || provider == "" || model == "" {
		return ModelRef{}, fmt.Errorf("%q is not a model reference: write provider/model, for example openai/gpt-5.5", s)
	}
	return ModelRef{Provider: provider, Model: model}, nil
}

// NormalizeProvider returns the one spelling of a provider id: lower case, and the known variants
// of one host's name ("z.ai", "z-ai") folded together. Distinct ids stay distinct.
func NormalizeProvider(id string) string {
	id = strings.ToLower(strings.TrimSpace(id))
	switch id {
	case "z.ai", "z-ai":
		return "zai"
	case "openai-codex":
		return "openai"
	case "bedrock", "aws-bedrock":
		return "amazon-bedrock"
	}
	return id
}

// String returns "provider/model", or "" for the zero value.
func (r ModelRef) String() string {
	if r.IsZero() {
		return ""
	}
	return r.Provider + "/" + r.Model
}

// IsZero reports whether r names nothing.
func (r ModelRef) IsZero() bool { return r == ModelRef{} }

// MarshalText writes "provider/model".
func (r ModelRef) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what MarshalText wrote; an empty text is the zero value.
func (r *ModelRef) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*r = ModelRef{}
		return nil
	}
	ref, err := ParseRef(string(b))
	if err == nil {
		*r = ref
	}
	return err
}

// ProfileID names one stored credential, "provider:name". The name may itself hold ':' and '@'.
type ProfileID string

// Provider returns the part before the first colon, normalised.
func (p ProfileID) Provider() string {
	provider, _, _ := strings.Cut(string(p), ":")
	return NormalizeProvider(provider)
}

// Name returns the part behind the first colon.
func (p ProfileID) Name() string {
	_, name, _ := strings.Cut(string(p), ":")
	return name
}
