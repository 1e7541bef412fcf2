package provider_test

import (
	"testing"

	"understudy/internal/secret"
	"understudy/llm"
	"understudy/provider"
)

func TestBedrockCredential(t *testing.T) {
	for _, tt := range []struct {
		name   string
		id     string
		cfg    provider.Config
		env    map[string]string
		kind   llm.CredentialKind
		secret string
		ok     bool
	}{
		{name: "nothing", id: "amazon-bedrock", kind: llm.KindNone},
		{name: "a configured region", id: "amazon-bedrock", cfg: provider.Config{Region: "eu-central-1"}, kind: llm.KindToken, ok: true},
		{name: "another spelling", id: "AWS-Bedrock", cfg: provider.Config{Profile: "bots"}, kind: llm.KindToken, ok: true},
		{name: "the metadata service", id: "bedrock", cfg: provider.Config{IMDS: true}, kind: llm.KindToken, ok: true},
		{name: "keys of the environment", id: "amazon-bedrock", env: map[string]string{"AWS_ACCESS_KEY_ID": "AKID"}, kind: llm.KindToken, ok: true},
		{name: "a profile of the environment", id: "amazon-bedrock", env: map[string]string{"AWS_PROFILE": "bots"}, kind: llm.KindToken, ok: true},
		{
			name: "an API key before the chain", id: "amazon-bedrock", cfg: provider.Config{Region: "eu-central-1"},
			env: map[string]string{"AWS_BEARER_TOKEN_BEDROCK": "key", "AWS_PROFILE": "bots"}, kind: llm.KindAPIKey, secret: "key", ok: true,
		},
		{
			name: "a configured API key", id: "amazon-bedrock", cfg: provider.Config{APIKey: secret.New("mine")},
			env: map[string]string{"AWS_BEARER_TOKEN_BEDROCK": "key"}, kind: llm.KindAPIKey, secret: "mine", ok: true,
		},
		{
			name: "another region under a name of its own", id: "bedrock-us", cfg: provider.Config{API: provider.Bedrock, Region: "us-east-1"},
			env: map[string]string{"AWS_BEARER_TOKEN_BEDROCK": "key"}, kind: llm.KindToken, ok: true,
		},
		{name: "another provider", id: "openai", env: map[string]string{"AWS_PROFILE": "bots"}, kind: llm.KindNone},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRegistry(t, map[string]provider.Config{tt.id: tt.cfg})
			cred, ok := r.Credential(tt.id, func(name string) string { return tt.env[name] })
			if ok != tt.ok || cred.Kind != tt.kind || cred.Secret.Reveal() != tt.secret {
				t.Errorf("credential %s %q, %v", cred.Kind, cred.Secret.Reveal(), ok)
			}
		})
	}
}

// The client gets the keys of the configuration.
func TestBedrockSpec(t *testing.T) {
	r := newRegistry(t, map[string]provider.Config{"bedrock": {Region: "eu-central-1", Profile: "bots", IMDS: true}})
	client, err := r.Client("amazon-bedrock")
	if err != nil {
		t.Fatal(err)
	}
	want := provider.AWS{Region: "eu-central-1", Profile: "bots", IMDS: true}
	if spec := client.(plain).spec; spec.ID != "amazon-bedrock" || spec.API != provider.Bedrock || spec.AWS != want {
		t.Errorf("spec %s %s %+v", spec.ID, spec.API, spec.AWS)
	}
}

func TestBedrockModels(t *testing.T) {
	r := newRegistry(t, map[string]provider.Config{"bedrock-us": {API: provider.Bedrock, Region: "us-east-1"}})
	for _, tt := range []struct {
		model  string
		known  bool
		priced bool
	}{
		{"us.anthropic.claude-opus-4-8", true, true},
		{"eu.anthropic.claude-opus-4-8", true, true},
		{"anthropic.claude-opus-4-8", true, false},
		{"global.anthropic.claude-opus-4-8", true, false},
		{"arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-opus-4-8", true, true},
		{"arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2c3", false, false},
		{"anthropic.claude-nobody-9", false, false},
		{"", false, false},
	} {
		for _, id := range []string{"amazon-bedrock", "bedrock-us"} {
			info := r.Model(llm.ModelRef{Provider: id, Model: tt.model})
			if info.Known != tt.known || (info.Price != nil) != tt.priced || tt.known && info.ContextWindow == 0 {
				t.Errorf("%s/%s: %+v", id, tt.model, info)
			}
		}
	}
}
