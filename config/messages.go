package config

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"understudy/inbound"
)

// Messages is the `messages` section: what counts for messages of all channels.
type Messages struct {
	CatchUp   CatchUp         `yaml:"catchUp"`
	Inbound   InboundMessages `yaml:"inbound"`
	GroupChat GroupChat       `yaml:"groupChat"`
	// AckReaction is put on a message as a sign that it was read; "" = none. A channel's own wins.
	AckReaction string `yaml:"ackReaction"`
	// AckReactionScope says on which messages: group-mentions, direct, group-all, all or off.
	AckReactionScope string `yaml:"ackReactionScope" enum:"group-mentions|direct|group-all|all|off"`
	// ResponsePrefix stands before every answer: a text in which {model}, {modelFull}, {provider} and
	// {thinkingLevel} are replaced, or auto for [agent]; "" = nothing. A channel's own wins.
	ResponsePrefix string `yaml:"responsePrefix"`
	// ErrorPolicy says whether people are told that a turn failed: always, once until it works again,
	// or never. A channel's own wins.
	ErrorPolicy string `yaml:"errorPolicy" enum:"always|once|silent"`
	// ContextVisibility says whose words the model is shown beside those that are for it: everybody's,
	// those of people who may talk to the bot, or these and what people quote.
	ContextVisibility string `yaml:"contextVisibility" enum:"all|allowlist|allowlist_quote"`
	// TypingMode says from when on people see that the bot works on their message: never, from its
	// arrival, from the moment that a model works on it, or from the first words. A channel's own wins.
	TypingMode string `yaml:"typingMode" enum:"never|instant|thinking|message"`
	// BotLoopProtection ends conversations with other bots.
	BotLoopProtection BotLoopProtection `yaml:"botLoopProtection"`
}

// BotLoopProtection is how much of one other bot is heard; see inbound.Loops.
type BotLoopProtection struct {
	Events          int `yaml:"events"`
	WindowSeconds   int `yaml:"windowSeconds"`
	CooldownSeconds int `yaml:"cooldownSeconds"`
}

// Loops returns the bounds as the pipeline takes them.
func (p BotLoopProtection) Loops() inbound.Loops {
	return inbound.Loops{
		Events: p.Events, Window: time.Duration(p.WindowSeconds) * time.Second, Cooldown: time.Duration(p.CooldownSeconds) * time.Second,
	}
}

// CatchUp limits what is answered after a restart or a gap in a connection.
type CatchUp struct {
	// MaxAge is the age beyond which a message is not answered any more; after a restart its sender is told.
	MaxAge time.Duration `yaml:"maxAge"`
	// MaxMessages is how many messages of one conversation are fetched after a gap.
	MaxMessages int `yaml:"maxMessages"`
}

// InboundMessages says how long to wait for more text of the same sender (spec/chat.md §1.6).
type InboundMessages struct {
	DebounceMs int            `yaml:"debounceMs"` // 0 = every message is answered by itself
	ByChannel  map[string]int `yaml:"byChannel"`  // the same by channel
}

// GroupChat is what counts in groups and rooms.
type GroupChat struct {
	// MentionPatterns are regular expressions (RE2) that address the bot like a mention, in any case.
	MentionPatterns []string `yaml:"mentionPatterns"`
	// HistoryLimit is how many messages that were not for the bot it is shown with the next one that
	// is; nil = the channel's default, 0 = none.
	HistoryLimit *int `yaml:"historyLimit"`
}

// Commands is the `commands` section.
type Commands struct {
	// OwnerAllowFrom lists the owners as channel:id, for example telegram:123456789.
	OwnerAllowFrom []string `yaml:"ownerAllowFrom"`
	// AllowFrom, by channel ("*" = the others), lists who may use commands. Where it is set nothing
	// else gives that right, except for being an owner (spec/chat.md §3.2).
	AllowFrom map[string][]string `yaml:"allowFrom"`
	// VerboseInGroups lets /verbose show tools in groups too.
	VerboseInGroups bool `yaml:"verboseInGroups"`
}

// Bounds of the section.
const (
	longestDebounce = 60_000 // milliseconds
	mostCatchUp     = 1000
)

func defaultMessages() Messages {
	loops := inbound.DefaultLoops()
	return Messages{
		TypingMode: "instant",
		BotLoopProtection: BotLoopProtection{
			Events: loops.Events, WindowSeconds: int(loops.Window / time.Second), CooldownSeconds: int(loops.Cooldown / time.Second),
		},
		CatchUp:          CatchUp{MaxAge: inbound.DefaultMaxAge, MaxMessages: 50},
		AckReactionScope: "group-mentions", ErrorPolicy: "always", ContextVisibility: "all",
	}
}

// localChannels are the channels of this machine.
var localChannels = []string{"web", "console"}

// channelNames are the channels that keys by channel may name: the platforms. Page and terminal have
// one user, the owner.
func (c *Config) channelNames() []string {
	return keysOf(fieldsOf(reflect.TypeFor[Channels]()))
}

// resolveMessages checks what counts for all channels.
func (c *Config) resolveMessages(d *decoder) {
	m := c.Messages
	if age := m.CatchUp.MaxAge; age < time.Minute || age > 7*24*time.Hour {
		d.fail("messages.catchUp.maxAge", fmt.Sprintf("%s is not between 1m and 7d", age), "")
	}
	if n := m.CatchUp.MaxMessages; n < 1 || n > mostCatchUp {
		d.fail("messages.catchUp.maxMessages", fmt.Sprintf("%d is not between 1 and %d", n, mostCatchUp), "")
	}
	c.debounce(d, "messages.inbound.debounceMs", m.Inbound.DebounceMs)
	for _, channel := range slices.Sorted(maps.Keys(m.Inbound.ByChannel)) {
		at := join("messages.inbound.byChannel", channel)
		c.channelKey(d, at, channel)
		c.debounce(d, at, m.Inbound.ByChannel[channel])
	}
	d.patterns("messages.groupChat.mentionPatterns", m.GroupChat.MentionPatterns)
	if n := m.GroupChat.HistoryLimit; n != nil && (*n < 0 || *n > inbound.MaxHistory) {
		d.fail("messages.groupChat.historyLimit", fmt.Sprintf("%d is not between 0 and %d", *n, inbound.MaxHistory), "0 = none")
	}
	c.resolveAccess(d)
}

func (c *Config) debounce(d *decoder, at string, ms int) {
	if ms < 0 || ms > longestDebounce {
		d.fail(at, fmt.Sprintf("%d is not between 0 and %d milliseconds", ms, longestDebounce), "0 = off")
	}
}

// channelKey checks a key that names a channel.
func (c *Config) channelKey(d *decoder, at, channel string) {
	if names := c.channelNames(); !slices.Contains(names, channel) {
		d.fail(at, fmt.Sprintf("there is no channel %s", quote(channel)), hintFor(channel, names))
	}
}

// anyChannelKey is channelKey for keys that may name the page and the terminal too.
func (c *Config) anyChannelKey(d *decoder, at, channel string) {
	if !slices.Contains(localChannels, channel) {
		c.channelKey(d, at, channel)
	}
}

// patterns checks regular expressions: those that are none, and what the pipeline does not take.
func (d *decoder) patterns(at string, list []string) {
	for i, p := range list {
		if _, err := regexp.Compile("(?i)" + p); err != nil || p == "" {
			d.fail(fmt.Sprintf("%s[%d]", at, i), fmt.Sprintf("%s is not a regular expression", quote(p)), "the syntax is RE2; look-arounds do not exist in it")
		}
	}
	_, err := inbound.Access{MentionPatterns: list}.Compile()
	d.further(strings.TrimSuffix(at, ".mentionPatterns"), err)
}

// resolveAccess checks the lists of people.
func (c *Config) resolveAccess(d *decoder) {
	d.component("", inbound.Config{Owners: c.Commands.OwnerAllowFrom, Loops: c.Messages.BotLoopProtection.Loops()}.Validate())
	c.commanders = map[string][]string{}
	for _, channel := range slices.Sorted(maps.Keys(c.Commands.AllowFrom)) {
		at := join("commands.allowFrom", channel)
		if channel != "*" {
			c.channelKey(d, at, channel)
		}
	}
	for _, channel := range c.channelNames() {
		list, own := c.Commands.AllowFrom[channel]
		if !own {
			list = c.Commands.AllowFrom["*"]
		}
		c.commanders[channel] = c.expandGroups(d, list, channel, join("commands.allowFrom", channel))
	}
}

// MayCommand reports whether somebody who is let in may use commands there, owners apart
// (spec/chat.md §3.2).
func (c *Config) MayCommand(channel, sender string) bool {
	if c.Commands.AllowFrom == nil {
		return true
	}
	return slices.ContainsFunc(c.commanders[channel], func(id string) bool {
		return id == "*" || sender != "" && strings.TrimPrefix(id, channel+":") == sender
	})
}
