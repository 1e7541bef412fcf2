package inbound

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"understudy/chat"
)

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
	ReasonAnonymous    Reason = "anonymous" // no sender id, or the id of a chat that is not listed itself
	ReasonDisabled     Reason = "disabled"
	ReasonGroup        Reason = "group_not_listed"
	ReasonSender       Reason = "sender_not_listed"
	ReasonUnconfigured Reason = "unconfigured" // the account has no access rules
)

// Standing is what the store knows of a sender and of the thread that the sender writes in.
type Standing struct {
	Owner    bool
	Approved bool // by pairing; counts in direct messages only
	// Participates tells that the bot has answered in the thread. It makes a mention superfluous and
	// gives no rights.
	Participates bool
	// Former are the ids that the conversation had before, the latest first: the entry of one of them
	// holds where its present id has none.
	Former []string
}

// Decision is a verdict with its reason.
type Decision struct {
	Verdict Verdict
	Reason  Reason
	// NeedsMention tells that an admitted message triggers only when it is addressed to the bot, and
	// Addressed that it triggers. A command triggers in any case.
	NeedsMention, Addressed bool
}

// Rules are the access rules of one account, ready for use: patterns are compiled and named groups
// are resolved. They never change, and a nil *Rules is that of an account without rules: it admits
// local senders only.
type Rules struct {
	access   Access // with defaults
	patterns []*regexp.Regexp
}

// Compile makes the rules of an account. It reports every wrong value.
func (a Access) Compile() (*Rules, error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	patterns, err := compilePatterns(a.MentionPatterns)
	return &Rules{a.WithDefaults(), patterns}, err
}

// Decide says what becomes of a message (spec/chat.md §2.2). It is pure.
func (r *Rules) Decide(m chat.Inbound, s Standing) Decision {
	if m.Sender.Bot {
		s = Standing{Former: s.Former} // pairing and ownership are for people, and threads must not keep bots talking
	}
	switch {
	case m.Sender.Local:
		return Decision{Verdict: Admit, Reason: ReasonLocal, Addressed: true}
	case m.Sender.Bot && !r.mayBot(m):
		return Decision{Reason: ReasonBot}
	case m.Sender.ID == "":
		return Decision{Reason: ReasonAnonymous}
	case r == nil:
		return Decision{Reason: ReasonUnconfigured}
	case m.Address.Kind == chat.Direct:
		return r.direct(m, s)
	}
	return r.group(m, s)
}

func (r *Rules) mayBot(m chat.Inbound) bool {
	if r == nil {
		return false
	}
	return r.access.AllowBots == BotsAlways || r.access.AllowBots == BotsMentioned && m.Mentioned
}

func (r *Rules) direct(m chat.Inbound, s Standing) Decision {
	a := &r.access
	everybody := a.DMPolicy == PolicyOpen && slices.Contains(a.AllowFrom, anyone)
	admit := func(why Reason) Decision { return Decision{Verdict: Admit, Reason: why, Addressed: true} }
	switch {
	case a.DMPolicy == PolicyDisabled:
		return Decision{Reason: ReasonDisabled}
	case lists(a.AllowFrom, m):
		return admit(ReasonListed)
	case m.Sender.Anonymous:
		return Decision{Reason: ReasonAnonymous}
	case everybody:
		return admit(ReasonOpen)
	case s.Owner:
		return admit(ReasonOwner)
	case a.DMPolicy != PolicyPairing, m.Sender.Bot:
		return Decision{Reason: ReasonSender}
	case s.Approved:
		return admit(ReasonApproved)
	}
	return Decision{Verdict: Pair, Reason: ReasonStranger}
}

// group: policy, entry of the conversation and sender list must all pass. Neither pairing nor being
// an owner nor a reply to the bot gives rights in a group. Who writes in the name of a chat is one that
// nobody knows, so only the chat's own id lets that in.
func (r *Rules) group(m chat.Inbound, s Standing) Decision {
	a := &r.access
	p := a.place(m, s.Former)
	listed := lists(p.senders, m)
	switch {
	case a.GroupPolicy == PolicyDisabled || p.disabled:
		return Decision{Reason: ReasonDisabled}
	case p.closed || a.GroupPolicy != PolicyOpen && !p.listed:
		return Decision{Reason: ReasonGroup}
	case m.Sender.Anonymous && !listed:
		return Decision{Reason: ReasonAnonymous}
	case p.bound && !listed && !slices.Contains(p.senders, anyone) && !hasRole(p.roles, m):
		return Decision{Reason: ReasonSender}
	}
	d := Decision{Verdict: Admit, Reason: ReasonListed, NeedsMention: p.mention}
	if !p.bound {
		d.Reason = ReasonOpen
	}
	d.Addressed = r.addressed(m, s, p.mention)
	return d
}

// place is what the rules say of one conversation.
type place struct {
	listed         bool // it, or its space, has an entry
	closed         bool // its space lists its conversations, and this is none of them
	disabled       bool
	mention        bool
	bound          bool // only these may trigger:
	senders, roles []string
}

// place gathers the entries of a conversation, of its space and of the account; the narrowest counts.
func (a *Access) place(m chat.Inbound, former []string) place {
	p := place{mention: true, bound: a.GroupPolicy == PolicyAllowlist || a.GroupAllowFrom != nil, senders: a.GroupAllowFrom}
	if p.senders == nil {
		p.senders = a.AllowFrom
	}
	if a.RequireMention != nil {
		p.mention = *a.RequireMention
	}
	if m.Space == "" || len(a.Spaces) == 0 {
		p.narrow(pick(a.Groups, m.Address.Conversation, former...))
		return p
	}
	space, listed := pick(a.Spaces, m.Space)
	p.narrow(space.Group, listed)
	if space.Groups != nil {
		g, ok := pick(space.Groups, m.Address.Conversation, former...)
		p.narrow(g, ok)
		p.closed = !ok
	}
	return p
}

// narrow takes over what an entry says.
func (p *place) narrow(g Group, listed bool) {
	p.listed = listed
	p.disabled = p.disabled || g.Enabled != nil && !*g.Enabled
	if g.RequireMention != nil {
		p.mention = *g.RequireMention
	}
	if g.AllowFrom != nil || g.Roles != nil {
		p.bound, p.senders, p.roles = true, g.AllowFrom, g.Roles
	}
}

// pick returns the entry of an id, else that of one it had before, else that of the others.
func pick[T any](entries map[string]T, id string, former ...string) (T, bool) {
	for _, id := range append([]string{id}, former...) {
		if e, ok := entries[id]; ok {
			return e, true
		}
	}
	e, ok := entries[anyone]
	return e, ok
}

// addressed reports whether a message of a group is meant for the bot.
func (r *Rules) addressed(m chat.Inbound, s Standing, needsMention bool) bool {
	others := r.access.IgnoreOtherMentions && m.MentionsOthers
	switch {
	case m.Mentioned, m.Via != "", !needsMention && !others:
		return true
	case r.named(m.Text):
		return true
	}
	return !others && r.access.ImplicitThread && s.Participates && m.Address.Thread != ""
}

// Bounds of the patterns of one account.
const (
	maxPatterns = 50
	maxPattern  = 500 // bytes
)

// named reports whether a text calls the bot by one of the patterns.
func (r *Rules) named(text string) bool {
	return slices.ContainsFunc(r.patterns, func(p *regexp.Regexp) bool { return p.MatchString(text) })
}

// compilePatterns reports every pattern that is wrong, or that would match any text.
func compilePatterns(list []string) ([]*regexp.Regexp, error) {
	if len(list) > maxPatterns {
		return nil, fmt.Errorf("mentionPatterns: there are more than %d", maxPatterns)
	}
	var out []*regexp.Regexp
	var errs []error
	for i, text := range list {
		if len(text) > maxPattern {
			errs = append(errs, fmt.Errorf("mentionPatterns[%d]: is longer than %d bytes", i, maxPattern))
			continue
		}
		// Compiled alone first: "a)(b" is an error, whatever is put around it.
		if _, err := regexp.Compile(text); err != nil {
			errs = append(errs, fmt.Errorf("mentionPatterns[%d]: %w", i, err))
			continue
		}
		p, err := regexp.Compile("(?i:" + text + ")")
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("mentionPatterns[%d]: %w", i, err))
		case p.MatchString(""):
			errs = append(errs, fmt.Errorf("mentionPatterns[%d]: %q matches every message", i, text))
		default:
			out = append(out, p)
		}
	}
	return out, errors.Join(errs...)
}
