package policy

import "time"

// SoonestExpiry returns when the first member of the chain is worth another try: per profile the
// last window that blocks the candidate's model, then the earliest over profiles and chain. Windows
// of models outside the chain do not count, nor those of members that cannot take the turn anyway
// (spec §8.5). Zero means that no window is active.
func SoonestExpiry(chain []Candidate, h Health, now time.Time) time.Time {
	var soonest time.Time
	for _, c := range chain {
		if c.Unfit != "" {
			continue
		}
		for _, p := range c.Profiles {
			if w, ok := h.Block(p, c.Ref.Model, now); ok && (soonest.IsZero() || w.Until.Before(soonest)) {
				soonest = w.Until
			}
		}
	}
	return soonest
}
