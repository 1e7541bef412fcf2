package config

import (
	"slices"

	"understudy/channels/discord"
	"understudy/channels/slack"
	"understudy/channels/telegram"
	"understudy/inbound"
)

// checkAccess notes what the pipeline would not take, so that a bot never starts with less than was
// checked. Patterns are those of the account itself; inherited ones are checked where they are written.
func (d *decoder) checkAccess(at string, a inbound.Access, patterns bool) {
	if !patterns {
		a.MentionPatterns = nil
	}
	_, err := a.Compile()
	d.further(at, err)
}

// further is component for a second look at the same keys: of a key that is wrong already nothing more
// is said.
func (d *decoder) further(at string, err error) {
	known := len(d.problems)
	d.component(at, err)
	news := slices.Clone(d.problems[known:])
	d.problems = d.problems[:known]
	for _, p := range news {
		if !slices.ContainsFunc(d.problems[:known], func(q Problem) bool { return q.Key == p.Key }) {
			d.problems = append(d.problems, p)
		}
	}
}

// SlackAccess says who may talk to a Slack account.
func SlackAccess(c slack.Config) inbound.Access {
	a := inbound.Access{
		DMPolicy: c.DMPolicy, AllowFrom: c.AllowFrom, GroupPolicy: c.GroupPolicy, GroupAllowFrom: c.GroupAllowFrom,
		RequireMention: c.RequireMention, MentionPatterns: c.MentionPatterns, IgnoreOtherMentions: c.IgnoreOtherMentions,
		ImplicitThread: *c.ImplicitMentions.ThreadParticipation,
		AllowBots:      c.AllowBots, HistoryLimit: c.HistoryLimit, CatchUp: c.CatchUp,
	}
	if len(c.Channels) > 0 {
		a.Groups = map[string]inbound.Group{}
	}
	for id, room := range c.Channels {
		a.Groups[id] = inbound.Group{Enabled: room.Enabled, RequireMention: room.RequireMention, AllowFrom: room.Users}
	}
	return a
}

// DiscordAccess says who may talk to a Discord account. Without the text of messages that do not mention
// it, the bot could only answer nothing.
func DiscordAccess(c discord.Config) inbound.Access {
	readable := c.Intents.MessageContent == nil || *c.Intents.MessageContent
	mention := func(own *bool) *bool {
		if readable {
			return own
		}
		yes := true
		return &yes
	}
	a := inbound.Access{
		DMPolicy: c.DMPolicy, AllowFrom: c.AllowFrom, GroupPolicy: c.GroupPolicy, GroupAllowFrom: c.GroupAllowFrom,
		RequireMention: mention(c.RequireMention), MentionPatterns: c.MentionPatterns, IgnoreOtherMentions: c.IgnoreOtherMentions,
		AllowBots: c.AllowBots, HistoryLimit: c.HistoryLimit, CatchUp: c.CatchUp,
	}
	if len(c.Guilds) > 0 {
		a.Spaces = map[string]inbound.Space{}
	}
	for id, g := range c.Guilds {
		space := inbound.Space{Group: inbound.Group{RequireMention: mention(g.RequireMention), AllowFrom: g.Users, Roles: g.Roles}}
		if len(g.Channels) > 0 {
			space.Groups = map[string]inbound.Group{}
		}
		for channel, place := range g.Channels {
			space.Groups[channel] = inbound.Group{
				Enabled: place.Enabled, RequireMention: mention(place.RequireMention), AllowFrom: place.Users, Roles: place.Roles,
			}
		}
		a.Spaces[id] = space
	}
	return a
}

// TelegramAccess says who may talk to a Telegram account.
func TelegramAccess(c telegram.Config) inbound.Access {
	a := inbound.Access{
		DMPolicy: c.DMPolicy, AllowFrom: c.AllowFrom, GroupPolicy: c.GroupPolicy, GroupAllowFrom: c.GroupAllowFrom,
		RequireMention: c.RequireMention, MentionPatterns: c.MentionPatterns, IgnoreOtherMentions: c.IgnoreOtherMentions,
		AllowBots: c.AllowBots, HistoryLimit: c.HistoryLimit, CatchUp: c.CatchUp,
	}
	if len(c.Groups) > 0 {
		a.Groups = map[string]inbound.Group{}
	}
	for id, g := range c.Groups {
		a.Groups[id] = inbound.Group{RequireMention: g.RequireMention, AllowFrom: g.AllowFrom}
	}
	return a
}
