package telegram

import (
	"errors"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"understudy/channels"
	"understudy/internal/secret"
)

func TestConfigValidate(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Config)
		want   []string // paths
	}{
		{"token alone is enough", func(*Config) {}, nil},
		{"no token", func(c *Config) { c.BotToken = secret.String{} }, []string{"botToken"}},
		{"not a token", func(c *Config) { c.BotToken = secret.New("xoxb-123") }, []string{"botToken"}},
		{"a path in the token", func(c *Config) { c.BotToken = secret.New("1:a/../b") }, []string{"botToken"}},
		{"policies", func(c *Config) { c.DMPolicy, c.GroupPolicy, c.ReplyToMode = "everyone", "pairing", "never" }, []string{"dmPolicy", "groupPolicy", "replyToMode"}},
		{"streaming", func(c *Config) { c.Streaming = Streaming{Mode: "block", ChunkMode: "word"} }, []string{"streaming.mode", "streaming.chunkMode"}},
		{"allowlist without ids", func(c *Config) { c.DMPolicy = "allowlist" }, []string{"allowFrom"}},
		{"names are no ids", func(c *Config) { c.AllowFrom = []string{"1001", "*", "@ann"} }, []string{"allowFrom", "groupAllowFrom"}},
		{"limits", func(c *Config) { c.TextChunkLimit, c.MediaMaxMB = 5000, -1 }, []string{"textChunkLimit", "mediaMaxMb"}},
		{"files that Telegram does not give out", func(c *Config) { c.MediaMaxMB = 51 }, []string{"mediaMaxMb"}},
		{"files of a server of one's own", func(c *Config) { c.MediaMaxMB, c.APIRoot = 2000, "http://api.test" }, nil},
		{"urls", func(c *Config) { c.APIRoot, c.Proxy = "api.telegram.org", "ftp://x" }, []string{"apiRoot", "proxy"}},
		{"group lists by name", func(c *Config) { c.AllowFrom = []string{"accessGroup:team"}; c.DMPolicy = "allowlist" }, nil},
		{"a group cannot be one", func(c *Config) { c.Groups = map[string]Group{"accessGroup:team": {}} }, []string{"groups"}},
		{"mention patterns", func(c *Config) { c.MentionPatterns = []string{`\bbot\b`, "("} }, []string{"mentionPatterns[1]"}},
		{"choices", func(c *Config) { c.AllowBots, c.AckReaction = "yes", "⏳" }, []string{"allowBots", "ackReaction"}},
		{"bounds", func(c *Config) {
			n := -1
			c.HistoryLimit = &n
			c.CatchUp = channels.CatchUp{MaxAge: -1, MaxMessages: -1}
		}, []string{"historyLimit", "catchUp.maxAge", "catchUp.maxMessages"}},
		{"webhook", withWebhook, nil},
		{"webhook without a secret", func(c *Config) { c.WebhookURL = "https://bot.test" }, []string{"webhookSecret"}},
		{"webhook with a short secret", func(c *Config) { withWebhook(c); c.WebhookSecret = secret.New("short") }, []string{"webhookSecret"}},
		{"webhook with a strange secret", func(c *Config) { withWebhook(c); c.WebhookSecret = secret.New("abcdefgh ijklmnopq") }, []string{"webhookSecret"}},
		{"webhook over http", func(c *Config) { withWebhook(c); c.WebhookURL = "http://bot.test" }, []string{"webhookUrl"}},
		{"webhook on a strange port", func(c *Config) { withWebhook(c); c.WebhookURL = "https://bot.test:8787" }, []string{"webhookUrl"}},
		{"webhook of an own server", func(c *Config) {
			withWebhook(c)
			c.APIRoot, c.WebhookURL = "http://127.0.0.1:8081", "http://127.0.0.1:8787"
		}, nil},
		{"webhook path", func(c *Config) { c.WebhookPath = "hook" }, []string{"webhookPath"}},
		{"groups", func(c *Config) { c.Groups = map[string]Group{"ops": {AllowFrom: []string{"bob"}}, "*": {}} }, []string{"groups", "groups.ops.allowFrom"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := Config{BotToken: secret.New("123:abc")}
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
	const doc = `
botToken: 123:abc
dmPolicy: allowlist
allowFrom: [1001, "1002"]
groups:
  -2001: {requireMention: false}
  "*": {}
streaming: {mode: "off"}
textChunkLimit: 3000
`
	var c Config
	if err := yaml.UnmarshalWithOptions([]byte(doc), &c, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1001", "1002"}, c.AllowFrom); diff != "" {
		t.Error(diff)
	}
	g, ok := c.Groups["-2001"]
	if !ok || g.RequireMention == nil || *g.RequireMention {
		t.Errorf("groups %+v", c.Groups)
	}
	if c.BotID() != "123" || c.Streaming.Mode != "off" || !*c.LinkPreview {
		t.Errorf("id %q, streaming %q, previews %v", c.BotID(), c.Streaming.Mode, *c.LinkPreview)
	}
	if _, err := New(Config{BotToken: secret.New("123:abc"), DMPolicy: "x"}, Deps{}); err == nil || strings.Contains(err.Error(), "abc") {
		t.Errorf("got %v", err)
	}
}

func TestWebhookAddress(t *testing.T) {
	for url, want := range map[string]string{
		"":                          "",
		"https://bot.test":          "https://bot.test/telegram-webhook",
		"https://bot.test/":         "https://bot.test/telegram-webhook",
		"https://bot.test:8443/a/b": "https://bot.test:8443/a/b",
		"https://bot.test/hook?x=1": "https://bot.test/hook?x=1",
		"https://bot.test/%zz":      "",
	} {
		if got := (Config{WebhookURL: url}).WithDefaults().Webhook(); got != want {
			t.Errorf("%q: %q, want %q", url, got, want)
		}
	}
}
