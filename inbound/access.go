package inbound

import (
	"errors"
	"fmt"
	"slices"

	"understudy/channels"
)

// The policies (spec/chat.md §2.1).
const (
	PolicyPairing   = "pairing"   // strangers may ask for access; direct messages only
	PolicyAllowlist = "allowlist" // listed ids only
	PolicyOpen      = "open"      // everybody; for direct messages only together with "*"
	PolicyDisabled  = "disabled"  // nobody
)

// The values of Access.AllowBots.
const (
	BotsNever     = "false"    // the default
	BotsMentioned = "mentions" // those that name the bot in the message
	BotsAlways    = "true"
)

// Bounds of what overheard messages are kept.
const (
	DefaultHistory = 50 // messages of one conversation
	MaxHistory     = 500
)

// Access says who may talk to one channel account. Ids are the platform's stable ids, with or
// without the channel's name in front ("telegram:123"); names never match (spec/chat.md §2.2).
type Access struct {
	DMPolicy    string   `yaml:"dmPolicy"`    // default pairing
	AllowFrom   []string `yaml:"allowFrom"`   // direct messages
	GroupPolicy string   `yaml:"groupPolicy"` // default allowlist; no pairing
	// GroupAllowFrom are those who may trigger in groups, under every policy; nil = AllowFrom, and under
	// the open policy everybody.
	GroupAllowFrom []string `yaml:"groupAllowFrom"`
	// Groups are the conversations that have an entry, by id; "*" is the entry of the others. Under
	// the allowlist policy a group without an entry is refused. A thread has its parent's entry.
	Groups map[string]Group `yaml:"groups"`
	// Spaces are the servers or workspaces that have an entry, by id; "*" is the entry of the others.
	// Where there are any, they take the place of Groups for conversations in a space, and under the
	// allowlist policy a space without an entry is refused.
	Spaces map[string]Space `yaml:"spaces"`

	// RequireMention is the default of the groups' own; nil = true.
	RequireMention *bool `yaml:"requireMention"`
	// MentionPatterns count as a mention of the bot where they match: RE2, in any case of letters.
	MentionPatterns []string `yaml:"mentionPatterns"`
	// IgnoreOtherMentions leaves messages alone that name somebody else and not the bot.
	IgnoreOtherMentions bool `yaml:"ignoreOtherMentions"`
	// ImplicitThread lets people go on without a mention in a thread where the bot has answered in the
	// last 30 days. It never lets in who may not trigger the bot.
	ImplicitThread bool `yaml:"implicitThread"`

	// AllowBots says whether other bots are answered: BotsNever, BotsMentioned or BotsAlways. They need
	// access like anybody, and never get it by pairing.
	AllowBots string `yaml:"allowBots"`
	// SeedThreads tells that a top-level message of a room is answered in a thread of its own, whose
	// root it is: it belongs to that thread's session already (spec/chat.md §1.1).
	SeedThreads bool `yaml:"seedThreads"`
	// HistoryLimit is how many overheard messages of a conversation go with the next one that is for
	// the bot; nil = DefaultHistory, 0 = none.
	HistoryLimit *int `yaml:"historyLimit"`
	// CatchUp bounds what is answered after a gap; zero values are those of Config.MaxAge and
	// DefaultCatchUp.
	CatchUp channels.CatchUp `yaml:"catchUp"`
}

// Group is the entry of one group or room. Lists bind under every policy. Where AllowFrom or Roles
// is set, a sender needs to be in one of the two.
type Group struct {
	Enabled        *bool    `yaml:"enabled"`        // nil = true
	RequireMention *bool    `yaml:"requireMention"` // nil = the space's, else the account's
	AllowFrom      []string `yaml:"allowFrom"`      // senders
	// Roles are ids of roles that the platform gives to senders. Both lists nil = the space's, else
	// the account's list of senders.
	Roles []string `yaml:"roles"`
}

// Space is the entry of a server or workspace: what holds for all of its conversations.
type Space struct {
	Group `yaml:",inline"`
	// Groups, if not nil, is an allowlist of the space's conversations under every policy: one that is
	// not listed is refused; "*" is the entry of the others.
	Groups map[string]Group `yaml:"groups"`
}

// WithDefaults fills in the defaults, which fail closed.
func (a Access) WithDefaults() Access {
	if a.DMPolicy == "" {
		a.DMPolicy = PolicyPairing
	}
	if a.GroupPolicy == "" {
		a.GroupPolicy = PolicyAllowlist
	}
	if a.AllowBots == "" {
		a.AllowBots = BotsNever
	}
	if a.HistoryLimit == nil {
		limit := DefaultHistory
		a.HistoryLimit = &limit
	}
	return a
}

// Validate reports every wrong value, with its key.
func (a Access) Validate() error {
	a = a.WithDefaults()
	_, err := compilePatterns(a.MentionPatterns)
	errs := []error{a.validateDirect(), err}
	switch a.GroupPolicy {
	case PolicyAllowlist, PolicyOpen, PolicyDisabled:
	default:
		errs = append(errs, fmt.Errorf("groupPolicy: %q is none of allowlist, open, disabled", a.GroupPolicy))
	}
	switch a.AllowBots {
	case BotsNever, BotsMentioned, BotsAlways:
	default:
		errs = append(errs, fmt.Errorf("allowBots: %q is none of false, mentions, true", a.AllowBots))
	}
	if n := *a.HistoryLimit; n < 0 || n > MaxHistory {
		errs = append(errs, fmt.Errorf("historyLimit: %d is not between 0 and %d", n, MaxHistory))
	}
	if a.CatchUp.MaxAge < 0 || a.CatchUp.MaxMessages < 0 {
		errs = append(errs, errors.New("catchUp: is negative"))
	}
	return errors.Join(errs...)
}

func (a Access) validateDirect() error {
	switch a.DMPolicy {
	case PolicyPairing, PolicyDisabled:
	case PolicyAllowlist:
		if len(a.AllowFrom) == 0 {
			return errors.New("allowFrom: is empty, so dmPolicy allowlist would admit nobody; use disabled to mean that")
		}
	case PolicyOpen:
		if !slices.Contains(a.AllowFrom, anyone) {
			return errors.New(`allowFrom: dmPolicy open admits everybody only together with "*"`)
		}
	default:
		return fmt.Errorf("dmPolicy: %q is none of pairing, allowlist, open, disabled", a.DMPolicy)
	}
	return nil
}
