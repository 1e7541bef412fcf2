package provider_test

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/internal/secret"
	"understudy/llm"
	"understudy/provider"
)

// plain is a client that only remembers its spec.
type plain struct{ spec provider.Spec }

func (plain) Stream(context.Context, llm.Credential, llm.Request) iter.Seq2[llm.Event, error] {
	return func(func(llm.Event, error) bool) {}
}

func newRegistry(t *testing.T, cfg map[string]provider.Config) *provider.Registry {
	t.Helper()
	r, err := provider.New(cfg, deps())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func deps() provider.Deps {
	factory := func(s provider.Spec) (llm.Client, error) { return plain{s}, nil }
	return provider.Deps{Factories: map[provider.API]provider.Factory{
		provider.OpenAIChat: factory, provider.OpenAIResponses: factory, provider.AnthropicMessages: factory, provider.Bedrock: factory, provider.Simulated: factory,
	}}
}

func TestEveryBuiltinHasAClient(t *testing.T) {
	r := newRegistry(t, nil)
	for _, id := range provider.BuiltinIDs() {
		client, err := r.Client(strings.ToUpper(id))
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		again, _ := r.Client(id)
		if client.(plain).spec.Transport != again.(plain).spec.Transport {
			t.Errorf("%s: built twice", id)
		}
		def, _ := provider.Builtin(id)
		cfg := provider.Config{}.WithDefaults(id)
		if err := cfg.Validate(); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if len(def.EnvKeys) == 0 && id != "sim" {
			t.Errorf("%s: no environment variable", id)
		}
	}
	r.Close()
}

func TestEachProviderHasItsOwnTransport(t *testing.T) {
	r := newRegistry(t, nil)
	a, _ := r.Client("openai")
	b, _ := r.Client("groq")
	if a.(plain).spec.Transport == b.(plain).spec.Transport {
		t.Error("two providers share a transport")
	}
}

func TestUnknownProvider(t *testing.T) {
	r := newRegistry(t, nil)
	if _, err := r.Client("nobody"); !errors.Is(err, provider.ErrUnknownProvider) {
		t.Errorf("error = %v", err)
	}
	if r.Known("nobody") || !r.Known("z.ai") {
		t.Error("Known is wrong")
	}
}

func TestRegistryFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg  map[string]provider.Config
		want string
	}{
		"no base url": {map[string]provider.Config{"mine": {}}, "models.providers.mine: baseUrl"},
		"twice":       {map[string]provider.Config{"z.ai": {}, "zai": {}}, "the same provider"},
		"bad id":      {map[string]provider.Config{"a/b": {BaseURL: "http://x.test"}}, "models.providers.a/b"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := provider.New(tt.cfg, deps())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want %q", err, tt.want)
			}
		})
	}
	_, err := provider.New(map[string]provider.Config{"mine": {BaseURL: "http://x.test"}}, provider.Deps{})
	if err == nil || !strings.Contains(err.Error(), "no client") {
		t.Errorf("error = %v, want one about the missing factory", err)
	}
}

func TestIdleTimeout(t *testing.T) {
	zero, ten := 0, 10
	r := newRegistry(t, map[string]provider.Config{
		"lan":   {BaseURL: "http://10.0.0.7:8000/v1"},
		"far":   {BaseURL: "https://models.example.com/v1"},
		"never": {BaseURL: "https://models.example.com/v1", TimeoutSeconds: &zero},
		"quick": {BaseURL: "http://localhost:9/v1", TimeoutSeconds: &ten},
	})
	for id, want := range map[string]time.Duration{
		"openai": 120 * time.Second, "ollama": 300 * time.Second, "lan": 300 * time.Second,
		"far": 120 * time.Second, "never": 0, "quick": 10 * time.Second,
	} {
		if got := r.IdleTimeout(id); got != want {
			t.Errorf("%s: %v, want %v", id, got, want)
		}
	}
}

func TestModelInfo(t *testing.T) {
	no := false
	r := newRegistry(t, map[string]provider.Config{
		"ollama": {Models: []provider.ModelConfig{{ID: "small", Input: []string{"text"}, ContextWindow: 8000, Tools: &no, Cost: &provider.Price{}}}},
		"proxy":  {BaseURL: "https://api.mistral.ai/v1"},
	})
	catalogue := provider.NewCatalogue()
	known, ok := catalogue.DefaultModel("anthropic")
	if !ok {
		t.Fatal("no default model for anthropic")
	}
	a := r.Model(llm.ModelRef{Provider: "anthropic", Model: known})
	if !a.Known || !a.Images || a.ContextWindow < 100_000 || a.Price == nil || a.Price.Input <= 0 || a.Local {
		t.Errorf("%s = %+v", known, a)
	}
	if dated := r.Model(llm.ModelRef{Provider: "anthropic", Model: known + "-20260101"}); dated.ContextWindow != a.ContextWindow {
		t.Errorf("with a date = %+v", dated)
	}
	u := r.Model(llm.ModelRef{Provider: "ollama", Model: "qwen3.5:27b"})
	if u.Known || !u.Images || !u.Tools || u.ContextWindow != 0 || u.Price != nil || !u.Local {
		t.Errorf("unknown model = %+v", u)
	}
	c := r.Model(llm.ModelRef{Provider: "ollama", Model: "small"})
	if !c.Known || c.Images || c.Tools || c.ContextWindow != 8000 || c.Price == nil || *c.Price != (provider.Price{}) {
		t.Errorf("configured model = %+v", c)
	}
	if _, ok := catalogue.DefaultModel("ollama"); ok {
		t.Error("a default model for ollama")
	}
}

func TestHostUnderAnotherName(t *testing.T) {
	r := newRegistry(t, map[string]provider.Config{"work": {BaseURL: "https://api.mistral.ai/v1"}})
	client, err := r.Client("work")
	if err != nil {
		t.Fatal(err)
	}
	if client.(plain).spec.Quirks.ToolIDs != provider.StrictIDs() {
		t.Error("the quirks of the host are lost under another name")
	}
	if got := r.EnvKeys("work"); len(got) != 0 {
		t.Errorf("environment keys = %v: the key of another provider", got)
	}
}

func TestCredential(t *testing.T) {
	env := map[string]string{"OPENAI_API_KEY": "from-env", "GOOGLE_API_KEY": "google", "GEMINI_API_KEY": "gemini"}
	getenv := func(k string) string { return env[k] }
	r := newRegistry(t, map[string]provider.Config{
		"groq":   {APIKey: secret.New("from-config")},
		"headed": {BaseURL: "https://x.test", Headers: map[string]secret.String{"X-Key": secret.New("k")}},
	})
	for _, tt := range []struct {
		id     string
		kind   llm.CredentialKind
		secret string
		ok     bool
	}{
		{"openai", llm.KindAPIKey, "from-env", true},
		{"gemini", llm.KindAPIKey, "gemini", true},
		{"groq", llm.KindAPIKey, "from-config", true},
		{"ollama", llm.KindNone, "", true},
		{"headed", llm.KindNone, "", true},
		{"mistral", llm.KindNone, "", false},
		{"nobody", "", "", false},
	} {
		cred, ok := r.Credential(tt.id, getenv)
		if ok != tt.ok || cred.Kind != tt.kind || cred.Secret.Reveal() != tt.secret {
			t.Errorf("%s: %+v %q, %v", tt.id, cred, cred.Secret.Reveal(), ok)
		}
		if ok && cred.Profile != llm.ProfileID(tt.id+":env") {
			t.Errorf("%s: profile %q", tt.id, cred.Profile)
		}
	}
}

func TestLocal(t *testing.T) {
	for url, want := range map[string]bool{
		"http://127.0.0.1:1/v1": true, "http://localhost/v1": true, "http://[::1]:8/v1": true, "http://192.168.0.9/v1": true,
		"http://box.local/v1": true, "https://api.example.com/v1": false, "https://8.8.8.8/v1": false,
	} {
		r := newRegistry(t, map[string]provider.Config{"x": {BaseURL: url}})
		if got := r.Model(llm.ModelRef{Provider: "x", Model: "m"}).Local; got != want {
			t.Errorf("%s: local = %v", url, got)
		}
	}
}

func TestIDsAreSorted(t *testing.T) {
	r := newRegistry(t, map[string]provider.Config{"aaa": {BaseURL: "http://x.test"}})
	ids := r.IDs()
	if !slices.IsSorted(ids) || ids[0] != "aaa" || !slices.Contains(ids, "openai") {
		t.Errorf("ids = %v", ids)
	}
	if r.API("aaa") != provider.OpenAIChat || r.API("nobody") != "" {
		t.Error("API is wrong")
	}
	if r.Host("AAA") != "x.test" || r.Host("nobody") != "" {
		t.Error("Host is wrong")
	}
}

func TestTransportHygiene(t *testing.T) {
	tr := provider.NewTransport()
	if !tr.ForceAttemptHTTP2 || tr.ResponseHeaderTimeout != 0 || tr.TLSHandshakeTimeout == 0 || tr.Proxy == nil {
		t.Errorf("transport = %+v", tr)
	}
	if rec := provider.NewRecorder(http.DefaultTransport).HTTPClient(); rec.Timeout != 0 {
		t.Error("an overall time-out")
	}
}

// TestCatalogued covers what a list of models is made of: the recommended one first, none twice, of a host
// under another name too, and at Bedrock only what can be asked in the region.
func TestCatalogued(t *testing.T) {
	r := newRegistry(t, map[string]provider.Config{
		"work":   {BaseURL: "https://api.openai.com/v1"},
		"aws-us": {API: provider.Bedrock, Region: "us-east-1"},
		"aws-eu": {API: provider.Bedrock, Region: "eu-central-1"},
		"aws-il": {API: provider.Bedrock, Region: "il-central-1"},
	})
	first, _ := provider.NewCatalogue().DefaultModel("openai")
	list := r.Catalogued("openai")
	if len(list) < 2 || list[0] != first || !slices.Equal(list, r.Catalogued("work")) {
		t.Errorf("%q", list)
	}
	for _, id := range r.IDs() {
		seen := map[string]bool{}
		for _, m := range r.Catalogued(id) {
			if seen[m] || !r.Model(llm.ModelRef{Provider: id, Model: m}).Known {
				t.Errorf("%s: %s", id, m)
			}
			seen[m] = true
		}
	}
	for id, prefix := range map[string]string{"aws-us": "us.", "aws-eu": "eu.", "aws-il": "none", "amazon-bedrock": "none", "ollama": "none", "nobody": "none"} {
		list := r.Catalogued(id)
		if (len(list) > 0) == (prefix == "none") || slices.ContainsFunc(list, func(m string) bool { return !strings.HasPrefix(m, prefix) }) {
			t.Errorf("%s: %q", id, list)
		}
	}
}
