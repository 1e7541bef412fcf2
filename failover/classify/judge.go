package classify

import (
	"bytes"

	"understudy/llm"
)

// judge weighs the layers of one report.
type judge struct {
	*report
	in    *Input
	fam   family
	words words
}

// verdict returns the reason, and the layer that gave it (nil: none did). A zero reason means that
// nothing failed.
func (j *judge) verdict() (verdict, *cause) {
	success := j.http >= 200 && j.http < 300 && !j.failed
	if success && !j.html {
		if v, decided := j.ending(); decided {
			return v, j.outer()
		}
	}
	if j.html {
		return j.pageVerdict(), j.outer()
	}
	for i := range j.n {
		if google(&j.causes[i]) {
			j.fam |= famGoogle
		}
	}
	if len(j.via) > 0 { // who is behind a router speaks in words of their own
		j.fam |= familyOf(string(j.via), "")
	}
	if j.flagged {
		return verdict{reason: llm.ReasonRefusal, rule: "router/moderation"}, j.outer()
	}
	for i := j.n - 1; i >= 0; i-- {
		c := &j.causes[i]
		if v, ok := j.cause(c); ok {
			return v, c
		}
	}
	if v, c := j.fallback(); v.reason != "" {
		return v, c
	}
	return verdict{reason: llm.ReasonUnclassified, rule: "none"}, j.inner()
}

func (j *judge) outer() *cause {
	if j.n == 0 {
		return nil
	}
	return &j.causes[0]
}

func (j *judge) inner() *cause {
	for i := j.n - 1; i >= 0; i-- {
		if len(j.causes[i].msg) > 0 {
			return &j.causes[i]
		}
	}
	return j.outer()
}

// google reports whether the layer is a google.rpc status, whoever the provider says it is.
func google(c *cause) bool {
	for _, code := range c.codes[:c.nCodes] {
		if string(code) == "RESOURCE_EXHAUSTED" {
			return true
		}
	}
	return false
}

// ending judges a response that came as a success: why it ended and whether it says anything.
func (j *judge) ending() (verdict, bool) {
	if v, ok := endings[foldString(j.finish)]; ok {
		switch {
		case v.reason == llm.ReasonUnclassified && !j.answered: // said nothing usable
			return verdict{reason: llm.ReasonEmptyResponse, rule: v.rule}, true
		case v.reason != llm.ReasonContextOverflow || !j.answered:
			return v, true
		}
	}
	mid := j.in.Position == PositionMid
	switch {
	case j.answered:
		return verdict{}, true
	case j.refused:
		return verdict{reason: llm.ReasonRefusal, rule: "answer/refusal"}, true
	case j.n > 0 && len(j.causes[0].msg) > 0: // {"message": …} and bare text are no answers
		return verdict{}, false
	case mid && len(bytes.TrimSpace(j.in.Body)) == 0:
		return verdict{reason: llm.ReasonTimeout, detail: llm.DetailNetwork, rule: "answer/cut"}, true
	case mid:
		return verdict{}, true // content came before; this event adds none
	}
	return verdict{reason: llm.ReasonEmptyResponse, rule: "answer/empty"}, true
}

// pageVerdict judges HTML: a proxy or an edge answered, not the API. Its words are not read.
func (j *judge) pageVerdict() verdict {
	server := verdict{reason: llm.ReasonTimeout, detail: llm.DetailServerError, rule: "page"}
	if j.in.Header["cf-mitigated"] == "challenge" {
		return server
	}
	if c := j.outer(); c != nil && bytes.HasPrefix(c.msg, []byte("Just a moment")) {
		return server
	}
	if v := statusVerdict(j.http); v.reason != "" && v.reason != llm.ReasonFormat {
		return v
	}
	if j.http == 404 || j.http == 405 || j.http == 410 {
		return verdict{reason: llm.ReasonUnclassified, rule: "page"}
	}
	return server
}

// cause judges one layer by everything but weak codes and the status.
func (j *judge) cause(c *cause) (verdict, bool) {
	status := j.statusOf(c)
	bare := j.fam&famOpenRouter != 0 && (c == j.inner() || mute(j.inner())) && (status < 400 || status == 400 || status == 422 || status >= 500)
	if v, ok := literal(c.msg, bare); ok {
		return v, true
	}
	if v, ok := j.code(c, decisive); ok {
		return v, true
	}
	j.words.cut(c.msg)
	for _, l := range [...]*lexicon{providerText, hardText} {
		if g := l.find(&j.words, j.fam, status); g >= 0 {
			return l.groups[g].verdict, true
		}
	}
	if v, ok := j.code(c, plain); ok {
		return v, true
	}
	if g := softText.find(&j.words, j.fam, status); g >= 0 {
		v := softText.groups[g].verdict
		return v, v.rule != ruleNamesModel || c == j.inner() // a wrapper's "Model call failed: " names none
	}
	return verdict{}, false
}

// mute tells that a layer's message is a bare word such as "ERROR".
func mute(c *cause) bool { return len(c.msg) < 16 && !bytes.ContainsAny(c.msg, " {") }

// code returns the verdict of the first code of that strength; a provider's own table goes first.
func (j *judge) code(c *cause, s strength) (verdict, bool) {
	for _, code := range c.codes[:c.nCodes] {
		if rule, ok := providerCode(j.fam, code); ok {
			if rule.strength == s {
				return rule.verdict, true
			}
			continue
		}
		rule, ok := commonCodes.lookUp(code)
		if !ok {
			rule, ok = periodCode(code)
		}
		if ok && rule.strength == s {
			return rule.verdict, true
		}
	}
	if j.fam&famMiniMax != 0 {
		if rule, ok := providerCode(famMiniMax, trailingCode(c.msg)); ok && rule.strength == s {
			return rule.verdict, true
		}
	}
	if c == j.outer() {
		if code := amznErrorType(j.in.Header); code != "" {
			rule, ok := providerCode(j.fam|famBedrock, []byte(code))
			if !ok {
				rule, ok = commonCodes.lookUp([]byte(code))
			}
			return rule.verdict, ok && rule.strength == s
		}
	}
	return verdict{}, false
}

// amznErrorType returns the exception that AWS names in a header, "ThrottlingException:http://…".
func amznErrorType(header map[string]string) string {
	for _, name := range [...]string{"x-amzn-errortype", ":exception-type"} {
		if v := header[name]; v != "" {
			if i := bytes.IndexByte([]byte(v), ':'); i > 0 {
				return v[:i]
			}
			return v
		}
	}
	return ""
}

// statusOf returns the status that counts for a layer: the response's own, unless that is a success
// or so general that a wrapped one says more, as "bad response status code 429" on a 500 does. Behind
// a success a layer has the status that the layers around it name.
func (j *judge) statusOf(c *cause) int {
	http := j.http
	for i := 0; j.http < 400 && i < j.n && &j.causes[i] != c; i++ {
		if s := j.causes[i].status; s >= 400 {
			http = s
		}
	}
	if general := http < 400 || http == 400 || http >= 500; general && c.status != 0 {
		http = c.status
	}
	if http >= 500 {
		if n := statusIn(c.msg); n != 0 {
			return n
		}
	}
	return http
}

// fallback judges by status and by weak codes, the innermost layer first.
func (j *judge) fallback() (verdict, *cause) {
	if j.n == 0 && j.in.Status == 0 {
		return verdict{reason: llm.ReasonEmptyResponse, rule: "answer/empty"}, nil
	}
	for i := j.n - 1; i >= 0; i-- {
		c := &j.causes[i]
		status := j.statusOf(c)
		sv := statusVerdict(status)
		v, ok := j.code(c, weak)
		switch {
		case ok && !contradicts(v.reason, status, c.nested):
			if sv.reason == v.reason {
				v.detail = sv.detail
			}
			return v, c
		case sv.reason != "" && status != j.http: // the layer names a status of its own
			return sv, c
		}
	}
	return statusVerdict(j.http), j.inner()
}

// contradicts tells that a status says more than a weak code does: "invalid_request_error" beside a
// 401, "permission_error" beside a 404, "server_error" beside a 429.
func contradicts(r llm.Reason, status int, nested bool) bool {
	switch r {
	case llm.ReasonFormat:
		return status >= 401 && status != 422 && (!nested || status < 500)
	case llm.ReasonAuth:
		return status == 404 || status >= 429
	case llm.ReasonTimeout:
		return status >= 400 && status < 500 && status != 408 && status != 424 && status != 499
	}
	return false
}

// statusVerdict is what an HTTP status means by itself. Statuses that mean nothing have no reason.
func statusVerdict(status int) verdict {
	v := verdict{rule: "status"}
	switch status {
	case 400, 422:
		v.reason = llm.ReasonFormat
	case 401, 403:
		v.reason = llm.ReasonAuth
	case 402:
		v.reason = llm.ReasonBilling
	case 413:
		v.reason = llm.ReasonContextOverflow
	case 429:
		v.reason = llm.ReasonRateLimit
	case 529:
		v.reason = llm.ReasonOverloaded
	case 408, 504, 524:
		v.reason, v.detail = llm.ReasonTimeout, llm.DetailDeadline
	case 521, 522, 523, 525, 526, 527, 530:
		v.reason, v.detail = llm.ReasonTimeout, llm.DetailNetwork
	default:
		if status == 499 || status >= 500 && status <= 599 {
			v.reason, v.detail = llm.ReasonTimeout, llm.DetailServerError
		}
	}
	return v
}

func foldString(b []byte) string {
	var buf [48]byte
	return string(fold(&buf, b))
}
