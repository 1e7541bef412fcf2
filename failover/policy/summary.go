package policy

import (
	"time"

	"understudy/llm"
)

// SoonestExpiry returns when the first member of the chain is worth another try: per profile the
// last window that blocks the candidate's model, then the earliest over profiles and chain. Windows
// of models outside the chain do not count, nor those of members that cannot take the turn anyway
// (spec §8.5). Zero means that no window is active.
func SoonestExpiry(chain []Candidate, h Health, now time.Time) time.Time {
	return soonest(chain, h, now, func(Window) bool { return true })
}

// SoonestPassing is SoonestExpiry of the windows whose reason passes by itself. The end of any other one
// says when it is tried again, not that it will serve: a key stays wrong, an account unpaid.
func SoonestPassing(chain []Candidate, h Health, now time.Time) time.Time {
	return soonest(chain, h, now, func(w Window) bool { return !NeedsHelp(w.Reason) })
}

// NeedsHelp reports whether a failure ends only when somebody mends the credential or pays.
func NeedsHelp(r llm.Reason) bool {
	return r == llm.ReasonAuth || r == llm.ReasonAuthPermanent || r == llm.ReasonBilling
}

func soonest(chain []Candidate, h Health, now time.Time, counts func(Window) bool) time.Time {
	var soonest time.Time
	for _, c := range chain {
		if c.Unfit != "" {
			continue
		}
		for _, p := range c.Profiles {
			if w, ok := h.Block(p, c.Ref.Model, now); ok && counts(w) && (soonest.IsZero() || w.Until.Before(soonest)) {
				soonest = w.Until
			}
		}
	}
	return soonest
}
