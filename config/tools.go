package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"understudy/llm"
	"understudy/mcp"
	"understudy/tts"
)

// resolveTools completes and checks the tool servers. One whose secret is missing does not run.
func (c *Config) resolveTools(d *decoder) {
	d.component("mcp", c.MCP.Validate())
	servers := make(map[string]mcp.Server, len(c.MCP.Servers))
	for _, name := range slices.Sorted(maps.Keys(c.MCP.Servers)) {
		s, at := c.MCP.Servers[name], join("mcp.servers", name)
		for i, id := range s.Agents {
			if _, known := c.agents[id]; !known {
				d.fail(fmt.Sprintf("%s.agents[%d]", at, i), "there is no agent "+quote(id), hintFor(id, c.agentIDs))
			}
		}
		for i, channel := range s.Channels {
			c.anyChannelKey(d, fmt.Sprintf("%s.channels[%d]", at, i), channel)
		}
		if d.lacks(at) {
			s.Enabled = new(false)
		}
		servers[name] = s
	}
	if c.MCP.Servers != nil {
		c.MCP.Servers = servers
	}
	c.MCP = c.MCP.WithDefaults()
}

// resolveSpeech checks who speaks and who listens. Of what lacks a secret nothing is used.
func (c *Config) resolveSpeech(d *decoder) {
	d.component("tts", c.TTS.Validate())
	c.summaryModel = c.primary(d, c.TTS.SummaryModel, "tts.summaryModel")
	providers := make(map[string]tts.Provider, len(c.TTS.Providers))
	for id, p := range c.TTS.Providers {
		if d.lacks(join("tts.providers", id)) {
			p.Enabled = new(false)
		}
		providers[id] = p
	}
	if c.TTS.Providers != nil {
		c.TTS.Providers = providers
	}
	err := c.STT.Validate()
	if d.lacks("stt") {
		c.STT.Provider, err = "", withoutKey(err, "apiKey")
	}
	d.component("stt", err)
}

// SummaryModel is the model that shortens long answers for speech; zero = the agent's.
func (c *Config) SummaryModel() llm.ModelRef { return c.summaryModel }

// lacks reports whether a secret is missing that a part of the configuration cannot do without.
func (d *decoder) lacks(part string) bool {
	return slices.ContainsFunc(d.unavailable, func(u Unavailable) bool { return u.Part == part })
}

// withoutKey leaves out what is wrong with one key: that was reported already.
func withoutKey(err error, key string) error {
	var kept []error
	for _, e := range flatten(err) {
		if !strings.HasPrefix(e.Error(), key+": ") {
			kept = append(kept, e)
		}
	}
	return errors.Join(kept...)
}
