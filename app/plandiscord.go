package app

import (
	"context"
	"maps"

	"understudy/channels"
	"understudy/channels/discord"
	"understudy/config"
	"understudy/delivery"
	"understudy/inbound"
)

// discord plans a Discord account.
func (p planner) discord(c discord.Config, k inbound.Account) plan {
	out := plan{key: k, access: config.DiscordAccess(c), fileLimit: int64(c.MediaMaxMB) << 20, inherit: c.Thread.InheritParent}
	out.settings = delivery.Settings{
		ReplyTo: delivery.Mode(c.ReplyToMode), Previews: previews(c.Streaming.Mode), Progress: c.Streaming.Mode == modeProgress, Typing: p.typing(k),
		TextLimit: c.TextChunkLimit, Newline: c.Streaming.ChunkMode == "newline",
		AckReaction: c.AckReaction, AckScope: p.scope,
		StatusReactions: statusSigns(c.StatusReactions, delivery.StatusReactions{Queued: "👀", Working: "✍️", Done: "✅", Failed: "❌"}),
	}
	a := p.a
	out.open = func(ctx context.Context) (channels.Adapter, error) {
		hash, err := inbound.OpenCursor(ctx, a.db, k.Channel, k.Name, "commands-"+c.BotID())
		if err != nil {
			return nil, err
		}
		return discord.New(c, discord.Deps{
			Account: k.Name, Log: a.log, Seen: a.inbound.Seen(k.Channel, k.Name), Menus: a.inbound.Menus(), Hash: kept{hash},
			Complete: a.complete, Authorised: a.mayComplete, Transport: a.opts.Discord, Dial: a.opts.Dial,
		})
	}
	c.DMPolicy, c.AllowFrom, c.GroupPolicy, c.GroupAllowFrom = "", nil, "", nil
	c.IgnoreOtherMentions, c.AllowBots, c.HistoryLimit = false, "", nil
	c.ReplyToMode, c.Streaming, c.AckReaction, c.StatusReactions, c.Thread = "", discord.Streaming{}, "", false, discord.Thread{}
	c.Guilds = maps.Clone(c.Guilds) // the adapter opens threads as they say, but leaves people to the pipeline
	for id, g := range c.Guilds {
		g.Users, g.Roles, g.Channels = nil, nil, maps.Clone(g.Channels)
		for channel, place := range g.Channels {
			place.Users, place.Roles = nil, nil
			g.Channels[channel] = place
		}
		c.Guilds[id] = g
	}
	out.connect = c
	return out
}

// kept is a text that an adapter keeps over restarts.
type kept struct{ cursor *inbound.Cursor }

// Load implements discord.Hash and slack.Notes.
func (k kept) Load(ctx context.Context) (string, error) { return k.cursor.Value(ctx) }

// Save implements discord.Hash and slack.Notes.
func (k kept) Save(ctx context.Context, text string) error { return k.cursor.SetValue(ctx, text) }
