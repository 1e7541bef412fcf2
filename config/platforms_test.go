package config

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	slackTokens   = "botToken: xoxb-1, appToken: xapp-1"
	discordToken  = "botToken: MTIzNDU2.x.one"
	telegramToken = "botToken: '1:x'"
)

// running lists the accounts that run, as channel/id.
func running(c *Config) []string {
	var list []string
	for channel, ids := range map[string][]string{
		"slack": slices.Collect(maps.Keys(c.SlackAccounts())), "discord": slices.Collect(maps.Keys(c.DiscordAccounts())),
		"telegram": slices.Collect(maps.Keys(c.TelegramAccounts())),
	} {
		for _, id := range ids {
			list = append(list, channel+"/"+id)
		}
	}
	slices.Sort(list)
	return list
}

func TestWhichAccountsRun(t *testing.T) {
	everything := []string{
		"SLACK_BOT_TOKEN", "xoxb-env", "SLACK_APP_TOKEN", "xapp-env", "DISCORD_BOT_TOKEN", "MTIzNDU2.x.env", "TELEGRAM_BOT_TOKEN", "9:env",
	}
	for name, tt := range map[string]struct {
		text string
		vars []string
		want []string
	}{
		"tokens in the environment alone switch nothing on": {"channels: {}", everything, nil},
		"an empty block with tokens in the environment": {
			"channels: {slack: {}, discord: {}, telegram: {}}", everything, []string{"discord/default", "slack/default", "telegram/default"},
		},
		"one half from the file and one from the environment": {
			"channels: {slack: {botToken: xoxb-1}}", []string{"SLACK_APP_TOKEN", "xapp-env"}, []string{"slack/default"},
		},
		"an account takes nothing from the environment": {
			"channels: {discord: {enabled: true, " + discordToken + ", accounts: {ops: {botToken: '${MISSING}'}}}}", everything, []string{"discord/default"},
		},
		"a missing app token switches off its account only": {
			"channels: {slack: {" + slackTokens + ", accounts: {ops: {botToken: xoxb-2, appToken: '${MISSING}'}, spare: {botToken: xoxb-3, appToken: xapp-3}}}}",
			nil,
			[]string{"slack/default", "slack/spare"},
		},
		"disabled": {"channels: {slack: {enabled: false}, discord: {enabled: false, " + discordToken + "}}", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, running(must(t, tt.text, tt.vars...))); diff != "" {
				t.Errorf("running (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSecretsAreNotInherited(t *testing.T) {
	c := must(t, `
channels:
  slack:
    mode: http
    botToken: xoxb-1
    signingSecret: 0123456789abcdef0123456789abcdef
    replyToMode: all
    accounts:
      ops: {mode: socket, botToken: xoxb-2, appToken: xapp-2}
`)
	ops := c.SlackAccounts()["ops"]
	if ops.ReplyToMode != "all" || ops.BotToken.Reveal() != "xoxb-2" {
		t.Errorf("ops does not start from the block: %+v", ops)
	}
	if !ops.SigningSecret.IsZero() {
		t.Error("an account got the signing secret of another app")
	}
}

func TestMessagesKeysReachEveryPlatform(t *testing.T) {
	c := must(t, `
messages:
  catchUp: {maxAge: 2h, maxMessages: 7}
  groupChat: {mentionPatterns: [butler], historyLimit: 0}
  ackReaction: "👀"
channels:
  slack: {`+slackTokens+`}
  discord: {`+discordToken+`, historyLimit: 3, catchUp: {maxMessages: 9}}
  telegram: {`+telegramToken+`, mentionPatterns: [jeeves], ackReaction: "👍"}
`)
	slack, discord, telegram := c.SlackAccounts()[DefaultAccount], c.DiscordAccounts()[DefaultAccount], c.TelegramAccounts()[DefaultAccount]
	if *slack.HistoryLimit != 0 || *discord.HistoryLimit != 3 || *telegram.HistoryLimit != 0 {
		t.Errorf("history %d, %d, %d", *slack.HistoryLimit, *discord.HistoryLimit, *telegram.HistoryLimit)
	}
	if diff := cmp.Diff([][]string{{"butler"}, {"butler"}, {"jeeves"}}, [][]string{slack.MentionPatterns, discord.MentionPatterns, telegram.MentionPatterns}); diff != "" {
		t.Error(diff)
	}
	if slack.AckReaction != "👀" || discord.AckReaction != "👀" || telegram.AckReaction != "👍" {
		t.Errorf("ack %q, %q", slack.AckReaction, telegram.AckReaction)
	}
	if slack.CatchUp.MaxMessages != 7 || discord.CatchUp.MaxMessages != 9 || discord.CatchUp.MaxAge.Hours() != 2 {
		t.Errorf("catch-up %+v, %+v", slack.CatchUp, discord.CatchUp)
	}
}

func TestAccessGroups(t *testing.T) {
	c := must(t, `
accessGroups: {team: ["slack:U01234567", "telegram:42", "discord:77"], empty: []}
channels:
  telegram:
    `+telegramToken+`
    allowFrom: [1, accessGroup:team]
    groups: {"-100": {allowFrom: [accessGroup:team]}, "-200": {allowFrom: [accessGroup:empty]}, "-300": {}}
    accounts: {ops: {botToken: '2:x', allowFrom: [7]}}
  discord:
    `+discordToken+`
    guilds: {"5": {users: [accessGroup:team], channels: {"6": {users: [accessGroup:team, "8"]}}}}
commands: {allowFrom: {telegram: [accessGroup:team], "*": []}}
`)
	x := c.TelegramAccounts()[DefaultAccount]
	for name, pair := range map[string][2][]string{
		"a list":           {{"1", "42"}, x.AllowFrom},
		"an entry":         {{"42"}, x.Groups["-100"].AllowFrom},
		"an empty group":   {{}, x.Groups["-200"].AllowFrom},
		"no list":          {nil, x.Groups["-300"].AllowFrom},
		"another account":  {{"7"}, c.TelegramAccounts()["ops"].AllowFrom},
		"a server":         {{"77"}, c.DiscordAccounts()[DefaultAccount].Guilds["5"].Users},
		"deep in a server": {{"77", "8"}, c.DiscordAccounts()[DefaultAccount].Guilds["5"].Channels["6"].Users},
	} {
		if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got := c.Channels.Telegram.Config.AllowFrom; !slices.Contains(got, "accessGroup:team") {
		t.Errorf("what is written was changed: %v", got)
	}
	for who, want := range map[string]bool{"telegram 42": true, "telegram 1": false, "discord 77": false, "telegram ": false} {
		channel, id, _ := strings.Cut(who, " ")
		if got := c.MayCommand(channel, id); got != want {
			t.Errorf("%s may use commands: %t", who, got)
		}
	}
	if !must(t, "").MayCommand("slack", "U1") || !must(t, "commands: {allowFrom: {'*': ['*']}}").MayCommand("slack", "U1") {
		t.Error("without a list, or with a star, everybody who is let in may use commands")
	}
	if must(t, "commands: {allowFrom: {}}").MayCommand("slack", "U1") {
		t.Error("an empty map admits nobody")
	}
}

func TestPlatformProblems(t *testing.T) {
	for text, want := range map[string][]string{
		"channels: {discord: {" + discordToken + ", accounts: {a: {botToken: 'Bot MTIzNDU2.x.one'}}}}": {
			`bot.yaml:1:73: channels.discord.accounts.a.botToken: account "default" uses this token already (two connections of one token take each other's messages)`,
		},
		"channels: {slack: {" + slackTokens + ", accounts: {a: {botToken: xoxb-2, appToken: xapp-1}}}}": {
			`bot.yaml:1:99: channels.slack.accounts.a.appToken: account "default" uses this token already (two connections of one token take each other's messages)`,
		},
		"channels: {telegram: {" + telegramToken + ", dmPolicy: open, allowFrom: [1]}}": {
			`bot.yaml:1:56: channels.telegram.allowFrom: dmPolicy open admits everybody only together with "*" (add it, or use the policy allowlist)`,
		},
		"channels: {telegram: {" + telegramToken + ", apiRoot: 'https://api.telegram.org/bot'}}": {
			"bot.yaml:1:49: channels.telegram.apiRoot: it ends before /bot: that part and the token are added to it",
		},
		"channels: {telegram: {" + telegramToken + ", webhookUrl: 'https://x.example', webhookSecret: 0123456789abcdefgh, webhookPath: /metrics}}": {
			`bot.yaml:1:121: channels.telegram.webhookPath: "/metrics" belongs to the bot itself; choose another path`,
		},
		"channels: {telegram: {" + telegramToken + ", allowFrom: [accessGroup:taem]}}\naccessGroups: {team: [telegram:1]}": {
			`bot.yaml:1:52: channels.telegram.allowFrom[0]: there is no access group "taem" (did you mean "team"?)`,
		},
		"accessGroups: {team: [alice, 'telegram:*', 'irc:x'], Team: []}": {
			`bot.yaml:1:23: accessGroups.team[0]: "alice" is not of the form channel:id (for example telegram:123456789)`,
			`bot.yaml:1:30: accessGroups.team[1]: "telegram:*" is not of the form channel:id (for example telegram:123456789)`,
			`bot.yaml:1:44: accessGroups.team[2]: "irc:x" is not of the form channel:id (for example telegram:123456789)`,
			`bot.yaml:1:54: accessGroups.Team: "Team" cannot be the name of a group (lower-case letters, digits, - and _, at most 64)`,
		},
		"messages: {inbound: {debounceMs: -1, byChannel: {slak: 5}}, groupChat: {mentionPatterns: ['(?<=x)y'], historyLimit: -2}}": {
			"bot.yaml:1:34: messages.inbound.debounceMs: -1 is not between 0 and 60000 milliseconds (0 = off)",
			`bot.yaml:1:56: messages.inbound.byChannel.slak: there is no channel "slak" (did you mean "slack"?)`,
			`bot.yaml:1:91: messages.groupChat.mentionPatterns[0]: "(?<=x)y" is not a regular expression (the syntax is RE2; look-arounds do not exist in it)`,
			"bot.yaml:1:117: messages.groupChat.historyLimit: -2 is not between 0 and 500 (0 = none)",
		},
	} {
		if diff := cmp.Diff(want, problems(t, text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestAccountsThatAreCalledNeedPathsOfTheirOwn(t *testing.T) {
	got := problems(t, `channels:
  slack:
    mode: http
    botToken: xoxb-1
    signingSecret: 0123456789abcdef0123456789abcdef
    accounts:
      ops: {botToken: xoxb-2, signingSecret: 1123456789abcdef0123456789abcdef}
`)
	want := `channels.slack.accounts.ops.webhookPath: channels.slack listens at "/slack/events" already (give every account that is called a path of its own)`
	if len(got) != 1 || !strings.HasSuffix(got[0], want) {
		t.Errorf("%q", got)
	}
}

func TestWhatIsHardlyMeant(t *testing.T) {
	for text, want := range map[string]string{
		"channels: {telegram: {" + telegramToken + ", allowFrom: ['-100']}}":                                                                       `channels.telegram.allowFrom: "-100" is the id of a group: it lets in who writes in the name of that group, and none of its members (the group itself belongs into groups)`,
		"channels: {discord: {" + discordToken + ", intents: {messageContent: false}, requireMention: false}}":                                     "channels.discord.requireMention: a mention is needed all the same: without intents.messageContent other messages cannot be read",
		"session: {dmScope: main}\nchannels: {telegram: {" + telegramToken + ", allowFrom: [1, 2]}}":                                               "session.dmScope: 2 people are let in, and with main all of them share one conversation (use per-channel-peer)",
		"channels: {discord: {" + discordToken + ", intents: {messageContent: false}, guilds: {'5': {channels: {'6': {requireMention: false}}}}}}": "channels.discord.guilds.5.channels.6.requireMention: a mention is needed all the same: without intents.messageContent other messages cannot be read",
	} {
		got := warnings(t, text)
		if len(got) != 1 || !strings.HasSuffix(got[0], want) {
			t.Errorf("%s:\n%q", text, got)
		}
	}
	if got := warnings(t, "session: {dmScope: main}\nchannels: {telegram: {"+telegramToken+", allowFrom: [1]}}"); len(got) > 0 {
		t.Errorf("one owner alone: %q", got)
	}
}
