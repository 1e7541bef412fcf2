package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"understudy/failover/classify"
	"understudy/llm"
)

// Evidence is what an attempt left behind that did not end well.
type Evidence struct {
	Exchange Exchange
	// Event is the part of a success response that says that it is a failure: an error event, a
	// chunk with a failing finish reason, or a whole JSON body. Nil where there is none.
	Event []byte
	// Began tells that an event of the answer had arrived before.
	Began bool
	// Message is the failure in words, for where there is neither a body nor an error, or where
	// Event does not say it.
	Message string
	// Err is the Go error that ended the attempt, if any.
	Err error
}

// Fail classifies a failed attempt (spec/failover.md §6). Our own context decides first, then a
// response that is an error, then what stood in a success, then the Go error. It never returns nil.
func (s Spec) Fail(ctx context.Context, ev Evidence) *llm.Error {
	ex := ev.Exchange
	in := classify.Input{
		Provider: s.ID, API: string(s.API), Status: ex.Status, Header: ex.Header,
		Stream: ex.Stream, Message: ev.Message, Now: s.Now(),
	}
	if in.Stream {
		in.Position = "first"
		if ev.Began {
			in.Position = "mid"
		}
	}
	cause := ev.Err
	switch {
	case ctx.Err() != nil:
		cause = context.Cause(ctx)
		in.Status, in.Message, in.Transport = 0, cause.Error(), contextTransport(cause)
	case ex.Status >= http.StatusMultipleChoices:
		in.Body = ex.Body
		cause = statusError(ex)
	case len(ev.Event) > 0:
		in.Body, in.Message = ev.Event, ""
	case ev.Err != nil:
		in.Status, in.Message, in.Transport = 0, bare(ev.Err).Error(), TransportOf(ev.Err)
	case ev.Message != "":
		in.Status = 0
	case ev.Began:
		in.Status, in.Transport, in.Message = 0, llm.TransportEOF, errTruncated.Error()
		cause = errTruncated
	default:
		in.Body = ex.Body
	}
	f, failed := classify.Classify(in)
	if !failed && len(in.Body) > 0 && ev.Message != "" {
		in.Body, in.Status, in.Message = nil, 0, ev.Message
		f, failed = classify.Classify(in)
	}
	if !failed {
		f = unrecognised(ev)
	}
	if f.Status == 0 && ctx.Err() == nil {
		f.Status = ex.Status
	}
	if f.Reason == llm.ReasonTimeout && ex.Status == 0 && !ex.Written {
		f.NotSent = true
	}
	if cause == nil {
		cause = errors.New(describe(f, ex))
	}
	return &llm.Error{Failure: f, Err: withRequestID(bare(cause), ex.RequestID)}
}

// errTruncated is a stream without its terminal event.
var errTruncated = errors.New("unexpected EOF: the stream ended before the answer was complete")

// unrecognised is for evidence that classification holds to be a success, although the answer has
// nothing in it.
func unrecognised(ev Evidence) llm.Failure {
	if len(ev.Event) == 0 && ev.Err == nil && ev.Message == "" {
		return llm.Failure{Reason: llm.ReasonEmptyResponse, Rule: "provider-empty"}
	}
	return llm.Failure{Reason: llm.ReasonUnclassified, Rule: "provider-unrecognised"}
}

// statusError says what an error response was, without its text: that is in Failure.Message,
// redacted.
func statusError(ex Exchange) error {
	if ex.Status < http.StatusBadRequest {
		if u, err := url.Parse(ex.Header["location"]); err == nil && u.Host != "" {
			return fmt.Errorf("the host redirects to %s; set baseUrl to the address that answers", u.Host)
		}
	}
	return fmt.Errorf("HTTP %d %s", ex.Status, strings.ToLower(http.StatusText(ex.Status)))
}

func describe(f llm.Failure, ex Exchange) string {
	if f.Reason == llm.ReasonEmptyResponse {
		return "the answer holds neither text nor a tool call"
	}
	if ct := ex.Header["content-type"]; ct != "" && !ex.Stream {
		return "not an answer of this API (" + ct + ")"
	}
	return "the model reported a failure"
}

func withRequestID(err error, id string) error {
	if id == "" || len(id) > 128 {
		return err
	}
	return fmt.Errorf("%w (request %s)", err, id)
}

// bare strips the URL that net/http puts around errors: it says nothing the log does not know.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) && u.Err != nil {
		return u.Err
	}
	return err
}

// contextTransport maps the cause of our own context's end (spec/failover.md §6, principle 1). A
// cancellation is never the provider's failure, a deadline of ours never a user's stop.
func contextTransport(cause error) llm.Transport {
	switch {
	case errors.Is(cause, llm.ErrIdle):
		return llm.TransportIdle
	case errors.Is(cause, llm.ErrFirstByte):
		return llm.TransportFirstContent
	case errors.Is(cause, llm.ErrTurnTimeout), errors.Is(cause, context.DeadlineExceeded):
		return llm.TransportDeadline
	}
	return llm.TransportCancelled
}
