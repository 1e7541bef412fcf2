package discord

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/bwmarrin/discordgo"

	"understudy/channels"
)

// rights are the permissions the bot needs, as people read them in Discord's settings.
var rights = []struct {
	bit  int64
	name string
}{
	{discordgo.PermissionViewChannel, "View Channels"},
	{discordgo.PermissionSendMessages, "Send Messages"},
	{discordgo.PermissionSendMessagesInThreads, "Send Messages in Threads"},
	{discordgo.PermissionCreatePublicThreads, "Create Public Threads"},
	{discordgo.PermissionReadMessageHistory, "Read Message History"},
	{discordgo.PermissionEmbedLinks, "Embed Links"},
	{discordgo.PermissionAttachFiles, "Attach Files"},
	{discordgo.PermissionAddReactions, "Add Reactions"},
}

// mostProbed bounds how many channels are asked about.
const mostProbed = 50

// permissions are a set of rights as Discord writes it.
type permissions int64

// UnmarshalJSON implements json.Unmarshaler: the number is in quotes.
func (p *permissions) UnmarshalJSON(data []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(data), `"`), 10, 64)
	*p = permissions(n)
	return err
}

// overwrite is what a channel gives or takes, for a role or a member.
type overwrite struct {
	ID    string      `json:"id"`
	Allow permissions `json:"allow"`
	Deny  permissions `json:"deny"`
}

// standing is what the bot may do in a server before its channels are asked.
type standing struct {
	guild, self string
	roles       []string
	base        permissions
}

// probeChannels looks whether the bot may do what it needs in the channels that the configuration names.
func (b *Bot) probeChannels(ctx context.Context, self string) ([]channels.Finding, error) {
	var out []channels.Finding
	asked, well := 0, 0
	for _, id := range slices.Sorted(maps.Keys(b.cfg.Guilds)) {
		if id == wildcard || asked == mostProbed {
			continue
		}
		s, err := b.standing(ctx, id, self)
		if denied(err) {
			out = append(out, channels.Finding{What: "the bot is not in the server " + id, Fix: "invite it, or take the server out of guilds"})
			continue
		}
		if err != nil {
			return out, err
		}
		for _, place := range slices.Sorted(maps.Keys(b.cfg.Guilds[id].Channels)) {
			if place == wildcard || asked == mostProbed {
				continue
			}
			asked++
			f, err := b.probeChannel(ctx, s, place)
			if err != nil {
				return out, err
			}
			if f.Fix == "" {
				well++
				continue
			}
			out = append(out, f)
		}
	}
	if well > 0 {
		out = append(out, channels.Finding{What: fmt.Sprintf("the bot has its rights in %d configured channels", well)})
	}
	return out, nil
}

// denied reports whether Discord does not show something to this bot.
func denied(err error) bool {
	var e *callError
	return errors.As(err, &e) && !e.garbled && (e.status == http.StatusForbidden || e.status == http.StatusNotFound)
}

// standing adds up what the roles of the bot in a server give it.
func (b *Bot) standing(ctx context.Context, guild, self string) (standing, error) {
	s := standing{guild: guild, self: self}
	var server struct {
		Owner string `json:"owner_id"`
		Roles []struct {
			ID          string      `json:"id"`
			Permissions permissions `json:"permissions"`
		} `json:"roles"`
	}
	if err := b.get(ctx, "get server", discordgo.EndpointGuild(guild), &server); err != nil {
		return s, err
	}
	var me struct {
		Roles []string `json:"roles"`
	}
	if err := b.get(ctx, "get member", discordgo.EndpointGuildMember(guild, self), &me); err != nil {
		return s, err
	}
	s.roles = me.Roles
	for _, r := range server.Roles {
		if r.ID == guild || slices.Contains(me.Roles, r.ID) { // that of everybody has the server's id
			s.base |= r.Permissions
		}
	}
	if server.Owner == self {
		s.base |= discordgo.PermissionAdministrator
	}
	return s, nil
}

// probeChannel looks at one channel.
func (b *Bot) probeChannel(ctx context.Context, s standing, id string) (channels.Finding, error) {
	var c struct {
		channel
		Overwrites []overwrite `json:"permission_overwrites"`
	}
	err := b.get(ctx, "get channel", discordgo.EndpointChannel(id), &c)
	if denied(err) {
		return channels.Finding{What: "the channel " + id + " is not there, or hidden from the bot", Fix: "let the bot see it (View Channels), or take it out of guilds." + s.guild + ".channels"}, nil
	}
	if err != nil {
		return channels.Finding{}, err
	}
	may := s.in(c.Overwrites)
	var missing []string
	for _, r := range rights {
		if int64(may)&r.bit == 0 {
			missing = append(missing, r.name)
		}
	}
	if len(missing) == 0 {
		return channels.Finding{}, nil
	}
	return channels.Finding{
		What: fmt.Sprintf("in the channel %s (%s) the bot lacks: %s", id, oneLine(c.Name), strings.Join(missing, ", ")),
		Fix:  "give its role these rights in the settings of the channel",
	}, nil
}

// in is what the bot may do in a channel: what it may in the server, less and more what the channel says
// about everybody, then about its roles, then about itself.
func (s standing) in(list []overwrite) permissions {
	if s.base&discordgo.PermissionAdministrator != 0 {
		return ^permissions(0)
	}
	may := s.base
	apply := func(concerns func(id string) bool) {
		var allow, deny permissions
		for _, o := range list {
			if concerns(o.ID) {
				allow, deny = allow|o.Allow, deny|o.Deny
			}
		}
		may = may&^deny | allow
	}
	apply(func(id string) bool { return id == s.guild })
	apply(func(id string) bool { return id != s.guild && slices.Contains(s.roles, id) })
	apply(func(id string) bool { return id == s.self })
	return may
}
