package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAccountsStartFromTheBlock(t *testing.T) {
	c := must(t, `
channels:
  telegram:
    botToken: "1:one"
    dmPolicy: allowlist
    allowFrom: [42, "-7"]
    requireMention: false
    groups: {"-100": {requireMention: false}}
    accounts:
      ops:
        botToken: "2:two"
        allowFrom: [43]
        requireMention: true
        groups: {"-200": {}}
      "spare": {botToken: "3:three", enabled: false}
`)
	accounts := c.TelegramAccounts()
	def, ops := accounts[DefaultAccount], accounts["ops"]
	if len(accounts) != 2 {
		t.Fatalf("accounts %v", accounts)
	}
	if def.BotToken.Reveal() != "1:one" || ops.BotToken.Reveal() != "2:two" {
		t.Error("tokens are mixed up")
	}
	if ops.DMPolicy != "allowlist" {
		t.Errorf("ops does not start from the block: %+v", ops)
	}
	if diff := cmp.Diff([]string{"42", "-7"}, def.AllowFrom); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"43"}, ops.AllowFrom); diff != "" {
		t.Error(diff)
	}
	if *def.RequireMention || !*ops.RequireMention {
		t.Error("an account changed the block it started from")
	}
	if len(def.Groups) != 1 || len(ops.Groups) != 1 {
		t.Errorf("groups %v, %v", def.Groups, ops.Groups)
	}
}

func TestTelegramTokens(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		vars       []string
		run        []string
		off        []Unavailable
	}{
		{"no block, no channel", "", []string{"TELEGRAM_BOT_TOKEN", "1:x"}, nil, nil},
		{"from the environment", "channels: {telegram: {}}", []string{"TELEGRAM_BOT_TOKEN", "1:x"}, []string{"default"}, nil},
		{"accounts only", "channels: {telegram: {accounts: {a: {botToken: '2:x'}}}}", nil, []string{"a"}, nil},
		{"one token is missing", "channels: {telegram: {botToken: '${A}', accounts: {a: {botToken: '${B}'}, b: {botToken: '${C}'}}}}", []string{"C", "3:x"}, []string{"b"}, []Unavailable{{Channel: "telegram"}, {Channel: "telegram", Account: "a"}}},
		{"the file wins over the environment", "channels: {telegram: {botToken: '${A}'}}", []string{"TELEGRAM_BOT_TOKEN", "1:x"}, nil, []Unavailable{{Channel: "telegram"}}},
		{"disabled", "channels: {telegram: {enabled: false}}", nil, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := must(t, tt.text, tt.vars...)
			var run []string
			for _, id := range []string{"default", "a", "b"} {
				if _, ok := c.TelegramAccounts()[id]; ok {
					run = append(run, id)
				}
			}
			if diff := cmp.Diff(tt.run, run); diff != "" {
				t.Errorf("running (-want +got):\n%s", diff)
			}
			var off []Unavailable
			for _, u := range c.Unavailable {
				u.Problem = Problem{}
				off = append(off, u)
			}
			if diff := cmp.Diff(tt.off, off); diff != "" {
				t.Errorf("unavailable (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTelegramProblems(t *testing.T) {
	for text, want := range map[string][]string{
		"channels: {telegram: {}}": {
			"bot.yaml:1:12: channels.telegram.botToken: a bot token from @BotFather is needed",
		},
		"channels: {telegram: {botToken: '1:x', dmPolicy: alowlist, allowFrom: [alice]}}": {
			`bot.yaml:1:50: channels.telegram.dmPolicy: "alowlist" is not one of pairing, allowlist, open, disabled`,
			`bot.yaml:1:60: channels.telegram.allowFrom: "alice" is not a numeric Telegram id (names never match)`,
		},
		"channels: {telegram: {botToken: '1:x', accounts: {a: {botToken: '1:x'}}}}": {
			`bot.yaml:1:65: channels.telegram.accounts.a.botToken: account "default" uses this token already (two connections of one token take each other's messages)`,
		},
		"channels: {telegram: {botToken: '1:x', accounts: {default: {}}}}": {
			`bot.yaml:1:51: channels.telegram.accounts.default: this account is the block itself (move its keys one level up)`,
		},
		"channels: {telegram: {botToken: '1:x', streaming: {mod: off}}}": {
			`bot.yaml:1:52: channels.telegram.streaming.mod: unknown key (did you mean "mode"?)`,
		},
		"channels: {telegram: {botToken: '1:x'}}\ncommands: {ownerAllowFrom: [alice]}": {
			`bot.yaml:2:12: commands.ownerAllowFrom: "alice" is not of the form channel:id`,
		},
	} {
		if diff := cmp.Diff(want, problems(t, text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}
