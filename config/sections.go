package config

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"understudy/budget"
	"understudy/cron"
	"understudy/gateway"
	"understudy/llm"
	"understudy/mcp"
	"understudy/notices"
	"understudy/provider"
	"understudy/session"
	"understudy/stt"
	"understudy/tts"
)

// File is the configuration as it is written: one field per top-level key.
type File struct {
	Agents   Agents         `yaml:"agents"`
	Auth     Auth           `yaml:"auth"`
	Models   Models         `yaml:"models"`
	Notices  notices.Config `yaml:"notices"`
	Channels Channels       `yaml:"channels"`
	// Bindings choose the agent of a message; without a match it is the default one.
	Bindings []Binding           `yaml:"bindings"`
	Session  session.Config      `yaml:"session"`
	Queue    session.QueueConfig `yaml:"queue"`
	Messages Messages            `yaml:"messages"`
	Commands Commands            `yaml:"commands"`
	// AccessGroups are lists of ids by name, for accessGroup:<name> in any allowlist (spec/chat.md §2.2).
	AccessGroups map[string][]string `yaml:"accessGroups"`
	Gateway      gateway.Config      `yaml:"gateway"`
	Logging      Logging             `yaml:"logging"`
	Shutdown     Shutdown            `yaml:"shutdown"`
	Compaction   Compaction          `yaml:"compaction"`
	MCP          mcp.Config          `yaml:"mcp"`
	TTS          tts.Config          `yaml:"tts"`
	STT          stt.Config          `yaml:"stt"`
	Cron         cron.Config         `yaml:"cron"`
	Budget       budget.Config       `yaml:"budget"`
}

// Models is the `models` section.
type Models struct {
	// Providers is keyed by normalised provider id.
	Providers map[string]provider.Config `yaml:"providers"`
}

// Logging is the `logging` section.
type Logging struct {
	Level string `yaml:"level" enum:"debug|info|warn|error"`
	// Format is json, text, or auto: text on a terminal, JSON elsewhere.
	Format string `yaml:"format" enum:"auto|json|text"`
}

// Shutdown is the `shutdown` section.
type Shutdown struct {
	// Drain is how long running turns may go on after a stop was asked for.
	Drain time.Duration `yaml:"drain"`
}

// Compaction is the `compaction` section (spec/chat.md §1.8).
type Compaction struct {
	// Model writes the summaries; "" = the session's own. It gets no fallbacks. It is written like every
	// model of the configuration; Config.CompactionModel is what it means.
	Model string `yaml:"model"`
	// ReserveTokens is what of the context window is kept free for the answer.
	ReserveTokens int `yaml:"reserveTokens"`
	// KeepRecentTokens is how much of the newest conversation is never summarised.
	KeepRecentTokens int  `yaml:"keepRecentTokens"`
	NotifyUser       bool `yaml:"notifyUser"`
}

// defaults returns the configuration of an empty file.
func defaults(env Env) Config {
	return Config{
		Env: env,
		File: File{
			Agents:     Agents{Defaults: AgentDefaults{MaxConcurrent: defaultMaxConcurrent}},
			Messages:   defaultMessages(),
			Logging:    Logging{Level: "info", Format: "auto"},
			Shutdown:   Shutdown{Drain: 30 * time.Second},
			Compaction: Compaction{ReserveTokens: 16_384, KeepRecentTokens: 20_000},
		},
	}
}

// resolveSections checks what no other step does.
func (c *Config) resolveSections(d *decoder) {
	c.Notices = c.Notices.WithDefaults()
	d.component("notices", c.Notices.Validate())
	c.Session = c.Session.WithDefaults()
	d.component("session", c.Session.Validate())
	c.resolveQueue(d)
	c.resolveBindings(d)
	c.resolveTools(d)
	c.resolveSpeech(d)
	d.component("cron", c.Cron.Validate())
	c.Cron = c.Cron.WithDefaults()
	d.component("budget", c.Budget.Validate())
	c.resolveGateway(d)
	c.resolveAccessGroups(d)
	c.resolveMessages(d)
	c.resolvePlatforms(d)
	c.resolveVoices(d)
	if c.Shutdown.Drain > time.Hour {
		d.fail("shutdown.drain", fmt.Sprintf("%s is longer than an hour", c.Shutdown.Drain), "")
	}
	c.compactionModel = c.primary(d, c.Compaction.Model, "compaction.model")
	for _, n := range [...]struct {
		key   string
		value int
	}{{"reserveTokens", c.Compaction.ReserveTokens}, {"keepRecentTokens", c.Compaction.KeepRecentTokens}} {
		if n.value < 0 || n.value > 100_000_000 {
			d.fail("compaction."+n.key, fmt.Sprintf("%d is not a sensible number of tokens", n.value), "")
		}
	}
}

// CompactionModel is the model that writes summaries; zero = the session's own.
func (c *Config) CompactionModel() llm.ModelRef { return c.compactionModel }

// resolveQueue checks how messages wait.
func (c *Config) resolveQueue(d *decoder) {
	d.component("queue", c.Queue.Validate())
	for _, channel := range slices.Sorted(maps.Keys(c.Queue.ByChannel)) {
		c.anyChannelKey(d, join("queue.byChannel", channel), channel)
	}
	for _, channel := range slices.Sorted(maps.Keys(c.Queue.DebounceMsByChannel)) {
		c.anyChannelKey(d, join("queue.debounceMsByChannel", channel), channel)
	}
}

// resolveGateway completes the listener's settings from the environment.
func (c *Config) resolveGateway(d *decoder) {
	if c.Gateway.Listen == "" {
		c.Gateway.Listen = c.Env.Listen
	}
	if c.Gateway.Token.IsZero() && !c.Env.Token.IsZero() {
		c.Gateway.Token = d.keep(c.Env.Token.Reveal())
	}
	c.Gateway = c.Gateway.WithDefaults()
	d.component("gateway", c.Gateway.Validate())
}
