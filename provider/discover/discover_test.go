package discover_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"charm.land/catwalk/pkg/embedded"
	"github.com/google/go-cmp/cmp"

	"understudy/llm"
	"understudy/provider/discover"
)

// roundTrip is an http.RoundTripper made of a function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// nobody is a network without Ollama.
func nobody(t *testing.T) *http.Client {
	t.Helper()
	return &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		return nil, errors.New("connection refused")
	})}
}

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// catalogue knows a few models.
func catalogue(provider string) []string {
	return map[string][]string{
		"anthropic": {"big-a", "small-a"}, "openai": {"big-o"}, "openrouter": {"x/big-r"}, "gemini": {"big-g"},
		"groq": {"big-q"}, "deepseek": {"big-d"}, "xai": {"big-x"},
	}[provider]
}

func ref(s string) llm.ModelRef {
	r, err := llm.ParseRef(s)
	if err != nil {
		panic(err)
	}
	return r
}

func refs(ss ...string) []llm.ModelRef {
	var out []llm.ModelRef
	for _, s := range ss {
		out = append(out, ref(s))
	}
	return out
}

func TestFindFromKeys(t *testing.T) {
	tests := []struct {
		name      string
		env       []string
		primary   string
		fallbacks []llm.ModelRef
	}{
		{"one key has its small sibling behind it", []string{"ANTHROPIC_API_KEY", "k"}, "anthropic/big-a", refs("anthropic/small-a")},
		{"one key without a small model stands alone", []string{"OPENAI_API_KEY", "k"}, "openai/big-o", nil},
		{
			"the order is fixed, whatever the environment's",
			[]string{"XAI_API_KEY", "k", "GROQ_API_KEY", "k", "OPENAI_API_KEY", "k"},
			"openai/big-o", refs("groq/big-q", "xai/big-x"),
		},
		{"a blank value is no key", []string{"ANTHROPIC_API_KEY", "  ", "GEMINI_API_KEY", "k"}, "gemini/big-g", nil},
		{
			"a model id with a slash stays whole",
			[]string{"OPENROUTER_API_KEY", "k", "DEEPSEEK_API_KEY", "k"},
			"openrouter/x/big-r", refs("deepseek/big-d"),
		},
		{"a provider without a known model does not lead", []string{"MISTRAL_API_KEY", "k", "XAI_API_KEY", "k"}, "xai/big-x", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			asked := false
			client := &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
				asked = true
				return nil, errors.New("no")
			})}
			got := discover.Find(t.Context(), discover.Deps{Getenv: env(tt.env...), Catalogue: catalogue, HTTP: client})
			if got.Source != discover.SourceEnv {
				t.Errorf("source = %q", got.Source)
			}
			if got.Primary != ref(tt.primary) {
				t.Errorf("primary = %v, want %v", got.Primary, tt.primary)
			}
			if diff := cmp.Diff(tt.fallbacks, got.Fallbacks); diff != "" {
				t.Errorf("fallbacks (-want +got):\n%s", diff)
			}
			if asked {
				t.Error("Ollama was asked although there is a key")
			}
		})
	}
}

func TestFindStoredCredential(t *testing.T) {
	got := discover.Find(t.Context(), discover.Deps{
		Getenv: env("XAI_API_KEY", "k"), Catalogue: catalogue, HTTP: nobody(t),
		Stored: func(provider string) bool { return provider == "openai" },
	})
	if got.Source != discover.SourceEnv || got.Primary != ref("openai/big-o") {
		t.Errorf("found %v from %q", got.Primary, got.Source)
	}
	if diff := cmp.Diff(refs("xai/big-x"), got.Fallbacks); diff != "" {
		t.Errorf("fallbacks (-want +got):\n%s", diff)
	}
	if want := "a credential of openai is stored: openai/big-o"; got.Lines[0] != want {
		t.Errorf("first line %q, want %q", got.Lines[0], want)
	}
}

func TestFindTellsNamesNeverValues(t *testing.T) {
	got := discover.Find(t.Context(), discover.Deps{
		Getenv:    env("OPENAI_API_KEY", "sk-very-secret", "GROQ_API_KEY", "gsk-very-secret", "MISTRAL_API_KEY", "m-very-secret"),
		Catalogue: catalogue,
		HTTP:      nobody(t),
	})
	text := strings.Join(got.Lines, "\n")
	if strings.Contains(text, "secret") {
		t.Errorf("the lines hold a key:\n%s", text)
	}
	for _, want := range []string{
		"OPENAI_API_KEY is set: openai/big-o",
		"MISTRAL_API_KEY is set, but",
		"the first of these leads: anthropic, openai, openrouter, gemini, groq, mistral, deepseek, xai",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the lines lack %q:\n%s", want, text)
		}
	}
}

func TestFindNothing(t *testing.T) {
	got := discover.Find(t.Context(), discover.Deps{Getenv: env(), Catalogue: catalogue, HTTP: nobody(t)})
	if got.Source != discover.SourceSim || got.Primary != ref("sim/lead") {
		t.Errorf("found %v from %q", got.Primary, got.Source)
	}
	if diff := cmp.Diff(refs("sim/understudy"), got.Fallbacks); diff != "" {
		t.Errorf("fallbacks (-want +got):\n%s", diff)
	}
}

func TestFindKeyWithoutKnownModelStillFindsSomething(t *testing.T) {
	got := discover.Find(t.Context(), discover.Deps{Getenv: env("MISTRAL_API_KEY", "k"), Catalogue: catalogue, HTTP: nobody(t)})
	if got.Source != discover.SourceSim {
		t.Errorf("source = %q", got.Source)
	}
	if !strings.Contains(got.Lines[0], "MISTRAL_API_KEY is set, but") {
		t.Errorf("first line: %q", got.Lines[0])
	}
}

const tags = `{"models":[
	{"name":"small:1b","size":1000,"details":{"family":"llama","families":["llama"]}},
	{"name":"nomic-embed-text:latest","size":9000,"details":{"family":"nomic-bert","families":["nomic-bert"]}},
	{"name":"seer","size":8500,"capabilities":["embedding"]},
	{"name":"huge:cloud","size":300,"remote_host":"https://ollama.com:443"},
	{"name":"big:27b","size":8000,"capabilities":["completion","tools"]},
	{"name":"mid:7b","size":4000},
	{"name":"mid-b:7b","size":4000},
	{"name":"bad\u001b[31mname","size":99999},
	{"name":"","size":5}
]}`

func TestFindOllama(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/api/tags" {
			t.Errorf("asked %s %s", r.Method, r.URL.Path)
		}
		_, _ = w.Write([]byte(tags))
	}))
	defer srv.Close()
	got := discover.Find(t.Context(), discover.Deps{Getenv: env("OLLAMA_HOST", srv.URL), Catalogue: catalogue})
	if got.Source != discover.SourceOllama || got.Primary != ref("ollama/big:27b") {
		t.Fatalf("found %v from %q", got.Primary, got.Source)
	}
	if diff := cmp.Diff(refs("ollama/mid-b:7b", "ollama/mid:7b"), got.Fallbacks); diff != "" {
		t.Errorf("fallbacks (-want +got):\n%s", diff)
	}
	want := []discover.Found{{
		Provider: "ollama", BaseURL: srv.URL + "/v1",
		Models: []string{"big:27b", "mid-b:7b", "mid:7b", "small:1b"},
	}}
	if diff := cmp.Diff(want, got.Providers); diff != "" {
		t.Errorf("providers (-want +got):\n%s", diff)
	}
}

func TestFindOllamaThatIsNoUse(t *testing.T) {
	tests := map[string]http.HandlerFunc{
		"no models":      func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"models":[]}`)) },
		"only embedders": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"models":[{"name":"bge-m3"}]}`)) },
		"no JSON":        func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`<html>`)) },
		"an error":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/api/tags" {
				t.Error("the redirect was followed")
			}
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		},
	}
	for name, handler := range tests {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(handler)
			defer srv.Close()
			got := discover.Find(t.Context(), discover.Deps{Getenv: env("OLLAMA_HOST", srv.URL), Catalogue: catalogue})
			if got.Source != discover.SourceSim {
				t.Errorf("source = %q, primary = %v", got.Source, got.Primary)
			}
		})
	}
}

func TestOllamaHost(t *testing.T) {
	tests := []struct {
		host string
		url  string
		used bool // no complaint about the value
	}{
		{"", "http://127.0.0.1:11434/api/tags", true},
		{"127.0.0.1", "http://127.0.0.1:11434/api/tags", true},
		{"localhost:9999", "http://localhost:9999/api/tags", true},
		{":1234", "http://127.0.0.1:1234/api/tags", true},
		{"0.0.0.0", "http://127.0.0.1:11434/api/tags", true},
		{"http://[::1]:8080", "http://[::1]:8080/api/tags", true},
		{"https://127.0.0.5", "https://127.0.0.5:11434/api/tags", true},
		{"gpu-box:11434", "http://127.0.0.1:11434/api/tags", false},
		{"http://192.168.1.5:11434", "http://127.0.0.1:11434/api/tags", false},
		{"http://127.0.0.1.evil.example", "http://127.0.0.1:11434/api/tags", false},
		{"ftp://127.0.0.1", "http://127.0.0.1:11434/api/tags", false},
		{"http://user:pw@127.0.0.1:1/x?y=z", "http://127.0.0.1:1/api/tags", true},
		{"%%%", "http://127.0.0.1:11434/api/tags", false},
	}
	for _, tt := range tests {
		t.Run(tt.host, func(t *testing.T) {
			asked := ""
			client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				asked = r.URL.String()
				if _, ok := r.Context().Deadline(); !ok {
					t.Error("asked without a limit")
				}
				return nil, errors.New("refused")
			})}
			got := discover.Find(t.Context(), discover.Deps{Getenv: env("OLLAMA_HOST", tt.host), Catalogue: catalogue, HTTP: client})
			if asked != tt.url {
				t.Errorf("asked %q, want %q", asked, tt.url)
			}
			if complained := strings.HasPrefix(got.Lines[0], "OLLAMA_HOST is not used"); complained == tt.used {
				t.Errorf("first line: %q", got.Lines[0])
			}
		})
	}
}

// Every id that the embedded catalogue brings must be one that it lists, and every provider but
// those known to be missing from it must have one.
func TestEmbeddedCatalogue(t *testing.T) {
	known := map[string]bool{}
	for _, p := range embedded.GetAll() {
		for _, m := range p.Models {
			known[string(p.ID)+"/"+m.ID] = true
		}
	}
	got := discover.Find(t.Context(), discover.Deps{Getenv: func(string) string { return "k" }, HTTP: nobody(t)})
	for i, key := range discover.Keys() {
		found := got.Providers[i]
		if found.Provider != key.Provider || (len(found.Models) == 0) != (key.Provider == "mistral") {
			t.Errorf("%s: found %+v", key.Provider, found)
		}
		for _, model := range found.Models {
			if !known[key.Provider+"/"+model] {
				t.Errorf("%s: %s is not in the catalogue", key.Provider, model)
			}
		}
	}
}
