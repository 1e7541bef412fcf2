package telegram

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// complaint notes a mistake in a key.
type complaint func(path, format string, args ...any)

// Validate returns all mistakes, each a *FieldError, joined. It looks at a config after
// WithDefaults.
func (c Config) Validate() error {
	var errs []error
	bad := complaint(func(path, format string, args ...any) {
		errs = append(errs, &FieldError{Path: path, Problem: fmt.Sprintf(format, args...)})
	})
	c.checkConnection(bad)
	c.checkAccess(bad)
	c.checkChoices(bad)
	c.checkBounds(bad)
	return errors.Join(errs...)
}

func (c Config) checkConnection(bad complaint) {
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
	if !strings.HasPrefix(c.WebhookPath, "/") || strings.ContainsAny(c.WebhookPath, "?#{} ") || len(c.WebhookPath) < 2 {
		bad("webhookPath", "a path such as %s is needed", defaultPath)
	}
	if c.WebhookURL == "" {
		return
	}
	u, err := url.Parse(c.WebhookURL)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "":
		bad("webhookUrl", "the public https address of this bot is needed, such as https://bot.example.com%s", defaultPath)
	case c.APIRoot != defaultRoot && u.Scheme == "http": // a Bot API server of one's own may
	case u.Scheme != "https":
		bad("webhookUrl", "Telegram delivers to https only")
	case c.APIRoot == defaultRoot && !slices.Contains([]string{"", "443", "80", "88", "8443"}, u.Port()):
		bad("webhookUrl", "Telegram delivers to the ports 443, 80, 88 and 8443 only")
	}
	// Telegram allows these characters only; a short secret could be guessed.
	s := c.WebhookSecret.Reveal()
	if len(s) < 16 || len(s) > longestSecret || strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
		bad("webhookSecret", "16 to %d letters, digits, _ or - are needed with webhookUrl", longestSecret)
	}
}

func (c Config) checkAccess(bad complaint) {
	if c.DMPolicy == policyAllowlist && len(c.AllowFrom) == 0 {
		bad("allowFrom", "dmPolicy allowlist needs at least one user id")
	}
	checkIDs(bad, "allowFrom", c.AllowFrom)
	checkIDs(bad, "groupAllowFrom", c.GroupAllowFrom)
	for _, id := range slices.Sorted(maps.Keys(c.Groups)) {
		if _, err := strconv.ParseInt(id, 10, 64); err != nil && id != wildcard {
			bad("groups", "%q is not a numeric Telegram id (names never match)", id)
		}
		checkIDs(bad, "groups."+id+".allowFrom", c.Groups[id].AllowFrom)
	}
	for i, p := range c.MentionPatterns {
		if _, err := regexp.Compile("(?i)" + p); err != nil {
			bad(fmt.Sprintf("mentionPatterns[%d]", i), "%v", err)
		}
	}
}

func checkIDs(bad complaint, path string, ids []string) {
	for _, id := range ids {
		if _, err := strconv.ParseInt(id, 10, 64); err != nil && id != wildcard && !strings.HasPrefix(id, accessGroup) {
			bad(path, "%q is not a numeric Telegram id (names never match)", id)
		}
	}
}

func (c Config) checkChoices(bad complaint) {
	oneOf := func(path, value string, allowed ...string) {
		if !slices.Contains(allowed, value) {
			bad(path, "%q is not one of %s", value, strings.Join(allowed, ", "))
		}
	}
	oneOf("dmPolicy", c.DMPolicy, policyPairing, policyAllowlist, policyOpen, policyDisabled)
	oneOf("groupPolicy", c.GroupPolicy, policyAllowlist, policyOpen, policyDisabled)
	oneOf("allowBots", c.AllowBots, "false", "mentions", "true")
	oneOf("replyToMode", c.ReplyToMode, "off", "first", "all", "batched")
	oneOf("streaming.mode", c.Streaming.Mode, "off", "partial", "progress")
	oneOf("streaming.chunkMode", c.Streaming.ChunkMode, "length", "newline")
	if c.AckReaction != "" && !allowedReaction(c.AckReaction) {
		bad("ackReaction", "Telegram does not let bots react with %q; 👀 works", c.AckReaction)
	}
}

func (c Config) checkBounds(bad complaint) {
	if c.TextChunkLimit < leastChunk || c.TextChunkLimit > longestText {
		bad("textChunkLimit", "must be between %d and %d", leastChunk, longestText)
	}
	largest := largestServerMB
	if c.APIRoot == defaultRoot {
		largest = largestCloudMB
	}
	if c.MediaMaxMB < 1 || c.MediaMaxMB > largest {
		bad("mediaMaxMb", "must be between 1 and %d (%d with a Bot API server of one's own, apiRoot)", largest, largestServerMB)
	}
	if n := c.HistoryLimit; n != nil && (*n < 0 || *n > mostHistory) {
		bad("historyLimit", "must be between 0 and %d", mostHistory)
	}
	if c.CatchUp.MaxAge < 0 {
		bad("catchUp.maxAge", "must not be negative")
	}
	if c.CatchUp.MaxMessages < 0 {
		bad("catchUp.maxMessages", "must not be negative")
	}
}
