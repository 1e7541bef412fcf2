package sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"understudy/llm"
)

// hang is the one trouble that is no reason: the model accepts the request and stays silent.
const hang llm.Reason = "hang"

// trouble is what ails one model. The zero value is health.
type trouble struct {
	kind  llm.Reason
	until time.Time // zero = until told otherwise
}

// at returns t as it is at now: a trouble whose time has passed is none.
func (t trouble) at(now time.Time) trouble {
	if t.kind != "" && !t.until.IsZero() && !now.Before(t.until) {
		return trouble{}
	}
	return t
}

// kindInfo describes one trouble a user may order.
type kindInfo struct {
	kind llm.Reason
	text string // what the model does, for the help and status texts
}

// kinds lists the troubles in the order in which help shows them.
func kinds() []kindInfo {
	return []kindInfo{
		{llm.ReasonRateLimit, "answers 429, too many requests"},
		{llm.ReasonOverloaded, "answers 529, overloaded"},
		{llm.ReasonAuth, "answers 401, the key is wrong"},
		{llm.ReasonBilling, "says that the credit is used up"},
		{llm.ReasonTimeout, "answers 500, a passing server error"},
		{hang, "takes the request and never answers"},
		{llm.ReasonModelNotFound, "answers 404, no such model"},
		{llm.ReasonContextOverflow, "says that the conversation is too long"},
		{llm.ReasonFormat, "rejects the request as malformed"},
		{llm.ReasonRefusal, "declines to answer"},
	}
}

// response is a provider's answer as it would stand on the wire.
type response struct {
	status int
	header map[string]string
	body   []byte
}

// response returns what a real provider sends in this trouble.
func (t trouble) response(model string, now time.Time) response {
	switch t.kind {
	case llm.ReasonRateLimit:
		r := failed(http.StatusTooManyRequests, "rate_limit_error", "This request would exceed the rate limit for model "+model+". Please try again later.")
		if left := t.until.Sub(now); !t.until.IsZero() {
			r.header["retry-after"] = strconv.Itoa(int((left + time.Second - 1) / time.Second))
		}
		return r
	case llm.ReasonOverloaded:
		return failed(529, "overloaded_error", "Overloaded")
	case llm.ReasonAuth:
		return failed(http.StatusUnauthorized, "authentication_error", "invalid x-api-key")
	case llm.ReasonBilling:
		return failed(http.StatusBadRequest, "invalid_request_error", "Your credit balance is too low to access the API. Please go to Plans & Billing to upgrade or purchase credits.")
	case llm.ReasonModelNotFound:
		return unknownModel(model)
	case llm.ReasonContextOverflow:
		return failed(http.StatusBadRequest, "invalid_request_error", "prompt is too long: 213462 tokens > 200000 maximum")
	case llm.ReasonFormat:
		return failed(http.StatusBadRequest, "invalid_request_error", "messages: at least one message is required")
	case llm.ReasonRefusal:
		return response{
			status: http.StatusOK, header: map[string]string{"content-type": "application/json"},
			body: []byte(`{"type":"message","role":"assistant","content":[],"stop_reason":"refusal","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":0}}`),
		}
	default:
		return failed(http.StatusInternalServerError, "api_error", "Internal server error")
	}
}

func unknownModel(model string) response {
	return failed(http.StatusNotFound, "not_found_error", "model: "+model)
}

// failed builds an error response in the shape of the Anthropic API.
func failed(status int, kind, message string) response {
	var e struct {
		Type  string `json:"type"`
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	e.Type, e.Error.Type, e.Error.Message = "error", kind, message
	body, err := json.Marshal(e)
	if err != nil { // strings always marshal
		body = fmt.Appendf(nil, `{"type":"error","error":{"type":%q}}`, kind)
	}
	return response{status: status, header: map[string]string{"content-type": "application/json"}, body: body}
}
