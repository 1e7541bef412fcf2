package llm

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// protocol is one wire format.
type protocol struct {
	// suffix ends the path of its requests: "/chat/completions".
	suffix string
	// stream is the content type of a stream; "" = server-sent events.
	stream string
	// key reads the credential.
	key func(http.Header) string
	// parse validates r.Body, fills r.Model, r.Stream and r.LastUser, and returns the call; or says
	// why the API would refuse it (the call may then be nil).
	parse func(s *Server, r *Request) (*call, *refusal)
	// refuse is the body of an error response.
	refuse func(r *refusal) []byte
	// mark adds the headers of an error response; nil = none.
	mark func(h http.Header, r *refusal)
	// frames is a streamed reply, ready to be sent.
	frames func(c *call, rep Reply) []frame
	// whole is the JSON of a reply that is not streamed.
	whole func(c *call, rep Reply) []byte
	// errorFrame wraps the JSON of an error into the stream's form.
	errorFrame func(body string) string
	// ping is what keeps a silent stream open.
	ping string
}

// call is a parsed request.
type call struct {
	*Request
	id     int // unique, for the ids in the reply
	system string
	wants  wants
}

// wants are the wishes of a request that shape its reply.
type wants struct {
	usage bool // stream_options.include_usage
}

// frame is one piece of a stream.
type frame struct {
	text     string
	content  bool // carries a part of the answer
	terminal bool // belongs to the end of a complete stream
}

// refusal is an error response.
type refusal struct {
	status              int
	kind, code, message string
	param               string
}

// protocols returns what a Server speaks.
func protocols() []*protocol {
	return []*protocol{chatProtocol(), responsesProtocol(), anthropicProtocol(), bedrockProtocol()}
}

func protocolFor(path string) *protocol {
	for _, p := range protocols() {
		if p != nil && strings.HasSuffix(path, p.suffix) {
			return p
		}
	}
	return nil
}

func (p *protocol) reject(w http.ResponseWriter, r *refusal) {
	w.Header().Set("Content-Type", "application/json")
	p.annotate(w.Header(), r)
	w.WriteHeader(r.status)
	_, _ = w.Write(p.refuse(r))
}

func (p *protocol) annotate(h http.Header, r *refusal) {
	if p.mark != nil {
		p.mark(h, r)
	}
}

// sse formats an event.
func sse(event string, data []byte) string {
	var b strings.Builder
	if event != "" {
		b.WriteString("event: " + event + "\n")
	}
	b.WriteString("data: ")
	b.Write(data)
	b.WriteString("\n\n")
	return b.String()
}

// mustJSON encodes what the emulator itself made.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("emulator: " + err.Error())
	}
	return b
}

// bearer reads "Authorization: Bearer <key>".
func bearer(h http.Header) string {
	scheme, key, ok := strings.Cut(h.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(key)
}

func itoa(n int) string { return strconv.Itoa(n) }

// reasonFor is the error type that APIs use for a status.
func reasonFor(status int) (kind, message string) {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error", "Invalid authentication."
	case http.StatusPaymentRequired:
		return "billing_error", "Insufficient credits."
	case http.StatusForbidden:
		return "permission_error", "Permission denied."
	case http.StatusNotFound:
		return "not_found_error", "Not found."
	case http.StatusTooManyRequests:
		return "rate_limit_error", "Rate limit reached. Please slow down."
	case 529:
		return "overloaded_error", "Overloaded"
	}
	if status >= http.StatusInternalServerError {
		return "server_error", "The server had an error while processing your request."
	}
	return "invalid_request_error", "Bad request."
}
