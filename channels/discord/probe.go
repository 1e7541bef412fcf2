package discord

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/bwmarrin/discordgo"

	"understudy/channels"
)

// Flags of an application that tell which privileged intents it may ask for: for verified bots, and
// for those in few servers.
const (
	mayReadContent = 1<<18 | 1<<19
	mayListMembers = 1<<14 | 1<<15
)

// Permissions are the rights the bot asks for when it is invited (spec/chat.md §2.8): to see channels,
// write there and in threads, open public threads, read the history, embed links, attach files and
// react.
const Permissions = discordgo.PermissionViewChannel | discordgo.PermissionSendMessages | discordgo.PermissionSendMessagesInThreads |
	discordgo.PermissionCreatePublicThreads | discordgo.PermissionReadMessageHistory | discordgo.PermissionEmbedLinks |
	discordgo.PermissionAttachFiles | discordgo.PermissionAddReactions

// InviteURL is the address that adds a bot to a server.
func InviteURL(applicationID string) string {
	return "https://discord.com/oauth2/authorize?client_id=" + applicationID + "&scope=bot+applications.commands&permissions=" + strconv.Itoa(Permissions)
}

// Probe implements channels.Prober: the token, the intents, the servers, the sessions left today,
// and the rights in the channels that the configuration names.
func (b *Bot) Probe(ctx context.Context) ([]channels.Finding, error) {
	var me user
	if err := b.get(ctx, "get bot", discordgo.EndpointUser("@me"), &me); err != nil {
		return nil, b.explained(err)
	}
	out := []channels.Finding{{What: fmt.Sprintf("bot %s (id %s)", me.name(nil), me.ID)}}
	a, err := b.describe(ctx)
	if err != nil {
		return out, err
	}
	out = append(out, b.intents(a)...)
	var guilds []struct {
		ID string `json:"id"`
	}
	if err := b.get(ctx, "get servers", discordgo.EndpointUserGuilds("@me"), &guilds); err != nil {
		return out, err
	}
	member := channels.Finding{What: fmt.Sprintf("member of %d servers", len(guilds))}
	if len(guilds) == 0 {
		member.Fix = "invite it: " + InviteURL(a.ID)
	}
	out = append(out, member)
	var g struct {
		Limit struct {
			Total     int `json:"total"`
			Remaining int `json:"remaining"`
		} `json:"session_start_limit"`
	}
	if err := b.get(ctx, "get gateway", discordgo.EndpointGatewayBot, &g); err != nil {
		return out, err
	}
	sessions := channels.Finding{What: fmt.Sprintf("%d of %d sessions left today", g.Limit.Remaining, g.Limit.Total)}
	if g.Limit.Remaining < g.Limit.Total/10 {
		sessions.Fix = "something starts this bot again and again: look at its log"
	}
	rights, err := b.probeChannels(ctx, me.ID)
	return append(append(out, sessions), rights...), err
}

// ProbeCommands implements channels.CommandProber.
func (b *Bot) ProbeCommands(ctx context.Context, cmds []channels.CommandInfo) ([]channels.Finding, error) {
	if !*b.cfg.Commands.Native {
		return nil, nil
	}
	set, _, _ := commandSet(cmds)
	addresses, err := b.commandPlaces(ctx)
	if err != nil {
		return nil, err
	}
	for _, address := range addresses {
		switch there, err := b.registered(ctx, address); {
		case err != nil:
			return nil, err
		case len(there) == 0:
			return []channels.Finding{{What: "no commands are registered yet: the bot does that when it is connected"}}, nil
		case !sameCommands(there, set):
			return []channels.Finding{{What: "the registered commands are not the bot's", Fix: "restart the bot: it registers them when it is connected"}}, nil
		}
	}
	return []channels.Finding{{What: fmt.Sprintf("%d commands are registered", len(set))}}, nil
}

func (b *Bot) intents(a application) []channels.Finding {
	check := func(name string, wanted bool, flags int) channels.Finding {
		f := channels.Finding{What: name + " allowed"}
		if a.Flags&flags == 0 {
			f.What = name + " not allowed"
			if wanted {
				f.Fix = "switch it on in the developer portal under Bot, Privileged Gateway Intents"
			}
		}
		return f
	}
	out := []channels.Finding{check("Message Content Intent", *b.cfg.Intents.MessageContent, mayReadContent)}
	if b.cfg.Intents.GuildMembers {
		out = append(out, check("Server Members Intent", true, mayListMembers))
	}
	return out
}

func (b *Bot) get(ctx context.Context, what, address string, into any) error {
	data, err := b.api.call(ctx, request{what: what, method: http.MethodGet, url: address, route: what})
	if err != nil {
		return err
	}
	if json.Unmarshal(data, into) != nil {
		return &callError{what: what, status: http.StatusOK, garbled: true}
	}
	return nil
}

// explained turns an error into words for the operator where it has some.
func (b *Bot) explained(err error) error {
	if words := permanent(err); words != nil {
		return words
	}
	return err
}
