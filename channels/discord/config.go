package discord

import (
	"encoding/base64"
	"strconv"
	"strings"

	"understudy/channels"
	"understudy/internal/secret"
)

// Limits of the platform and defaults (spec/chat.md §2.1, §2.8).
const (
	defaultRoot      = "https://discord.com"
	longestText      = 2000 // characters of content
	leastChunk       = 100
	defaultLines     = 17
	defaultMediaMB   = 10 // Discord's own limit without a boosted server
	largestMediaMB   = 100
	defaultHistory   = 20
	mostHistory      = 200
	wildcard         = "*"
	policyAllowlist  = "allowlist"
	policyOpen       = "open"
	policyDisabled   = "disabled"
	policyPairing    = "pairing"
	defaultReplyMode = "first"
	tokenPrefix      = "Bot "
	accessGroup      = "accessGroup:" // in front of the name of a list of ids
)

// Config is one Discord account, the block `channels.discord` or `channels.discord.accounts.<id>`
// (spec/chat.md §2.1, §2.8). Access keys are only carried here; the inbound pipeline applies them.
type Config struct {
	Enabled  *bool         `yaml:"enabled,omitempty"` // a block that exists is enabled
	BotToken secret.String `yaml:"botToken"`          // with or without "Bot " in front
	// APIRoot is scheme and host of the REST server; another one serves tests.
	APIRoot string `yaml:"apiRoot,omitempty"`
	Proxy   string `yaml:"proxy,omitempty"` // http, https or socks5 URL

	DMPolicy       string           `yaml:"dmPolicy,omitempty"`  // pairing, allowlist, open, disabled
	AllowFrom      []string         `yaml:"allowFrom,omitempty"` // user ids; "*" with dmPolicy open
	GroupPolicy    string           `yaml:"groupPolicy,omitempty"`
	GroupAllowFrom []string         `yaml:"groupAllowFrom,omitempty"` // sender ids; AllowFrom when absent
	Guilds         map[string]Guild `yaml:"guilds,omitempty"`         // by server id, "*" for all others
	RequireMention *bool            `yaml:"requireMention,omitempty"`

	ImplicitMentions    ImplicitMentions `yaml:"implicitMentions,omitempty"`
	MentionPatterns     []string         `yaml:"mentionPatterns,omitempty"` // RE2, case-insensitive
	IgnoreOtherMentions bool             `yaml:"ignoreOtherMentions,omitempty"`
	AllowBots           string           `yaml:"allowBots,omitempty"`   // false, mentions, true
	ReplyToMode         string           `yaml:"replyToMode,omitempty"` // off, first, all, batched
	Streaming           Streaming        `yaml:"streaming,omitempty"`
	TextChunkLimit      int              `yaml:"textChunkLimit,omitempty"`     // UTF-16 units per message
	MaxLinesPerMessage  int              `yaml:"maxLinesPerMessage,omitempty"` // soft
	MediaMaxMB          int              `yaml:"mediaMaxMb,omitempty"`
	HistoryLimit        *int             `yaml:"historyLimit,omitempty"` // 0 = keep nothing
	AckReaction         string           `yaml:"ackReaction,omitempty"`  // emoji, or name:id; "" = none
	StatusReactions     bool             `yaml:"statusReactions,omitempty"`
	SuppressEmbeds      *bool            `yaml:"suppressEmbeds,omitempty"`
	Commands            Commands         `yaml:"commands,omitempty"`
	// DevGuildIDs are servers in which commands are registered at once instead of everywhere.
	DevGuildIDs []string `yaml:"devGuildIds,omitempty"`
	Intents     Intents  `yaml:"intents,omitempty"`
	AutoThread  bool     `yaml:"autoThread,omitempty"` // a thread for every question in a channel
	Thread      Thread   `yaml:"thread,omitempty"`
	// CatchUp bounds what is answered after a gap; absent parts are those of `messages.catchUp`.
	CatchUp channels.CatchUp `yaml:"catchUp,omitempty"`
}

// Guild is what differs in one server. Channels, if there are any, are the only ones allowed; "*"
// stands for all others. Threads belong to their parent channel.
type Guild struct {
	RequireMention *bool            `yaml:"requireMention,omitempty"`
	Users          []string         `yaml:"users,omitempty"` // sender ids, instead of groupAllowFrom
	Roles          []string         `yaml:"roles,omitempty"` // role ids; a user or a role suffices
	AutoThread     *bool            `yaml:"autoThread,omitempty"`
	Channels       map[string]Place `yaml:"channels,omitempty"`
}

// Thread is about threads: InheritParent lets the conversation of one begin with the last turns of the
// channel it belongs to.
type Thread struct {
	InheritParent bool `yaml:"inheritParent,omitempty"`
}

// Place is what differs in one channel of a server.
type Place struct {
	Enabled        *bool    `yaml:"enabled,omitempty"`
	RequireMention *bool    `yaml:"requireMention,omitempty"`
	Users          []string `yaml:"users,omitempty"`
	Roles          []string `yaml:"roles,omitempty"`
	AutoThread     *bool    `yaml:"autoThread,omitempty"`
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

// Commands decides whether slash commands are registered.
type Commands struct {
	Native *bool `yaml:"native,omitempty"`
}

// Intents are what Discord is asked to send; both have to be allowed in the developer portal too.
type Intents struct {
	MessageContent *bool `yaml:"messageContent,omitempty"` // without it only what mentions the bot can be read
	GuildMembers   bool  `yaml:"guildMembers,omitempty"`
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
	number := func(p *int, v int) {
		if *p == 0 {
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
	set(&c.AllowBots, "false")
	set(&c.ReplyToMode, defaultReplyMode)
	set(&c.Streaming.Mode, "off")
	set(&c.Streaming.ChunkMode, "length")
	enable(&c.Enabled)
	enable(&c.RequireMention)
	enable(&c.ImplicitMentions.ReplyToBot)
	enable(&c.SuppressEmbeds)
	enable(&c.Commands.Native)
	enable(&c.Intents.MessageContent)
	number(&c.TextChunkLimit, longestText)
	number(&c.MaxLinesPerMessage, defaultLines)
	number(&c.MediaMaxMB, defaultMediaMB)
	if c.HistoryLimit == nil {
		limit := defaultHistory
		c.HistoryLimit = &limit
	}
	if c.GroupAllowFrom == nil {
		c.GroupAllowFrom = c.AllowFrom
	}
	return c
}

// Effective returns what holds in a channel of a server, after WithDefaults: the channel's keys,
// else the server's, else the account's. Users and Roles are nil where groupAllowFrom decides.
// Enabled is nil where neither the server nor the channel is listed: then groupPolicy decides.
func (c Config) Effective(guild, channel string) Place {
	p := Place{RequireMention: c.RequireMention, AutoThread: &c.AutoThread}
	if g, ok := pick(c.Guilds, guild); ok {
		yes := true
		p.overlay(Place{Enabled: &yes, RequireMention: g.RequireMention, Users: g.Users, Roles: g.Roles, AutoThread: g.AutoThread})
		if own, listed := pick(g.Channels, channel); listed {
			p.overlay(own)
		} else if len(g.Channels) > 0 {
			no := false
			p.Enabled = &no
		}
	}
	if c.Intents.MessageContent != nil && !*c.Intents.MessageContent {
		yes := true
		p.RequireMention = &yes // the text of other messages cannot be read
	}
	return p
}

// pick returns the entry of a key, else the one for all others.
func pick[V any](m map[string]V, key string) (V, bool) {
	v, ok := m[key]
	if !ok {
		v, ok = m[wildcard]
	}
	return v, ok
}

// overlay puts the keys that are set over those of the level above. Users and roles belong
// together: whoever lists one of them replaces both.
func (p *Place) overlay(over Place) {
	for _, f := range []struct{ to, from **bool }{
		{&p.Enabled, &over.Enabled},
		{&p.RequireMention, &over.RequireMention},
		{&p.AutoThread, &over.AutoThread},
	} {
		if *f.from != nil {
			*f.to = *f.from
		}
	}
	if over.Users != nil || over.Roles != nil {
		p.Users, p.Roles = over.Users, over.Roles
	}
}

// Token returns the bare token, without the "Bot " that people paste with it.
func (c Config) Token() secret.String {
	return secret.New(strings.TrimPrefix(c.BotToken.Reveal(), tokenPrefix))
}

// BotID returns the user id of the bot, which is encoded in the first part of its token; "" if this
// is not a bot token.
func (c Config) BotID() string {
	parts := strings.Split(c.Token().Reveal(), ".")
	if len(parts) != 3 || parts[1] == "" || parts[2] == "" {
		return ""
	}
	for _, p := range parts {
		if strings.Trim(p, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=") != "" {
			return ""
		}
	}
	id, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[0], "="))
	if err != nil || !isID(string(id)) {
		return ""
	}
	return string(id)
}

// isID reports whether a text is one of Discord's numeric ids.
func isID(s string) bool {
	n, err := strconv.ParseUint(s, 10, 64)
	return err == nil && n > 0
}
