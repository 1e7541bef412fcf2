package discord

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"understudy/internal/secret"

	emulator "understudy/internal/emulate/discord"
)

func validToken() secret.String { return secret.New(emulator.TokenOf("42")) }

func TestConfigValidate(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Config)
		want   []string // paths
	}{
		{"token alone is enough", func(*Config) {}, nil},
		{"no token", func(c *Config) { c.BotToken = secret.String{} }, []string{"botToken"}},
		{"the client secret", func(c *Config) { c.BotToken = secret.New("rWxyz0123456789abcdefghijklmnopq") }, []string{"botToken"}},
		{"a path in the token", func(c *Config) { c.BotToken = secret.New("NDI.a/b.c") }, []string{"botToken"}},
		{"policies", func(c *Config) {
			c.DMPolicy, c.GroupPolicy, c.ReplyToMode, c.AllowBots = "everyone", "pairing", "never", "yes"
		}, []string{"dmPolicy", "groupPolicy", "allowBots", "replyToMode"}},
		{"streaming", func(c *Config) { c.Streaming = Streaming{Mode: "block", ChunkMode: "word"} }, []string{"streaming.mode", "streaming.chunkMode"}},
		{"allowlist without ids", func(c *Config) { c.DMPolicy = "allowlist" }, []string{"allowFrom"}},
		{"access groups", func(c *Config) {
			c.AllowFrom, c.Guilds = []string{"accessGroup:ops"}, map[string]Guild{"5": {Users: []string{"accessGroup:ops"}, Roles: []string{"accessGroup:ops"}}}
		}, []string{"guilds.5.roles"}},
		{"names are no ids", func(c *Config) { c.AllowFrom, c.DevGuildIDs = []string{"1001", "*", "@ann"}, []string{"*"} }, []string{"allowFrom", "groupAllowFrom", "devGuildIds"}},
		{"limits", func(c *Config) {
			c.TextChunkLimit, c.MediaMaxMB, c.MaxLinesPerMessage, *c.HistoryLimit = 2001, -1, -1, -1
		}, []string{"textChunkLimit", "maxLinesPerMessage", "mediaMaxMb", "historyLimit"}},
		{"catching up", func(c *Config) { c.CatchUp.MaxAge, c.CatchUp.MaxMessages = -time.Second, -1 }, []string{"catchUp.maxAge", "catchUp.maxMessages"}},
		{"urls", func(c *Config) { c.APIRoot, c.Proxy = "https://discord.com/api", "ftp://x" }, []string{"apiRoot", "proxy"}},
		{"patterns", func(c *Config) { c.MentionPatterns = []string{"bot", "(", ".*", ""} }, []string{"mentionPatterns[1]", "mentionPatterns[2]", "mentionPatterns[3]"}},
		{"reaction", func(c *Config) { c.AckReaction = "eyes" }, []string{"ackReaction"}},
		{"guilds", func(c *Config) {
			c.Guilds = map[string]Guild{"ops": {Users: []string{"bob"}}, "*": {}, "5": {Roles: []string{"*"}, Channels: map[string]Place{"#general": {Users: []string{"x"}}, "*": {}}}}
		}, []string{"guilds.5.roles", "guilds.5.channels", "guilds.5.channels.#general.users", "guilds", "guilds.ops.users"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := Config{BotToken: validToken(), HistoryLimit: new(int)}
			tt.change(&c)
			if diff := cmp.Diff(tt.want, paths(c.WithDefaults().Validate())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func paths(err error) []string {
	var out []string
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		for _, e := range joined.Unwrap() {
			var f *FieldError
			if errors.As(e, &f) {
				out = append(out, f.Path)
			}
		}
	}
	return out
}

func TestConfigYAML(t *testing.T) {
	doc := `
botToken: Bot ` + emulator.TokenOf("42") + `
allowFrom: [1001, "1002"]
allowBots: true
streaming: {mode: "off"}
historyLimit: 0
suppressEmbeds: false
catchUp: {maxAge: 30m}
devGuildIds: [500]
guilds:
  500:
    requireMention: false
    channels:
      200: {enabled: true, roles: [601], autoThread: true}
`
	var c Config
	if err := yaml.UnmarshalWithOptions([]byte(doc), &c, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if c.BotID() != "42" || c.Token().Reveal() != emulator.TokenOf("42") {
		t.Errorf("id %q", c.BotID())
	}
	if *c.HistoryLimit != 0 || *c.SuppressEmbeds || c.AllowBots != "true" || c.CatchUp.MaxAge != 30*time.Minute || c.TextChunkLimit != 2000 || c.ReplyToMode != "first" {
		t.Errorf("got %+v", c)
	}
	if !*c.Guilds["500"].Channels["200"].AutoThread {
		t.Errorf("guilds %+v", c.Guilds)
	}
	if _, err := New(Config{BotToken: validToken(), DMPolicy: "x"}, Deps{}); err == nil || strings.Contains(err.Error(), validToken().Reveal()) {
		t.Errorf("got %v", err)
	}
}

// What holds in a channel is its own key, else the server's, else the account's.
func TestEffective(t *testing.T) {
	yes, no := true, false
	c := Config{
		BotToken: validToken(), AutoThread: true,
		Guilds: map[string]Guild{
			"1": {RequireMention: &no, Users: []string{"7"}, Channels: map[string]Place{"10": {RequireMention: &yes, Roles: []string{"9"}, AutoThread: &no}, "11": {Enabled: &no}}},
			"2": {},
		},
	}.WithDefaults()
	for _, tt := range []struct {
		guild, channel string
		want           Place
	}{
		{"1", "10", Place{Enabled: &yes, RequireMention: &yes, Roles: []string{"9"}, AutoThread: &no}},
		{"1", "11", Place{Enabled: &no, RequireMention: &no, Users: []string{"7"}, AutoThread: &yes}},
		{"1", "12", Place{Enabled: &no, RequireMention: &no, Users: []string{"7"}, AutoThread: &yes}},
		{"2", "10", Place{Enabled: &yes, RequireMention: &yes, AutoThread: &yes}},
		{"3", "10", Place{RequireMention: &yes, AutoThread: &yes}},
	} {
		if diff := cmp.Diff(tt.want, c.Effective(tt.guild, tt.channel)); diff != "" {
			t.Errorf("%s/%s: %s", tt.guild, tt.channel, diff)
		}
	}
	c.Intents.MessageContent = &no
	if p := c.Effective("1", "11"); !*p.RequireMention {
		t.Error("without the content of messages a mention is needed everywhere")
	}
}
