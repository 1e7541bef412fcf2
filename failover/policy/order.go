package policy

import (
	"slices"
	"time"

	"understudy/llm"
)

// Profile is what ordering needs to know of a credential (spec §5).
type Profile struct {
	ID      llm.ProfileID
	Kind    llm.CredentialKind
	Expires time.Time // of the access token or token; zero = unknown or never
	// HasSecret and HasRefresh tell what is stored, never what it is.
	HasSecret, HasRefresh bool
}

// Declared is an entry of `auth.profiles`: metadata without a secret.
type Declared struct {
	ID   llm.ProfileID
	Mode llm.CredentialKind
}

// Pool is everything that is known about the credentials of one provider.
type Pool struct {
	Provider string
	Stored   []Profile
	Declared []Declared // of this provider, from configuration
	// Override is the order stored for the agent, Configured the one of `auth.order`; nil = none,
	// empty = use no profile of this provider.
	Override, Configured []llm.ProfileID
	// Virtual is the environment or configuration key, used when nothing is stored.
	Virtual *Profile
	// More are further keys of the environment, of the same worth as Virtual.
	More []Profile
}

// Ordered is the result of Order.
type Ordered struct {
	Profiles []llm.ProfileID
	// Stale names ids of an explicit order or of auth.profiles that are not stored.
	Stale []llm.ProfileID
}

// Order returns the eligible profiles in the order in which a candidate tries them (spec §5.2).
// Those that are blocked for model stand at the end, the soonest to be free first.
func Order(p Pool, h Health, model string, now time.Time) Ordered {
	var out Ordered
	list, explicit := p.base(&out)
	eligible := make([]Profile, 0, len(list))
	for _, x := range list {
		if x.eligible(p.mode(x.ID), now) {
			eligible = append(eligible, x)
		}
	}
	if !explicit {
		slices.SortStableFunc(eligible, func(a, b Profile) int { return compare(a, b, h, now) })
	}
	type blocked struct {
		id    llm.ProfileID
		until time.Time
	}
	var waiting []blocked
	out.Profiles = make([]llm.ProfileID, 0, len(eligible))
	for _, x := range eligible {
		if w, ok := h.Block(x.ID, model, now); ok {
			waiting = append(waiting, blocked{x.ID, w.Until})
			continue
		}
		out.Profiles = append(out.Profiles, x.ID)
	}
	slices.SortStableFunc(waiting, func(a, b blocked) int { return a.until.Compare(b.until) })
	for _, w := range waiting {
		out.Profiles = append(out.Profiles, w.id)
	}
	return out
}

// Closed reports whether an explicit empty order says to use no profile of the provider.
func (p Pool) Closed() bool {
	order := p.Override
	if order == nil {
		order = p.Configured
	}
	return order != nil && len(order) == 0
}

// base returns the profiles to consider and whether their order is the user's own.
func (p Pool) base(out *Ordered) (list []Profile, explicit bool) {
	order := p.Override
	if order == nil {
		order = p.Configured
	}
	if order != nil {
		list = p.pick(order, out)
		if len(list) > 0 || len(order) == 0 {
			return list, true
		}
		return p.stored(), false // names only profiles that are gone: fall back and warn
	}
	if len(p.Declared) > 0 {
		ids := make([]llm.ProfileID, len(p.Declared))
		for i, d := range p.Declared {
			ids[i] = d.ID
		}
		if list = p.pick(ids, out); len(list) > 0 {
			return list, false
		}
	}
	return p.stored(), false
}

// stored returns the stored profiles, or else the key of the environment.
func (p Pool) stored() []Profile {
	if len(p.Stored) == 0 && p.Virtual != nil {
		return append([]Profile{*p.Virtual}, p.More...)
	}
	return p.Stored
}

func (p Pool) pick(ids []llm.ProfileID, out *Ordered) []Profile {
	var list []Profile
	for _, id := range ids {
		same := func(x Profile) bool { return x.ID == id }
		if slices.ContainsFunc(list, same) {
			continue
		}
		i, more := slices.IndexFunc(p.Stored, same), slices.IndexFunc(p.More, same)
		switch {
		case i >= 0:
			list = append(list, p.Stored[i])
		case more >= 0:
			list = append(list, p.More[more])
		case p.Virtual != nil && p.Virtual.ID == id:
			list = append(list, *p.Virtual)
		default:
			out.Stale = append(out.Stale, id)
		}
	}
	return list
}

// mode returns the declared mode of a profile, "" when it has none.
func (p Pool) mode(id llm.ProfileID) llm.CredentialKind {
	for _, d := range p.Declared {
		if d.ID == id {
			return d.Mode
		}
	}
	return ""
}

// eligible reports whether the profile can serve at all. Declared mode oauth accepts a token, not
// the reverse.
func (x Profile) eligible(mode llm.CredentialKind, now time.Time) bool {
	if mode != "" && mode != x.Kind && (mode != llm.KindOAuth || x.Kind != llm.KindToken) {
		return false
	}
	if x.Kind == llm.KindNone {
		return true
	}
	expired := !x.Expires.IsZero() && !now.Before(x.Expires)
	switch x.Kind {
	case llm.KindOAuth:
		return (x.HasSecret && !expired) || x.HasRefresh
	case llm.KindToken:
		return x.HasSecret && !expired
	}
	return x.HasSecret
}

// usable reports whether an access token needs no refresh: it has more than RefreshMargin left.
func (x Profile) usable(now time.Time) bool {
	return x.HasSecret && (x.Expires.IsZero() || x.Expires.Sub(now) > RefreshMargin)
}

// compare is the order of profiles that have none of their own: type, then usable access tokens,
// then the one not used for the longest time.
func compare(a, b Profile, h Health, now time.Time) int {
	if d := kindRank(a.Kind) - kindRank(b.Kind); d != 0 {
		return d
	}
	if a.Kind == llm.KindOAuth && a.usable(now) != b.usable(now) {
		if a.usable(now) {
			return -1
		}
		return 1
	}
	return h[Key{Profile: a.ID}].LastUsed.Compare(h[Key{Profile: b.ID}].LastUsed)
}

func kindRank(k llm.CredentialKind) int {
	switch k {
	case llm.KindOAuth:
		return 0
	case llm.KindToken:
		return 1
	}
	return 2
}

// Pin is a session's profile pin (spec §5.3).
type Pin struct {
	Profile llm.ProfileID
	User    bool // a lock, not a preference
	// Advance asks for the next available profile behind the pinned one: a compaction completed
	// since it was set.
	Advance bool
}

// Apply puts the pin's profile first, or only it when the user locked it. An automatic pin whose
// profile is blocked for model yields to the first available one.
func (p Pin) Apply(order []llm.ProfileID, h Health, model string, now time.Time) (list []llm.ProfileID, locked bool) {
	at := slices.Index(order, p.Profile)
	if p.Profile == "" {
		return order, false
	}
	if p.User {
		if at < 0 {
			return nil, true
		}
		return []llm.ProfileID{p.Profile}, true
	}
	if at < 0 {
		return order, false
	}
	if _, cooling := h.Block(p.Profile, model, now); cooling {
		return order, false
	}
	first := at
	if p.Advance {
		for i := 1; i <= len(order); i++ {
			next := (at + i) % len(order)
			if _, cooling := h.Block(order[next], model, now); !cooling {
				first = next
				break
			}
		}
	}
	list = append(make([]llm.ProfileID, 0, len(order)), order[first])
	list = append(list, order[:first]...)
	return append(list, order[first+1:]...), false
}
