package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"understudy/mcp"
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
