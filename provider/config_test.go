package provider_test

import (
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"understudy/internal/secret"
	"understudy/provider"
)

func TestConfigFromYAML(t *testing.T) {
	const text = `
baseUrl: http://192.168.1.20:8080/v1/
api: openai-completions
apiKey: sk-secret
headers: {X-Team: blue}
timeoutSeconds: 0
models:
  - {id: big, input: [text, image], contextWindow: 32000, maxTokens: 4000, tools: false, cost: {input: 1.5, output: 2}}
`
	var c provider.Config
	if err := yaml.UnmarshalWithOptions([]byte(text), &c, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	c = c.WithDefaults("mine")
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if c.API != provider.OpenAIChat || c.BaseURL != "http://192.168.1.20:8080/v1" || c.APIKey.Reveal() != "sk-secret" {
		t.Errorf("config = %+v", c)
	}
	header := c.Headers["X-Team"]
	if c.TimeoutSeconds == nil || *c.TimeoutSeconds != 0 || header.Reveal() != "blue" || len(c.Models) != 1 || *c.Models[0].Tools {
		t.Errorf("config = %+v", c)
	}
}

func TestConfigFaults(t *testing.T) {
	minus := -1
	for _, tt := range []struct {
		name string
		cfg  provider.Config
		want string // part of the error; "" = valid
	}{
		{"plain", provider.Config{BaseURL: "https://api.example.com/v1"}, ""},
		{"no base url", provider.Config{}, "baseUrl: is missing"},
		{"no scheme", provider.Config{BaseURL: "api.example.com"}, "baseUrl: must begin with"},
		{"key in the url", provider.Config{BaseURL: "https://me:key@api.example.com"}, "must hold no user"},
		{"key in the query", provider.Config{BaseURL: "https://api.example.com/?key=x"}, "must hold no user"},
		{"header name", provider.Config{BaseURL: "https://a.b", Headers: map[string]secret.String{"X Team": secret.New("x")}}, "is not a header name"},
		{"header value", provider.Config{BaseURL: "https://a.b", Headers: map[string]secret.String{"X-Team": secret.New("a\r\nb: c")}}, "no header may"},
		{"our header", provider.Config{BaseURL: "https://a.b", Headers: map[string]secret.String{"content-length": secret.New("1")}}, "set by the bot"},
		{"timeout", provider.Config{BaseURL: "https://a.b", TimeoutSeconds: &minus}, "timeoutSeconds"},
		{"fallback", provider.Config{BaseURL: "https://a.b", RefusalFallback: "maybe"}, "refusalFallback"},
		{"model without id", provider.Config{BaseURL: "https://a.b", Models: []provider.ModelConfig{{}}}, "models[0].id"},
		{"model twice", provider.Config{BaseURL: "https://a.b", Models: []provider.ModelConfig{{ID: "x"}, {ID: "x"}}}, "twice"},
		{"input", provider.Config{BaseURL: "https://a.b", Models: []provider.ModelConfig{{ID: "x", Input: []string{"video"}}}}, "models[0].input"},
		{"price", provider.Config{BaseURL: "https://a.b", Models: []provider.ModelConfig{{ID: "x", Cost: &provider.Price{Input: -1}}}}, "price"},
		{"bedrock", provider.Config{API: provider.Bedrock, Region: "eu-central-1", Profile: "bots", IMDS: true}, ""},
		{"bedrock at a url that is none", provider.Config{API: provider.Bedrock, BaseURL: "bedrock.example"}, "baseUrl: must begin with"},
		{"a region that is a host", provider.Config{API: provider.Bedrock, Region: "x.evil.example/"}, "region:"},
		{"a region elsewhere", provider.Config{BaseURL: "https://a.b", Region: "eu-central-1"}, "region: only the api bedrock"},
		{"a profile elsewhere", provider.Config{BaseURL: "https://a.b", Profile: "bots"}, "profile: only the api bedrock"},
		{"imds elsewhere", provider.Config{BaseURL: "https://a.b", IMDS: true}, "imds: only the api bedrock"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.cfg.WithDefaults("mine").Validate()
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("error = %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("error = %v, want %q", err, tt.want)
			}
		})
	}
}

func TestUnknownAPI(t *testing.T) {
	var a provider.API
	if err := a.UnmarshalText([]byte("carrier-pigeon")); err == nil || !strings.Contains(err.Error(), "openai-chat") {
		t.Errorf("error = %v, want the possible values", err)
	}
}
