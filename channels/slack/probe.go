package slack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"understudy/channels"
)

// scopes are what the bot token should be allowed, each with what does not work without it. They are
// those of slack-manifest.yaml.
var scopes = []struct{ name, without string }{
	{"chat:write", "the bot cannot say anything"},
	{"app_mentions:read", "mentions do not arrive"},
	{"im:history", "direct messages do not arrive"},
	{"im:read", "direct messages cannot be told from channels"},
	{"im:write", "the bot cannot write to somebody first"},
	{"channels:history", "messages in public channels do not arrive, and nothing is caught up there"},
	{"channels:read", "public channels cannot be looked up"},
	{"groups:history", "messages in private channels do not arrive"},
	{"groups:read", "private channels cannot be looked up"},
	{"mpim:history", "messages in group conversations do not arrive"},
	{"mpim:read", "group conversations cannot be looked up"},
	{"reactions:write", "there are no acknowledgement reactions"},
	{"reactions:read", "reactions of people do not arrive"},
	{"files:read", "files of people cannot be read"},
	{"files:write", "no files can be sent"},
	{"users:read", "people have no names, and the two tokens cannot be compared"},
	{"commands", "there is no slash command"},
	{"assistant:write", "older workspaces show no status while the bot works"},
	{"emoji:read", "custom emoji cannot be looked up"},
}

// Probe implements channels.Prober: the bot token, its scopes, the channels that the configuration names,
// and whether a connection could be opened. Nothing is connected.
func (b *Bot) Probe(ctx context.Context) ([]channels.Finding, error) {
	var got *slack.AuthTestResponse
	err := b.api.call(ctx, "auth.test", func(ctx context.Context, c *slack.Client) (err error) {
		got, err = c.AuthTestContext(ctx)
		return err
	})
	if err != nil {
		return b.failedProbe("the bot token does not work", "botToken", err)
	}
	found := []channels.Finding{{What: fmt.Sprintf("bot token works: %s (%s) in the workspace %s (%s)", plainName(got.User), got.UserID, plainName(got.Team), got.TeamID)}}
	found = append(found, missingScopes(got.Header)...)
	there, err := b.probeChannels(ctx)
	if found = append(found, there...); err != nil {
		return found, err
	}
	if b.cfg.Mode == modeHTTP {
		return append(found, channels.Finding{What: "events are awaited over HTTP at " + b.cfg.WebhookPath}), nil
	}
	err = b.api.call(ctx, "apps.connections.open", func(ctx context.Context, c *slack.Client) error {
		_, _, err := c.StartSocketModeContext(ctx)
		return err
	})
	if err != nil {
		more, err := b.failedProbe("Socket Mode does not open", "appToken", err)
		return append(found, more...), err
	}
	return append(found, channels.Finding{What: "app token works: Socket Mode opens"}), nil
}

// mostProbed bounds how many channels are asked about: Slack answers fifty such questions a minute.
const mostProbed = 40

// probeChannels looks whether the bot is in the channels that the configuration names.
func (b *Bot) probeChannels(ctx context.Context) ([]channels.Finding, error) {
	var out []channels.Finding
	well := 0
	ids := slices.DeleteFunc(slices.Sorted(maps.Keys(b.cfg.Channels)), func(id string) bool { return id == wildcard })
	for _, id := range ids[:min(len(ids), mostProbed)] {
		var got struct {
			Channel struct {
				Name     string `json:"name"`
				Member   bool   `json:"is_member"`
				Archived bool   `json:"is_archived"`
				Several  bool   `json:"is_mpim"`
			} `json:"channel"`
		}
		err := b.api.raw(ctx, "conversations.info", url.Values{"channel": {id}}, &got)
		var e *callError
		name := id + " (" + plainName(got.Channel.Name) + ")"
		switch {
		case errors.As(err, &e) && e.code == "channel_not_found":
			out = append(out, channels.Finding{What: "the channel " + id + " is not there, or private and without the bot", Fix: "write /invite @" + b.botName(ctx) + " there, or take it out of channels"})
		case errors.As(err, &e) && e.code == codeScope:
			return append(out, channels.Finding{What: "the configured channels cannot be looked up", Fix: e.Error()}), nil
		case err != nil:
			return out, err
		case got.Channel.Archived:
			out = append(out, channels.Finding{What: "the channel " + name + " is archived", Fix: "unarchive it, or take it out of channels"})
		case !got.Channel.Member && !got.Channel.Several:
			out = append(out, channels.Finding{What: "the bot is not in the channel " + name, Fix: "write /invite @" + b.botName(ctx) + " there"})
		default:
			well++
		}
	}
	if well > 0 {
		out = append(out, channels.Finding{What: fmt.Sprintf("the bot is in %d configured channels", well)})
	}
	return out, nil
}

// botName is how people mention the bot.
func (b *Bot) botName(ctx context.Context) string {
	self, err := b.identity(ctx)
	if err != nil || self.name == "" {
		return "the bot"
	}
	return self.name
}

// failedProbe makes a finding of a refusal; what passes by itself stays an error.
func (b *Bot) failedProbe(what, key string, err error) ([]channels.Finding, error) {
	if end := permanent(err, key); end != nil {
		return []channels.Finding{{What: what, Fix: end.Error()}}, nil
	}
	var e *callError
	if errors.As(err, &e) && e.code != "" && e.code != codeRateLimited {
		return []channels.Finding{{What: what + " (" + e.code + ")", Fix: "check " + key + " and the settings of the Slack app"}}, nil
	}
	return nil, err
}

// missingScopes compares what the token may do with what the bot needs. A server that does not tell is
// believed.
func missingScopes(h http.Header) []channels.Finding {
	provided := strings.FieldsFunc(h.Get("X-OAuth-Scopes"), func(r rune) bool { return r == ',' || r == ' ' })
	if len(provided) == 0 {
		return nil
	}
	var out []channels.Finding
	for _, s := range scopes {
		if !slices.Contains(provided, s.name) {
			out = append(out, channels.Finding{
				What: "the scope " + s.name + " is missing: " + s.without,
				Fix:  "add " + s.name + " under OAuth & Permissions and install the app again",
			})
		}
	}
	if len(out) == 0 {
		out = append(out, channels.Finding{What: fmt.Sprintf("all %d scopes are granted", len(scopes))})
	}
	return out
}
