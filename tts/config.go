package tts

import (
	"strings"

	"understudy/internal/secret"
)

// When answers are spoken (Config.Auto).
const (
	Off     = "off"
	Always  = "always"
	Inbound = "inbound" // in reply to voice notes
	Tagged  = "tagged"  // when the model asks for it
)

// Bounds of the settings (spec/chat.md §4.1).
const (
	longestText      = 4096 // characters in one request
	defaultLength    = 1500
	leastLength      = 100
	defaultTimeoutMs = 30_000
	programTimeoutMs = 120_000
	longestTimeoutMs = 600_000
	modeFinal        = "final"
	modeAll          = "all"
)

// Config is the `tts` section, and in part what an agent, a channel or an account changes of it: see
// Merge. Absent keys are zero.
type Config struct {
	Auto string `yaml:"auto,omitempty" enum:"off|always|inbound|tagged"`
	// Mode is which texts of a turn are spoken. An answer leaves as one text here, so all speaks nothing
	// more than final. But under final the text of an answer that is certain to be spoken may be held
	// until its sound is made (Prospect.Certain); under all it is shown while it is being written.
	Mode string `yaml:"mode,omitempty" enum:"final|all"`
	// Provider is asked first, the others after it in the order of their names. "" = the first of them.
	Provider  string              `yaml:"provider,omitempty"`
	Providers map[string]Provider `yaml:"providers,omitempty"`
	// MaxTextLength is how many characters a provider is given at most; MaxLength is how many of an
	// answer are spoken. A longer one is summarised or cut.
	MaxTextLength int   `yaml:"maxTextLength,omitempty"`
	MaxLength     int   `yaml:"maxLength,omitempty"`
	Summarize     *bool `yaml:"summarize,omitempty"`
	// SummaryModel writes the summaries; "" = the agent's model.
	SummaryModel   string         `yaml:"summaryModel,omitempty"`
	TimeoutMs      int            `yaml:"timeoutMs,omitempty"` // of one provider
	ModelOverrides ModelOverrides `yaml:"modelOverrides,omitempty"`
}

// ModelOverrides is what the directives of a model may do. Directives are never shown, whatever it says.
type ModelOverrides struct {
	Enabled       *bool `yaml:"enabled,omitempty"`       // default true
	AllowProvider *bool `yaml:"allowProvider,omitempty"` // default false
}

// Provider is one way to make sound: an HTTP service with OpenAI's audio API, or a program.
type Provider struct {
	Enabled *bool `yaml:"enabled,omitempty"` // nil = true

	// BaseURL is a service's address up to /v1. One that is given gets APIKey or no key at all; without
	// it the service and its key are those of the model provider Auth ("" = the one of the same name).
	BaseURL string        `yaml:"baseUrl,omitempty"`
	APIKey  secret.String `yaml:"apiKey,omitempty"`
	Auth    string        `yaml:"auth,omitempty"`

	Model        string  `yaml:"model,omitempty"`
	Voice        string  `yaml:"voice,omitempty"`
	Speed        float64 `yaml:"speed,omitempty"` // 0.25 to 4; 0 = the service's own
	Instructions string  `yaml:"instructions,omitempty"`

	// Preset fills Command and Args for a known program: espeak-ng or piper.
	Preset string `yaml:"preset,omitempty"`
	// Command is a program, never a shell line. In Args, {{Text}}, {{OutputPath}}, {{OutputDir}} and
	// {{Voice}} are replaced; without {{Text}} the program reads the text from its standard input.
	Command string   `yaml:"command,omitempty"`
	Args    []string `yaml:"args,omitempty"`
	// OutputFormat is what the program writes: wav, mp3, opus, aac, m4a or flac.
	OutputFormat string                   `yaml:"outputFormat,omitempty"`
	Cwd          string                   `yaml:"cwd,omitempty"` // "" = a private empty folder
	Env          map[string]secret.String `yaml:"env,omitempty"` // beside PATH, HOME, LANG and TZ

	TimeoutMs int `yaml:"timeoutMs,omitempty"` // 0 = tts.timeoutMs, for programs 120000
}

// Kind is how a provider is talked to.
type Kind string

// The kinds of providers.
const (
	OpenAI  Kind = "openai"
	Command Kind = "command"
)

// Kind tells a program from a service.
func (p Provider) Kind() Kind {
	if p.Command != "" || p.Preset != "" {
		return Command
	}
	return OpenAI
}

// Presets of programs (spec/chat.md §4.3).
const (
	presetEspeak = "espeak-ng"
	presetPiper  = "piper"
)

// withDefaults completes a provider.
func (p Provider) withDefaults(c Config) Provider {
	if p.Enabled == nil {
		p.Enabled = new(true)
	}
	if p.Kind() == OpenAI {
		setDefault(&p.Model, "gpt-4o-mini-tts")
		setDefault(&p.Voice, "coral")
		setDefault(&p.TimeoutMs, c.TimeoutMs)
		p.BaseURL = strings.TrimRight(p.BaseURL, "/")
		return p
	}
	setDefault(&p.OutputFormat, string(WAV))
	setDefault(&p.TimeoutMs, programTimeoutMs)
	switch p.Preset {
	case presetEspeak:
		setDefault(&p.Voice, "en")
		setDefault(&p.Command, "espeak-ng")
		if p.Args == nil {
			p.Args = []string{"-v", "{{Voice}}", "-w", "{{OutputPath}}", "--", "{{Text}}"}
		}
	case presetPiper:
		setDefault(&p.Command, "piper")
		if p.Args == nil && p.Model != "" {
			p.Args = []string{"--model", p.Model, "--output_file", "{{OutputPath}}"}
		}
	}
	return p
}

// WithDefaults returns a complete policy: what Plan and Speaker want. Layers are merged before, because
// a default is not to be told from a choice afterwards.
func (c Config) WithDefaults() Config {
	setDefault(&c.Auto, Off)
	setDefault(&c.Mode, modeFinal)
	setDefault(&c.MaxTextLength, longestText)
	setDefault(&c.MaxLength, min(defaultLength, c.MaxTextLength))
	setDefault(&c.TimeoutMs, defaultTimeoutMs)
	setDefault(&c.Summarize, new(false))
	setDefault(&c.ModelOverrides.Enabled, new(true))
	setDefault(&c.ModelOverrides.AllowProvider, new(false))
	all := make(map[string]Provider, len(c.Providers)+1)
	for id, p := range c.Providers {
		all[id] = p.withDefaults(c)
	}
	if _, ok := all[string(OpenAI)]; !ok && c.Provider == string(OpenAI) { // needs no settings
		all[string(OpenAI)] = Provider{}.withDefaults(c)
	}
	c.Providers = all
	return c
}

func setDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// limit is how many characters of an answer are spoken.
func (c Config) limit() int { return min(c.MaxLength, c.MaxTextLength) }
