package config

import (
	"reflect"
	"time"

	"github.com/goccy/go-yaml/ast"

	"understudy/failover/policy"
	"understudy/heartbeat"
	"understudy/tts"
)

// Agents is the `agents` section.
type Agents struct {
	Defaults AgentDefaults `yaml:"defaults"`
	List     []AgentEntry  `yaml:"list"`
}

// AgentDefaults is what holds for every agent that does not say otherwise.
type AgentDefaults struct {
	Model      ModelChoice `yaml:"model"`
	ImageModel ModelChoice `yaml:"imageModel"`
	Heartbeat  Heartbeat   `yaml:"heartbeat"`
	// Commitments lets the model offer reminders of what it promises.
	Commitments Commitments `yaml:"commitments"`
	// Models gives models short names; the key is the reference.
	Models      map[string]ModelEntry `yaml:"models"`
	ModelPolicy ModelPolicy           `yaml:"modelPolicy"`
	// TimeoutSeconds limits a whole turn; nil = 600, 0 = no limit.
	TimeoutSeconds *int   `yaml:"timeoutSeconds"`
	SystemPrompt   string `yaml:"systemPrompt"`
	// SystemFiles are files whose texts stand in the system prompt, behind SystemPrompt and in this order;
	// relative paths begin at the folder of the configuration file.
	SystemFiles []string `yaml:"systemFiles"`
	// UserTimezone is an IANA name such as Europe/Berlin; "" = the host's zone.
	UserTimezone string `yaml:"userTimezone"`
	// MaxConcurrent is how many turns may run at once over all chats.
	MaxConcurrent int `yaml:"maxConcurrent"`
}

// AgentEntry is one agent of `agents.list`. What it leaves out comes from the defaults, except
// that a model of its own brings no fallbacks along (spec/failover.md §3).
type AgentEntry struct {
	ID           string       `yaml:"id" required:"true"`
	Default      bool         `yaml:"default"`
	Model        *ModelChoice `yaml:"model"`
	ImageModel   *ModelChoice `yaml:"imageModel"`
	Heartbeat    *Heartbeat   `yaml:"heartbeat"`
	Commitments  *Commitments `yaml:"commitments"`
	SystemPrompt *string      `yaml:"systemPrompt"`
	// SystemFiles replaces those of the defaults; [] = none.
	SystemFiles []string `yaml:"systemFiles"`
	// TTS is what the agent changes of the section `tts`; see Config.Speech.
	TTS tts.Config `yaml:"tts"`
}

// Commitments is the `commitments` section of an agent. What an agent's own section leaves out comes from
// the one of the defaults.
type Commitments struct {
	// Enabled offers what the model promises as a reminder that a person may take; nil = false.
	Enabled *bool `yaml:"enabled"`
}

// ModelChoice is a model and the ones that may step in for it, written as a plain reference or as
// {primary, fallbacks}.
type ModelChoice struct {
	Primary string `yaml:"primary"`
	// Fallbacks is nil when not written and empty when written as [].
	Fallbacks []string `yaml:"fallbacks"`
}

// decodeNode accepts both shapes.
func (m *ModelChoice) decodeNode(d *decoder, n ast.Node, path string) {
	if _, err := scalarText(n); err == nil {
		d.scalar(n, reflect.ValueOf(&m.Primary).Elem(), path)
		return
	}
	d.section(n, reflect.ValueOf(m).Elem(), path)
}

// ModelEntry is what `agents.defaults.models` says about one model.
type ModelEntry struct {
	Alias string `yaml:"alias"`
}

// ModelPolicy limits what users may select. It never filters configured fallbacks.
type ModelPolicy struct {
	// Allow lists references in which * stands for anything; nil = every model, [] = none.
	Allow []string `yaml:"allow"`
}

// Agent is what holds for one agent after defaults, aliases and references were resolved.
type Agent struct {
	ID           string
	Default      bool
	Models       policy.Models
	ImageModels  policy.Models // Primary is zero when no image model is configured
	Heartbeat    heartbeat.Settings
	Commitments  bool // whether the model may offer reminders
	SystemPrompt string
	SystemFiles  []SystemFile // as they were when the configuration was read
	// Timeout limits a whole turn; 0 = no limit.
	Timeout  time.Duration
	Timezone *time.Location
}

// Defaults of the agents section.
const (
	defaultTurnTimeout   = 600 * time.Second
	defaultMaxConcurrent = 256
	defaultAgentID       = "main"
)
