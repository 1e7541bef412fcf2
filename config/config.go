package config

import (
	"maps"
	"slices"

	"understudy/channels/discord"
	"understudy/channels/slack"
	"understudy/channels/telegram"
	"understudy/failover/policy"
	"understudy/internal/secret"
	"understudy/llm"
)

// Config is one validated configuration. It is immutable: nobody may write to what it holds or
// returns. The embedded File is what was written, with defaults filled in; the methods say what it
// means.
type Config struct {
	File
	// Env is what the environment sets.
	Env Env
	// Path is the file this came from; "" = no file, only defaults.
	Path string
	// Unavailable lists what is switched off because a secret could not be resolved.
	Unavailable []Unavailable

	rules           policy.Rules
	pools           map[string]policy.Pool
	aliases         map[string]llm.ModelRef // by lower-case alias
	listed          []llm.ModelRef          // keys of agents.defaults.models
	allow           []string                // nil = everything
	agents          map[string]Agent
	agentIDs        []string
	defaultAgent    string
	anyProvider     bool
	compactionModel llm.ModelRef
	secrets         []secret.String
	plaintext       []string
	commanders      map[string][]string // who may use commands, by channel
	blank           bool                // the file holds nothing but blanks and comments
	texts           []string            // paths of further files that were read, in the order of the file
	stamp           stamp               // of the file, and of these, when they were read

	// What runs, by account.
	slack    map[string]slack.Config
	discord  map[string]discord.Config
	telegram map[string]telegram.Config
	manners  map[accountName]Manners
	speech   speechLayers
}

// Unavailable names a provider, a channel, one account of a channel, or another part of the
// configuration whose secret could not be resolved. It is switched off; everything else runs
// (spec/chat.md §7.7).
type Unavailable struct {
	Provider         string
	Channel, Account string // Account "" = the channel's default account
	Part             string // the key of a tool server or of somebody who speaks or listens, in whatever layer
	Problem          Problem
}

// Secrets returns the secrets the configuration resolved, for exact replacement in logs
// (spec/chat.md §7.5); those of fewer than six characters are not among them.
func (c *Config) Secrets() []secret.String { return slices.Clone(c.secrets) }

// Plaintext returns the keys whose secret is written in the file itself instead of referred to.
func (c *Config) Plaintext() []string { return slices.Clone(c.plaintext) }

// WithModel returns a copy in which agents that have no model of their own use m: what discovery
// found when nothing is configured.
func (c *Config) WithModel(m policy.Models) *Config {
	n := *c
	n.agents = maps.Clone(c.agents)
	for id, a := range n.agents {
		if a.Models.Primary.IsZero() {
			a.Models = m
			n.agents[id] = a
		}
	}
	return &n
}
