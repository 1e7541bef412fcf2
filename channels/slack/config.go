package slack

import (
	"strings"
	"time"

	"understudy/channels"
	"understudy/internal/secret"
)

// Limits of the platform and defaults (spec/chat.md §2.1, §2.7).
const (
	defaultRoot      = "https://slack.com"
	defaultPath      = "/slack/events"
	defaultChunk     = 8000
	longestMarkdown  = 12_000 // characters of one markdown_text or markdown block
	leastChunk       = 100
	defaultMediaMB   = 20
	largestMediaMB   = 50 // a bound of ours: a file has to be in memory as a whole
	defaultHistory   = 50
	defaultInitial   = 20
	mostHistory      = 500
	defaultCommand   = "bot"
	defaultMaxAge    = time.Hour
	defaultCaughtUp  = 50
	mostCaughtUp     = 1000
	wildcard         = "*"
	accessGroup      = "accessGroup:" // in front of the name of a list of ids
	policyAllowlist  = "allowlist"
	policyOpen       = "open"
	policyDisabled   = "disabled"
	policyPairing    = "pairing"
	defaultReplyMode = "first"
	modeSocket       = "socket"
	modeHTTP         = "http"
)

// Config is one Slack account, the block `channels.slack` or `channels.slack.accounts.<id>`
// (spec/chat.md §2.1, §2.7). Keys about access, history and reactions are only carried here; the
// rooms above the adapters apply them.
type Config struct {
	Enabled *bool `yaml:"enabled,omitempty"` // a block that exists is enabled
	// Mode is how events arrive: "socket" needs the app token and no open port, "http" needs the
	// signing secret and a public address that leads to WebhookPath.
	Mode          string        `yaml:"mode,omitempty"`
	BotToken      secret.String `yaml:"botToken"`      // xoxb-…
	AppToken      secret.String `yaml:"appToken"`      // xapp-…, with connections:write
	SigningSecret secret.String `yaml:"signingSecret"` // mode http
	WebhookPath   string        `yaml:"webhookPath,omitempty"`
	// APIRoot is the server below which /api/ is; another one serves tests and GovSlack.
	APIRoot string `yaml:"apiRoot,omitempty"`
	Proxy   string `yaml:"proxy,omitempty"` // http, https or socks5 URL

	DMPolicy       string          `yaml:"dmPolicy,omitempty"`  // pairing, allowlist, open, disabled
	AllowFrom      []string        `yaml:"allowFrom,omitempty"` // user ids; "*" with dmPolicy open
	GroupPolicy    string          `yaml:"groupPolicy,omitempty"`
	GroupAllowFrom []string        `yaml:"groupAllowFrom,omitempty"` // sender ids; AllowFrom when absent
	RequireMention *bool           `yaml:"requireMention,omitempty"`
	Channels       map[string]Room `yaml:"channels,omitempty"` // by channel id, "*" for all others
	DM             DM              `yaml:"dm,omitempty"`

	ImplicitMentions    ImplicitMentions `yaml:"implicitMentions,omitempty"`
	MentionPatterns     []string         `yaml:"mentionPatterns,omitempty"` // RE2, any case
	IgnoreOtherMentions bool             `yaml:"ignoreOtherMentions,omitempty"`
	AllowBots           string           `yaml:"allowBots,omitempty"` // "false", "mentions", "true"

	ReplyToMode string `yaml:"replyToMode,omitempty"` // off, first, all, batched
	// ReplyToModeByChatType replaces ReplyToMode for one kind of conversation.
	ReplyToModeByChatType ReplyModes `yaml:"replyToModeByChatType,omitempty"`
	Streaming             Streaming  `yaml:"streaming,omitempty"`
	TextChunkLimit        int        `yaml:"textChunkLimit,omitempty"` // UTF-16 units of Markdown per message
	MediaMaxMB            int        `yaml:"mediaMaxMb,omitempty"`
	HistoryLimit          *int       `yaml:"historyLimit,omitempty"` // messages; 0 = none
	Thread                Thread     `yaml:"thread,omitempty"`

	AckReaction     string `yaml:"ackReaction,omitempty"` // an emoji or its name; "" = none
	StatusReactions bool   `yaml:"statusReactions,omitempty"`
	// TypingReaction marks the question while the bot works where Slack has no sign for that: outside
	// threads. "" = nothing is shown there.
	TypingReaction string `yaml:"typingReaction,omitempty"`

	UnfurlLinks  bool             `yaml:"unfurlLinks,omitempty"`
	Commands     Commands         `yaml:"commands,omitempty"`
	SlashCommand SlashCommand     `yaml:"slashCommand,omitempty"`
	CatchUp      channels.CatchUp `yaml:"catchUp,omitempty"`
}

// Room is what differs in one channel.
type Room struct {
	Enabled        *bool    `yaml:"enabled,omitempty"`
	RequireMention *bool    `yaml:"requireMention,omitempty"`
	Users          []string `yaml:"users,omitempty"` // instead of groupAllowFrom
}

// DM is about direct messages. GroupEnabled admits conversations of several people (MPIM).
type DM struct {
	GroupEnabled bool `yaml:"groupEnabled,omitempty"`
}

// ImplicitMentions are the ways to address the bot without naming it: a reply in a thread that the
// bot began, and one in a thread where it has answered.
type ImplicitMentions struct {
	ReplyToBot          *bool `yaml:"replyToBot,omitempty"`
	ThreadParticipation *bool `yaml:"threadParticipation,omitempty"`
}

// ReplyModes are reply modes by kind of conversation; "" = replyToMode.
type ReplyModes struct {
	Direct  string `yaml:"direct,omitempty"`
	Group   string `yaml:"group,omitempty"`
	Channel string `yaml:"channel,omitempty"`
}

// Streaming decides whether an answer is shown while it is written.
type Streaming struct {
	Mode string `yaml:"mode,omitempty"` // off, partial, progress
	// NativeTransport lets Slack grow the message in threads; elsewhere it is edited.
	NativeTransport *bool  `yaml:"nativeTransport,omitempty"`
	ChunkMode       string `yaml:"chunkMode,omitempty"` // length, newline
}

// Thread is about threads: InitialHistoryLimit is how many of its messages the bot reads when it
// first speaks in one; 0 = none. InheritParent lets the conversation of one begin with the last turns of
// the channel it belongs to.
type Thread struct {
	InitialHistoryLimit *int `yaml:"initialHistoryLimit,omitempty"`
	InheritParent       bool `yaml:"inheritParent,omitempty"`
}

// Commands decides whether slash commands other than SlashCommand.Name are the bot's own, each under
// its own name. They have to be in the app's manifest.
type Commands struct {
	Native bool `yaml:"native,omitempty"`
}

// SlashCommand names the slash command of the app, without the slash.
type SlashCommand struct {
	Name string `yaml:"name,omitempty"`
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
	number := func(p **int, v int) {
		if *p == nil {
			*p = &v
		}
	}
	set(&c.Mode, modeSocket)
	set(&c.WebhookPath, defaultPath)
	set(&c.APIRoot, defaultRoot)
	c.APIRoot = strings.TrimSuffix(strings.TrimRight(c.APIRoot, "/"), "/api")
	set(&c.DMPolicy, policyPairing)
	set(&c.GroupPolicy, policyAllowlist)
	set(&c.AllowBots, "false")
	set(&c.ReplyToMode, defaultReplyMode)
	set(&c.Streaming.Mode, "partial")
	set(&c.Streaming.ChunkMode, "length")
	set(&c.SlashCommand.Name, defaultCommand)
	c.SlashCommand.Name = strings.TrimPrefix(c.SlashCommand.Name, "/")
	enable(&c.Enabled)
	enable(&c.RequireMention)
	enable(&c.ImplicitMentions.ReplyToBot)
	enable(&c.ImplicitMentions.ThreadParticipation)
	enable(&c.Streaming.NativeTransport)
	number(&c.HistoryLimit, defaultHistory)
	number(&c.Thread.InitialHistoryLimit, defaultInitial)
	if c.TextChunkLimit == 0 {
		c.TextChunkLimit = defaultChunk
	}
	if c.MediaMaxMB == 0 {
		c.MediaMaxMB = defaultMediaMB
	}
	if c.CatchUp.MaxAge == 0 {
		c.CatchUp.MaxAge = defaultMaxAge
	}
	if c.CatchUp.MaxMessages == 0 {
		c.CatchUp.MaxMessages = defaultCaughtUp
	}
	if c.GroupAllowFrom == nil {
		c.GroupAllowFrom = c.AllowFrom
	}
	return c
}
