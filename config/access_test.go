package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"understudy/inbound"
)

// accounts are the blocks of one account of each platform with further keys.
func accounts(keys string) map[string]string {
	return map[string]string{
		"slack":    "channels: {slack: {" + slackTokens + ", " + keys + "}}",
		"discord":  "channels: {discord: {" + discordToken + ", " + keys + "}}",
		"telegram": "channels: {telegram: {" + telegramToken + ", " + keys + "}}",
	}
}

// accessOf is what the pipeline gets of the accounts that run.
func accessOf(c *Config) inbound.Config {
	out := inbound.Config{
		Access: map[inbound.Account]inbound.Access{}, Owners: c.Commands.OwnerAllowFrom,
		MaxAge: c.Messages.CatchUp.MaxAge, Loops: c.Messages.BotLoopProtection.Loops(),
	}
	for id, x := range c.SlackAccounts() {
		out.Access[inbound.Account{Channel: "slack", Name: id}] = SlackAccess(x)
	}
	for id, x := range c.DiscordAccounts() {
		out.Access[inbound.Account{Channel: "discord", Name: id}] = DiscordAccess(x)
	}
	for id, x := range c.TelegramAccounts() {
		out.Access[inbound.Account{Channel: "telegram", Name: id}] = TelegramAccess(x)
	}
	return out
}

// TestWhatIsCheckedStarts: a file that is found good is one with which the pipeline works.
func TestWhatIsCheckedStarts(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat("x, ", 51), ", ")
	for _, keys := range []string{
		"historyLimit: 500", "historyLimit: 501", "historyLimit: 1000", "historyLimit: -1",
		"mentionPatterns: [butler]", "mentionPatterns: ['x*']", "mentionPatterns: ['a)(b']", "mentionPatterns: ['']",
		"mentionPatterns: [" + strings.Repeat("x", 501) + "]", "mentionPatterns: [" + many + "]",
		"groupPolicy: pairing", "allowBots: always", "dmPolicy: allowlist", "dmPolicy: open", "dmPolicy: open, allowFrom: ['*']",
		"catchUp: {maxAge: -1h}", "catchUp: {maxMessages: -1}",
	} {
		for channel, text := range accounts(keys) {
			c, _, err := parse("bot.yaml", []byte(text), Options{Env: env()})
			if err == nil {
				err = accessOf(c).Validate()
				if err != nil {
					t.Errorf("%s: %s was found good, but: %v", channel, keys, err)
				}
				continue
			}
			keys := map[string]bool{}
			for _, line := range strings.Split(err.Error(), "\n") {
				if keys[line[:strings.LastIndex(line, ": ")]] {
					t.Errorf("%s: said twice:\n%v", channel, err)
				}
				keys[line[:strings.LastIndex(line, ": ")]] = true
			}
		}
	}
	for _, text := range []string{
		"messages: {groupChat: {mentionPatterns: ['x*']}}", "messages: {groupChat: {mentionPatterns: [" + many + "]}}",
		"messages: {groupChat: {historyLimit: 501}}", "messages: {botLoopProtection: {events: 0}}",
		"messages: {botLoopProtection: {windowSeconds: 0}}", "messages: {botLoopProtection: {cooldownSeconds: -1}}",
		"messages: {typingMode: always}",
	} {
		if got := problems(t, text+"\nchannels: {telegram: {"+telegramToken+"}}"); len(got) != 1 {
			t.Errorf("%s: %q", text, got)
		}
	}
	if c := must(t, "messages: {groupChat: {historyLimit: 500}}\nchannels: {telegram: {"+telegramToken+"}}"); accessOf(c).Validate() != nil {
		t.Error("the longest history of the file is none of the pipeline")
	}
}

// TestWrittenListOfTriggersBinds: only a list for groups that stands in the file is one.
func TestWrittenListOfTriggersBinds(t *testing.T) {
	for keys, want := range map[string]string{
		"groupPolicy: open, allowFrom: ['1']":                               "<nil>",
		"groupPolicy: open, allowFrom: ['1'], groupAllowFrom: ['2']":        "[2]",
		"groupPolicy: open, groupAllowFrom: []":                             "[]",
		"groupPolicy: open, groupAllowFrom: [accessGroup:team]":             "[7]",
		"groupPolicy: open, groupAllowFrom: ['2'], accounts: {}":            "[2]",
		"groupPolicy: allowlist, allowFrom: ['1'], groupAllowFrom: ['1']":   "[1]",
		"groupPolicy: open, dmPolicy: open, allowFrom: ['*'], enabled: yes": "<nil>",
	} {
		for channel, text := range accounts(keys) {
			text = strings.NewReplacer("'1'", id(channel, 1), "'2'", id(channel, 2), "yes", "true").Replace(text)
			c := must(t, text+"\naccessGroups: {team: ['"+channel+":"+id(channel, 7)+"']}")
			got := accessOf(c).Access[inbound.Account{Channel: channel, Name: DefaultAccount}].GroupAllowFrom
			text := "<nil>"
			if got != nil {
				text = fmt.Sprint(got)
			}
			if want := strings.NewReplacer("1", id(channel, 1), "2", id(channel, 2), "7", id(channel, 7)).Replace(want); text != want {
				t.Errorf("%s: %s: %s, want %s", channel, keys, text, want)
			}
		}
	}
}

// id is the id of a person on a platform.
func id(channel string, n int) string {
	return map[string]string{"slack": "U012345678", "discord": "12345678901234567", "telegram": "98765432"}[channel] + fmt.Sprint(n)
}

// TestManners: an account says it itself, or its platform's block, or the file for all of them.
func TestManners(t *testing.T) {
	c := must(t, `
messages: {typingMode: thinking, responsePrefix: auto, errorPolicy: once}
channels:
  telegram:
    botToken: '1:x'
    typingMode: never
    responsePrefix: "{model}:"
    errorPolicy: silent
    dmHistoryLimit: 10
    accounts:
      ops: {botToken: '2:x', typingMode: message, responsePrefix: "", errorPolicy: always}
      all: {botToken: '3:x', dmHistoryLimit: 0}
  discord: {botToken: MTIzNDU2.x.one}
`)
	manners := func(typing string, turns int, prefix, errors string) Manners {
		return Manners{TypingMode: typing, DMHistoryLimit: turns, ResponsePrefix: &prefix, ErrorPolicy: errors}
	}
	for name, want := range map[accountName]Manners{
		{"telegram", ""}:        manners("never", 10, "{model}:", "silent"),
		{"telegram", "default"}: manners("never", 10, "{model}:", "silent"),
		{"telegram", "ops"}:     manners("message", 10, "", "always"),
		{"telegram", "all"}:     manners("never", 0, "{model}:", "silent"),
		{"discord", ""}:         manners("thinking", 0, "auto", "once"),
		{"web", ""}:             manners("thinking", 0, "auto", "once"),
	} {
		if diff := cmp.Diff(want, c.Manners(name.channel, name.id)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", name, diff)
		}
	}
	def := must(t, "channels: {telegram: {"+telegramToken+"}}").Manners("telegram", "")
	if diff := cmp.Diff(manners("instant", 0, "", "always"), def); diff != "" {
		t.Errorf("by default (-want +got):\n%s", diff)
	}
	for _, keys := range []string{"typingMode: always", "errorPolicy: never", "dmHistoryLimit: -1", "dmHistoryLimit: 10001"} {
		for channel, text := range accounts(keys) {
			if got := problems(t, text); len(got) != 1 || !slices.ContainsFunc(got, func(s string) bool {
				return strings.Contains(s, "channels."+channel+"."+strings.SplitN(keys, ":", 2)[0])
			}) {
				t.Errorf("%s: %q", keys, got)
			}
		}
	}
}
