package discord

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/bwmarrin/discordgo"

	"understudy/channels"

	emulator "understudy/internal/emulate/discord"
)

// What the bot may not do in a configured channel is named: what the server gives it counts, less and more
// what the channel says.
func TestProbeNamesMissingRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(emulator.Config{})
		defer srv.Close()
		srv.AddGuild(emulator.Guild{ID: "510", Name: "Quiet", Forbidden: discordgo.PermissionSendMessages})
		srv.AddChannel(emulator.Channel{ID: "7001", Guild: guildID, Name: "readonly", Forbidden: discordgo.PermissionSendMessages | discordgo.PermissionAddReactions})
		srv.AddChannel(emulator.Channel{ID: "7002", Guild: "510", Name: "speakers", Permitted: discordgo.PermissionSendMessages})
		srv.AddChannel(emulator.Channel{ID: "7003", Guild: "510", Name: "hidden"})
		srv.Deny("7003", 403, codeNoAccess, "Missing Access")
		places := func(ids ...string) Guild {
			g := Guild{Channels: map[string]Place{"*": {}}}
			for _, id := range ids {
				g.Channels[id] = Place{}
			}
			return g
		}
		b := newBot(t, srv, func(c *Config, _ *Deps) {
			c.Guilds = map[string]Guild{guildID: places(general, "7001"), "510": places("7002", "7003"), "599": {}, "*": {}}
		})
		defer b.Close()
		found, err := b.Probe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range found[4:] {
			got = append(got, fmt.Sprintf("%s (%t)", f.What, f.Fix != ""))
		}
		want := []string{
			"in the channel 7001 (readonly) the bot lacks: Send Messages, Add Reactions (true)",
			"the channel 7003 is not there, or hidden from the bot (true)",
			"the bot is not in the server 599 (true)",
			"the bot has its rights in 2 configured channels (false)",
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// The set that is registered is compared with the bot's own; one that went away is registered again.
func TestProbeComparesCommands(t *testing.T) {
	store := &memory{}
	cmds := []channels.CommandInfo{{Name: "status", Description: "how it is"}, {Name: "think", Description: "x", Options: []channels.CommandOption{{Name: "level", Choices: []string{"off"}}}}}
	running(t, emulator.Config{}, func(_ *Config, d *Deps) { d.Hash = store }, func(t *testing.T, a *account) {
		probe := func(cmds []channels.CommandInfo, want string, fix bool) {
			t.Helper()
			found, err := a.ProbeCommands(t.Context(), cmds)
			if err != nil || len(found) != 1 || !strings.Contains(found[0].What, want) || (found[0].Fix != "") != fix {
				t.Errorf("found %+v, %v", found, err)
			}
		}
		probe(cmds, "no commands are registered yet", false)
		for range 2 {
			if err := a.RegisterCommands(t.Context(), cmds); err != nil {
				t.Fatal(err)
			}
			probe(cmds, "2 commands are registered", false)
			probe(cmds[:1], "are not the bot's", true)
			a.srv.DropCommands()
		}
		if n := len(a.srv.Calls("PUT", "/commands")); n != 2 {
			t.Errorf("registered %d times", n)
		}
	})
}
