package slack

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
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
	c.checkTokens(bad)
	c.checkPlaces(bad)
	c.checkAccess(bad)
	c.checkChoices(bad)
	c.checkBounds(bad)
	return errors.Join(errs...)
}

func (c Config) checkTokens(bad complaint) {
	switch token := c.BotToken.Reveal(); {
	case token == "":
		bad("botToken", "the bot token of the Slack app is needed (OAuth & Permissions, xoxb-…)")
	case strings.HasPrefix(token, "xapp-"):
		bad("botToken", "this is an app token; the bot token begins with xoxb-")
	case !strings.HasPrefix(token, "xoxb-") || !plainToken(token):
		bad("botToken", "this is not a bot token; it begins with xoxb-")
	}
	switch token := c.AppToken.Reveal(); {
	case token == "" && c.Mode == modeSocket:
		bad("appToken", "mode socket needs an app-level token with connections:write (Basic Information, xapp-…)")
	case token != "" && (!strings.HasPrefix(token, "xapp-") || !plainToken(token)):
		bad("appToken", "this is not an app-level token; it begins with xapp-")
	}
	if c.Mode == modeHTTP && c.SigningSecret.IsZero() {
		bad("signingSecret", "mode http needs the signing secret of the Slack app (Basic Information)")
	}
}

// plainToken reports whether a token has only characters that can stand in a header and a form.
func plainToken(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

func (c Config) checkPlaces(bad complaint) {
	if u, err := url.Parse(c.APIRoot); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.User != nil {
		bad("apiRoot", "an http or https URL is needed")
	}
	if u, err := url.Parse(c.Proxy); c.Proxy != "" && (err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme)) {
		bad("proxy", "an http, https or socks5 URL is needed")
	}
	if !strings.HasPrefix(c.WebhookPath, "/") || strings.ContainsAny(c.WebhookPath, "?#{} ") || len(c.WebhookPath) < 2 {
		bad("webhookPath", "a path such as %s is needed", defaultPath)
	}
}

var (
	userID    = regexp.MustCompile(`^[UWB][A-Z0-9]{2,31}$`)
	channelID = regexp.MustCompile(`^[CGD][A-Z0-9]{2,31}$`)
	command   = regexp.MustCompile(`^[a-z0-9_-]{1,31}$`)
	emojiName = regexp.MustCompile(`^[a-z0-9_+'-]{1,100}$`)
)

func (c Config) checkAccess(bad complaint) {
	if c.DMPolicy == policyAllowlist && len(c.AllowFrom) == 0 {
		bad("allowFrom", "dmPolicy allowlist needs at least one user id")
	}
	checkUsers(bad, "allowFrom", c.AllowFrom)
	checkUsers(bad, "groupAllowFrom", c.GroupAllowFrom)
	for _, id := range slices.Sorted(maps.Keys(c.Channels)) {
		if id != wildcard && !channelID.MatchString(id) {
			bad("channels", "%q is not a channel id such as C0123ABCD (names never match)", id)
		}
		checkUsers(bad, "channels."+id+".users", c.Channels[id].Users)
	}
	for i, p := range c.MentionPatterns {
		if _, err := regexp.Compile("(?i)" + p); err != nil {
			bad(fmt.Sprintf("mentionPatterns[%d]", i), "%v", err)
		}
	}
}

func checkUsers(bad complaint, path string, ids []string) {
	for _, id := range ids {
		bare := strings.TrimPrefix(id, Channel+":")
		if id != wildcard && !strings.HasPrefix(id, accessGroup) && !userID.MatchString(bare) {
			bad(path, "%q is not a Slack user id such as U0123ABCD (names never match)", id)
		}
	}
}

func (c Config) checkChoices(bad complaint) {
	oneOf := func(path, value string, allowed ...string) {
		if !slices.Contains(allowed, value) {
			bad(path, "%q is not one of %s", value, strings.Join(allowed, ", "))
		}
	}
	oneOf("mode", c.Mode, modeSocket, modeHTTP)
	oneOf("dmPolicy", c.DMPolicy, policyPairing, policyAllowlist, policyOpen, policyDisabled)
	oneOf("groupPolicy", c.GroupPolicy, policyAllowlist, policyOpen, policyDisabled)
	oneOf("allowBots", c.AllowBots, "false", "mentions", "true")
	modes := []string{"off", "first", "all", "batched"}
	oneOf("replyToMode", c.ReplyToMode, modes...)
	modes = append(modes, "")
	oneOf("replyToModeByChatType.direct", c.ReplyToModeByChatType.Direct, modes...)
	oneOf("replyToModeByChatType.group", c.ReplyToModeByChatType.Group, modes...)
	oneOf("replyToModeByChatType.channel", c.ReplyToModeByChatType.Channel, modes...)
	oneOf("streaming.mode", c.Streaming.Mode, "off", "partial", "progress")
	oneOf("streaming.chunkMode", c.Streaming.ChunkMode, "length", "newline")
	if !command.MatchString(c.SlashCommand.Name) {
		bad("slashCommand.name", "%q cannot be a slash command: lower-case letters, digits, - and _, at most 31", c.SlashCommand.Name)
	}
	if _, ok := reactionName(c.TypingReaction); c.TypingReaction != "" && !ok {
		bad("typingReaction", "%q is not an emoji whose name in Slack is known; the name itself, such as eyes, works for all of them", c.TypingReaction)
	}
}

func (c Config) checkBounds(bad complaint) {
	within := func(path string, value, least, most int) {
		if value < least || value > most {
			bad(path, "must be between %d and %d", least, most)
		}
	}
	within("textChunkLimit", c.TextChunkLimit, leastChunk, longestMarkdown)
	within("mediaMaxMb", c.MediaMaxMB, 1, largestMediaMB)
	if c.HistoryLimit != nil {
		within("historyLimit", *c.HistoryLimit, 0, mostHistory)
	}
	if c.Thread.InitialHistoryLimit != nil {
		within("thread.initialHistoryLimit", *c.Thread.InitialHistoryLimit, 0, mostHistory)
	}
	within("catchUp.maxMessages", c.CatchUp.MaxMessages, 1, mostCaughtUp)
	if c.CatchUp.MaxAge < 0 {
		bad("catchUp.maxAge", "is negative")
	}
}
