package app_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/emulate/discord"
	"understudy/internal/emulate/slack"
)

// slackBlock is the configuration of one Slack account.
func slackBlock(s *slack.Server, root, more string) string {
	return fmt.Sprintf("{botToken: %s, appToken: %s, apiRoot: %q, %s}", s.Config().BotToken, s.Config().AppToken, root, more)
}

// slackTexts lists what the bot said in a conversation: thread, whether only one person sees it, text.
func slackTexts(s *slack.Server, channel string) []string {
	var out []string
	for _, m := range s.Sent(channel) {
		line := m.Text
		if m.Thread != "" {
			line = "[" + m.Thread + "] " + line
		}
		if m.OnlyFor != "" {
			line = "(" + m.OnlyFor + ") " + line
		}
		out = append(out, line)
	}
	return out
}

// sees checks that there are as many lines as wanted, each with what stands before … at its beginning
// and with what stands after it anywhere.
func sees(t *testing.T, o *office, got []string, want ...string) {
	t.Helper()
	ok := len(got) == len(want)
	for i := 0; ok && i < len(want); i++ {
		head, inside, _ := strings.Cut(want[i], "…")
		ok = strings.HasPrefix(got[i], head) && strings.Contains(got[i], inside)
	}
	if !ok {
		t.Fatalf("seen: %q\nwanted: %q\nlog:\n%s", got, want, o.logs)
	}
}

func TestSlackStrangerIsPairedAndAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, "")
		s := o.slackServer("slack.test", slack.Config{})
		o.configure("channels: {slack: " + slackBlock(s, slack.Root, `replyToModeByChatType: {direct: "off"}`) + "}\n")
		o.open()
		s.UserSays(slackDM, slackAlice, "hello")
		o.settle()
		sees(t, o, slackTexts(s, slackDM), "👋 I don't know you yet.")
		o.approve("slack", "", s.Sent(slackDM)[0].Text)
		s.UserSays(slackDM, slackAlice, "and now?")
		o.settle()
		sees(t, o, slackTexts(s, slackDM), "👋 I don't know you yet.", "…You said: “and now?”")
	})
}

func TestSlackMentionIsAnsweredInItsThread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, "")
		s := o.slackServer("slack.test", slack.Config{})
		o.configure("channels: {slack: " + slackBlock(s, slack.Root, "allowFrom: ["+slackAlice+"], channels: {"+slackRoom+": {}}") + "}\n")
		o.open()
		s.UserSays(slackRoom, slackAlice, "nobody is meant")
		root := s.UserSays(slackRoom, slackAlice, "<@"+s.Config().BotUser+"> what is up?")
		o.settle()
		sees(t, o, slackTexts(s, slackRoom), "["+root+"] …You said: “what is up?”")
		s.UserSays(slackRoom, slackAlice, "and then?", slack.InThread(root))
		o.settle()
		sees(t, o, slackTexts(s, slackRoom), "["+root+"] ", "["+root+"] …You said: “and then?”")
		if last := s.Sent(slackRoom)[1].Text; !strings.Contains(last, "With it came 3 messages") {
			t.Errorf("the thread is not one session: %q", last)
		}
		s.UserSays(slackRoom, slackBob, "<@"+s.Config().BotUser+"> me too", slack.InThread(root))
		o.settle()
		if n := len(s.Sent(slackRoom)); n != 2 {
			t.Errorf("somebody who is not listed is answered: %q", slackTexts(s, slackRoom))
		}
	})
}

func TestSlackSlashCommandIsAnsweredInPrivate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, "")
		s := o.slackServer("slack.test", slack.Config{})
		o.configure("channels: {slack: " + slackBlock(s, slack.Root, "allowFrom: ["+slackAlice+"], channels: {"+slackRoom+": {}}") + "}\n")
		o.open()
		s.Slash(slackRoom, slackAlice, "/bot", "status")
		o.settle()
		sees(t, o, slackTexts(s, slackRoom), "("+slackAlice+") 🤖")
		s.Slash(slackRoom, slackBob, "/bot", "status")
		o.settle()
		sees(t, o, slackTexts(s, slackRoom)[1:], "("+slackBob+") You are not authorized to use this command here.")
	})
}

func TestCommandsForSomeOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, "")
		s := o.slackServer("slack.test", slack.Config{})
		o.configure("channels: {slack: " + slackBlock(s, slack.Root, "allowFrom: ["+slackAlice+", "+slackBob+"], channels: {"+slackRoom+": {}}") + "}\n" +
			"commands: {allowFrom: {slack: [" + slackAlice + "]}}\n")
		o.open()
		s.Slash(slackRoom, slackBob, "/bot", "status")
		s.UserSays(slackRoom, slackBob, "<@"+s.Config().BotUser+"> /status")
		o.settle()
		sees(t, o, slackTexts(s, slackRoom), "("+slackBob+") You are not authorized to use this command here.")
		s.Slash(slackRoom, slackAlice, "/bot", "status")
		o.settle()
		sees(t, o, slackTexts(s, slackRoom)[1:], "("+slackAlice+") 🤖")
	})
}

func TestSlackTokenIsSwapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, "")
		first := o.slackServer("slack.test", slack.Config{})
		second := o.slackServer("second.test", slack.Config{BotToken: "xoxb-9-9-Second", AppToken: "xapp-1-A0APP00002-9-second", Team: "T0SECOND1", App: "A0APP00002"})
		access := "allowFrom: [" + slackAlice + "]"
		o.configure("channels: {slack: " + slackBlock(first, slack.Root, access) + "}\n")
		o.open()
		if n := first.Sockets(); n != 1 {
			t.Fatalf("%d sockets\n%s", n, o.logs)
		}
		o.configure("channels: {slack: " + slackBlock(second, "http://second.test", access) + "}\n")
		o.settle()
		if a, b := first.Sockets(), second.Sockets(); a != 0 || b != 1 {
			t.Fatalf("%d sockets to the first, %d to the second\n%s", a, b, o.logs)
		}
		second.UserSays(slackDM, slackAlice, "hello")
		o.settle()
		if n := len(second.Sent(slackDM)); n != 1 {
			t.Errorf("%d answers\n%s", n, o.logs)
		}
		for _, secret := range []string{first.Config().BotToken, second.Config().BotToken, second.Config().AppToken} {
			if strings.Contains(o.logs.String(), secret) {
				t.Error("a token is in the log")
			}
		}
	})
}

func TestRestartedAccountNeverHasTwoConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, "")
		o.goodbye = 3 * time.Second
		s := o.slackServer("slack.test", slack.Config{})
		config := func(limit int) string {
			return "channels: {slack: " + slackBlock(s, slack.Root, fmt.Sprintf("textChunkLimit: %d", limit)) + "}\n"
		}
		o.configure(config(8000))
		o.open()
		opened := len(s.Calls("apps.connections.open"))
		for limit := 1000; limit < 1010; limit++ {
			o.configure(config(limit))
			o.settle()
		}
		if n := len(s.Calls("apps.connections.open")); n != opened+10 {
			t.Fatalf("connected anew %d times\n%s", n-opened, o.logs)
		}
		if now, most := o.sockets.Load(), o.most.Load(); now != 1 || most != 1 {
			t.Errorf("%d connections, %d at most", now, most)
		}
	})
}

func TestAccessAndReplyModeNeedNoNewConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, "")
		s := o.slackServer("slack.test", slack.Config{})
		o.configure("channels: {slack: " + slackBlock(s, slack.Root, "dmPolicy: allowlist, allowFrom: ["+slackBob+"]") + "}\n")
		o.open()
		s.UserSays(slackDM, slackAlice, "one")
		o.settle()
		opened := len(s.Calls("apps.connections.open"))
		o.configure("channels: {slack: " + slackBlock(s, slack.Root, `dmPolicy: allowlist, allowFrom: [`+slackAlice+`], replyToMode: all, streaming: {mode: "off"}`) + "}\n")
		o.settle()
		two := s.UserSays(slackDM, slackAlice, "two")
		o.settle()
		sees(t, o, slackTexts(s, slackDM), "["+two+"] …You said: “two”")
		if now := len(s.Calls("apps.connections.open")); now != opened {
			t.Errorf("connected %d times more", now-opened)
		}
	})
}

func TestTwoAccountsDoNotMix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, "")
		a := o.slackServer("a.test", slack.Config{})
		b := o.slackServer("b.test", slack.Config{BotToken: "xoxb-9-9-Second", AppToken: "xapp-1-A0APP00002-9-second", Team: "T0SECOND1", App: "A0APP00002"})
		config := func(more string) string {
			return "channels:\n  slack:\n    botToken: " + a.Config().BotToken + "\n    appToken: " + a.Config().AppToken +
				"\n    apiRoot: http://a.test\n    allowFrom: [" + slackAlice + "]\n" + more
		}
		both := config("    accounts:\n      ops: {apiRoot: \"http://b.test\", botToken: " + b.Config().BotToken + ", appToken: " + b.Config().AppToken + "}\n")
		o.configure(both)
		o.open()
		a.UserSays(slackDM, slackAlice, "to a")
		b.UserSays(slackDM, slackAlice, "to b")
		o.settle()
		for name, pair := range map[string]*slack.Server{"to a": a, "to b": b} {
			sees(t, o, dropThreads(slackTexts(pair, slackDM)), "…You said: “"+name+"”")
		}
		o.configure(config("")) // the second is gone
		o.settle()
		if a.Sockets() != 1 || b.Sockets() != 0 || o.state("slack", "ops") != "" {
			t.Errorf("%d and %d sockets; the account is %q\n%s", a.Sockets(), b.Sockets(), o.state("slack", "ops"), o.logs)
		}
		opened := len(a.Calls("apps.connections.open"))
		o.configure(both) // and comes back
		o.settle()
		b.UserSays(slackDM, slackAlice, "again")
		o.settle()
		if n := len(b.Sent(slackDM)); n != 2 {
			t.Errorf("%d answers by the account that came back\n%s", n, o.logs)
		}
		if len(a.Calls("apps.connections.open")) != opened {
			t.Error("the other account was connected anew")
		}
	})
}

// dropThreads leaves out the threads of lines.
func dropThreads(lines []string) []string {
	var out []string
	for _, l := range lines {
		if _, rest, ok := strings.Cut(l, "] "); ok && strings.HasPrefix(l, "[") {
			l = rest
		}
		out = append(out, l)
	}
	return out
}

func TestRevokedAccountStaysVisibleAndItsOwnerIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, "")
		s := o.slackServer("slack.test", slack.Config{})
		d := o.discordServer("discord.test", discord.Config{})
		o.configure("channels:\n  slack: " + slackBlock(s, slack.Root, "allowFrom: ["+slackAlice+"]") +
			"\n  discord: {botToken: " + d.Token() + ", apiRoot: \"http://discord.test\", allowFrom: [\"" + discordAlice + "\"]}\n" +
			"commands: {ownerAllowFrom: [\"discord:" + discordAlice + "\"]}\n")
		o.open()
		d.UserSays(discordDM, discordAlice, "here I am")
		o.settle()
		s.Revoke()
		s.DropSockets()
		pass(10 * time.Minute)
		synctest.Wait()
		if got := o.state("slack", ""); got != "stopped" {
			t.Fatalf("the account is %q\n%s", got, o.logs)
		}
		ready, problems := o.bot.Ready(t.Context())
		if ready != "degraded" || len(problems) != 1 || !strings.HasPrefix(problems[0].Subject, "slack") {
			t.Errorf("%s %v", ready, problems)
		}
		told := 0
		for _, m := range d.Sent(discordDM) {
			if strings.HasPrefix(m.Content, "📡 slack has stopped and needs you: ") {
				told++
			}
		}
		if told != 1 {
			t.Errorf("the owner was told %d times: %v", told, d.Sent(discordDM))
		}
		d.UserSays(discordDM, discordAlice, "you still work?")
		o.settle()
		if last := d.Sent(discordDM)[len(d.Sent(discordDM))-1]; !strings.Contains(last.Content, "you still work?") {
			t.Errorf("the other account: %q", last.Content)
		}
	})
}

func TestDiscordStrangerIsPairedAndAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, "")
		d := o.discordServer("discord.test", discord.Config{})
		o.configure("channels: {discord: {botToken: " + d.Token() + ", apiRoot: \"http://discord.test\"}}\n")
		o.open()
		d.UserSays(discordDM, discordAlice, "hello")
		o.settle()
		sent := d.Sent(discordDM)
		if len(sent) != 1 || !strings.HasPrefix(sent[0].Content, "👋 I don't know you yet.") {
			t.Fatalf("%v\n%s", sent, o.logs)
		}
		o.approve("discord", "", sent[0].Content)
		d.UserSays(discordDM, discordAlice, "and now?")
		o.settle()
		if sent = d.Sent(discordDM); len(sent) != 2 || !strings.Contains(sent[1].Content, "You said: “and now?”") {
			t.Errorf("%v\n%s", sent, o.logs)
		}
	})
}

func TestDiscordMentionCommandAndSuggestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, "")
		d := o.discordServer("discord.test", discord.Config{})
		o.configure("channels: {discord: {botToken: " + d.Token() + ", apiRoot: \"http://discord.test\", allowFrom: [\"" + discordAlice + "\"], guilds: {\"" + discordGuild + "\": {}}}}\n")
		o.open()
		d.UserSays(discordRoom, discordAlice, "nobody is meant")
		question := d.UserSays(discordRoom, discordAlice, "<@"+d.BotID()+"> what is up?")
		o.settle()
		sent := d.Sent(discordRoom)
		if len(sent) != 1 || !strings.Contains(sent[0].Content, "You said: “what is up?”") || sent[0].ReplyTo != question {
			t.Fatalf("%+v\n%s", sent, o.logs)
		}
		id := d.RunCommand(discordRoom, discordAlice, "status")
		o.settle()
		if replies := d.Replies(id); len(replies) != 1 || !replies[0].Ephemeral || !strings.HasPrefix(replies[0].Content, "🤖") {
			t.Errorf("/status: %+v\n%s", replies, o.logs)
		}
		id = d.Complete(discordRoom, discordAlice, "model", discord.Argument{Name: "model", Value: "under", Focused: true})
		o.settle()
		if got := d.Interaction(id); len(got.Choices) == 0 || got.Choices[0].Value != "sim/understudy" {
			t.Errorf("suggestions: %+v\n%s", got, o.logs)
		}
	})
}

func TestOwnerIsToldOnceOfABrokenPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, "")
		d := o.discordServer("discord.test", discord.Config{})
		o.configure("channels: {discord: {botToken: " + d.Token() + ", apiRoot: \"http://discord.test\", allowFrom: [\"" + discordAlice + "\"], guilds: {\"" + discordGuild + "\": {}}}}\n" +
			"commands: {ownerAllowFrom: [\"discord:" + discordAlice + "\"]}\n")
		o.open()
		d.UserSays(discordDM, discordAlice, "/whoami")
		o.settle()
		d.Deny(discordRoom, 403, 50001, "Missing Access")
		d.UserSays(discordRoom, discordAlice, "<@"+d.BotID()+"> one")
		d.UserSays(discordRoom, discordAlice, "<@"+d.BotID()+"> two")
		pass(10 * time.Minute)
		synctest.Wait()
		told := 0
		for _, m := range d.Sent(discordDM) {
			if strings.HasPrefix(m.Content, "📪 I cannot write to "+discordRoom+" on discord any more") {
				told++
			}
		}
		if told != 1 {
			t.Errorf("told %d times: %v\n%s", told, d.Sent(discordDM), o.logs)
		}
	})
}

func TestAccountThatCannotBeOpenedDoesNotStopTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, "")
		s := o.slackServer("slack.test", slack.Config{})
		o.discordServer("discord.test", discord.Config{})
		wrong := discord.TokenOf("110201543000000009") // a well-formed token of nobody
		o.configure("channels:\n  slack: " + slackBlock(s, slack.Root, "allowFrom: ["+slackAlice+"]") +
			"\n  discord: {botToken: " + wrong + ", apiRoot: \"http://discord.test\"}\n")
		o.open()
		pass(10 * time.Minute)
		synctest.Wait()
		if got := o.state("discord", ""); got != "stopped" {
			t.Errorf("an account with a wrong token is %q\n%s", got, o.logs)
		}
		s.UserSays(slackDM, slackAlice, "hello")
		o.settle()
		if n := len(s.Sent(slackDM)); n != 1 {
			t.Errorf("%d answers\n%s", n, o.logs)
		}
	})
}
