package classify

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"understudy/llm"
)

// conclude turns a verdict into a Failure: scope, code, message, time hints.
func (j *judge) conclude(v verdict, c *cause) llm.Failure {
	var msg []byte
	var code string
	if c != nil {
		msg = c.msg
		if c.nCodes > 0 {
			code = string(c.codes[0][:min(len(c.codes[0]), maxCode)])
		}
	}
	if code == "" {
		code = amznErrorType(j.in.Header)
	}
	if code == "" {
		code = j.in.ErrorType
	}
	if c := j.inner(); len(msg) == 0 && c != nil {
		msg = c.msg
	}
	if isKey(code) {
		code = mask
	}
	v.scope = j.scope(v, c)
	status := j.in.Status
	if c != nil && status < 400 {
		status = max(status, j.statusOf(c))
	}
	f := v.failure(status, strings.ToValidUTF8(code, ""), redact(msg))
	limited := v.reason == llm.ReasonRateLimit || v.reason == llm.ReasonOverloaded
	f.RetryAfter, f.ResetAt = j.hints.times(j.in.Header, msg, j.in.Now, limited)
	f.Repairable = v.reason == llm.ReasonFormat && repairable(msg)
	if f.Message == "" && j.in.Message != "" {
		f.Message = redact([]byte(j.in.Message))
	}
	return f
}

// scope tells how far a failure reaches: what the rule says, else what the words name.
func (j *judge) scope(v verdict, c *cause) llm.Scope {
	if v.scope != llm.ScopeDefault && v.scope != llm.ScopeProfile {
		return v.scope
	}
	switch v.reason {
	case llm.ReasonModelNotFound:
		return llm.ScopeModel
	case llm.ReasonRateLimit, llm.ReasonOverloaded, llm.ReasonAuth, llm.ReasonAuthPermanent, llm.ReasonBilling:
	default:
		return llm.ScopeDefault
	}
	cue := -1
	if c != nil && len(c.msg) > 0 {
		j.words.cut(c.msg)
		cue = scopeCues.find(&j.words, j.fam, 0)
		if cue < 0 && j.words.n > 1 && j.words.list[0].kind == tokenName && bytes.ContainsAny(j.words.text(0), "0123456789") {
			cue = cueModel // "llama-3.3-70b-versatile is currently over capacity"
		}
	}
	switch v.reason {
	case llm.ReasonOverloaded:
		if cue == cueModel {
			return llm.ScopeModel
		}
	case llm.ReasonRateLimit:
		switch {
		case cue == cueModel || j.perModel:
			return llm.ScopeModel
		case v.scope != llm.ScopeDefault || cue == cueProfile:
			return llm.ScopeProfile
		case j.upstream || len(j.via) > 0 || c != nil && forwarded(c.msg):
			return llm.ScopeModel
		}
	case llm.ReasonAuth, llm.ReasonAuthPermanent, llm.ReasonBilling:
		switch {
		case j.upstream: // the router's own account, or one of many behind it
		case v.reason == llm.ReasonAuth && cue == cueModel && j.http == 403: // refused for one model
			return llm.ScopeModel
		case v.rule == "status" && j.http != 401 && (c == nil || c.plain || j.html): // no API said so
		default:
			return llm.ScopeProfile
		}
	}
	return llm.ScopeDefault
}

// forwarded tells that a router speaks of the host behind it.
func forwarded(msg []byte) bool { return strings.HasPrefix(string(msg), "Error from provider") }

// repairMarks are parts of rejections that Request.Repair is known to cure: ids of tool calls
// outside a host's alphabet, calls and results that are not paired, roles that do not alternate.
var repairMarks = [...]string{
	"tool_use` ids", "tool_use ids", "tool_result", "tool_call", "tool call id", "tool call result", "tool_use.id", "tooluse",
	"toolresult", "no tool output found", "no tool call found",
	"function call turn", "function response", "function response parts", "must alternate", "roles must", "unexpected role",
	"last message must have role", "expected last role", "'tool' must be a response",
	"start with a user message", "first message must", "tool messages", "tool_use_id", "call_id",
}

// repairable tells whether a rejection is of a kind that a transcript repair cures.
func repairable(msg []byte) bool {
	low := strings.ToLower(string(msg[:min(len(msg), maxMatched)]))
	for _, m := range repairMarks {
		if strings.Contains(low, m) {
			return true
		}
	}
	return false
}

// statusIn finds an HTTP status in a bare text, where it is written as one: "HTTP 429",
// "StatusCode: 503", "429 Too Many Requests", "401 Incorrect API key". Other numbers are none.
func statusIn(msg []byte) int {
	text := strings.ToLower(string(msg[:min(len(msg), maxMatched)]))
	if n := statusAt(text); n != 0 {
		return n
	}
	for _, m := range [...]string{"http ", "http/1.1 ", "http/2 ", "status code: ", "status code ", "statuscode: ", "status_code=", "status_code: ", "status: ", "status=", "status ", "error code: ", "error: ", "error "} {
		for at := 0; ; {
			i := strings.Index(text[at:], m)
			if i < 0 {
				break
			}
			at += i + len(m)
			if r, _ := utf8.DecodeLastRuneInString(text[:at-len(m)]); r >= 'a' && r <= 'z' || isDigit(byte(min(r, 127))) {
				continue
			}
			if n := statusAt(text[at:]); n != 0 {
				return n
			}
		}
	}
	return 0
}

// statusAt reads a status at the start of text.
func statusAt(text string) int {
	if len(text) < 3 || text[0] != '4' && text[0] != '5' || !isDigit(text[1]) || !isDigit(text[2]) {
		return 0
	}
	if len(text) > 3 && (isWordByte(text[3]) || text[3] == '-' || text[3] == '/' || text[3] == '.' && len(text) > 4 && isDigit(text[4])) {
		return 0
	}
	return int(text[0]-'0')*100 + int(text[1]-'0')*10 + int(text[2]-'0')
}
