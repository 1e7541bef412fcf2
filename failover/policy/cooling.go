package policy

import (
	"time"

	"understudy/llm"
)

// down is the state of a candidate all of whose profiles are blocked.
type down struct {
	reason  llm.Reason
	detail  llm.Detail
	profile llm.ProfileID // the one to use if it is attempted all the same
	window  Window        // of that profile
	soonest time.Time     // the earliest end over all profiles
}

// cooling decides between skip and probe for a candidate without a free profile (spec §8.3).
func (s *RunState) cooling(i int, now time.Time) Decision {
	d := s.down(i, now)
	skip := Skip{Index: i, Reason: d.reason, Detail: d.detail, Why: WhyCooling, Until: d.soonest}
	if d.reason == llm.ReasonBilling || d.reason == llm.ReasonAuthPermanent {
		skip.Why = WhyDisabled
	}
	if p, ok := s.beganInTurn(i, now); ok && s.Repeating() {
		return s.try(i, p, WhyPassRetry)
	}
	near := !d.window.Until.After(now.Add(ProbeMargin))
	if d.profile == "" || s.held(i, d.profile, now) {
		return skip
	}
	first := i == s.From
	switch {
	case d.reason == llm.ReasonAuth, d.reason == llm.ReasonAuthPermanent:
		return skip
	case d.reason == llm.ReasonBilling:
		if first && (near || s.alone()) && s.throttleOpen(i, now) {
			return s.probe(i, d.profile)
		}
		return skip
	case first && !s.alone():
		if near && s.throttleOpen(i, now) {
			return s.probe(i, d.profile)
		}
		return skip
	case s.sibling(i):
		if s.siblingProbed(i) {
			return skip
		}
		return s.try(i, d.profile, WhySibling)
	case s.freeBehind(i, now):
		return skip
	default:
		return s.try(i, d.profile, WhyLastResort)
	}
}

// held reports whether an end that the provider itself named keeps the profile from being asked
// before its time, whatever else blocks it for longer: it may be asked in the last two minutes.
func (s *RunState) held(i int, p llm.ProfileID, now time.Time) bool {
	end := s.Health.Stated(p, s.model(i), now)
	return end.After(now.Add(ProbeMargin))
}

func (s *RunState) probe(i int, p llm.ProfileID) Try {
	t := s.try(i, p, WhyProbe)
	t.Throttled = true
	return t
}

func (s *RunState) throttleOpen(i int, now time.Time) bool {
	last, ok := s.LastProbe[s.provider(i)]
	return !ok || now.Sub(last) >= ProbeThrottle
}

// sibling reports whether the provider of candidate i stands earlier in the chain.
func (s *RunState) sibling(i int) bool {
	for j := s.From; j < i; j++ {
		if s.provider(j) == s.provider(i) {
			return true
		}
	}
	return false
}

// siblingProbed reports whether the provider had its one sibling probe of the pass. A probe that
// met another kind of fault does not use it up.
func (s *RunState) siblingProbed(i int) bool {
	for _, x := range s.log {
		if x.Kind != StepFailed || x.Why != WhySibling || s.provider(x.Index) != s.provider(i) {
			continue
		}
		switch x.Failure.Reason {
		case llm.ReasonModelNotFound, llm.ReasonAuth, llm.ReasonAuthPermanent, llm.ReasonSessionExpired:
		default:
			return true
		}
	}
	return false
}

// freeBehind reports whether a later candidate could be asked without probing.
func (s *RunState) freeBehind(i int, now time.Time) bool {
	for j := i + 1; j < len(s.Chain); j++ {
		if s.Chain[j].Unfit != "" || s.Chain[j].AuthCached {
			continue
		}
		if _, limited := s.providerLimited(j); limited {
			continue
		}
		if _, ok := s.free(j, now); ok {
			return true
		}
	}
	return false
}

// beganInTurn returns the profile of candidate i whose window began in this very turn without a
// stated end, the soonest to be free first.
func (s *RunState) beganInTurn(i int, now time.Time) (best llm.ProfileID, ok bool) {
	var until time.Time
	for _, p := range s.Chain[i].Profiles {
		w, blocked := s.Health.Block(p, s.model(i), now)
		if !blocked || w.Stated || w.Since.Before(s.Started) || s.held(i, p, now) {
			continue
		}
		if _, off := s.Health.Disabled(p, s.model(i), now); off {
			continue
		}
		if !ok || w.Until.Before(until) {
			best, until, ok = p, w.Until, true
		}
	}
	return best, ok
}

// down looks at all profiles of a candidate none of which is free.
func (s *RunState) down(i int, now time.Time) down {
	var d down
	d.reason = s.downReason(i, now)
	for _, p := range s.Chain[i].Profiles {
		w, blocked := s.Health.Block(p, s.model(i), now)
		if !blocked {
			continue // asked in this pass and failed without a window
		}
		if d.soonest.IsZero() || w.Until.Before(d.soonest) {
			d.soonest = w.Until
		}
		if x, off := s.Health.Disabled(p, s.model(i), now); off && (x.Reason != llm.ReasonBilling || d.reason != llm.ReasonBilling) {
			continue // never called while disabled, but for a billing probe (spec §16.2)
		}
		if d.profile == "" || w.Until.Before(d.window.Until) {
			d.profile, d.window = p, w
		}
		if w.Reason == d.reason {
			d.detail = w.Detail
		}
	}
	return d
}

// downReason says why a provider is down (spec §8.3, last point): active disable windows first,
// then, when the profiles differ, the reason counted most over the cooling ones.
func (s *RunState) downReason(i int, now time.Time) llm.Reason {
	model, counts := s.model(i), make(map[llm.Reason]int, 4)
	blocks := make(map[llm.Reason]int, 2)
	for _, p := range s.Chain[i].Profiles {
		if w, off := s.Health.Disabled(p, model, now); off {
			counts[w.Reason]++
		}
		if w, blocked := s.Health.Block(p, model, now); blocked {
			blocks[w.Reason]++
		}
	}
	switch {
	case len(counts) > 0:
		return most(counts)
	case len(blocks) == 1:
		return most(blocks)
	}
	windows := make(map[llm.Reason]int, 2)
	for _, p := range s.Chain[i].Profiles {
		for _, k := range [...]Key{{Profile: p}, {p, model}} {
			row, ok := s.Health[k]
			if !ok || !row.Cooldown.Active(now) {
				continue
			}
			windows[row.Cooldown.Reason]++
			for reason, n := range row.FailureCounts {
				counts[reason] += n
			}
		}
	}
	if len(counts) == 0 {
		counts = windows // imported rows may lack counts
	}
	return most(counts)
}

func most(counts map[llm.Reason]int) llm.Reason {
	var best llm.Reason
	for r, n := range counts {
		switch m := counts[best]; {
		case best == "", n > m:
			best = r
		case n == m && (hardness(r) > hardness(best) || (hardness(r) == hardness(best) && r < best)):
			best = r
		}
	}
	if best == "" {
		return llm.ReasonUnclassified
	}
	return best
}
