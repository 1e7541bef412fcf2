package classify

import "bytes"

// cause is one layer of a failure: the host's own words, or those it wrapped.
type cause struct {
	msg    []byte    // the error message, never anything else
	codes  [6][]byte // error type, code, status enum, reason: as written, most specific first
	nCodes int
	status int  // an HTTP status that the layer names itself
	err    bool // stood where an API puts an error object
	nested bool // was wrapped in another layer
	plain  bool // came as bare text
}

// report is everything a response says about its failure.
type report struct {
	http     int // status of the response; 0 = there was none
	causes   [6]cause
	n        int
	failed   bool   // the body itself says that something failed
	answered bool   // there is text or a tool call
	refused  bool   // the model declined in the field made for it
	flagged  bool   // a moderation record came along
	html     bool   // a page instead of an answer
	upstream bool   // a router reports another host's failure
	via      []byte // the name a router gives that host
	finish   []byte // the last finish reason
	perModel bool   // a quota record that is kept per model
	hints    hints
}

// maxDepth bounds how many wrappers are opened.
const maxDepth = 7

// open adds a layer and returns its index; when there are too many, the last one is shared.
func (r *report) open(nested bool) int {
	if r.n < len(r.causes) {
		r.causes[r.n] = cause{nested: nested}
		r.n++
	}
	return r.n - 1
}

// shut drops a layer that turned out to say nothing.
func (r *report) shut(i int) {
	c := &r.causes[i]
	says := c.nCodes > 0 && r.http >= 400 || c.status != 0 && (r.http == 0 || r.http >= 400)
	if i == r.n-1 && len(c.msg) == 0 && !c.err && !says {
		r.n--
	}
}

// object reads one JSON object as a layer.
func (r *report) object(obj []byte, depth int, isError bool) {
	if depth > maxDepth {
		return
	}
	i := r.open(depth > 0)
	if isError {
		r.causes[i].err = true
	}
	for k, v := range members(obj) {
		r.member(i, k, v, depth)
	}
	r.shut(i)
}

// member reads one key of a layer.
func (r *report) member(i int, k []byte, v value, depth int) {
	var buf [48]byte
	key := fold(&buf, k)
	switch string(key) {
	case "error", "errors", "innererror", "upstreamerror", "originalerror", "baseresp", "cause":
		r.errorMember(i, v, depth, string(key) == "baseresp")
	case "message", "msg", "errormessage", "errormsg", "errmsg", "statusmsg", "errordescription", "title":
		if v.kind == kindObject && isTurn(v.raw) {
			r.turn(v.raw)
			return
		}
		r.words(i, v, depth)
	case "detail", "description":
		r.words(i, v, depth)
	case "details":
		r.details(i, v, depth)
	case "type", "code", "status", "reason", "errortype", "errorcode", "statuscode", "httpcode", "httpstatus":
		r.code(i, v, string(key) == "code" || string(key) == "errorcode")
		if v.kind == kindString && string(v.raw) == "error" {
			r.failed = true
		}
	case "object":
		r.failed = r.failed || v.kind == kindString && string(v.raw) == "error"
	case "success":
		r.failed = r.failed || v.kind == kindFalse && r.http < 400
	case "metadata":
		r.metadata(v, depth)
	case "headers":
		r.hints.nestedHeaders(v.raw)
	case "response":
		if v.kind == kindObject {
			r.object(v.raw, depth+1, false)
			return
		}
		r.answered = r.answered || hasText(v)
	default:
		switch {
		case bytes.HasSuffix(key, []byte("exception")) && v.kind == kindObject: // AWS event streams
			r.failed = true
			r.object(v.raw, depth+1, true)
			r.addCode(r.n-1, k, false)
		case r.hints.member(key, v):
		default:
			r.answer(key, v, depth)
		}
	}
}

// errorMember reads the value of a key that holds errors. A code of 0 is MiniMax's success.
func (r *report) errorMember(i int, v value, depth int, zeroIsFine bool) {
	if !v.filled() || v.kind == kindTrue || v.kind == kindNumber {
		return
	}
	switch v.kind {
	case kindObject:
		if zeroIsFine {
			if n, ok := member(v.raw, "status_code").number(); ok && n == 0 {
				return
			}
		}
		r.failed = true
		r.object(v.raw, depth+1, true)
	case kindArray:
		r.failed = true
		n := 0
		for e := range elements(v.raw) {
			if n++; n > 2 {
				break
			}
			r.errorMember(i, e, depth, false)
		}
	case kindString:
		r.failed = true
		r.causes[i].err = true
		r.words(i, v, depth)
	}
}

// words reads a value that holds an error message, in any of the shapes hosts use.
func (r *report) words(i int, v value, depth int) {
	switch v.kind {
	case kindString:
		r.text(i, v.text(), depth)
	case kindObject:
		r.object(v.raw, depth+1, true)
	case kindArray: // a validator's list; what it echoes of the input is not read
		r.causes[i].err = true
		r.text(i, member(firstElement(v.raw).raw, "msg").text(), depth)
	}
}

// text takes a message for layer i. A JSON object inside it becomes a layer of its own.
func (r *report) text(i int, msg []byte, depth int) {
	msg = bytes.TrimSpace(msg)
	if len(msg) == 0 {
		return
	}
	c := &r.causes[i]
	if len(c.msg) > 0 {
		i = r.open(true)
		c = &r.causes[i]
		c.err = true
	}
	c.msg = msg
	if !bytes.ContainsAny(msg, " \n") && len(msg) < 64 && msg[0] < 0x80 {
		r.addCode(i, msg, false)
	}
	if code, ok := oauthCode(msg); ok {
		r.addCode(i, code, true)
	}
	if host := forwarder(msg); host != nil {
		r.via = host
	}
	if depth >= maxDepth {
		return
	}
	at := bytes.IndexByte(msg, '{')
	if at < 0 || at+1 >= len(msg) {
		return
	}
	inner := msg[at:]
	switch inner[1] {
	case '\\': // escaped once more than it should be
		v := value{kind: kindString, raw: inner, escaped: true}
		inner = v.text()
	case '"', '\'', '\n', '\r', ' ':
	default:
		return
	}
	before := r.n
	r.object(inner, depth+1, false)
	if r.n > before {
		c.msg = bytes.TrimSpace(msg[:at])
	}
}

// oauthCode reads the error code that Go's OAuth client prints: `oauth2: "invalid_grant" "…"`.
func oauthCode(msg []byte) ([]byte, bool) {
	_, rest, ok := bytes.Cut(msg, []byte(`oauth2: "`))
	code, _, closed := bytes.Cut(rest, []byte(`"`))
	return code, ok && closed && len(code) > 0 && len(code) < 64
}

// forwarder returns whom a router's message blames: "Error from provider (Alibaba): …",
// "Upstream error from Alibaba: …"; nil when it is no such message.
func forwarder(msg []byte) []byte {
	for _, frame := range [...][2]string{{"Error from provider (", ")"}, {"Upstream error from ", ":"}} {
		if rest, ok := bytes.CutPrefix(msg, []byte(frame[0])); ok {
			if host, _, ok := bytes.Cut(rest, []byte(frame[1])); ok && len(host) < 48 {
				return host
			}
		}
	}
	return nil
}

// code notes a machine-readable code; a three-digit one is a status as well.
func (r *report) code(i int, v value, specific bool) {
	switch v.kind {
	case kindString, kindNumber:
	default:
		return
	}
	raw := v.raw
	if len(raw) == 0 || len(raw) > 80 {
		return
	}
	c := &r.causes[i]
	if len(raw) == 3 && raw[0] >= '4' && raw[0] <= '5' && isDigit(raw[1]) && isDigit(raw[2]) {
		c.status = int(raw[0]-'0')*100 + int(raw[1]-'0')*10 + int(raw[2]-'0')
	}
	r.addCode(i, raw, specific)
}

// addCode appends a code to a layer, or puts it first.
func (r *report) addCode(i int, raw []byte, first bool) {
	c := &r.causes[i]
	if c.nCodes == len(c.codes) {
		return
	}
	if first {
		copy(c.codes[1:], c.codes[:c.nCodes])
		c.codes[0] = raw
	} else {
		c.codes[c.nCodes] = raw
	}
	c.nCodes++
}

// metadata reads what routers put beside an error: the other host's answer, and who it was.
func (r *report) metadata(v value, depth int) {
	for k, m := range members(v.raw) {
		switch string(k) {
		case "raw":
			if i := r.open(true); m.kind == kindString {
				r.causes[i].err = true
				r.text(i, m.text(), depth+1)
			} else if m.kind == kindObject {
				r.object(m.raw, depth+1, true)
			}
			r.upstream = r.upstream || m.filled()
		case "provider_name":
			r.upstream = r.upstream || m.filled()
			r.via = m.text()
		case "headers":
			r.hints.nestedHeaders(m.raw)
		case "flagged_input", "reasons":
			r.flagged = r.flagged || m.filled()
		default:
			var buf [48]byte
			r.hints.member(fold(&buf, k), m)
		}
	}
}

// details reads google.rpc details, or a plain text of that name.
func (r *report) details(i int, v value, depth int) {
	if v.kind != kindArray {
		r.words(i, v, depth)
		return
	}
	for d := range elements(v.raw) {
		for k, m := range members(d.raw) {
			switch string(k) {
			case "reason":
				r.code(i, m, true)
			case "metadata":
				r.metadata(m, depth)
			case "violations":
				r.perModel = r.perModel || bytes.Contains(m.raw, []byte("PerModel")) || bytes.Contains(m.raw, []byte(`"model"`))
			default:
				var buf [48]byte
				r.hints.member(fold(&buf, k), m)
			}
		}
	}
}

// fold writes the letters and digits of a key or code in lower case, so that "rate_limit_exceeded",
// "RateLimitExceeded" and "rate-limit-exceeded" are one. What does not fit is cut.
func fold(buf *[48]byte, k []byte) []byte {
	n := 0
	for _, c := range k {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if n < len(buf) && (c >= 'a' && c <= 'z' || isDigit(c)) {
			buf[n] = c
			n++
		}
	}
	return buf[:n]
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
