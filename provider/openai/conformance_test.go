package openai_test

import (
	"testing"

	"understudy/provider"
	"understudy/provider/openai"
	"understudy/provider/providertest"
)

func TestChatConformance(t *testing.T) {
	providertest.Run(t, providertest.Suite{New: openai.New, Spec: provider.Spec{
		ID: "alpha", API: provider.OpenAIChat, BaseURL: "http://alpha.test/v1",
	}})
}

func TestResponsesConformance(t *testing.T) {
	providertest.Run(t, providertest.Suite{New: openai.New, Spec: provider.Spec{
		ID: "openai", API: provider.OpenAIResponses, BaseURL: "https://api.openai.com/v1",
		Quirks: provider.Quirks{CompletionTokens: true, Effort: provider.EffortPlain, CacheKey: true},
	}})
}
