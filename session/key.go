package session

import (
	"fmt"
	"slices"
	"strings"

	"understudy/chat"
)

// Scope says which direct messages share a session (spec/chat.md §1.1).
type Scope string

// The scopes.
const (
	ScopeMain           Scope = "main"             // all of them: for a single owner
	ScopePeer           Scope = "per-peer"         // those of one person, on all channels
	ScopeChannelPeer    Scope = "per-channel-peer" // those of one person on one channel
	ScopeAccountChannel Scope = "per-account-channel-peer"
)

// Config is the `session` part of the configuration that decides about keys.
type Config struct {
	DMScope Scope  `yaml:"dmScope"`
	MainKey string `yaml:"mainKey"`
	// IdentityLinks joins one person's ids under a name: {alice: ["telegram:123"]}. It counts where
	// the scope drops the channel.
	IdentityLinks map[string][]string `yaml:"identityLinks"`
	Reset         ResetConfig         `yaml:"reset"`
	// ResetByType ("direct", "group", "thread") and ResetByChannel replace Reset; the channel wins.
	ResetByType    map[string]ResetConfig `yaml:"resetByType"`
	ResetByChannel map[string]ResetConfig `yaml:"resetByChannel"`
}

// WithDefaults fills what is not set.
func (c Config) WithDefaults() Config {
	if c.DMScope == "" {
		c.DMScope = ScopeChannelPeer
	}
	if c.MainKey == "" {
		c.MainKey = "main"
	}
	return c
}

// Validate names the first value that makes no sense.
func (c Config) Validate() error {
	if !slices.Contains([]Scope{"", ScopeMain, ScopePeer, ScopeChannelPeer, ScopeAccountChannel}, c.DMScope) {
		return fmt.Errorf("dmScope: %q is not one of main, per-peer, per-channel-peer, per-account-channel-peer", c.DMScope)
	}
	if err := c.Reset.Validate(); err != nil {
		return fmt.Errorf("reset: %w", err)
	}
	for name, r := range c.ResetByType {
		if !slices.Contains([]string{"direct", "group", "thread"}, name) {
			return fmt.Errorf("resetByType: %q is not one of direct, group, thread", name)
		}
		if err := r.Validate(); err != nil {
			return fmt.Errorf("resetByType.%s: %w", name, err)
		}
	}
	for name, r := range c.ResetByChannel {
		if err := r.Validate(); err != nil {
			return fmt.Errorf("resetByChannel.%s: %w", name, err)
		}
	}
	return nil
}

// Key returns the session key of an address. It is a name only: an address is never rebuilt from
// it.
func Key(agentID string, a chat.Address, cfg Config) string {
	key := baseKey(agentID, a, cfg.WithDefaults())
	switch {
	case a.Thread == "" || !threaded(a):
		return key
	case a.Channel == "telegram":
		return key + ":topic:" + id(a.Thread)
	}
	return key + ":thread:" + id(a.Thread)
}

// ParentKey returns the key of the conversation that a thread or topic belongs to, whose settings
// it inherits; "" when a is none.
func ParentKey(agentID string, a chat.Address, cfg Config) string {
	if a.Thread == "" || !threaded(a) {
		return ""
	}
	return baseKey(agentID, a, cfg.WithDefaults())
}

// MainKey returns the key of an agent's main session.
func MainKey(agentID string, cfg Config) string {
	return "agent:" + own(agentID) + ":" + own(cfg.WithDefaults().MainKey)
}

// threaded reports whether a thread is a session of its own. In a direct chat it is only where the
// platform makes topics of it; a Slack thread there is a way of showing things, but for those of the
// assistant view.
func threaded(a chat.Address) bool {
	return a.Kind != chat.Direct || a.Channel == "telegram" || a.Separate
}

func baseKey(agentID string, a chat.Address, cfg Config) string {
	prefix := "agent:" + own(agentID) + ":"
	channel := own(a.Channel)
	switch {
	case a.Channel == "cli":
		return prefix + "cli:" + id(a.Conversation)
	case a.Kind == chat.Group:
		return prefix + channel + ":group:" + id(a.Conversation)
	case a.Kind == chat.Room:
		return prefix + channel + ":channel:" + id(a.Conversation)
	case a.Channel == "web", a.Channel == "console":
		// Sessions side by side are what these channels are for: no scope joins them.
		return prefix + channel + ":direct:" + id(a.Conversation)
	}
	switch cfg.DMScope {
	case ScopeMain:
		return prefix + own(cfg.MainKey)
	case ScopePeer:
		return prefix + "direct:" + cfg.peer(a)
	case ScopeAccountChannel:
		account := a.Account
		if account == "" {
			account = "default"
		}
		return prefix + channel + ":" + id(account) + ":direct:" + id(a.Conversation)
	}
	return prefix + channel + ":direct:" + id(a.Conversation)
}

// peer returns the name of the person behind a direct chat: the linked one, else the channel's id
// under the channel's name, since ids of two platforms may be equal.
func (c Config) peer(a chat.Address) string {
	for name, links := range c.IdentityLinks {
		if slices.Contains(links, a.Channel+":"+a.Conversation) {
			return own(name)
		}
	}
	return own(a.Channel) + "-" + id(a.Conversation)
}

// own writes a segment of ours: lower case, and nothing that could be taken for a separator.
func own(s string) string { return id(strings.ToLower(s)) }

// id writes a platform's id as it is, except that a separator or a byte that does not belong in a
// key is percent-encoded, so that no id can pass for two segments.
func id(s string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || c == ':' || c == '%' {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
			continue
		}
		b.WriteByte(c)
	}
	if b.Len() == 0 {
		return "%"
	}
	return b.String()
}
