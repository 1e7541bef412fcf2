package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

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
	there, err := b.probeMembership(ctx, self)
	if found = append(found, there...); err != nil {
		return found, err
	}
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

// mostProbed bounds how many groups are asked about.
const mostProbed = 50

// probeMembership looks whether the bot is in the groups that the configuration names, and may speak there.
func (b *Bot) probeMembership(ctx context.Context, self identity) ([]channels.Finding, error) {
	if b.cfg.GroupPolicy == policyDisabled {
		return nil, nil
	}
	var found []channels.Finding
	well := 0
	ids := slices.DeleteFunc(slices.Sorted(maps.Keys(b.cfg.Groups)), func(id string) bool { return id == wildcard })
	for _, id := range ids[:min(len(ids), mostProbed)] {
		var member struct {
			Status string `json:"status"`
			Speaks *bool  `json:"can_send_messages"` // of one who is restricted
		}
		result, err := b.api.call(ctx, b.api.calls, "getChatMember", tgbotapi.Params{"chat_id": id, "user_id": id64(self.ID)})
		if err == nil && json.Unmarshal(result, &member) != nil {
			err = &callError{method: "getChatMember", garbled: true, code: http.StatusOK}
		}
		var e *callError
		switch {
		case errors.As(err, &e) && !e.garbled && (e.code == http.StatusBadRequest || e.code == http.StatusForbidden), member.Status == "left", member.Status == "kicked":
			found = append(found, channels.Finding{What: "the bot is not in the group " + id, Fix: "add it there, or take the group out of groups (the id of one that became a supergroup is another one)"})
		case err != nil:
			return found, err
		case member.Speaks != nil && !*member.Speaks && member.Status == "restricted":
			found = append(found, channels.Finding{What: "the bot may not write in the group " + id, Fix: "allow it in the permissions of the group"})
		default:
			well++
		}
	}
	if well > 0 {
		found = append(found, channels.Finding{What: fmt.Sprintf("the bot is in %d configured groups", well)})
	}
	return found, nil
}

// ProbeCommands implements channels.CommandProber.
func (b *Bot) ProbeCommands(ctx context.Context, cmds []channels.CommandInfo) ([]channels.Finding, error) {
	if !*b.cfg.Commands.Native {
		return nil, nil
	}
	menu := commandMenu(cmds)
	for _, scope := range commandScopes {
		var there []tgbotapi.BotCommand
		result, err := b.api.call(ctx, b.api.calls, "getMyCommands", tgbotapi.Params{"scope": jsonText(map[string]string{"type": scope})})
		if err == nil && json.Unmarshal(result, &there) != nil {
			err = &callError{method: "getMyCommands", garbled: true, code: http.StatusOK}
		}
		switch {
		case err != nil:
			return nil, err
		case len(there) == 0:
			return []channels.Finding{{What: "the menu of commands is empty yet: the bot fills it when it is connected"}}, nil
		case !slices.Equal(there, menu) && !slices.Equal(there, menu[:len(menu)/2]): // see RegisterCommands
			return []channels.Finding{{What: "the menu of commands is not the bot's", Fix: "restart the bot: it sets the menu when it is connected"}}, nil
		}
	}
	return []channels.Finding{{What: "the menu of commands is set"}}, nil
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
