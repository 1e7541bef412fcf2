package discord

import (
	"errors"
	"net/http"
	"strings"

	"understudy/channels"
)

// Discord's error codes that mean something here (spec/chat.md §2.8).
const (
	codeUnknownChannel     = 10003
	codeUnknownMessage     = 10008
	codeUnknownWebhook     = 10015
	codeUnknownInteraction = 10062
	codeSlowmode           = 20016
	codeTooLarge           = 40005
	codeAcknowledged       = 40060
	codeNoAccess           = 50001
	codeNotYours           = 50005
	codeEmpty              = 50006
	codeNoDirect           = 50007
	codeNotText            = 50008
	codeNoPermission       = 50013
	codeDeadToken          = 50027
	codeForm               = 50035
	codeArchived           = 50083
	codeOldEdits           = 30046
	codeNoHistory          = 160002
	codeThreadExists       = 160004
)

var refusals = map[int]struct {
	verdict channels.Verdict
	code    string
}{
	codeUnknownChannel: {channels.Gone, "channel_gone"},
	codeNoAccess:       {channels.Gone, "no_access"},
	codeNoPermission:   {channels.Gone, "no_permission"},
	codeNoDirect:       {channels.Gone, "no_direct"},
	codeNotText:        {channels.Gone, "not_text"},
	codeArchived:       {channels.Gone, "thread_archived"},
	codeUnknownMessage: {channels.Missing, "message_gone"},
	codeNotYours:       {channels.Missing, "message_gone"},
	codeOldEdits:       {channels.Missing, "message_old"},
	codeTooLarge:       {channels.Refused, "file_too_large"},
	codeEmpty:          {channels.Refused, "empty"},
	codeSlowmode:       {channels.Retry, "slow_mode"},
}

// verdict says what the failure of a call means for the one who sends. A call that can be repeated
// without harm (an edit, a deletion) is never Unsure.
func verdict(err error, repeatable bool) *channels.SendError {
	var e *callError
	if !errors.As(err, &e) {
		var s *channels.SendError
		if errors.As(err, &s) {
			return s
		}
		return &channels.SendError{Verdict: channels.Refused, Code: "internal", Err: err}
	}
	as := func(v channels.Verdict, code string) *channels.SendError {
		return &channels.SendError{Verdict: v, Code: code, After: e.retryAfter, Err: err}
	}
	unsure := channels.Unsure
	if repeatable {
		unsure = channels.Retry
	}
	if known, ok := refusals[e.code]; ok && e.status < http.StatusInternalServerError {
		return as(known.verdict, known.code)
	}
	switch {
	case e.status == http.StatusTooManyRequests:
		return as(channels.Retry, "rate_limited")
	case e.garbled && e.status < 300 || e.status == http.StatusGatewayTimeout:
		return as(unsure, "server") // it may have been done before the answer was spoiled
	case e.status >= http.StatusInternalServerError:
		return as(channels.Retry, "server")
	case e.status == 0 && e.written:
		return as(unsure, "network")
	case e.status == 0:
		return as(channels.Retry, "network")
	case e.status == http.StatusRequestEntityTooLarge:
		return as(channels.Refused, "file_too_large")
	case e.code == codeForm && strings.Contains(e.fields, `"content"`) && strings.Contains(e.fields, "MAX_LENGTH"):
		return as(channels.TooLong, "too_long")
	case e.code == codeForm:
		return as(channels.Refused, "form")
	case e.status == http.StatusUnauthorized:
		return as(channels.Refused, "unauthorized")
	case e.garbled && e.status == http.StatusForbidden:
		return as(channels.Retry, "blocked") // a page of the network in front of Discord
	case e.status == http.StatusForbidden:
		return as(channels.Gone, "forbidden")
	}
	return as(channels.Refused, "refused")
}

// failed returns the verdict as an error, without turning nil into one.
func failed(err error, repeatable bool) error {
	if err == nil {
		return nil
	}
	return verdict(err, repeatable)
}

// hasCode reports whether an error is a refusal with one of some codes.
func hasCode(err error, codes ...int) bool {
	var e *callError
	if !errors.As(err, &e) || e.status == 0 {
		return false
	}
	for _, c := range codes {
		if e.code == c {
			return true
		}
	}
	return false
}
