package tts

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"understudy/internal/secret"
)

func TestDefaults(t *testing.T) {
	c := Config{Provider: "openai", Providers: map[string]Provider{
		"robot": {Preset: "espeak-ng"},
		"amy":   {Preset: "piper", Model: "/voices/amy.onnx"},
		"local": {BaseURL: "http://127.0.0.1:8880/v1/"},
	}}.WithDefaults()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if c.Auto != Off || c.MaxTextLength != 4096 || c.MaxLength != 1500 || c.TimeoutMs != 30_000 || *c.Summarize || !*c.ModelOverrides.Enabled || *c.ModelOverrides.AllowProvider {
		t.Errorf("%+v", c)
	}
	if p := c.Providers["openai"]; p.Model != "gpt-4o-mini-tts" || p.Voice != "coral" || p.TimeoutMs != 30_000 || p.Kind() != OpenAI {
		t.Errorf("%+v", p)
	}
	if p := c.Providers["local"]; p.BaseURL != "http://127.0.0.1:8880/v1" {
		t.Errorf("%+v", p)
	}
	robot := strings.Join(append([]string{c.Providers["robot"].Command}, c.Providers["robot"].Args...), " ")
	if want := "espeak-ng -v {{Voice}} -w {{OutputPath}} -- {{Text}}"; robot != want {
		t.Errorf("%q", robot)
	}
	amy := strings.Join(append([]string{c.Providers["amy"].Command}, c.Providers["amy"].Args...), " ")
	if want := "piper --model /voices/amy.onnx --output_file {{OutputPath}}"; amy != want || c.Providers["amy"].TimeoutMs != 120_000 {
		t.Errorf("%q", amy)
	}
	if diff := cmp.Diff([]string{"robot", "openai", "amy", "local"}, c.Order("robot")); diff != "" {
		t.Error(diff)
	}
	if again := c.WithDefaults(); !reflect.DeepEqual(again, c) {
		t.Error("defaults of defaults are something else")
	}
}

func TestMistakes(t *testing.T) {
	one := func(p Provider) Config { return Config{Providers: map[string]Provider{"x": p}} }
	for want, c := range map[string]Config{
		`auto: "on"`:                      {Auto: "on"},
		`mode: "some"`:                    {Mode: "some"},
		"maxTextLength: 5000":             {MaxTextLength: 5000},
		"maxLength: 10":                   {MaxLength: 10},
		"timeoutMs: -1":                   {TimeoutMs: -1},
		`provider: there is no "x"`:       {Provider: "x"},
		`provider: "x" is switched off`:   {Provider: "x", Providers: map[string]Provider{"x": {Enabled: new(false)}}},
		`or choose openai`:                {Provider: "opnai", Providers: map[string]Provider{"openai": {}}},
		"provider: none is configured":    {Auto: Always},
		"providers.X y: a provider's":     {Providers: map[string]Provider{"X y": {}}},
		"providers.x.baseUrl: an http":    one(Provider{BaseURL: "ftp://x"}),
		"providers.x.baseUrl: it is":      one(Provider{BaseURL: "https://key@x/v1"}),
		"providers.x.auth: the key":       one(Provider{BaseURL: "https://x/v1", Auth: "openai"}),
		"providers.x.speed: 9":            one(Provider{Speed: 9}),
		"providers.x.preset: \"say\"":     one(Provider{Preset: "say"}),
		"providers.x.model: piper":        one(Provider{Preset: "piper"}),
		"providers.x.outputFormat: \"au":  one(Provider{Command: "x", OutputFormat: "au"}),
		"providers.x.command: this is":    one(Provider{Command: "say it | sh"}),
		"providers.x.command: the progr":  one(Provider{Command: "{{Text}}"}),
		"providers.x.command: a program":  one(Provider{Args: []string{"x"}}),
		"providers.x.baseUrl: a provider": one(Provider{Command: "x", APIKey: secret.New("key")}),
		"providers.x.env: \"A=B\"":        one(Provider{Command: "x", Env: map[string]secret.String{"A=B": secret.New("key-of-mine")}}),
		"providers.x.timeoutMs: 700000":   one(Provider{Command: "x", TimeoutMs: 700_000}),
	} {
		err := c.Validate()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
		if err != nil && strings.Contains(err.Error(), "key-of-mine") {
			t.Errorf("tells a secret: %v", err)
		}
	}
}

// TestLayers: what a layer does not set stays, whatever it is; what it sets counts.
func TestLayers(t *testing.T) {
	root := Config{Auto: Inbound, Provider: "a", MaxLength: 900, Summarize: new(true), Providers: map[string]Provider{"a": {Voice: "coral", Speed: 1.5}, "b": {}}}
	agent := Config{Providers: map[string]Provider{"a": {Voice: "nova"}}}
	account := Config{Auto: Off, Summarize: new(false)}
	got := Merge(root, agent, account)
	want := Config{
		Auto: Off, Provider: "a", MaxLength: 900, Summarize: new(false),
		Providers: map[string]Provider{"a": {Voice: "nova", Speed: 1.5}, "b": {}},
	}
	opts := cmp.Comparer(func(a, b secret.String) bool { return a == b })
	if diff := cmp.Diff(want, got, opts); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(root, Merge(root, Config{}), opts); diff != "" {
		t.Error(diff)
	}
	if root.Providers["a"].Voice != "coral" {
		t.Error("a layer changed what is below it")
	}
}

// TestChoicesOfPeople: they count more than every layer, but nobody is chosen who cannot speak.
func TestChoicesOfPeople(t *testing.T) {
	policy := Config{Auto: Inbound, Provider: "a", MaxLength: 900, Providers: map[string]Provider{"a": {}, "b": {}, "c": {Enabled: new(false)}}}.WithDefaults()
	for name, tc := range map[string]struct {
		prefs    Prefs
		auto     string
		length   int
		provider string
	}{
		"nothing":                      {Prefs{}, Inbound, 900, "a"},
		"everything":                   {Prefs{Auto: Off, Provider: "b", Limit: 300}, Off, 300, "b"},
		"somebody who is not here":     {Prefs{Provider: "x"}, Inbound, 900, "a"},
		"somebody who is switched off": {Prefs{Provider: "c"}, Inbound, 900, "a"},
	} {
		if got := policy.WithPrefs(tc.prefs); got.Auto != tc.auto || got.MaxLength != tc.length || got.Provider != tc.provider {
			t.Errorf("%s: %s, %d, %s", name, got.Auto, got.MaxLength, got.Provider)
		}
	}
}

// TestKeysStayWhereTheyBelong: a layer that leads somewhere else does not take the key along.
func TestKeysStayWhereTheyBelong(t *testing.T) {
	under := func(below, layer Provider) Provider {
		return Merge(Config{Providers: map[string]Provider{"x": below}}, Config{Providers: map[string]Provider{"x": layer}}).Providers["x"]
	}
	service := Provider{BaseURL: "https://one.example/v1", APIKey: secret.New("key")}
	program := Provider{Command: "one", Args: []string{"x"}, Env: map[string]secret.String{"KEY": secret.New("key")}}
	if p := under(service, Provider{BaseURL: "https://two.example/v1"}); !p.APIKey.IsZero() {
		t.Error("another address gets the key")
	}
	if p := under(Provider{APIKey: secret.New("key")}, Provider{BaseURL: "https://two.example/v1"}); !p.APIKey.IsZero() {
		t.Error("another address gets the key")
	}
	if p := under(service, Provider{Auth: "other"}); !p.APIKey.IsZero() || p.BaseURL != "" {
		t.Error("another provider gets the key")
	}
	if p := under(program, Provider{Command: "two"}); p.Env != nil || p.Args != nil {
		t.Error("another program gets the variables")
	}
	if p := under(service, Provider{Preset: "espeak-ng"}); !p.APIKey.IsZero() || p.BaseURL != "" || p.Kind() != Command {
		t.Error("a program keeps something of a service")
	}
	if p := under(program, Provider{BaseURL: "https://two.example/v1"}); p.Command != "" || p.Env != nil || p.Kind() != OpenAI {
		t.Error("a service keeps something of a program")
	}
	if p := under(program, Provider{Voice: "nova"}); p.Command == "" || p.Env == nil {
		t.Error("a voice changed the program")
	}
	if p := under(service, Provider{Voice: "nova"}); p.APIKey.IsZero() || p.BaseURL == "" {
		t.Error("a voice changed the address")
	}
}

// TestLayersKnowEveryKey: a key that is added to the settings is merged too.
func TestLayersKnowEveryKey(t *testing.T) {
	layer := Config{
		Auto: "x", Mode: "x", Provider: "x", MaxTextLength: 1, MaxLength: 1, Summarize: new(true), SummaryModel: "x", TimeoutMs: 1,
		ModelOverrides: ModelOverrides{Enabled: new(true), AllowProvider: new(true)},
	}
	p := Provider{
		Enabled: new(true), BaseURL: "x", APIKey: secret.New("x"), Model: "x", Voice: "x", Speed: 1, Instructions: "x", Preset: "x", Command: "x",
		Args: []string{"x"}, OutputFormat: "x", Cwd: "x", Env: map[string]secret.String{"X": secret.New("x")}, TimeoutMs: 1,
	}
	layer.Providers = map[string]Provider{"x": p}
	got := Merge(layer)
	for _, v := range []reflect.Value{reflect.ValueOf(got), reflect.ValueOf(got.Providers["x"]), reflect.ValueOf(got.ModelOverrides)} {
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; v.Field(i).IsZero() && name != "Auth" { // excludes BaseURL
				t.Errorf("%s is lost", name)
			}
		}
	}
}
