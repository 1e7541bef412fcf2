package failover

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"understudy/llm"
)

// ErrSwitchedTooOften ends a turn whose selection the user kept changing (spec §8.7).
var ErrSwitchedTooOften = errors.New("the selection changed too often during the turn")

// FallbackSummaryError says that several candidates failed or were skipped (spec §8.5).
type FallbackSummaryError struct {
	Attempts      []Record
	SoonestExpiry time.Time // zero = no window of the tried chain is active
	// SoonestPassing counts only the windows that pass by themselves (policy.SoonestPassing).
	SoonestPassing time.Time
	Cause          *AttemptError
}

// Error lists what happened to each candidate. It is for logs.
func (e *FallbackSummaryError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "all %d candidates failed", len(e.Attempts))
	sep := ": "
	for _, a := range e.Attempts {
		fmt.Fprintf(&b, "%s%s (%s)", sep, a.Ref(), a.Reason)
		sep = ", "
	}
	return b.String()
}

// Unwrap returns the failure that decides the turn's reason.
func (e *FallbackSummaryError) Unwrap() error { return e.Cause }

// AttemptError is the failure of one candidate.
type AttemptError struct {
	Record
	Failure llm.Failure
	// Until is when the candidate is worth another try; zero = unknown.
	Until time.Time
	// Work tells that the turn had done observable work: it was not repeated elsewhere.
	Work bool
	Err  error
}

// Error describes the failure for logs.
func (e *AttemptError) Error() string {
	return fmt.Sprintf("%s: %s", e.Ref(), (&llm.Error{Failure: e.Failure, Err: e.Err}).Error())
}

// Unwrap returns the cause.
func (e *AttemptError) Unwrap() error { return e.Err }

// ReasonOf returns why a turn failed: the reason of its last request, or of the last skip when
// nothing was asked (spec §8.5). Errors that are none of this package's are ReasonInternal.
func ReasonOf(err error) llm.Reason {
	var a *AttemptError
	if errors.As(err, &a) {
		return a.Failure.Reason
	}
	return llm.AsError(err).Reason
}
