package config

import (
	"fmt"
	"time"

	"understudy/gateway"
	"understudy/inbound"
	"understudy/notices"
	"understudy/provider"
	"understudy/session"
)

// File is the configuration as it is written: one field per top-level key.
type File struct {
	Agents     Agents         `yaml:"agents"`
	Auth       Auth           `yaml:"auth"`
	Models     Models         `yaml:"models"`
	Notices    notices.Config `yaml:"notices"`
	Channels   Channels       `yaml:"channels"`
	Session    session.Config `yaml:"session"`
	Messages   Messages       `yaml:"messages"`
	Commands   Commands       `yaml:"commands"`
	Gateway    gateway.Config `yaml:"gateway"`
	Logging    Logging        `yaml:"logging"`
	Shutdown   Shutdown       `yaml:"shutdown"`
	Compaction Compaction     `yaml:"compaction"`
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

// Messages is the `messages` section.
type Messages struct {
	CatchUp CatchUp `yaml:"catchUp"`
}

// CatchUp limits what is answered after a restart.
type CatchUp struct {
	// MaxAge is the age beyond which a message is not answered any more; its sender is told.
	MaxAge time.Duration `yaml:"maxAge"`
}

// Commands is the `commands` section.
type Commands struct {
	// OwnerAllowFrom lists the owners as channel:id, for example telegram:123456789.
	OwnerAllowFrom []string `yaml:"ownerAllowFrom"`
}

// Compaction is the `compaction` section (spec/chat.md §1.8).
type Compaction struct {
	// Model writes the summaries; "" = the session's own. It gets no fallbacks.
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
			Messages:   Messages{CatchUp: CatchUp{MaxAge: inbound.DefaultMaxAge}},
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
	c.resolveGateway(d)
	c.resolveTelegram(d)
	d.component("", inbound.Config{Owners: c.Commands.OwnerAllowFrom}.Validate())
	if age := c.Messages.CatchUp.MaxAge; age < time.Minute || age > 7*24*time.Hour {
		d.fail("messages.catchUp.maxAge", fmt.Sprintf("%s is not between 1m and 7d", age), "")
	}
	if c.Shutdown.Drain > time.Hour {
		d.fail("shutdown.drain", fmt.Sprintf("%s is longer than an hour", c.Shutdown.Drain), "")
	}
	c.primary(d, c.Compaction.Model, "compaction.model")
	for _, n := range [...]struct {
		key   string
		value int
	}{{"reserveTokens", c.Compaction.ReserveTokens}, {"keepRecentTokens", c.Compaction.KeepRecentTokens}} {
		if n.value < 0 || n.value > 100_000_000 {
			d.fail("compaction."+n.key, fmt.Sprintf("%d is not a sensible number of tokens", n.value), "")
		}
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
