package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"understudy/channels/discord"
	"understudy/channels/slack"
	"understudy/channels/telegram"
	"understudy/inbound"
	"understudy/session"
)

// checkOpen refuses what reads like a door that is open and would be none (spec/chat.md §7.2).
func (d *decoder) checkOpen(at string, s shared) {
	if *s.dmPolicy == inbound.PolicyOpen && !slices.Contains(*s.allowFrom, "*") {
		d.fail(at+".allowFrom", `dmPolicy open admits everybody only together with "*"`, "add it, or use the policy allowlist")
	}
}

// advise warns of what is valid and hardly meant.
func (c *Config) advise(d *decoder) {
	for _, id := range slices.Sorted(maps.Keys(c.telegram)) {
		c.adviseTelegram(d, accountKey(telegram.Channel, id), c.telegram[id])
	}
	for _, id := range slices.Sorted(maps.Keys(c.discord)) {
		c.adviseDiscord(d, accountKey(discord.Channel, id), c.discord[id])
	}
	if n := c.directSenders(); c.Session.DMScope == session.ScopeMain && n > 1 {
		d.warn("session.dmScope", fmt.Sprintf("%d people are let in, and with main all of them share one conversation", n), "use per-channel-peer")
	}
}

// accountKey is where an account is configured.
func accountKey(channel, id string) string {
	if id == DefaultAccount {
		return "channels." + channel
	}
	return join("channels."+channel+".accounts", id)
}

func (c *Config) adviseTelegram(d *decoder, at string, x telegram.Config) {
	negative := func(key string, ids []string) {
		for _, id := range ids {
			if strings.HasPrefix(id, "-") {
				d.warn(at+"."+key, fmt.Sprintf("%s is the id of a group: it lets in who writes in the name of that group, and none of its members", quote(id)), "the group itself belongs into groups")
			}
		}
	}
	negative("allowFrom", x.AllowFrom)
	negative("groupAllowFrom", x.GroupAllowFrom)
	for _, id := range slices.Sorted(maps.Keys(x.Groups)) {
		negative(join("groups", id)+".allowFrom", x.Groups[id].AllowFrom)
	}
	if strings.Contains(x.APIRoot, "/bot") {
		d.fail(at+".apiRoot", "it ends before /bot: that part and the token are added to it", "")
	}
}

func (c *Config) adviseDiscord(d *decoder, at string, x discord.Config) {
	if x.Intents.MessageContent == nil || *x.Intents.MessageContent {
		return
	}
	without := func(key string, mention *bool) {
		if mention != nil && !*mention {
			d.warn(at+"."+key, "a mention is needed all the same: without intents.messageContent other messages cannot be read", "")
		}
	}
	without("requireMention", x.RequireMention)
	for _, id := range slices.Sorted(maps.Keys(x.Guilds)) {
		g := x.Guilds[id]
		without(join("guilds", id)+".requireMention", g.RequireMention)
		for _, channel := range slices.Sorted(maps.Keys(g.Channels)) {
			without(join(join("guilds", id)+".channels", channel)+".requireMention", g.Channels[channel].RequireMention)
		}
	}
}

// directSenders counts the people who are listed for direct messages.
func (c *Config) directSenders() int {
	people := map[string]bool{}
	add := func(channel string, ids []string) {
		for _, id := range ids {
			people[channel+":"+id] = true
		}
	}
	for _, x := range c.slack {
		add(slack.Channel, x.AllowFrom)
	}
	for _, x := range c.discord {
		add(discord.Channel, x.AllowFrom)
	}
	for _, x := range c.telegram {
		add(telegram.Channel, x.AllowFrom)
	}
	return len(people)
}
