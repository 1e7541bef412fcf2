package discord

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// faults gathers the mistakes of a config.
type faults []error

func (f *faults) add(path, format string, args ...any) {
	*f = append(*f, &FieldError{Path: path, Problem: fmt.Sprintf(format, args...)})
}

func (f *faults) oneOf(path, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		f.add(path, "%q is not one of %s", value, strings.Join(allowed, ", "))
	}
}

func (f *faults) between(path string, value, least, most int) {
	if value < least || value > most {
		f.add(path, "must be between %d and %d", least, most)
	}
}

// ids checks numeric ids; "*" is allowed where it means something, and the name of an access group
// where people are listed.
func (f *faults) ids(path, kind string, ids []string, star bool) {
	for _, id := range ids {
		if !isID(id) && (id != wildcard || !star) && (kind != "user" || !strings.HasPrefix(id, accessGroup)) {
			f.add(path, "%q is not a numeric %s id (names never match)", id, kind)
		}
	}
}

// Validate returns all mistakes, each a *FieldError, joined. It looks at a config after
// WithDefaults.
func (c Config) Validate() error {
	var f faults
	if c.BotToken.IsZero() {
		f.add("botToken", "a bot token from the Discord developer portal is needed")
	} else if c.BotID() == "" {
		f.add("botToken", "this is not a bot token; it has three parts with dots between them (it is not the client secret)")
	}
	c.checkURLs(&f)
	f.oneOf("dmPolicy", c.DMPolicy, policyPairing, policyAllowlist, policyOpen, policyDisabled)
	f.oneOf("groupPolicy", c.GroupPolicy, policyAllowlist, policyOpen, policyDisabled)
	f.oneOf("allowBots", c.AllowBots, "false", "mentions", "true")
	f.oneOf("replyToMode", c.ReplyToMode, "off", "first", "all", "batched")
	f.oneOf("streaming.mode", c.Streaming.Mode, "off", "partial", "progress")
	f.oneOf("streaming.chunkMode", c.Streaming.ChunkMode, "length", "newline")
	if c.DMPolicy == policyAllowlist && len(c.AllowFrom) == 0 {
		f.add("allowFrom", "dmPolicy allowlist needs at least one user id")
	}
	f.between("textChunkLimit", c.TextChunkLimit, leastChunk, longestText)
	f.between("maxLinesPerMessage", c.MaxLinesPerMessage, 1, longestText)
	f.between("mediaMaxMb", c.MediaMaxMB, 1, largestMediaMB)
	if c.HistoryLimit != nil {
		f.between("historyLimit", *c.HistoryLimit, 0, mostHistory)
	}
	for i, p := range c.MentionPatterns {
		if _, err := mentionPattern(p); err != nil {
			f.add(fmt.Sprintf("mentionPatterns[%d]", i), "%v", err)
		}
	}
	if c.AckReaction != "" && emojiPath(c.AckReaction) == "" {
		f.add("ackReaction", "%q is not an emoji or name:id", c.AckReaction)
	}
	if c.CatchUp.MaxAge < 0 {
		f.add("catchUp.maxAge", "must not be negative")
	}
	if c.CatchUp.MaxMessages < 0 {
		f.add("catchUp.maxMessages", "must not be negative")
	}
	f.ids("allowFrom", "user", c.AllowFrom, true)
	f.ids("groupAllowFrom", "user", c.GroupAllowFrom, true)
	f.ids("devGuildIds", "server", c.DevGuildIDs, false)
	c.checkGuilds(&f)
	return errors.Join(f...)
}

func (c Config) checkURLs(f *faults) {
	if u, err := url.Parse(c.APIRoot); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.Path != "" || u.RawQuery != "" {
		f.add("apiRoot", "an http or https URL without a path is needed")
	}
	if u, err := url.Parse(c.Proxy); c.Proxy != "" && (err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme)) {
		f.add("proxy", "an http, https or socks5 URL is needed")
	}
}

func (c Config) checkGuilds(f *faults) {
	for _, id := range slices.Sorted(maps.Keys(c.Guilds)) {
		f.ids("guilds", "server", []string{id}, true)
		g, at := c.Guilds[id], "guilds."+id
		f.ids(at+".users", "user", g.Users, true)
		f.ids(at+".roles", "role", g.Roles, false)
		for _, channel := range slices.Sorted(maps.Keys(g.Channels)) {
			f.ids(at+".channels", "channel", []string{channel}, true)
			p, at := g.Channels[channel], at+".channels."+channel
			f.ids(at+".users", "user", p.Users, true)
			f.ids(at+".roles", "role", p.Roles, false)
		}
	}
}

const longestPattern = 512

// mentionPattern compiles a pattern that addresses the bot.
func mentionPattern(p string) (*regexp.Regexp, error) {
	if p == "" || len(p) > longestPattern {
		return nil, fmt.Errorf("a pattern of at most %d characters is needed", longestPattern)
	}
	re, err := regexp.Compile("(?i)" + p)
	if err != nil {
		return nil, fmt.Errorf("this is not a regular expression (RE2): %w", err)
	}
	if re.MatchString("") {
		return nil, errors.New("this pattern matches every message")
	}
	return re, nil
}
