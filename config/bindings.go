package config

import (
	"fmt"
	"slices"

	"understudy/channels/discord"
	"understudy/channels/slack"
	"understudy/channels/telegram"
	"understudy/chat"
)

// Binding sends the messages that match to one agent (spec/chat.md §1.2). It gives nobody access.
type Binding struct {
	AgentID string       `yaml:"agentId" required:"true"`
	Match   BindingMatch `yaml:"match"`
}

// BindingMatch is what a message must be for a Binding to count: everything that is set.
type BindingMatch struct {
	Channel string `yaml:"channel" required:"true"`
	// AccountID is an account of the channel, "*" all of them; "" = the default one.
	AccountID string      `yaml:"accountId"`
	Peer      BindingPeer `yaml:"peer"`
	GuildID   string      `yaml:"guildId"` // Discord server
	TeamID    string      `yaml:"teamId"`  // Slack workspace
	// Roles are roles on that server; one of them suffices.
	Roles []string `yaml:"roles"`
}

// BindingPeer is who the bot talks with: a person or a conversation.
type BindingPeer struct {
	Kind string `yaml:"kind" enum:"direct|group|channel"`
	// ID is that of the person, the group, the channel or the thread; a topic of a Telegram group is
	// <group>:topic:<number>. "*" is every one of the kind.
	ID string `yaml:"id"`
}

// anyOf stands for everything in a binding.
const anyOf = "*"

// mostBindings bounds the list, which every message is held against.
const mostBindings = 1000

// The ranks of bindings: the more specific, the higher.
const (
	noMatch = iota
	matchChannel
	matchAccount
	matchTeam
	matchGuild
	matchRoles
	matchKind // peer wildcard
	matchParent
	matchPeer
)

// Route returns the agent that answers a message: that of the most specific binding, of several alike
// the first, else the default agent. former are the ids that its conversation had before, the latest
// first: a binding that names one of them holds, unless another one as specific names a later id. It is
// pure.
func (c *Config) Route(m chat.Inbound, former ...string) string {
	agent, best := c.defaultAgent, noMatch
	for _, id := range append([]string{m.Address.Conversation}, former...) {
		m.Address.Conversation = id
		for _, b := range c.Bindings {
			if rank := b.Match.rank(m); rank > best {
				agent, best = b.AgentID, rank
			}
		}
	}
	return agent
}

// rank returns how specifically a message is matched.
func (b BindingMatch) rank(m chat.Inbound) int {
	space := b.GuildID + b.TeamID // a valid binding has one of them at most
	switch {
	case b.Channel != m.Address.Channel:
		return noMatch
	case b.AccountID != anyOf && accountID(b.AccountID) != accountID(m.Address.Account):
		return noMatch
	case space != "" && space != m.Space:
		return noMatch
	case len(b.Roles) > 0 && !slices.ContainsFunc(b.Roles, func(r string) bool { return slices.Contains(m.Roles, r) }):
		return noMatch
	}
	if b.Peer != (BindingPeer{}) {
		return b.Peer.rank(m)
	}
	switch {
	case len(b.Roles) > 0:
		return matchRoles
	case b.GuildID != "":
		return matchGuild
	case b.TeamID != "":
		return matchTeam
	case b.AccountID != anyOf:
		return matchAccount
	}
	return matchChannel
}

// rank is BindingMatch.rank for the peer alone.
func (p BindingPeer) rank(m chat.Inbound) int {
	a := m.Address
	switch {
	case p.Kind != string(a.Kind):
		return noMatch
	case p.ID == anyOf:
		return matchKind
	case a.Kind == chat.Direct && p.ID == m.Sender.ID, a.Thread == "" && p.ID == a.Conversation, a.Thread != "" && p.ID == threadID(a):
		return matchPeer
	case p.ID == a.Conversation:
		return matchParent
	}
	return noMatch
}

// threadID is how a binding names a thread. The numbers of Telegram's topics mean something within
// their group only.
func threadID(a chat.Address) string {
	if a.Channel == telegram.Channel {
		return a.Conversation + ":topic:" + a.Thread
	}
	return a.Thread
}

// accountID is the id of an account, which the default one may leave out.
func accountID(id string) string {
	if id == "" {
		return DefaultAccount
	}
	return id
}

// resolveBindings checks the bindings.
func (c *Config) resolveBindings(d *decoder) {
	if len(c.Bindings) > mostBindings {
		d.fail("bindings", fmt.Sprintf("more than %d bindings", mostBindings), "")
	}
	channels := append(c.channelNames(), localChannels...)
	for i, b := range c.Bindings {
		at := fmt.Sprintf("bindings[%d]", i)
		if _, known := c.agents[b.AgentID]; !known {
			d.fail(at+".agentId", fmt.Sprintf("there is no agent %s", quote(b.AgentID)), hintFor(b.AgentID, c.agentIDs))
		}
		m := b.Match
		if !slices.Contains(channels, m.Channel) {
			d.fail(at+".match.channel", fmt.Sprintf("there is no channel %s", quote(m.Channel)), hintFor(m.Channel, channels))
		}
		if m.GuildID != "" && m.Channel != discord.Channel {
			d.fail(at+".match.guildId", "only Discord has servers", "")
		}
		if m.TeamID != "" && m.Channel != slack.Channel {
			d.fail(at+".match.teamId", "only Slack has workspaces", "")
		}
		if len(m.Roles) > 0 && m.GuildID == "" {
			d.fail(at+".match.roles", "roles belong to a server", "write its guildId too")
		}
		if (m.Peer.Kind == "") != (m.Peer.ID == "") {
			d.fail(at+".match.peer", "a peer has a kind and an id", `"*" is every one of the kind`)
		}
	}
}
