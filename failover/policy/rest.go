package policy

import (
	"time"

	"understudy/llm"
)

// ProbeBillingEvery is how often the five-minute job touches a billing lane at most (spec §12).
const ProbeBillingEvery = 30 * time.Minute

// Rest says how a model rests, for whoever asks it between turns.
type Rest struct {
	// Free tells that a profile can serve the model now.
	Free bool
	// Profile is the one to ask with now: a free one, else the one whose window ends first; "" = none
	// may be asked now.
	Profile llm.ProfileID
	// From is when the first may be asked; zero = none before its rest ends.
	From time.Time
	// Until is when the first rest ends; zero = nothing rests.
	Until time.Time
	// Reason and Detail are why the profile rests that Until is about.
	Reason llm.Reason
	Detail llm.Detail
}

// Rest looks at the profiles that may serve a model. A revoked credential is never asked while it rests,
// an unpaid account at most every ProbeBillingEvery; the throttle of a provider is not looked at.
func (s Snapshot) Rest(profiles []llm.ProfileID, ref llm.ModelRef, now time.Time) Rest {
	var r Rest
	var asked time.Time // end of the rest of r.Profile
	for _, p := range profiles {
		w, blocked := s.Health.Block(p, ref.Model, now)
		if !blocked {
			return Rest{Free: true, Profile: p, From: now}
		}
		if r.Until.IsZero() || w.Until.Before(r.Until) {
			r.Until, r.Reason, r.Detail = w.Until, w.Reason, w.Detail
		}
		from := now
		if off, disabled := s.Health.Disabled(p, ref.Model, now); disabled {
			if off.Reason != llm.ReasonBilling {
				continue
			}
			touched := s.LastProbe[ref.Provider]
			if off.Since.After(touched) {
				touched = off.Since
			}
			if at := touched.Add(ProbeBillingEvery); at.After(now) {
				from = at
			}
		}
		if r.From.IsZero() || from.Before(r.From) {
			r.From = from
		}
		if !from.After(now) && (r.Profile == "" || w.Until.Before(asked)) {
			r.Profile, asked = p, w.Until
		}
	}
	return r
}
