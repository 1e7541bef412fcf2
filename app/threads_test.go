package app_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/emulate/discord"
	emullm "understudy/internal/emulate/llm"
	"understudy/internal/emulate/slack"
)

const discordThread = "400000000000000003"

// TestAThreadBeginsWithItsChannelWhereThatIsWanted: by default it knows nothing of what was said around it.
func TestAThreadBeginsWithItsChannelWhereThatIsWanted(t *testing.T) {
	for _, wanted := range []bool{false, true} {
		t.Run(fmt.Sprint(wanted), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOffice(t, "")
				d := o.discordServer("discord.test", discord.Config{})
				o.configure(fmt.Sprintf("channels: {discord: {botToken: %s, apiRoot: \"http://discord.test\", allowFrom: [%q], guilds: {%q: {}}, thread: {inheritParent: %v}}}\n",
					d.Token(), discordAlice, discordGuild, wanted))
				d.AddChannel(discord.Channel{ID: discordThread, Guild: discordGuild, Parent: discordRoom, Name: "aside", Type: discord.PublicThread})
				o.open()
				for _, x := range [][2]string{{discordRoom, "the plan is B"}, {discordThread, "what is the plan?"}, {discordRoom, "now it is C"}, {discordThread, "and now?"}} {
					d.UserSays(x[0], discordAlice, "<@"+d.BotID()+"> "+x[1])
					o.settle()
				}
				got := o.heard("agent:main:discord:channel:" + discordRoom + ":thread:" + discordThread)
				all := strings.Join(got, "\n")
				if !inOrder(all, "what is the plan?", "and now?") || inOrder(all, "the plan is B", "what is the plan?") != wanted || strings.Contains(all, "now it is C") {
					t.Errorf("heard %q\n%s", got, o.logs)
				}
			})
		})
	}
}

// TestAThreadsTurnTakesTheChoiceOfItsRoom: the room's /model comes while the lead hangs in a thread.
func TestAThreadsTurnTakesTheChoiceOfItsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, "")
		models := emullm.New()
		t.Cleanup(models.Close)
		o.models = models.Transport()
		s := o.slackServer("slack.test", slack.Config{})
		o.configure("channels: {slack: " + slackBlock(s, slack.Root, "allowFrom: ["+slackAlice+"], channels: {"+slackRoom+": {}}") + "}\n")
		o.replaceModel("alpha/a1", alphaModels+", "+betaModels)
		o.open()
		models.Fault(emullm.Fault{Match: emullm.Match{Model: "a1"}, Latency: 20 * time.Second, Status: 503})
		call := "<@" + s.Config().BotUser + "> "
		s.UserSays(slackRoom, slackAlice, call+"what now?")
		pass(5 * time.Second)
		s.UserSays(slackRoom, slackAlice, call+"/model beta/b1")
		o.settle()
		var asked []string
		for _, r := range models.Requests() {
			asked = append(asked, r.Model)
		}
		if got := strings.Join(asked, " "); got != "a1 b1" {
			t.Errorf("asked %s; said %q", got, slackTexts(s, slackRoom))
		}
	})
}

// TestOnlyWhatAllowedPeopleSaidIsShown: people are let in by name and by role, and what is kept of them is
// judged by the rules of the moment when it is shown.
func TestOnlyWhatAllowedPeopleSaidIsShown(t *testing.T) {
	const bob, carol, role = "300000000000000002", "300000000000000003", "600000000000000001"
	const guild, room = "500000000000000002", "400000000000000004"
	for visibility, hidden := range map[string]bool{"all": false, "allowlist": true} {
		t.Run(visibility, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOffice(t, "")
				models := emullm.New()
				t.Cleanup(models.Close)
				o.models = models.Transport()
				d := o.discordServer("discord.test", discord.Config{})
				d.SetUser(discord.User{ID: bob, Username: "bob"})
				d.SetUser(discord.User{ID: carol, Username: "carol"})
				d.AddGuild(discord.Guild{ID: guild, Name: "Works", Members: map[string][]string{discordAlice: nil, bob: nil, carol: {role}}})
				d.AddChannel(discord.Channel{ID: room, Guild: guild, Name: "talk", Type: discord.TextChannel})
				configure := func(roles string) {
					o.configure(fmt.Sprintf("channels: {discord: {botToken: %s, apiRoot: \"http://discord.test\", guilds: {%q: {users: [%q, %q], roles: [%s]}}}}\nmessages: {contextVisibility: %s}\n",
						d.Token(), guild, discordAlice, bob, roles, visibility))
					o.replaceModel("alpha/a1", alphaModels)
				}
				configure(`"` + role + `"`)
				o.open()
				asks := func(text string, opts ...discord.Say) string {
					d.UserSays(room, discordAlice, "<@"+d.BotID()+"> "+text, opts...)
					o.settle()
					r := models.Requests()
					return r[len(r)-1].LastUser
				}
				d.UserSays(room, bob, "the build is red")
				said := d.UserSays(room, carol, "it was me")
				o.settle()
				if got := asks("who was it?"); !inOrder(got, "the build is red", "it was me", "who was it?") {
					t.Errorf("of people who are let in: %q", got)
				}
				answer := d.Sent(room)[0].ID
				if got := asks("why?", discord.ReplyingTo(answer)); !strings.Contains(got, "Replying to") {
					t.Errorf("of the bot's own words: %q", got)
				}
				if got := asks("really?", discord.ReplyingTo(said)); strings.Contains(got, "it was me") == hidden {
					t.Errorf("of a quote of somebody whose roles are not told: %q", got)
				}
				d.UserSays(room, carol, "never mind")
				o.settle()
				configure("")
				o.settle()
				if got := asks("what did she say?"); strings.Contains(got, "never mind") == hidden {
					t.Errorf("of somebody who is not let in any more: %q", got)
				}
			})
		})
	}
}
