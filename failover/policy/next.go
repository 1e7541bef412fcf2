package policy

import (
	"time"

	"understudy/llm"
)

// Next returns what to do now (spec §8.1, §8.2, §8.3, §9, §14). It changes nothing; the caller
// records what came of the decision before it asks again.
func (r Rules) Next(s *RunState, now time.Time) Decision {
	last, begun := s.last()
	if !begun {
		return r.enter(s, s.From, now)
	}
	switch last.Kind {
	case StepAnswered:
		return s.try(last.Index, last.Profile, WhyContinue)
	case StepFailed:
		return r.afterFailure(s, last, now)
	case StepSkipped:
		return r.enter(s, last.Index+1, now)
	case StepCompacted:
		if a, ok := s.lastAttempt(); ok {
			return s.try(a.Index, a.Profile, WhyCompacted)
		}
	case StepWaited:
		return r.afterWait(s, last, now)
	}
	return r.enter(s, s.From, now)
}

// afterFailure decides between the same profile, the next profile, the next candidate and the end.
func (r Rules) afterFailure(s *RunState, a Step, now time.Time) Decision {
	reason := a.Failure.Reason
	if s.Said {
		return Stop{reason}
	}
	if d, ok := s.sameAgain(a); ok {
		return d
	}
	if Terminal(reason) {
		return Stop{reason}
	}
	if !s.Work {
		if d, ok := r.rotate(s, a, now); ok {
			return d
		}
	}
	if d, ok := r.askAgain(s, a); ok {
		return d
	}
	if s.Work {
		return Stop{reason}
	}
	return r.enter(s, a.Index+1, now)
}

// sameAgain returns the one retry with the same profile that two reasons are allowed.
func (s *RunState) sameAgain(a Step) (Decision, bool) {
	switch {
	case a.Failure.Reason == llm.ReasonSessionExpired && a.Why != WhyStateless:
		return s.try(a.Index, a.Profile, WhyStateless), true
	case a.Failure.Reason == llm.ReasonFormat && a.Failure.Repairable && a.Why != WhyRepair:
		return s.try(a.Index, a.Profile, WhyRepair), true
	}
	return nil, false
}

// rotate returns the attempt with the next profile of the same candidate, if the failure allows it.
func (r Rules) rotate(s *RunState, a Step, now time.Time) (Decision, bool) {
	switch a.Failure.Reason {
	case llm.ReasonModelNotFound, llm.ReasonSessionExpired:
		return nil, false
	case llm.ReasonRateLimit:
		if !s.alone() && s.count(a.Index, llm.ReasonRateLimit) > r.RateLimitRotations {
			return nil, false
		}
	case llm.ReasonOverloaded:
		if !s.alone() && s.count(a.Index, llm.ReasonOverloaded) > r.OverloadedRotations {
			return nil, false
		}
	}
	switch a.Why {
	case WhyProbe, WhySibling, WhyLastResort, WhyPassRetry:
		return nil, false // an attempt despite a cooldown uses one profile (spec §8.3)
	}
	next, ok := s.free(a.Index, now)
	if !ok {
		return nil, false
	}
	if a.Failure.Reason == llm.ReasonOverloaded && r.OverloadedBackoff > 0 {
		return Wait{For: r.OverloadedBackoff, Why: WhyBackoff}, true
	}
	return s.try(a.Index, next, WhyRotation), true
}

// count returns how many attempts of the pass at candidate i failed for the reason.
func (s *RunState) count(i int, reason llm.Reason) (n int) {
	for _, x := range s.log {
		if x.Kind == StepFailed && x.Index == i && x.Failure.Reason == reason {
			n++
		}
	}
	return n
}

// askAgain returns the wait for a stated Retry-After on the last resort (spec §14): a strict or
// only candidate with its last profile. A wait equal to the cap is honoured.
func (r Rules) askAgain(s *RunState, a Step) (Decision, bool) {
	f := a.Failure
	if !s.alone() || s.asked >= maxAskAgain || f.RetryAfter <= 0 {
		return nil, false
	}
	if f.Status != 408 && f.Status != 409 && f.Status != 429 && (f.Status < 500 || f.Status > 599) {
		return nil, false
	}
	if r.RetryAfterCap >= 0 && f.RetryAfter > r.RetryAfterCap {
		return nil, false
	}
	return Wait{For: f.RetryAfter, Why: WhyRetryAfter}, true
}

// afterWait goes on where the pause interrupted the pass.
func (r Rules) afterWait(s *RunState, w Step, now time.Time) Decision {
	a, ok := s.lastAttempt()
	switch {
	case !ok:
		return r.enter(s, s.From, now)
	case w.Why == WhyRetryAfter:
		return s.try(a.Index, a.Profile, WhyAskAgain)
	}
	if next, ok := s.free(a.Index, now); ok {
		return s.try(a.Index, next, WhyRotation)
	}
	return r.enter(s, a.Index+1, now)
}

func (s *RunState) try(i int, p llm.ProfileID, why Why) Try {
	return Try{Index: i, Profile: p, Why: why, Share: len(s.Chain) - i}
}

// enter decides about the candidate at i, the first one of the rest of the pass.
func (r Rules) enter(s *RunState, i int, now time.Time) Decision {
	if i >= len(s.Chain) {
		return r.repeat(s)
	}
	c := s.Chain[i]
	switch {
	case c.Unfit != "":
		return Skip{Index: i, Reason: c.Unfit, Detail: c.UnfitDetail, Why: c.UnfitWhy}
	case len(c.Profiles) == 0:
		return Skip{Index: i, Reason: llm.ReasonAuth, Why: WhyNoProfile}
	case c.AuthCached && i > s.From:
		return Skip{Index: i, Reason: llm.ReasonAuth, Why: WhySkipCache}
	}
	if f, limited := s.providerLimited(i); limited {
		return Skip{Index: i, Reason: f.Reason, Detail: f.Detail, Why: WhyProviderLimit}
	}
	if p, ok := s.free(i, now); ok {
		return s.try(i, p, WhyFree)
	}
	return s.cooling(i, now)
}

// providerLimited applies the last rule of spec §6.1: after a timeout or overloaded of one of its
// candidates a provider gets one more candidate in the pass, unless nobody else stands behind.
func (s *RunState) providerLimited(i int) (llm.Failure, bool) {
	var first *llm.Failure
	more, at := 0, -1 // further candidates of the provider attempted since, and the latest one
	for k := range s.log {
		x := &s.log[k]
		if x.Kind != StepFailed || s.provider(x.Index) != s.provider(i) || x.Index == i {
			continue
		}
		switch {
		case first != nil && x.Index != at:
			more, at = more+1, x.Index
		case first == nil && (x.Failure.Reason == llm.ReasonTimeout || x.Failure.Reason == llm.ReasonOverloaded):
			first, at = &x.Failure, x.Index
		}
	}
	if first == nil || more < 1 {
		return llm.Failure{}, false
	}
	for j := i + 1; j < len(s.Chain); j++ {
		if s.provider(j) != s.provider(i) {
			return *first, true
		}
	}
	return llm.Failure{}, false
}

// repeat decides what happens at the end of a pass (spec §9).
func (r Rules) repeat(s *RunState) Decision {
	if s.Work {
		return Exhausted{}
	}
	if s.passes < MaxPassRetries && s.all(func(f llm.Failure) bool { return f.Reason == llm.ReasonOverloaded }) {
		return Wait{For: PassWait(s.passes + 1), Why: WhyOverloaded, Pass: true}
	}
	if !s.serverUsed && s.all(func(f llm.Failure) bool {
		return f.Reason == llm.ReasonTimeout && f.Detail == llm.DetailServerError
	}) {
		return Wait{For: firstPassWait, Why: WhyServer, Pass: true}
	}
	return Exhausted{}
}

// all reports whether every attempt and skip of the pass fits, and there was one. Candidates that
// cannot take the turn at all say nothing about the service and do not count.
func (s *RunState) all(fits func(llm.Failure) bool) bool {
	n := 0
	for _, x := range s.log {
		if x.Kind == StepWaited || x.Failure.Reason == llm.ReasonCapability {
			continue
		}
		if !fits(x.Failure) {
			return false
		}
		n++
	}
	return n > 0
}
