package anthropic_test

import (
	"testing"

	"understudy/provider"
	"understudy/provider/anthropic"
	"understudy/provider/providertest"
)

func TestConformance(t *testing.T) {
	def, _ := provider.Builtin("anthropic")
	for _, s := range []struct{ id, model string }{
		{"anthropic", "claude-opus-5"}, // the beta service
		{"anthropic", "claude-sonnet-4-5"},
		{"kimi-coding", "kimi-for-coding"}, // a compatible host
	} {
		t.Run(s.id+" "+s.model, func(t *testing.T) {
			providertest.Run(t, providertest.Suite{
				New:   anthropic.New,
				Model: s.model,
				Spec: provider.Spec{
					ID: s.id, API: provider.AnthropicMessages, BaseURL: "https://api.example.com",
					Quirks: def.Quirks, RefusalFallback: true,
				},
			})
		})
	}
}

func TestBedrockConformance(t *testing.T) {
	for _, model := range []string{
		"us.anthropic.claude-opus-5",
		"arn:aws:bedrock:us-east-1:123456789012:inference-profile/eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
	} {
		t.Run(model, func(t *testing.T) {
			providertest.Run(t, providertest.Suite{
				New:   anthropic.NewBedrock,
				Model: model,
				Spec: provider.Spec{
					ID: "amazon-bedrock", API: provider.Bedrock, AWS: provider.AWS{Region: "us-east-1"}, RefusalFallback: true,
				},
			})
		})
	}
}
