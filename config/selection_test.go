package config

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/failover/policy"
	"understudy/heartbeat"
	"understudy/llm"
)

const house = `
agents:
  defaults:
    model: {primary: anthropic/claude-opus-4-8, fallbacks: [openai/gpt-5.5, ollama/qwen3.5:27b]}
    models:
      anthropic/claude-opus-4-8: {alias: opus}
      zai/glm-5: {alias: my/fast}
    timeoutSeconds: 0
    heartbeat: {model: my/fast, every: 15}
    userTimezone: Europe/Berlin
  list:
    - {id: main, default: true}
    - {id: ops, model: openai/gpt-5.5, systemPrompt: be brief, heartbeat: {every: 0m}}
    - {id: strict, model: {primary: opus, fallbacks: []}}
    - {id: own, model: {primary: Z.AI/glm-5, fallbacks: [opus]}}
`

func ref(s string) llm.ModelRef {
	r, err := llm.ParseRef(s)
	if err != nil {
		panic(err)
	}
	return r
}

func TestAgentsInheritEverythingButFallbacks(t *testing.T) {
	c := must(t, house)
	berlin, _ := time.LoadLocation("Europe/Berlin")
	base := policy.Models{Primary: ref("anthropic/claude-opus-4-8"), Fallbacks: []llm.ModelRef{ref("openai/gpt-5.5"), ref("ollama/qwen3.5:27b")}}
	beat := heartbeat.Settings{Model: ref("zai/glm-5"), Every: 15 * time.Minute, Show: heartbeat.Show{Alerts: true, Indicator: true}}.WithDefaults()
	off := beat
	off.Every = 0
	for _, want := range []Agent{
		{ID: "main", Default: true, Models: base, Heartbeat: beat, Timezone: berlin},
		{ID: "ops", Models: policy.Models{Primary: ref("openai/gpt-5.5"), Own: true}, SystemPrompt: "be brief", Heartbeat: off, Timezone: berlin},
		{ID: "strict", Models: policy.Models{Primary: ref("anthropic/claude-opus-4-8"), Fallbacks: []llm.ModelRef{}, Own: true}, Heartbeat: beat, Timezone: berlin},
		{ID: "own", Models: policy.Models{Primary: ref("zai/glm-5"), Fallbacks: []llm.ModelRef{ref("anthropic/claude-opus-4-8")}, Own: true}, Heartbeat: beat, Timezone: berlin},
	} {
		if diff := cmp.Diff(want, c.Agent(want.ID), cmp.Comparer(func(a, b *time.Location) bool { return a.String() == b.String() })); diff != "" {
			t.Errorf("agent %s (-want +got):\n%s", want.ID, diff)
		}
	}
	if got := c.Agent("nobody").ID; got != "main" {
		t.Errorf("an unknown agent is %q, want the default", got)
	}
	if diff := cmp.Diff([]string{"main", "ops", "strict", "own"}, c.AgentIDs()); diff != "" {
		t.Error(diff)
	}
	if got := c.Agent("ops").Selection().Source; got != policy.SourceAgent {
		t.Errorf("ops selects with source %q", got)
	}
	if got := c.Agent("main").Selection().Source; got != policy.SourceDefault {
		t.Errorf("main selects with source %q", got)
	}
}

func TestDefaultsOfAnEmptyFile(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n", "agents:\n", "{}"} {
		c := must(t, text)
		a := c.Agent("")
		if a.ID != "main" || !a.Default || a.Timeout != 600*time.Second || a.Heartbeat.Every != 30*time.Minute || !a.Models.Primary.IsZero() {
			t.Errorf("%q: agent %+v", text, a)
		}
		if c.Gateway.Listen != "127.0.0.1:8787" || c.Shutdown.Drain != 30*time.Second || c.Notices.Fallback != "all" {
			t.Errorf("%q: sections %+v", text, c.File)
		}
		if diff := cmp.Diff(policy.DefaultRules(), c.Rules()); diff != "" {
			t.Errorf("%q: rules %s", text, diff)
		}
		if c.Env.StateDir != "/srv/someone/.openclaw" {
			t.Errorf("state directory %q", c.Env.StateDir)
		}
	}
}

func TestDiscoveredModelServesAgentsWithoutOne(t *testing.T) {
	found := policy.Models{Primary: ref("sim/lead"), Fallbacks: []llm.ModelRef{ref("sim/understudy")}}
	c := must(t, "agents: {list: [{id: a}, {id: b, model: openai/gpt-5.5}]}")
	n := c.WithModel(found)
	if got := n.Agent("a").Models; got.Primary != found.Primary {
		t.Errorf("a uses %v", got)
	}
	if got := n.Agent("b").Models.Primary; got != ref("openai/gpt-5.5") {
		t.Errorf("b uses %v", got)
	}
	if !c.Agent("a").Models.Primary.IsZero() {
		t.Error("the original changed")
	}
}

func TestResolve(t *testing.T) {
	c := must(t, house+"models: {providers: {house: {baseUrl: 'http://localhost:1', models: [{id: Tiny@2}, {id: my model}]}}}\n")
	stored := map[llm.ProfileID]bool{"openai:work": true, "openai:me@example.com": true, "anthropic:claude@2": true}
	known := Known{
		Profile: func(id llm.ProfileID) bool { return stored[id] },
		Bare: func(id string) []llm.ModelRef {
			switch id {
			case "grok-5":
				return []llm.ModelRef{ref("xai/grok-5")}
			case "llama":
				return []llm.ModelRef{ref("groq/llama"), ref("together/llama")}
			}
			return nil
		},
	}
	for _, tt := range []struct {
		text string
		want Choice
		err  error
	}{
		{"opus", Choice{Ref: ref("anthropic/claude-opus-4-8")}, nil},
		{" OPUS ", Choice{Ref: ref("anthropic/claude-opus-4-8")}, nil},
		{"my/fast", Choice{Ref: ref("zai/glm-5")}, nil},
		{"Z.AI/glm-5", Choice{Ref: ref("zai/glm-5")}, nil},
		{"openrouter/moonshotai/kimi-k2", Choice{Ref: ref("openrouter/moonshotai/kimi-k2")}, nil},
		{"gpt-5.5", Choice{Ref: ref("openai/gpt-5.5")}, nil},
		{"qwen3.5:27b", Choice{Ref: ref("ollama/qwen3.5:27b")}, nil},
		{"grok-5", Choice{Ref: ref("xai/grok-5")}, nil},
		{"llama", Choice{Ref: ref("anthropic/llama"), Guessed: true}, nil},
		{"claude-haiku", Choice{Ref: ref("anthropic/claude-haiku"), Guessed: true}, nil},
		{"openai/gpt-5.5@work", Choice{Ref: ref("openai/gpt-5.5"), Profile: "openai:work"}, nil},
		{"openai/gpt-5.5@openai:work", Choice{Ref: ref("openai/gpt-5.5"), Profile: "openai:work"}, nil},
		{"openai/gpt-5.5@openai:me@example.com", Choice{Ref: ref("openai/gpt-5.5"), Profile: "openai:me@example.com"}, nil},
		{"openai/gpt-5.5@me@example.com", Choice{Ref: ref("openai/gpt-5.5"), Profile: "openai:me@example.com"}, nil},
		{"openai/gpt-5.5@OpenAI:new", Choice{Ref: ref("openai/gpt-5.5"), Profile: "openai:new"}, nil},
		{"opus@spare", Choice{Ref: ref("anthropic/claude-opus-4-8"), Profile: "anthropic:spare"}, nil},
		{"gemini/claude-opus@20250514", Choice{Ref: ref("gemini/claude-opus@20250514")}, nil},
		{"gemini/claude-opus@2025-05-14", Choice{Ref: ref("gemini/claude-opus@2025-05-14")}, nil},
		{"gemini/claude-opus@20250514@work", Choice{Ref: ref("gemini/claude-opus@20250514"), Profile: "gemini:work"}, nil},
		{"gemini/claude-opus@20250514@gemini:a@b.c", Choice{Ref: ref("gemini/claude-opus@20250514"), Profile: "gemini:a@b.c"}, nil},
		{"house/Tiny@2", Choice{Ref: ref("house/Tiny@2")}, nil},
		{"tiny@2", Choice{Ref: ref("house/Tiny@2")}, nil},
		{"openai/gpt-5.5@anthropic:claude@2", Choice{}, ErrWrongProvider},
		{"nowhere/model", Choice{}, ErrUnknownModel},
		{"", Choice{}, ErrUnknownModel},
		{"two words", Choice{}, ErrUnknownModel},
		{"openai/gpt-5.5 hello", Choice{}, ErrUnknownModel},
		{"openai/gpt-5.5\u00a0hello", Choice{}, ErrUnknownModel},
		{"house/my model", Choice{Ref: ref("house/my model")}, nil},
		{"openai/", Choice{}, ErrUnknownModel},
		{"@work", Choice{}, ErrUnknownModel},
	} {
		got, err := c.Resolve(tt.text, known)
		if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
			t.Errorf("%q: error %v, want %v", tt.text, err, tt.err)
			continue
		}
		if diff := cmp.Diff(tt.want, got); err == nil && diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.text, diff)
		}
	}
}

func TestAnIdWithoutAProviderBelongsToThatOfTheAgent(t *testing.T) {
	c := must(t, house)
	for agent, want := range map[string]string{"": "anthropic/new-one", "main": "anthropic/new-one", "ops": "openai/new-one", "own": "zai/new-one", "nobody": "anthropic/new-one"} {
		got, err := c.Resolve("new-one", Known{Agent: agent})
		if err != nil || got != (Choice{Ref: ref(want), Guessed: true}) {
			t.Errorf("of %q: %+v, %v", agent, got, err)
		}
	}
}

func TestModelPolicy(t *testing.T) {
	c := must(t, `
agents:
  defaults:
    models: {zai/glm-5: {alias: fast}}
    modelPolicy: {allow: [Anthropic/*, openai/gpt-5.5, openrouter/*/kimi*, fast]}
`)
	for s, want := range map[string]bool{
		"anthropic/claude-opus-4-8": true, "anthropic/a/b": true, "openai/gpt-5.5": true, "openai/gpt-5.5-mini": false,
		"openrouter/moonshotai/kimi-k2": true, "openrouter/kimi": false, "zai/glm-5": true, "zai/glm-4": false, "anthropics/x": false,
	} {
		if got := c.Allowed(ref(s)); got != want {
			t.Errorf("%s allowed: %v, want %v", s, got, want)
		}
	}
	if !must(t, "").Allowed(ref("a/b")) {
		t.Error("without a policy everything is allowed")
	}
	if must(t, "agents: {defaults: {modelPolicy: {allow: []}}}").Allowed(ref("a/b")) {
		t.Error("an empty list allows nothing")
	}
	if !must(t, "agents: {defaults: {modelPolicy: {allow: ['*']}}}").Allowed(ref("a/b/c")) {
		t.Error("* allows everything")
	}
}

func TestChainsLeaveOutWhatLeadsNowhere(t *testing.T) {
	const text = `
agents:
  defaults:
    model:
      primary: openai/gpt-5.5
      fallbacks: [OpenAI/gpt-5.5, zai/glm, Z.AI/glm, sonet, nowhere/x, openrouter/deepseek/d4, deepseek/d4]
    models: {anthropic/claude: {alias: sonnet}}
    modelPolicy: {allow: [openai/*]}
`
	want := []string{
		`bot.yaml:6:19: agents.defaults.model.fallbacks[0]: openai/gpt-5.5 stands in this chain already (the first one counts)`,
		`bot.yaml:6:44: agents.defaults.model.fallbacks[2]: zai/glm stands in this chain already (the first one counts)`,
		`bot.yaml:6:54: agents.defaults.model.fallbacks[3]: "sonet" is neither a model reference nor an alias; it is skipped (did you mean the alias "sonnet"?)`,
		`bot.yaml:6:61: agents.defaults.model.fallbacks[4]: nowhere/x is skipped: there is no provider "nowhere" (add it to models.providers with a baseUrl)`,
	}
	if diff := cmp.Diff(want, warnings(t, text)); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	got := must(t, text).Agent("").Models.Fallbacks
	if diff := cmp.Diff([]llm.ModelRef{ref("zai/glm"), ref("openrouter/deepseek/d4"), ref("deepseek/d4")}, got); diff != "" {
		t.Errorf("chain (-want +got):\n%s", diff)
	}
}

func TestOwnModelWithoutFallbacksIsPointedOut(t *testing.T) {
	want := []string{`bot.yaml:1:34: agents.list[0].model: agent "ops" answers with openai/gpt-5.5 only: a model of its own has no fallbacks unless it lists them (fallbacks: [] says that it is meant so)`}
	if diff := cmp.Diff(want, warnings(t, "agents: {list: [{id: ops, model: openai/gpt-5.5}]}")); diff != "" {
		t.Error(diff)
	}
	if got := warnings(t, "agents: {list: [{id: ops, model: {primary: openai/gpt-5.5, fallbacks: []}}]}"); len(got) > 0 {
		t.Errorf("warned though it is meant so: %v", got)
	}
}
