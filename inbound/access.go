package inbound

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"understudy/chat"
)

// The policies (spec/chat.md §2.1).
const (
	PolicyPairing   = "pairing"   // strangers may ask for access; direct messages only
	PolicyAllowlist = "allowlist" // listed ids only
	PolicyOpen      = "open"      // everybody; for direct messages only together with "*"
	PolicyDisabled  = "disabled"  // nobody
)

// anyone in an allowlist stands for every id.
const anyone = "*"

// Access says who may talk to one channel account. Ids are the platform's stable ids, with or
// without the channel's name in front ("telegram:123"); names never match (spec/chat.md §2.2).
type Access struct {
	DMPolicy       string   `yaml:"dmPolicy"`       // default pairing
	AllowFrom      []string `yaml:"allowFrom"`      // direct messages
	GroupPolicy    string   `yaml:"groupPolicy"`    // default allowlist; no pairing
	GroupAllowFrom []string `yaml:"groupAllowFrom"` // who may trigger in groups; nil = AllowFrom
	// Groups are the conversations that have an entry, by id; "*" is the entry of the others. Under
	// the allowlist policy a group without an entry is refused.
	Groups map[string]Group `yaml:"groups"`
	// RequireMention is the default of the groups' own; nil = true.
	RequireMention *bool `yaml:"requireMention"`
}

// Group is the entry of one group or room.
type Group struct {
	Enabled        *bool    `yaml:"enabled"`        // nil = true
	RequireMention *bool    `yaml:"requireMention"` // nil = the account's
	AllowFrom      []string `yaml:"allowFrom"`      // nil = the account's; binds under every policy
}

// WithDefaults fills in the defaults, which fail closed.
func (a Access) WithDefaults() Access {
	if a.DMPolicy == "" {
		a.DMPolicy = PolicyPairing
	}
	if a.GroupPolicy == "" {
		a.GroupPolicy = PolicyAllowlist
	}
	return a
}

// Validate reports every wrong value, with its key.
func (a Access) Validate() error {
	a = a.WithDefaults()
	var errs []error
	switch a.DMPolicy {
	case PolicyPairing, PolicyDisabled:
	case PolicyAllowlist:
		if len(a.AllowFrom) == 0 {
			errs = append(errs, errors.New("allowFrom: is empty, so dmPolicy allowlist would admit nobody; use disabled to mean that"))
		}
	case PolicyOpen:
		if !slices.Contains(a.AllowFrom, anyone) {
			errs = append(errs, errors.New(`allowFrom: dmPolicy open admits everybody only together with "*"`))
		}
	default:
		errs = append(errs, fmt.Errorf("dmPolicy: %q is none of pairing, allowlist, open, disabled", a.DMPolicy))
	}
	switch a.GroupPolicy {
	case PolicyAllowlist, PolicyOpen, PolicyDisabled:
	default:
		errs = append(errs, fmt.Errorf("groupPolicy: %q is none of allowlist, open, disabled", a.GroupPolicy))
	}
	return errors.Join(errs...)
}

// Verdict is what becomes of a message.
type Verdict uint8

// The verdicts.
const (
	Refuse Verdict = iota
	Admit
	Pair // offer a pairing code
)

// Reason is why, from a closed list: it is also the log field.
type Reason string

// The reasons.
const (
	ReasonLocal        Reason = "local" // the transport proved the owner of the machine
	ReasonListed       Reason = "listed"
	ReasonOpen         Reason = "open"
	ReasonOwner        Reason = "owner"
	ReasonApproved     Reason = "approved" // by pairing
	ReasonStranger     Reason = "stranger"
	ReasonBot          Reason = "bot"
	ReasonAnonymous    Reason = "anonymous" // no sender id
	ReasonDisabled     Reason = "disabled"
	ReasonGroup        Reason = "group_not_listed"
	ReasonSender       Reason = "sender_not_listed"
	ReasonUnconfigured Reason = "unconfigured" // the account has no access rules
)

// Standing is what the store knows of a sender.
type Standing struct {
	Owner    bool
	Approved bool // by pairing; counts in direct messages only
}

// Decision is a verdict with its reason.
type Decision struct {
	Verdict Verdict
	Reason  Reason
	// NeedsMention tells that an admitted message triggers only when it is addressed to the bot.
	NeedsMention bool
}

// Decide says what becomes of a message (spec/chat.md §2.2). It is pure. A nil Access is that of
// an account without rules: it admits local senders only.
func (a *Access) Decide(m chat.Inbound, s Standing) Decision {
	direct := m.Address.Kind == chat.Direct
	switch {
	case m.Sender.Local:
		return Decision{Verdict: Admit, Reason: ReasonLocal}
	case m.Sender.Bot:
		return Decision{Reason: ReasonBot}
	case m.Sender.ID == "":
		return Decision{Reason: ReasonAnonymous}
	case a == nil:
		return Decision{Reason: ReasonUnconfigured}
	case direct:
		return a.WithDefaults().direct(m, s)
	}
	return a.WithDefaults().group(m)
}

func (a Access) direct(m chat.Inbound, s Standing) Decision {
	everybody := a.DMPolicy == PolicyOpen && slices.Contains(a.AllowFrom, anyone)
	switch {
	case a.DMPolicy == PolicyDisabled:
		return Decision{Reason: ReasonDisabled}
	case lists(a.AllowFrom, m):
		return Decision{Verdict: Admit, Reason: ReasonListed}
	case everybody:
		return Decision{Verdict: Admit, Reason: ReasonOpen}
	case s.Owner:
		return Decision{Verdict: Admit, Reason: ReasonOwner}
	case a.DMPolicy != PolicyPairing:
		return Decision{Reason: ReasonSender}
	case s.Approved:
		return Decision{Verdict: Admit, Reason: ReasonApproved}
	}
	return Decision{Verdict: Pair, Reason: ReasonStranger}
}

// group: policy, group entry and sender list must all pass. Neither pairing nor being an owner nor
// a reply to the bot gives rights in a group.
func (a Access) group(m chat.Inbound) Decision {
	g, listed := a.Groups[m.Address.Conversation]
	if !listed {
		g, listed = a.Groups[anyone]
	}
	senders := a.GroupAllowFrom
	if senders == nil {
		senders = a.AllowFrom
	}
	if g.AllowFrom != nil {
		senders = g.AllowFrom
	}
	restricted := a.GroupPolicy == PolicyAllowlist || g.AllowFrom != nil
	switch {
	case a.GroupPolicy == PolicyDisabled || g.Enabled != nil && !*g.Enabled:
		return Decision{Reason: ReasonDisabled}
	case a.GroupPolicy != PolicyOpen && !listed:
		return Decision{Reason: ReasonGroup}
	case restricted && !lists(senders, m) && !slices.Contains(senders, anyone):
		return Decision{Reason: ReasonSender}
	}
	d := Decision{Verdict: Admit, Reason: ReasonListed, NeedsMention: a.mention(g)}
	if !restricted {
		d.Reason = ReasonOpen
	}
	return d
}

func (a Access) mention(g Group) bool {
	switch {
	case g.RequireMention != nil:
		return *g.RequireMention
	case a.RequireMention != nil:
		return *a.RequireMention
	}
	return true
}

// lists reports whether a list names the sender himself.
func lists(list []string, m chat.Inbound) bool {
	return slices.ContainsFunc(list, func(id string) bool { return sameID(id, m.Address.Channel, m.Sender.ID) })
}

// sameID compares a configured id, which may begin with the channel's name, with a sender's.
func sameID(id, channel, sender string) bool {
	id = strings.TrimSpace(id)
	if head, tail, ok := strings.Cut(id, ":"); ok && strings.EqualFold(head, channel) {
		id = strings.TrimSpace(tail)
	}
	return id != anyone && id != "" && id == sender
}
