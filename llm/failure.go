package llm

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Reason is why a request failed, in the closed list of spec/failover.md §6. It is at once the log
// field, the metric label and the input of policy.
type Reason string

// The reasons.
const (
	ReasonAuth            Reason = "auth"
	ReasonAuthPermanent   Reason = "auth_permanent"
	ReasonBilling         Reason = "billing"
	ReasonRateLimit       Reason = "rate_limit"
	ReasonOverloaded      Reason = "overloaded"
	ReasonTimeout         Reason = "timeout"
	ReasonFormat          Reason = "format"
	ReasonContextOverflow Reason = "context_overflow"
	ReasonModelNotFound   Reason = "model_not_found"
	ReasonSessionExpired  Reason = "session_expired"
	ReasonRefusal         Reason = "refusal"
	ReasonAborted         Reason = "aborted"
	ReasonEmptyResponse   Reason = "empty_response"
	ReasonNoErrorDetails  Reason = "no_error_details"
	ReasonUnclassified    Reason = "unclassified"

	// ReasonCapability marks a candidate that was passed over because it cannot take the turn's
	// images or size (spec §4). It appears on skips only, never on an attempt.
	ReasonCapability Reason = "capability"
	// ReasonInternal is a fault of ours (spec §6.1): it never touches health and never walks the chain.
	ReasonInternal Reason = "internal"
)

// Detail refines ReasonTimeout.
type Detail string

// The details of a timeout.
const (
	DetailServerError Detail = "server_error" // the server failed, passingly
	DetailNetwork     Detail = "network"      // the connection did
	DetailDeadline    Detail = "deadline"     // one of our timers ended it
)

// Scope says how far a failure reaches within its profile.
type Scope string

// The scopes. ScopeDefault leaves it to the reason (spec §6.1).
const (
	ScopeDefault Scope = ""
	ScopeModel   Scope = "model"
	ScopeProfile Scope = "profile"
)

// Failure is what classification makes of a failed request (spec/failover.md §6).
type Failure struct {
	Reason  Reason
	Detail  Detail // for ReasonTimeout
	Scope   Scope
	Status  int    // HTTP status; 0 = none
	Code    string // the provider's own error code or type, bounded
	Message string // the provider's error message, redacted and bounded; for logs, never for chat

	RetryAfter time.Duration // the provider's wait hint; 0 = none
	ResetAt    time.Time     // an exact end stated by the provider; zero = none

	// NotSent tells that the request never left (refused, DNS, dial, TLS): it marks no health.
	NotSent bool
	// Repairable tells that Request.Repair is known to cure this rejection.
	Repairable bool
	// Rule names the classification rule that decided, for `bot classify` and logs.
	Rule string
}

// Error is a failed attempt: what policy needs, and the private cause for the log.
type Error struct {
	Failure
	Err error // the cause; may hold provider text, never a secret
}

// Error returns a text for logs. It is not fit for chat.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Reason))
	if e.Status != 0 {
		fmt.Fprintf(&b, " (status %d)", e.Status)
	}
	switch {
	case e.Message != "":
		b.WriteString(": " + e.Message)
	case e.Err != nil:
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// AsError returns err as an *Error; any other error becomes ReasonInternal, because whatever a
// provider did arrives classified (design §5: classify at the border).
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Failure: Failure{Reason: ReasonInternal}, Err: err}
}

// Transport is what the border makes of a Go error that is not an HTTP response, so that
// classification stays pure.
type Transport uint8

// The kinds of transport failures.
const (
	TransportNone         Transport = iota
	TransportRefused                // nobody listens
	TransportReset                  // the connection was torn down
	TransportDNS                    // the name does not resolve
	TransportTLS                    // handshake or certificate
	TransportDial                   // connecting failed otherwise, time-outs included
	TransportEOF                    // the connection or the stream ended early
	TransportGoAway                 // HTTP/2 GOAWAY or stream error
	TransportIdle                   // our idle timer: the model stopped sending
	TransportFirstContent           // our first-content timer
	TransportDeadline               // a time-out of the network layer or of the turn
	TransportCancelled              // our own context was cancelled by a user or a shutdown
	TransportOther                  // anything else
)

// Causes of our own context ends (spec/failover.md §6, principle 1). They travel as the cause of a
// context and decide what the user is told.
var (
	ErrStopped     = errors.New("stopped by the user")
	ErrInterrupted = errors.New("interrupted by a newer message")
	ErrShutdown    = errors.New("the bot is shutting down")
	ErrTurnTimeout = errors.New("the turn's time limit ended it")
	ErrIdle        = errors.New("the model stopped sending")
	ErrFirstByte   = errors.New("the model sent no content in time")
)
