package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// env returns a look-up in pairs of name and value.
func env(pairs ...string) func(string) (string, bool) {
	m := map[string]string{"HOME": "/srv/someone"}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) (string, bool) {
		v, ok := m[name]
		return v, ok
	}
}

// must parses a configuration that has no problem.
func must(t *testing.T, text string, vars ...string) *Config {
	t.Helper()
	c, _, err := Parse("bot.yaml", []byte(text), env(vars...))
	if err != nil {
		t.Fatalf("parse: %v", err)
	}
	return c
}

// problems returns the lines of the error that text causes.
func problems(t *testing.T, text string, vars ...string) []string {
	t.Helper()
	_, _, err := Parse("bot.yaml", []byte(text), env(vars...))
	if err == nil {
		return nil
	}
	var e *Error
	if !errors.As(err, &e) || len(e.Problems) == 0 {
		t.Fatalf("the error is not a list of problems: %v", err)
	}
	return strings.Split(err.Error(), "\n")
}

func warnings(t *testing.T, text string, vars ...string) []string {
	t.Helper()
	_, ws, err := Parse("bot.yaml", []byte(text), env(vars...))
	if err != nil {
		t.Fatalf("parse: %v", err)
	}
	var out []string
	for _, w := range ws {
		out = append(out, w.String())
	}
	return out
}

func TestProblemsNamePlaceKeyAndRemedy(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"unknown key", "agents:\n  defaults:\n    modle: openai/gpt-5.5\n", []string{
			`bot.yaml:3:5: agents.defaults.modle: unknown key (did you mean "model"?)`,
		}},
		{"unknown top-level key", "agent: {}\n", []string{
			`bot.yaml:1:1: agent: unknown key (did you mean "agents"?)`,
		}},
		{"swapped letters", "auth: {oredr: {}}", []string{
			`bot.yaml:1:8: auth.oredr: unknown key (did you mean "order"?)`,
		}},
		{"far from everything", "shutdown:\n  zzzzzz: 1\n", []string{
			`bot.yaml:2:3: shutdown.zzzzzz: unknown key (known: drain)`,
		}},
		{"several at once", "logging:\n  level: loud\n  color: true\nauth:\n  cooldowns:\n    overloadedBackoffMs: soon\n", []string{
			`bot.yaml:2:10: logging.level: "loud" is not one of debug, info, warn, error`,
			`bot.yaml:3:3: logging.color: unknown key (known: level, format)`,
			`bot.yaml:6:26: auth.cooldowns.overloadedBackoffMs: "soon" is not a whole number`,
		}},
		{"nearly right word", "logging: {level: wran}", []string{
			`bot.yaml:1:18: logging.level: "wran" is not one of debug, info, warn, error (did you mean "warn"?)`,
		}},
		{"section instead of value", "logging:\n  level:\n    a: 1\n", []string{
			`bot.yaml:3:5: logging.level: here a text is expected, not a section of keys`,
		}},
		{"value instead of section", "agents: main\n", []string{
			`bot.yaml:1:9: agents: here a section of keys is expected, not a text`,
		}},
		{"value instead of list", "agents:\n  defaults:\n    model: {primary: openai/gpt-5.5, fallbacks: ollama/x}\n", []string{
			`bot.yaml:3:49: agents.defaults.model.fallbacks: here a list is expected, not a text (write [a, b], or one "- a" per line)`,
		}},
		{"boolean as text", "agents: {defaults: {userTimezone: true}}", []string{
			`bot.yaml:1:35: agents.defaults.userTimezone: here a text is expected, not true or false (write it in quotes: "true")`,
		}},
		{"no duration", "shutdown: {drain: 30}", []string{
			`bot.yaml:1:19: shutdown.drain: "30" is not a duration (write a number and a unit, for example 30s, 5m or 2h)`,
		}},
		{"variable not set", "agents: {defaults: {systemPrompt: 'be ${MOOD}'}}", []string{
			`bot.yaml:1:35: agents.defaults.systemPrompt: the environment variable MOOD is not set (write $${MOOD} for the text itself)`,
		}},
		{"key twice", "logging: {}\nlogging: {}\n", []string{
			`bot.yaml:2:1: logging: this key stands here a second time`,
		}},
		{"second document", "logging: {}\n---\nauth: {}\n", []string{
			`bot.yaml:3:1: a second document begins here (keep one document in the file)`,
		}},
		{"numbers without sense", "auth:\n  cooldowns:\n    billingBackoffHours: 0\n    rateLimitedProfileRotations: -1\n    billingBackoffHoursByProvider: {anthropic: -2}\n", []string{
			`bot.yaml:3:26: auth.cooldowns.billingBackoffHours: 0 is not greater than 0`,
			`bot.yaml:4:34: auth.cooldowns.rateLimitedProfileRotations: -1 is not between 0 and 1000`,
			`bot.yaml:5:48: auth.cooldowns.billingBackoffHoursByProvider.anthropic: -2 is not greater than 0`,
		}},
		{"secret in a profile", "auth:\n  profiles:\n    openai:work: {provider: openai, mode: api_key, key: sk-very-secret}\n", []string{
			`bot.yaml:3:52: auth.profiles.openai:work.key: a secret must not stand here (store it with: bot auth add)`,
		}},
		{"profile of another provider", "auth: {profiles: {openai:work: {provider: anthropic}}}", []string{
			`bot.yaml:1:19: auth.profiles.openai:work: the id belongs to provider "openai", the profile to "anthropic"`,
		}},
		{"mistyped primary", "agents: {defaults: {model: antropic/claude-opus-4-8}}", []string{
			`bot.yaml:1:28: agents.defaults.model: antropic/claude-opus-4-8: there is no provider "antropic" (did you mean "anthropic"?)`,
		}},
		{"primary is no reference", "agents: {defaults: {model: {primary: opsu}, models: {anthropic/claude-opus-4-8: {alias: opus}}}}", []string{
			`bot.yaml:1:38: agents.defaults.model.primary: "opsu" is neither a model reference nor an alias (did you mean the alias "opus"?)`,
		}},
		{"provider needs an address", "models: {providers: {house: {}}}", []string{
			`bot.yaml:1:22: models.providers.house.baseUrl: is missing (this provider has no built-in one)`,
		}},
		{"agents", "agents:\n  list:\n    - {id: Main}\n    - {id: a, default: true}\n    - {id: a}\n    - {id: b, default: true}\n    - {default: false}\n", []string{
			`bot.yaml:7:7: agents.list[4]: the key "id" is missing`,
		}},
		{"agent ids", "agents:\n  list:\n    - {id: Main}\n    - {id: a, default: true}\n    - {id: a}\n    - {id: b, default: true}\n", []string{
			`bot.yaml:3:12: agents.list[0].id: "Main" cannot be an agent id (lower-case letters, digits, - and _, at most 64)`,
			`bot.yaml:5:12: agents.list[2].id: there is an agent "a" already`,
			`bot.yaml:6:24: agents.list[3].default: agent "a" is the default already`,
		}},
		{"time zone", "agents: {defaults: {userTimezone: Europe/Berlln}}", []string{
			`bot.yaml:1:35: agents.defaults.userTimezone: "Europe/Berlln" is not a time zone (write an IANA name such as Europe/Berlin)`,
		}},
		{"undefined alias", "logging: *nowhere\n", []string{
			`bot.yaml:1:10: logging: *nowhere refers to nothing (define it with &nowhere)`,
		}},
		{"variable in braces", "gateway: {token: ${TOKEN}}", []string{
			`bot.yaml:1:19: this is not valid YAML: ',' or '}' must be specified (inside { } or [ ] a variable needs quotes: '${NAME}')`,
		}},
		{"zero bytes", "logging: {}\n\x00", []string{`bot.yaml:2:1: the file is not text`}},
		{"too deep", strings.Repeat("[", 5000), []string{`bot.yaml:1:1: nested too deeply`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, problems(t, tt.text)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSyntaxErrorsDoNotQuoteTheFile(t *testing.T) {
	for _, text := range []string{
		"models:\n  providers:\n    openai:\n      apiKey: sk-very-secret\n     x: [\n",
		"models:\n  providers:\n    openai: {apiKey: sk-very-secret\n",
		"models: {providers: {openai: {apiKey: [sk-very-secret]}}}",
		"models: {providers: {openai: {apiKey: {source: sk-very-secret}}}}",
		"models: {providers: {openai: {apiKey: 'sk-very-secret ${lower}'}}}",
	} {
		got := problems(t, text)
		if len(got) == 0 {
			t.Errorf("%q was accepted", text)
		}
		for _, line := range got {
			if strings.Contains(line, "apiKey: sk-very") || (strings.Contains(line, "sk-very-secret") && !strings.Contains(text, "source")) {
				t.Errorf("a secret in the message: %s", line)
			}
		}
	}
}
