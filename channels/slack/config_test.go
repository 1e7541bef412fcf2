package slack

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"understudy/internal/secret"
)

func valid() Config {
	return Config{BotToken: secret.New("xoxb-1-2-abc"), AppToken: secret.New("xapp-1-A0-3-abc")}.WithDefaults()
}

func TestDefaults(t *testing.T) {
	c := valid()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(c.Mode, c.APIRoot, c.WebhookPath, c.DMPolicy, c.GroupPolicy, *c.RequireMention, c.AllowBots, c.ReplyToMode, c.Streaming.Mode,
		*c.Streaming.NativeTransport, c.TextChunkLimit, c.MediaMaxMB, *c.HistoryLimit, *c.Thread.InitialHistoryLimit, c.UnfurlLinks,
		c.Commands.Native, c.SlashCommand.Name, *c.ImplicitMentions.ReplyToBot, *c.ImplicitMentions.ThreadParticipation, c.DM.GroupEnabled)
	want := fmt.Sprint("socket", "https://slack.com", "/slack/events", "pairing", "allowlist", true, "false", "first", "partial",
		true, 8000, 20, 50, 20, false, false, "bot", true, true, false)
	if got != want {
		t.Errorf("defaults %s, want %s", got, want)
	}
	zero := 0
	c = Config{HistoryLimit: &zero, APIRoot: "https://slack.com/api/", SlashCommand: SlashCommand{Name: "/claw"}}.WithDefaults()
	if *c.HistoryLimit != 0 || c.APIRoot != "https://slack.com" || c.SlashCommand.Name != "claw" {
		t.Errorf("history %d, root %q, command %q", *c.HistoryLimit, c.APIRoot, c.SlashCommand.Name)
	}
}

func TestNamesEveryMistake(t *testing.T) {
	for path, change := range map[string]func(*Config){
		"botToken":                      func(c *Config) { c.BotToken = secret.String{} },
		"botToken ":                     func(c *Config) { c.BotToken = secret.New("xapp-1") },
		"botToken  ":                    func(c *Config) { c.BotToken = secret.New("xoxb-1 2") },
		"appToken":                      func(c *Config) { c.AppToken = secret.String{} },
		"appToken ":                     func(c *Config) { c.AppToken = secret.New("xoxb-1") },
		"signingSecret":                 func(c *Config) { c.Mode = "http" },
		"mode":                          func(c *Config) { c.Mode = "rtm" },
		"webhookPath":                   func(c *Config) { c.WebhookPath = "slack" },
		"apiRoot":                       func(c *Config) { c.APIRoot = "slack.com" },
		"proxy":                         func(c *Config) { c.Proxy = "ftp://x" },
		"dmPolicy":                      func(c *Config) { c.DMPolicy = "all" },
		"allowFrom":                     func(c *Config) { c.DMPolicy = "allowlist" },
		"allowFrom ":                    func(c *Config) { c.AllowFrom = []string{"ann"} },
		"groupAllowFrom":                func(c *Config) { c.GroupAllowFrom = []string{"@ann"} },
		"groupPolicy":                   func(c *Config) { c.GroupPolicy = "pairing" },
		"channels":                      func(c *Config) { c.Channels = map[string]Room{"#general": {}} },
		"channels.C0GENERAL.users":      func(c *Config) { c.Channels = map[string]Room{"C0GENERAL": {Users: []string{"bob"}}} },
		"mentionPatterns[1]":            func(c *Config) { c.MentionPatterns = []string{"ok", "("} },
		"allowBots":                     func(c *Config) { c.AllowBots = "yes" },
		"replyToMode":                   func(c *Config) { c.ReplyToMode = "last" },
		"replyToModeByChatType.channel": func(c *Config) { c.ReplyToModeByChatType.Channel = "last" },
		"streaming.mode":                func(c *Config) { c.Streaming.Mode = "full" },
		"streaming.chunkMode":           func(c *Config) { c.Streaming.ChunkMode = "word" },
		"textChunkLimit":                func(c *Config) { c.TextChunkLimit = 12_001 },
		"mediaMaxMb":                    func(c *Config) { c.MediaMaxMB = 51 },
		"historyLimit":                  func(c *Config) { n := -1; c.HistoryLimit = &n },
		"thread.initialHistoryLimit":    func(c *Config) { n := 9999; c.Thread.InitialHistoryLimit = &n },
		"typingReaction":                func(c *Config) { c.TypingReaction = "not one" },
		"slashCommand.name":             func(c *Config) { c.SlashCommand.Name = "two words" },
		"catchUp.maxAge":                func(c *Config) { c.CatchUp.MaxAge = -1 },
		"catchUp.maxMessages":           func(c *Config) { c.CatchUp.MaxMessages = -1 },
		"replyToModeByChatType.direct":  func(c *Config) { c.ReplyToModeByChatType.Direct = "x" },
		"replyToModeByChatType.group":   func(c *Config) { c.ReplyToModeByChatType.Group = "x" },
	} {
		c := valid()
		change(&c)
		err := c.Validate()
		var e *FieldError
		if !errors.As(err, &e) {
			t.Errorf("%s: got %v (%T)", path, err, err)
			continue
		}
		if e.Path != strings.TrimSpace(path) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v", path, err)
		}
		for _, token := range []string{"xoxb-1", "xapp-1"} {
			if strings.Contains(err.Error(), token) {
				t.Errorf("the token is in %v", err)
			}
		}
	}
}

func TestAcceptsEveryFormOfAnId(t *testing.T) {
	c := valid()
	c.AllowFrom = []string{"U0ANN0001", "slack:U0BOB0001", "W0123ABCD", "accessGroup:team", "*"}
	c.Channels = map[string]Room{"C0GENERAL": {}, "G0OLD0001": {}, "*": {}}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

// TestNeedsTheScopesOfTheManifest holds what Probe asks for against what the app is given.
func TestNeedsTheScopesOfTheManifest(t *testing.T) {
	manifest := readManifest(t)
	var names []string
	for _, s := range scopes {
		names = append(names, s.name)
	}
	slices.Sort(names)
	if !slices.Equal(names, manifest.scopes) {
		t.Errorf("the manifest asks for %v, Probe for %v", manifest.scopes, names)
	}
}
