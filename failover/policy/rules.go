package policy

import (
	"fmt"
	"time"

	"understudy/llm"
)

// Fixed numbers of the specification.
const (
	ProbeThrottle   = 30 * time.Second // one probe per provider and agent (spec §8.3)
	ProbeMargin     = 2 * time.Minute  // a window that ends within it may be probed (spec §8.3)
	NoticeAfter     = 30 * time.Second // the "still retrying" notice (spec §9)
	RefreshMargin   = 5 * time.Minute  // an access token with no more left needs a refresh (spec §13)
	MaxPassRetries  = 10               // of a pass that was nothing but overloaded (spec §9)
	firstPassWait   = 2500 * time.Millisecond
	longestPassWait = 30 * time.Second
	maxAskAgain     = 2 // waits for a stated Retry-After (spec §14)
)

// ladder is how long the 1st, 2nd and every later failure cools a profile (spec §7).
var ladder = [...]time.Duration{30 * time.Second, time.Minute, 5 * time.Minute}

// Rules are the adjustable numbers, `auth.cooldowns` in the configuration (spec §2). The zero
// value is not usable; start from DefaultRules.
type Rules struct {
	BillingBackoff       time.Duration
	BillingByProvider    map[string]time.Duration
	BillingMax           time.Duration
	AuthPermanentBackoff time.Duration
	AuthPermanentMax     time.Duration
	FailureWindow        time.Duration // without a failure for so long, the ladder restarts

	OverloadedRotations int
	OverloadedBackoff   time.Duration
	RateLimitRotations  int

	// RetryAfterCap is the longest stated wait that a last resort sits out; negative = no cap
	// (OPENCLAW_SDK_RETRY_MAX_WAIT_SECONDS, spec §14).
	RetryAfterCap time.Duration
}

// DefaultRules returns the documented defaults.
func DefaultRules() Rules {
	return Rules{
		BillingBackoff:       5 * time.Hour,
		BillingMax:           24 * time.Hour,
		AuthPermanentBackoff: 10 * time.Minute,
		AuthPermanentMax:     time.Hour,
		FailureWindow:        24 * time.Hour,
		OverloadedRotations:  1,
		RateLimitRotations:   1,
		RetryAfterCap:        time.Minute,
	}
}

// Validate names the first number that makes no sense.
func (r Rules) Validate() error {
	switch {
	case r.BillingBackoff <= 0:
		return fmt.Errorf("billingBackoffHours must be greater than 0")
	case r.BillingMax <= 0:
		return fmt.Errorf("billingMaxHours must be greater than 0")
	case r.AuthPermanentBackoff <= 0:
		return fmt.Errorf("authPermanentBackoffMinutes must be greater than 0")
	case r.AuthPermanentMax <= 0:
		return fmt.Errorf("authPermanentMaxMinutes must be greater than 0")
	case r.FailureWindow <= 0:
		return fmt.Errorf("failureWindowHours must be greater than 0")
	case r.OverloadedRotations < 0:
		return fmt.Errorf("overloadedProfileRotations must be 0 or more")
	case r.OverloadedBackoff < 0:
		return fmt.Errorf("overloadedBackoffMs must be 0 or more")
	case r.RateLimitRotations < 0:
		return fmt.Errorf("rateLimitedProfileRotations must be 0 or more")
	}
	for provider, d := range r.BillingByProvider {
		if d <= 0 {
			return fmt.Errorf("billingBackoffHoursByProvider.%s must be greater than 0", provider)
		}
	}
	return nil
}

// lane returns the n-th window (1-based) of a disable lane: the base doubled n-1 times, at most
// the maximum; a maximum below the base is raised to it (spec §2).
func (r Rules) lane(reason llm.Reason, provider string, n int) time.Duration {
	base, most := r.AuthPermanentBackoff, r.AuthPermanentMax
	if reason == llm.ReasonBilling {
		base, most = r.BillingBackoff, r.BillingMax
		if own, ok := r.BillingByProvider[provider]; ok {
			base = own
		}
	}
	most = max(most, base)
	for d := base; ; d *= 2 {
		if n <= 1 || d >= most {
			return min(d, most)
		}
		n--
	}
}

// PassWait returns how long to wait before the n-th repetition (1-based) of an overloaded pass.
func PassWait(n int) time.Duration {
	d := firstPassWait
	for ; n > 1 && d < longestPassWait; n-- {
		d *= 2
	}
	return min(d, longestPassWait)
}

// Terminal reports whether a failure ends the turn whatever stands behind it in the chain
// (spec §8.1).
func Terminal(r llm.Reason) bool {
	switch r {
	case llm.ReasonAborted, llm.ReasonFormat, llm.ReasonContextOverflow, llm.ReasonRefusal, llm.ReasonInternal:
		return true
	}
	return false
}

// Advances reports whether another candidate would be tried after a failure of this kind.
func Advances(r llm.Reason) bool { return !Terminal(r) }

// hardness orders reasons for ties (spec §8.3, last point): the harder one wins.
func hardness(r llm.Reason) int {
	switch r {
	case llm.ReasonAuthPermanent:
		return 6
	case llm.ReasonBilling:
		return 5
	case llm.ReasonAuth:
		return 4
	case llm.ReasonRateLimit:
		return 3
	case llm.ReasonOverloaded:
		return 2
	case llm.ReasonTimeout:
		return 1
	}
	return 0
}
