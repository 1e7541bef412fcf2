package telegram

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"understudy/internal/secret"
)

// Limits of the platform (spec/chat.md §2.9).
const (
	defaultRoot      = "https://api.telegram.org"
	defaultChunk     = 4000
	longestText      = 4096 // visible UTF-16 units
	longestCaption   = 1024
	defaultMediaMB   = 20
	largestUploadMB  = 50
	largestPhoto     = 10 << 20
	leastChunk       = 100
	largestServerMB  = 2000 // self-hosted Bot API server
	wildcard         = "*"
	policyAllowlist  = "allowlist"
	policyOpen       = "open"
	policyDisabled   = "disabled"
	policyPairing    = "pairing"
	defaultReplyMode = "off"
)

// Config is one Telegram account, the block `channels.telegram` or `channels.telegram.accounts.<id>`
// (spec/chat.md §2.1). Access keys are only carried here; the inbound pipeline applies them.
type Config struct {
	Enabled  *bool         `yaml:"enabled,omitempty"` // a block that exists is enabled
	BotToken secret.String `yaml:"botToken"`
	// APIRoot is the Bot API server; another one serves tests and self-hosting.
	APIRoot string `yaml:"apiRoot,omitempty"`
	Proxy   string `yaml:"proxy,omitempty"` // http, https or socks5 URL

	DMPolicy       string           `yaml:"dmPolicy,omitempty"`  // pairing, allowlist, open, disabled
	AllowFrom      []string         `yaml:"allowFrom,omitempty"` // user ids; "*" with dmPolicy open
	GroupPolicy    string           `yaml:"groupPolicy,omitempty"`
	GroupAllowFrom []string         `yaml:"groupAllowFrom,omitempty"` // sender ids; AllowFrom when absent
	Groups         map[string]Group `yaml:"groups,omitempty"`         // by chat id, "*" for all others
	RequireMention *bool            `yaml:"requireMention,omitempty"`

	ImplicitMentions ImplicitMentions `yaml:"implicitMentions,omitempty"`
	ReplyToMode      string           `yaml:"replyToMode,omitempty"` // off, first, all, batched
	Streaming        Streaming        `yaml:"streaming,omitempty"`
	TextChunkLimit   int              `yaml:"textChunkLimit,omitempty"` // UTF-16 units of Markdown per message
	MediaMaxMB       int              `yaml:"mediaMaxMb,omitempty"`
	LinkPreview      *bool            `yaml:"linkPreview,omitempty"`
	Commands         Commands         `yaml:"commands,omitempty"`
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
	Mode      string `yaml:"mode,omitempty"`      // off, partial
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

// Validate returns all mistakes, each a *FieldError, joined. It looks at a config after
// WithDefaults.
func (c Config) Validate() error {
	var errs []error
	bad := func(path, format string, args ...any) {
		errs = append(errs, &FieldError{Path: path, Problem: fmt.Sprintf(format, args...)})
	}
	oneOf := func(path, value string, allowed ...string) {
		if !slices.Contains(allowed, value) {
			bad(path, "%q is not one of %s", value, strings.Join(allowed, ", "))
		}
	}
	if c.BotToken.IsZero() {
		bad("botToken", "a bot token from @BotFather is needed")
	} else if c.BotID() == "" {
		bad("botToken", "this is not a bot token; it looks like 123456789:AA…")
	}
	if u, err := url.Parse(c.APIRoot); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Contains(c.APIRoot, "%") {
		bad("apiRoot", "an http or https URL is needed")
	}
	if u, err := url.Parse(c.Proxy); c.Proxy != "" && (err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme)) {
		bad("proxy", "an http, https or socks5 URL is needed")
	}
	oneOf("dmPolicy", c.DMPolicy, policyPairing, policyAllowlist, policyOpen, policyDisabled)
	oneOf("groupPolicy", c.GroupPolicy, policyAllowlist, policyOpen, policyDisabled)
	oneOf("replyToMode", c.ReplyToMode, "off", "first", "all", "batched")
	oneOf("streaming.mode", c.Streaming.Mode, "off", "partial")
	oneOf("streaming.chunkMode", c.Streaming.ChunkMode, "length", "newline")
	if c.DMPolicy == policyAllowlist && len(c.AllowFrom) == 0 {
		bad("allowFrom", "dmPolicy allowlist needs at least one user id")
	}
	if c.TextChunkLimit < leastChunk || c.TextChunkLimit > longestText {
		bad("textChunkLimit", "must be between %d and %d", leastChunk, longestText)
	}
	if c.MediaMaxMB < 1 || c.MediaMaxMB > largestServerMB {
		bad("mediaMaxMb", "must be between 1 and %d", largestServerMB)
	}
	checkIDs(bad, "allowFrom", c.AllowFrom)
	checkIDs(bad, "groupAllowFrom", c.GroupAllowFrom)
	for _, id := range slices.Sorted(maps.Keys(c.Groups)) {
		checkIDs(bad, "groups", []string{id})
		checkIDs(bad, "groups."+id+".allowFrom", c.Groups[id].AllowFrom)
	}
	return errors.Join(errs...)
}

func checkIDs(bad func(path, format string, args ...any), path string, ids []string) {
	for _, id := range ids {
		if _, err := strconv.ParseInt(id, 10, 64); err != nil && id != wildcard {
			bad(path, "%q is not a numeric Telegram id (names never match)", id)
		}
	}
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
