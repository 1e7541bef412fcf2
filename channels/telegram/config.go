package telegram

import (
	"net/url"
	"strconv"
	"strings"

	"understudy/channels"
	"understudy/internal/secret"
)

// Limits of the platform (spec/chat.md §2.9).
const (
	defaultRoot      = "https://api.telegram.org"
	defaultChunk     = 4000
	longestText      = 4096 // visible UTF-16 units
	longestCaption   = 1024
	defaultMediaMB   = 20
	largestCloudMB   = 50 // Telegram's own server gives out less
	largestUploadMB  = 50
	largestPhoto     = 10 << 20
	leastChunk       = 100
	largestServerMB  = 2000 // self-hosted Bot API server
	wildcard         = "*"
	policyAllowlist  = "allowlist"
	policyOpen       = "open"
	policyDisabled   = "disabled"
	policyPairing    = "pairing"
	accessGroup      = "accessGroup:" // in front of the name of a list of ids
	defaultReplyMode = "off"
	defaultPath      = "/telegram-webhook"
	longestSecret    = 256
	mostHistory      = 1000
)

// Config is one Telegram account, the block `channels.telegram` or `channels.telegram.accounts.<id>`
// (spec/chat.md §2.1). Access keys are only carried here; the inbound pipeline applies them.
type Config struct {
	Enabled  *bool         `yaml:"enabled,omitempty"` // a block that exists is enabled
	BotToken secret.String `yaml:"botToken"`
	// APIRoot is the Bot API server; another one serves tests and self-hosting.
	APIRoot string `yaml:"apiRoot,omitempty"`
	Proxy   string `yaml:"proxy,omitempty"` // http, https or socks5 URL

	// WebhookURL is the public address at which Telegram delivers updates; "" = they are polled. One
	// without a path gets WebhookPath, the path of the bot's own listener. WebhookSecret proves that a
	// call comes from Telegram.
	WebhookURL    string        `yaml:"webhookUrl,omitempty"`
	WebhookSecret secret.String `yaml:"webhookSecret,omitempty"`
	WebhookPath   string        `yaml:"webhookPath,omitempty"`

	DMPolicy       string           `yaml:"dmPolicy,omitempty"`  // pairing, allowlist, open, disabled
	AllowFrom      []string         `yaml:"allowFrom,omitempty"` // user ids; "*" with dmPolicy open
	GroupPolicy    string           `yaml:"groupPolicy,omitempty"`
	GroupAllowFrom []string         `yaml:"groupAllowFrom,omitempty"` // sender ids; AllowFrom when absent
	Groups         map[string]Group `yaml:"groups,omitempty"`         // by chat id, "*" for all others
	RequireMention *bool            `yaml:"requireMention,omitempty"`

	ImplicitMentions    ImplicitMentions `yaml:"implicitMentions,omitempty"`
	MentionPatterns     []string         `yaml:"mentionPatterns,omitempty"` // RE2, any case
	IgnoreOtherMentions bool             `yaml:"ignoreOtherMentions,omitempty"`
	AllowBots           string           `yaml:"allowBots,omitempty"`    // "false", "mentions", "true"
	HistoryLimit        *int             `yaml:"historyLimit,omitempty"` // nil = the global one, 0 = none

	ReplyToMode    string    `yaml:"replyToMode,omitempty"` // off, first, all, batched
	Streaming      Streaming `yaml:"streaming,omitempty"`
	TextChunkLimit int       `yaml:"textChunkLimit,omitempty"` // UTF-16 units of Markdown per message
	MediaMaxMB     int       `yaml:"mediaMaxMb,omitempty"`
	LinkPreview    *bool     `yaml:"linkPreview,omitempty"`
	Commands       Commands  `yaml:"commands,omitempty"`

	AckReaction     string           `yaml:"ackReaction,omitempty"` // an emoji; "" = the global one
	StatusReactions bool             `yaml:"statusReactions,omitempty"`
	CatchUp         channels.CatchUp `yaml:"catchUp,omitempty"` // zero fields = the global ones
}

// Group is what differs in one group.
type Group struct {
	RequireMention *bool    `yaml:"requireMention,omitempty"`
	AllowFrom      []string `yaml:"allowFrom,omitempty"` // instead of groupAllowFrom
}

// ImplicitMentions are the ways to address the bot without naming it.
type ImplicitMentions struct {
	ReplyToBot *bool `yaml:"replyToBot,omitempty"`
}

// Streaming decides whether an answer is shown while it is written.
type Streaming struct {
	Mode      string `yaml:"mode,omitempty"`      // off, partial, progress
	ChunkMode string `yaml:"chunkMode,omitempty"` // length, newline
}

// Commands decides whether the command menu is registered.
type Commands struct {
	Native *bool `yaml:"native,omitempty"`
}

// FieldError is a mistake in one key. Path is relative to the block that was validated, with dots.
type FieldError struct {
	Path    string
	Problem string
}

// Error implements error.
func (e *FieldError) Error() string { return e.Path + ": " + e.Problem }

// WithDefaults returns the config with every absent key at its default.
func (c Config) WithDefaults() Config {
	set := func(p *string, v string) {
		if *p == "" {
			*p = v
		}
	}
	enable := func(p **bool) {
		if *p == nil {
			yes := true
			*p = &yes
		}
	}
	set(&c.APIRoot, defaultRoot)
	c.APIRoot = strings.TrimRight(c.APIRoot, "/")
	set(&c.DMPolicy, policyPairing)
	set(&c.GroupPolicy, policyAllowlist)
	set(&c.WebhookPath, defaultPath)
	set(&c.AllowBots, "false")
	set(&c.ReplyToMode, defaultReplyMode)
	set(&c.Streaming.Mode, "partial")
	set(&c.Streaming.ChunkMode, "length")
	enable(&c.Enabled)
	enable(&c.RequireMention)
	enable(&c.ImplicitMentions.ReplyToBot)
	enable(&c.LinkPreview)
	enable(&c.Commands.Native)
	if c.TextChunkLimit == 0 {
		c.TextChunkLimit = defaultChunk
	}
	if c.MediaMaxMB == 0 {
		c.MediaMaxMB = defaultMediaMB
	}
	if c.GroupAllowFrom == nil {
		c.GroupAllowFrom = c.AllowFrom
	}
	return c
}

// BotID returns the user id of the bot, which is the first part of its token, "" if there is none.
// A stored offset means something only together with it.
func (c Config) BotID() string {
	id, rest, _ := strings.Cut(c.BotToken.Reveal(), ":")
	if n, err := strconv.ParseInt(id, 10, 64); err != nil || n <= 0 || rest == "" || strings.ContainsAny(rest, "/?#% \t\r\n") {
		return ""
	}
	return id
}

// Webhook is the address that Telegram is told, "" when updates are polled.
func (c Config) Webhook() string {
	u, err := url.Parse(c.WebhookURL)
	if err != nil || c.WebhookURL == "" {
		return ""
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = c.WebhookPath
	}
	return u.String()
}
