package telegram

import (
	"errors"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

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
		{"streaming", func(c *Config) { c.Streaming = Streaming{Mode: "progress", ChunkMode: "word"} }, []string{"streaming.mode", "streaming.chunkMode"}},
		{"allowlist without ids", func(c *Config) { c.DMPolicy = "allowlist" }, []string{"allowFrom"}},
		{"names are no ids", func(c *Config) { c.AllowFrom = []string{"1001", "*", "@ann"} }, []string{"allowFrom", "groupAllowFrom"}},
		{"limits", func(c *Config) { c.TextChunkLimit, c.MediaMaxMB = 5000, -1 }, []string{"textChunkLimit", "mediaMaxMb"}},
		{"urls", func(c *Config) { c.APIRoot, c.Proxy = "api.telegram.org", "ftp://x" }, []string{"apiRoot", "proxy"}},
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
