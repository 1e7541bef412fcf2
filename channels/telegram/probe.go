package telegram

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"understudy/channels"
)

// Probe implements channels.Prober. It does not poll: that would end the poll of a running bot.
func (b *Bot) Probe(ctx context.Context) ([]channels.Finding, error) {
	var self identity
	result, err := b.api.call(ctx, b.api.calls, "getMe", nil)
	if err == nil && (json.Unmarshal(result, &self) != nil || self.ID == 0) {
		err = &callError{method: "getMe", garbled: true, code: http.StatusOK}
	}
	if err != nil {
		if final := permanent(err); final != nil {
			return []channels.Finding{{What: final.Error(), Fix: "take the token from @BotFather (/mybots, API Token) and put it into botToken"}}, nil
		}
		return nil, fmt.Errorf("telegram is not reached: %w", err)
	}
	found := []channels.Finding{{What: fmt.Sprintf("the token is accepted: @%s (id %d)", self.Username, self.ID)}}
	found = append(found, b.probeGroups(self)...)
	info, err := b.webhookInfo(ctx)
	if err != nil {
		return found, err
	}
	return append(found, b.probeWebhook(info)...), nil
}

func (b *Bot) probeGroups(self identity) []channels.Finding {
	if b.cfg.GroupPolicy == policyDisabled {
		return nil
	}
	var found []channels.Finding
	if !self.CanJoin {
		found = append(found, channels.Finding{
			What: "the bot cannot be added to groups", Fix: "in @BotFather: /setjoingroups, Enable (or set groupPolicy: disabled)",
		})
	}
	if !self.ReadsAll && b.hearsUnaddressed() {
		found = append(found, channels.Finding{
			What: "privacy mode is on: in groups Telegram shows the bot only commands, mentions and replies, but requireMention is false",
			Fix:  "in @BotFather: /setprivacy, Disable; then remove the bot from the group and add it again",
		})
	}
	return found
}

// hearsUnaddressed reports whether some group answers messages that do not address the bot.
func (b *Bot) hearsUnaddressed() bool {
	if !*b.cfg.RequireMention {
		return true
	}
	for _, g := range b.cfg.Groups {
		if g.RequireMention != nil && !*g.RequireMention {
			return true
		}
	}
	return len(b.cfg.MentionPatterns) > 0
}

func (b *Bot) probeWebhook(info webhookInfo) []channels.Finding {
	want := b.cfg.Webhook()
	var found []channels.Finding
	switch {
	case want == "" && info.URL != "":
		found = append(found, channels.Finding{
			What: "a webhook is set at " + host(info.URL) + ", but this account polls",
			Fix:  "stop the other program that uses this bot; the webhook is deleted when this account starts",
		})
	case want != "" && info.URL == "":
		found = append(found, channels.Finding{What: "no webhook is set", Fix: "start the bot: it sets the webhook"})
	case want != info.URL:
		found = append(found, channels.Finding{
			What: "the webhook is set at " + host(info.URL) + " instead of webhookUrl",
			Fix:  "stop the other program that uses this bot; the webhook is set again when this account starts",
		})
	case want != "":
		found = append(found, channels.Finding{What: "the webhook is set at " + host(info.URL)})
	}
	if info.URL != "" && info.Pending > 0 && info.ErrorText != "" {
		found = append(found, channels.Finding{
			What: fmt.Sprintf("Telegram cannot deliver %d updates: %s", info.Pending, b.scrub(info.ErrorText)),
			Fix:  "see that webhookUrl leads to this bot from the internet, with a valid certificate",
		})
	}
	return found
}

// host is the part of an address that may be shown: paths and queries hold secrets.
func host(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "an unreadable address"
	}
	return u.Host
}
