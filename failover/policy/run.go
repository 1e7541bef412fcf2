package policy

import (
	"slices"
	"time"

	"understudy/llm"
)

// Candidate is one member of a turn's chain, with what is known of it when the pass reaches it.
type Candidate struct {
	Ref      llm.ModelRef
	Profiles []llm.ProfileID // eligible, in the order to try (Order, then Pin.Apply)
	// Unfit, when set, is why the candidate cannot take this turn (ReasonCapability) or cannot be
	// asked at all (ReasonModelNotFound, ReasonAuth); UnfitWhy says it in the log's words.
	Unfit       llm.Reason
	UnfitDetail llm.Detail
	UnfitWhy    Why
	// AuthCached tells that the skip cache remembers an authentication failure (spec §8.6).
	AuthCached bool
}

// Why says why a decision was made. It is the log field and the metric label.
type Why string

// Whys of a Try.
const (
	WhyFree       Why = "free"         // the profile is available
	WhyRotation   Why = "rotation"     // another profile of the same candidate
	WhyProbe      Why = "probe"        // the first candidate, to see whether it is back
	WhySibling    Why = "sibling"      // despite a passing cooldown: its provider was tried before
	WhyLastResort Why = "last_resort"  // despite a passing cooldown: nothing behind it is free
	WhyPassRetry  Why = "pass_retry"   // its window began in this very turn
	WhyStateless  Why = "stateless"    // once more without provider-side state
	WhyRepair     Why = "repair"       // once more with the known repairs
	WhyCompacted  Why = "compacted"    // once more after compaction
	WhyAskAgain   Why = "ask_again"    // after the wait the provider asked for
	WhyContinue   Why = "continue"     // the next request of a turn that already got an answer
	WhyBackground Why = "background"   // the five-minute job asks whether it is back
	WhyBackoff    Why = "backoff"      // Wait: overloadedBackoffMs before a rotation
	WhyOverloaded Why = "overloaded"   // Wait: the whole pass was overloaded
	WhyServer     Why = "server_error" // Wait: the whole pass met passing server errors
	WhyRetryAfter Why = "retry_after"  // Wait: the provider named a bearable wait
)

// Whys of a Skip.
const (
	WhyCooling       Why = "cooling"        // every profile is in a cooldown
	WhyDisabled      Why = "disabled"       // every profile is disabled
	WhyNoProfile     Why = "no_profile"     // no eligible credential
	WhyCapability    Why = "capability"     // cannot take the turn's images or size
	WhyUnknown       Why = "unknown_model"  // not configured
	WhySkipCache     Why = "skip_cache"     // recent authentication failure in this session
	WhyProviderLimit Why = "provider_limit" // the provider had its further chance in this pass
	WhyBudget        Why = "budget"         // it costs money, and may not be asked to stand in now
)

// Decision is what to do next: Try, Skip, Wait, Stop or Exhausted.
type Decision interface{ decision() }

// Try asks the candidate at Index with one profile.
type Try struct {
	Index   int
	Profile llm.ProfileID
	Why     Why
	// Throttled tells that the probe throttle of the provider must be claimed first; if somebody
	// else has it, set RunState.LastProbe accordingly and ask Next again.
	Throttled bool
	// Share is how many candidates the time that is left belongs to (spec §8.4).
	Share int
}

// Skip passes the candidate at Index over. Until is when it is worth another look; zero = unknown.
type Skip struct {
	Index  int
	Reason llm.Reason
	Detail llm.Detail
	Why    Why
	Until  time.Time
}

// Wait pauses before the next decision. Pass tells that the whole chain is walked again.
type Wait struct {
	For  time.Duration
	Why  Why
	Pass bool
}

// Stop ends the turn with the failure of the last step.
type Stop struct{ Reason llm.Reason }

// Exhausted ends the turn: nobody is left to ask.
type Exhausted struct{}

func (Try) decision()       {}
func (Skip) decision()      {}
func (Wait) decision()      {}
func (Stop) decision()      {}
func (Exhausted) decision() {}

// Kind says what a Step records.
type Kind uint8

// The kinds of steps.
const (
	StepFailed    Kind = iota + 1 // an attempt that failed
	StepAnswered                  // an attempt that succeeded; the turn may ask again (tools)
	StepSkipped                   // a candidate passed over
	StepWaited                    // a pause
	StepCompacted                 // the transcript was made shorter after an overflow
)

// Step is one entry of a run's log.
type Step struct {
	Kind    Kind
	Index   int
	Profile llm.ProfileID
	Why     Why
	Failure llm.Failure // of StepFailed and, as far as known, StepSkipped
	Pass    bool        // of StepWaited: the chain is walked again
}

// RunState is everything Next looks at. The runner owns it; Candidates, Health and LastProbe are
// refreshed before a candidate is entered.
type RunState struct {
	Chain     []Candidate
	From      int // the chain begins here: a live switch jumped forward
	Health    Health
	LastProbe map[string]time.Time // provider → last throttled probe
	Started   time.Time            // of the turn
	Work      bool                 // observable work was done (spec §1)
	Said      bool                 // part of that work is text that left and cannot be taken back

	log        []Step // of the current pass
	passes     int    // repetitions of an overloaded pass so far
	serverUsed bool   // the one repetition for passing server errors is used
	asked      int    // waits for a stated Retry-After so far
}

// Record appends what came of a decision.
func (s *RunState) Record(x Step) {
	if x.Kind == StepWaited {
		switch x.Why {
		case WhyOverloaded:
			s.passes++
		case WhyServer:
			s.serverUsed = true
		case WhyRetryAfter:
			s.asked++
		}
		if x.Pass {
			s.log = s.log[:0]
			return
		}
	}
	s.log = append(s.log, x)
}

// JumpTo goes on at the candidate at index: the user chose it during the turn (spec §8.7). A strict
// choice leaves nobody behind it (spec §3).
func (s *RunState) JumpTo(index int, strict bool) {
	if strict {
		s.Chain = s.Chain[:index+1]
	}
	s.From = index
	s.log = s.log[:0]
}

// Restart begins the turn anew with another chain; counters of the turn stay.
func (s *RunState) Restart(chain []Candidate) {
	s.Chain, s.From, s.log = chain, 0, s.log[:0]
}

// Log returns the steps of the current pass.
func (s *RunState) Log() []Step { return s.log }

// Repeating reports whether the current pass is a repetition (spec §9).
func (s *RunState) Repeating() bool { return s.passes > 0 || s.serverUsed }

func (s *RunState) last() (Step, bool) {
	if len(s.log) == 0 {
		return Step{}, false
	}
	return s.log[len(s.log)-1], true
}

// lastAttempt returns the latest attempt of the pass, waits and compactions aside.
func (s *RunState) lastAttempt() (Step, bool) {
	for i := len(s.log) - 1; i >= 0; i-- {
		switch s.log[i].Kind {
		case StepFailed, StepAnswered:
			return s.log[i], true
		}
	}
	return Step{}, false
}

// tried reports whether the pass already asked the candidate with the profile.
func (s *RunState) tried(index int, p llm.ProfileID) bool {
	return slices.ContainsFunc(s.log, func(x Step) bool {
		return x.Index == index && x.Profile == p && (x.Kind == StepFailed || x.Kind == StepAnswered)
	})
}

// alone reports whether the chain has one member only.
func (s *RunState) alone() bool { return len(s.Chain)-s.From <= 1 }

func (s *RunState) model(i int) string    { return s.Chain[i].Ref.Model }
func (s *RunState) provider(i int) string { return s.Chain[i].Ref.Provider }

// free returns the first profile of candidate i that nothing blocks and the pass has not asked.
func (s *RunState) free(i int, now time.Time) (llm.ProfileID, bool) {
	for _, p := range s.Chain[i].Profiles {
		if s.tried(i, p) {
			continue
		}
		if _, blocked := s.Health.Block(p, s.model(i), now); !blocked {
			return p, true
		}
	}
	return "", false
}
