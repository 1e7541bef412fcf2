package app

import (
	"context"

	"understudy/channels"
	"understudy/channels/slack"
	"understudy/chat"
	"understudy/config"
	"understudy/delivery"
	"understudy/delivery/markup"
	"understudy/inbound"
)

// slack plans a Slack account.
func (p planner) slack(c slack.Config, k inbound.Account) plan {
	byKind := slackModes(c)
	out := plan{
		key: k, access: config.SlackAccess(c), fileLimit: int64(c.MediaMaxMB) << 20,
		lookBack: *c.Thread.InitialHistoryLimit, inherit: c.Thread.InheritParent,
	}
	switch byKind[chat.Room] {
	case delivery.ModeFirst, delivery.ModeAll:
		out.access.SeedThreads = true
	}
	out.settings = delivery.Settings{
		ReplyTo: delivery.Mode(c.ReplyToMode), ReplyToByKind: byKind, Previews: previews(c.Streaming.Mode), Progress: c.Streaming.Mode == modeProgress,
		NativeStream: *c.Streaming.NativeTransport, Typing: p.typing(k), TextLimit: c.TextChunkLimit, Newline: c.Streaming.ChunkMode == "newline",
		AckReaction: c.AckReaction, AckScope: p.scope, TypingReaction: c.TypingReaction,
		StatusReactions: statusSigns(c.StatusReactions, delivery.StatusReactions{Queued: "eyes", Working: "writing_hand", Done: "white_check_mark", Failed: "x"}),
	}
	a := p.a
	out.open = func(ctx context.Context) (channels.Adapter, error) {
		roots, err := inbound.OpenCursor(ctx, a.db, k.Channel, k.Name, "assistant-threads")
		if err != nil {
			return nil, err
		}
		return slack.New(c, slack.Deps{
			Account: k.Name, Log: a.log, Seen: a.inbound.Seen(k.Channel, k.Name), Menus: a.inbound.Menus(), Roots: kept{roots},
			Transport: a.opts.Slack, Dial: a.opts.Dial,
			Mrkdwn: func(md string) string { return markup.Render(md, markup.SlackMrkdwn) },
		})
	}
	c.DMPolicy, c.AllowFrom, c.GroupPolicy, c.GroupAllowFrom, c.Channels, c.RequireMention = "", nil, "", nil, nil, nil
	c.IgnoreOtherMentions, c.AllowBots, c.HistoryLimit = false, "", nil
	c.ReplyToMode, c.ReplyToModeByChatType, c.Streaming = "", slack.ReplyModes{}, slack.Streaming{}
	c.AckReaction, c.StatusReactions, c.TypingReaction, c.Thread = "", false, "", slack.Thread{}
	out.connect = c
	return out
}

// slackModes are the reply modes of all kinds of conversations.
func slackModes(c slack.Config) map[chat.Kind]delivery.Mode {
	own := map[chat.Kind]string{
		chat.Direct: c.ReplyToModeByChatType.Direct, chat.Group: c.ReplyToModeByChatType.Group, chat.Room: c.ReplyToModeByChatType.Channel,
	}
	out := map[chat.Kind]delivery.Mode{}
	for kind, mode := range own {
		if mode == "" {
			mode = c.ReplyToMode
		}
		out[kind] = delivery.Mode(mode)
	}
	return out
}
