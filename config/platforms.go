package config

import (
	"fmt"
	"maps"

	"understudy/channels"
	"understudy/channels/discord"
	"understudy/channels/slack"
	"understudy/channels/telegram"
	"understudy/gateway"
)

// SlackAccounts returns the Slack accounts to run, by id: enabled, valid and with their secrets.
func (c *Config) SlackAccounts() map[string]slack.Config { return maps.Clone(c.slack) }

// DiscordAccounts returns the Discord accounts to run, by id, like SlackAccounts.
func (c *Config) DiscordAccounts() map[string]discord.Config { return maps.Clone(c.discord) }

// TelegramAccounts returns the Telegram accounts to run, by id, like SlackAccounts.
func (c *Config) TelegramAccounts() map[string]telegram.Config { return maps.Clone(c.telegram) }

// resolvePlatforms completes and checks the accounts of all platforms.
func (c *Config) resolvePlatforms(d *decoder) {
	hooks := webhooks{}
	c.slack = accountsOf(c, d, platform[slack.Config]{
		name: slack.Channel, block: c.Channels.Slack,
		tokens: map[string]string{"botToken": "SLACK_BOT_TOKEN", "appToken": "SLACK_APP_TOKEN"},
		off:    func(x slack.Config) bool { return !*x.Enabled },
		shared: func(x *slack.Config) shared {
			return shared{&x.DMPolicy, &x.AllowFrom, &x.GroupAllowFrom, &x.MentionPatterns, &x.HistoryLimit, &x.AckReaction, &x.CatchUp}
		},
		access: SlackAccess,
		webhook: func(x slack.Config) string {
			if x.Mode != "http" {
				return ""
			}
			return x.WebhookPath
		},
	}, hooks)
	c.discord = accountsOf(c, d, platform[discord.Config]{
		name: discord.Channel, block: c.Channels.Discord,
		tokens: map[string]string{"botToken": "DISCORD_BOT_TOKEN"},
		off:    func(x discord.Config) bool { return !*x.Enabled },
		shared: func(x *discord.Config) shared {
			return shared{&x.DMPolicy, &x.AllowFrom, &x.GroupAllowFrom, &x.MentionPatterns, &x.HistoryLimit, &x.AckReaction, &x.CatchUp}
		},
		access:  DiscordAccess,
		webhook: func(discord.Config) string { return "" },
	}, hooks)
	c.telegram = accountsOf(c, d, platform[telegram.Config]{
		name: telegram.Channel, block: c.Channels.Telegram,
		tokens: map[string]string{"botToken": "TELEGRAM_BOT_TOKEN"},
		off:    func(x telegram.Config) bool { return !*x.Enabled },
		shared: func(x *telegram.Config) shared {
			return shared{&x.DMPolicy, &x.AllowFrom, &x.GroupAllowFrom, &x.MentionPatterns, &x.HistoryLimit, &x.AckReaction, &x.CatchUp}
		},
		access: TelegramAccess,
		webhook: func(x telegram.Config) string {
			if x.WebhookURL == "" {
				return ""
			}
			return x.WebhookPath
		},
	}, hooks)
	c.advise(d)
}

// shared are keys that the accounts of all platforms have.
type shared struct {
	dmPolicy  *string
	allowFrom *[]string
	// groupAllowFrom is nil where the file has no such list.
	groupAllowFrom *[]string
	// The others are set for all channels by `messages`.
	patterns *[]string
	history  **int
	ack      *string
	catchUp  *channels.CatchUp
}

// inherit fills what an account does not say itself.
func (c *Config) inherit(s shared) {
	m := c.Messages
	if *s.patterns == nil {
		*s.patterns = m.GroupChat.MentionPatterns
	}
	if *s.history == nil {
		*s.history = m.GroupChat.HistoryLimit
	}
	if *s.ack == "" {
		*s.ack = m.AckReaction
	}
	if s.catchUp.MaxAge == 0 {
		s.catchUp.MaxAge = m.CatchUp.MaxAge
	}
	if s.catchUp.MaxMessages == 0 {
		s.catchUp.MaxMessages = m.CatchUp.MaxMessages
	}
}

// webhooks are the paths of the listener that platforms call, with the account that claimed each.
type webhooks map[string]string

// claim reserves a path for an account.
func (w webhooks) claim(d *decoder, path, at string) {
	key := at + ".webhookPath"
	if err := gateway.CheckWebhook(path); err != nil {
		d.fail(key, err.Error(), "")
		return
	}
	if other, taken := w[path]; taken {
		d.fail(key, fmt.Sprintf("%s listens at %s already", other, quote(path)), "give every account that is called a path of its own")
		return
	}
	w[path] = at
}
