package app

import (
	"context"

	"understudy/channels"
	"understudy/channels/telegram"
	"understudy/config"
	"understudy/delivery"
	"understudy/inbound"
)

// telegram plans a Telegram account.
func (p planner) telegram(c telegram.Config, k inbound.Account) plan {
	out := plan{key: k, access: config.TelegramAccess(c), fileLimit: int64(c.MediaMaxMB) << 20}
	out.settings = delivery.Settings{
		ReplyTo: delivery.Mode(c.ReplyToMode), Previews: previews(c.Streaming.Mode), Progress: c.Streaming.Mode == modeProgress, Typing: p.typing(k),
		TextLimit: c.TextChunkLimit, Newline: c.Streaming.ChunkMode == "newline",
		AckReaction: c.AckReaction, AckScope: p.scope,
		StatusReactions: statusSigns(c.StatusReactions, delivery.StatusReactions{Queued: "👀", Working: "✍", Done: "👌", Failed: "😢"}),
	}
	out.open = func(ctx context.Context) (channels.Adapter, error) {
		cursor, err := inbound.OpenCursor(ctx, p.a.db, k.Channel, k.Name, "offset-"+c.BotID())
		if err != nil {
			return nil, err
		}
		return telegram.New(c, telegram.Deps{
			Account: k.Name, Offsets: cursor, Menus: p.a.inbound.Menus(), Tokens: p.a.polls, Log: p.a.log, Moved: p.a.moved, Bad: p.a.badEvent(k), Transport: p.a.opts.Telegram,
		})
	}
	c.DMPolicy, c.AllowFrom, c.GroupPolicy, c.GroupAllowFrom, c.Groups, c.RequireMention = "", nil, "", nil, nil, nil
	c.MentionPatterns, c.IgnoreOtherMentions, c.AllowBots, c.HistoryLimit = nil, false, "", nil
	c.ReplyToMode, c.Streaming, c.AckReaction, c.StatusReactions = "", telegram.Streaming{}, "", false
	out.connect = c
	return out
}

// badEvent notes events of an account that cannot be read.
func (a *App) badEvent(k inbound.Account) func(ctx context.Context, key, reason string) error {
	return func(ctx context.Context, key, reason string) error { return a.inbound.Bad(ctx, k, key, reason) }
}
