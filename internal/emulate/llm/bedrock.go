package llm

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream/eventstreamapi"
)

// bedrockProtocol is Amazon Bedrock's invoke-with-response-stream for Anthropic's models: the
// Messages API with the model in the path, the version in the body, and an AWS event stream as the
// answer. Who signs is known by the access key id; whether the signature is right is not checked.
//
// A Fault.Error with a "__type" is an exception of that name; any other is an event of the model.
func bedrockProtocol() *protocol {
	return &protocol{
		suffix: "/invoke-with-response-stream", stream: "application/vnd.amazon.eventstream",
		key: bedrockKey, parse: parseBedrock, refuse: refuseBedrock, mark: markBedrock,
		frames: bedrockFrames, whole: anthropicWhole, errorFrame: bedrockError,
		ping: bedrockChunk([]byte(`{"type":"ping"}`)),
	}
}

const signature4 = "AWS4-HMAC-SHA256"

// signed is what a complete SigV4 header looks like; group 1 is the access key id.
var signed = regexp.MustCompile(`^` + signature4 + ` Credential=([A-Z0-9a-z_-]+)/\d{8}/[a-z0-9-]+/bedrock/aws4_request, SignedHeaders=([a-z0-9;-]+), Signature=[0-9a-f]{64}$`)

func bedrockKey(h http.Header) string {
	if m := signed.FindStringSubmatch(h.Get("Authorization")); m != nil {
		return m[1]
	}
	return bearer(h)
}

// checkSignature says what is missing of a signature; nil = nothing, or the request has none.
func checkSignature(h http.Header) *refusal {
	given := h.Get("Authorization")
	if !strings.HasPrefix(given, signature4) {
		return nil
	}
	m := signed.FindStringSubmatch(given)
	if m == nil || h.Get("X-Amz-Date") == "" || !strings.Contains(";"+m[2]+";", ";host;") || !strings.Contains(";"+m[2]+";", ";x-amz-date;") {
		return &refusal{status: http.StatusForbidden, code: "IncompleteSignatureException", message: "Authorization header requires a complete signature."}
	}
	return nil
}

func parseBedrock(s *Server, r *Request) (*call, *refusal) {
	path := strings.TrimSuffix(r.Path, "/invoke-with-response-stream")
	at := strings.Index(path, "/model/")
	var fields map[string]json.RawMessage
	if at < 0 || json.Unmarshal(r.Body, &fields) != nil {
		return nil, badRequest("", "Malformed input request, please reformat your input and try again.")
	}
	model := path[at+len("/model/"):]
	version := string(fields["anthropic_version"])
	misplaced := fields["model"] != nil || fields["stream"] != nil
	delete(fields, "anthropic_version")
	plain := *r
	plain.Body = mustJSON(fields)
	c, bad := parseAnthropic(s, &plain)
	if c == nil {
		return nil, bad
	}
	r.Model, r.Stream, r.LastUser = model, true, plain.LastUser
	c.Request = r
	switch {
	case misplaced:
		return c, badRequest("", "Malformed input request: #: extraneous key [model] is not permitted, please reformat your input and try again.")
	case version != `"bedrock-2023-05-31"`:
		return c, badRequest("anthropic_version", "Field required")
	}
	if bad := checkSignature(http.Header(r.Header)); bad != nil {
		return c, bad
	}
	var q anthropicRequest
	if json.Unmarshal(plain.Body, &q) != nil {
		return c, badRequest("", "Malformed input request, please reformat your input and try again.")
	}
	q.Model, plain.Model = model, model
	plain.Header = map[string][]string(http.Header(r.Header).Clone())
	plain.Header["Anthropic-Version"] = []string{"2023-06-01"}
	return c, checkAnthropic(s, &plain, q)
}

// bedrockException is the name of a refusal.
func bedrockException(r *refusal) string {
	switch {
	case strings.HasSuffix(r.code, "Exception"):
		return r.code
	case r.status == http.StatusUnauthorized:
		return "UnrecognizedClientException"
	case r.status == http.StatusForbidden:
		return "AccessDeniedException"
	case r.status == http.StatusNotFound:
		return "ResourceNotFoundException"
	case r.status == http.StatusRequestTimeout:
		return "ModelTimeoutException"
	case r.status == http.StatusFailedDependency:
		return "ModelErrorException"
	case r.status == http.StatusTooManyRequests:
		return "ThrottlingException"
	case r.status == http.StatusServiceUnavailable, r.status == 529:
		return "ServiceUnavailableException"
	case r.status >= http.StatusInternalServerError:
		return "InternalServerException"
	}
	return "ValidationException"
}

func markBedrock(h http.Header, r *refusal) {
	h.Set("X-Amzn-Errortype", bedrockException(r)+":http://internal.amazon.com/coral/com.amazon.bedrock/")
	h.Set("X-Amzn-Requestid", "00000000-0000-0000-0000-000000000000")
}

func refuseBedrock(r *refusal) []byte {
	message := r.message
	if r.param != "" {
		message = r.param + ": " + message
	}
	return mustJSON(obj{"message": message})
}

// bedrockFrames wraps the events of the Messages API.
func bedrockFrames(c *call, rep Reply) []frame {
	frames := anthropicFrames(c, rep)
	for i, f := range frames {
		_, data, _ := strings.Cut(f.text, "data: ")
		frames[i].text = bedrockChunk([]byte(strings.TrimSpace(data)))
	}
	return frames
}

func bedrockChunk(event []byte) string {
	return eventMessage(mustJSON(obj{"bytes": event, "p": "abcdefghijklm"}),
		eventstreamapi.MessageTypeHeader, eventstreamapi.EventMessageType,
		eventstreamapi.EventTypeHeader, "chunk",
		eventstreamapi.ContentTypeHeader, "application/json")
}

// bedrockError is an error inside a stream.
func bedrockError(body string) string {
	var fields map[string]any
	if json.Unmarshal([]byte(body), &fields) != nil {
		fields = obj{"__type": "internalServerException", "message": body}
	}
	kind, ok := fields["__type"].(string)
	if !ok {
		return bedrockChunk([]byte(body))
	}
	delete(fields, "__type")
	return eventMessage(mustJSON(fields),
		eventstreamapi.MessageTypeHeader, eventstreamapi.ExceptionMessageType,
		eventstreamapi.ExceptionTypeHeader, kind,
		eventstreamapi.ContentTypeHeader, "application/json")
}

// eventMessage frames a payload; headers are names and values by turns.
func eventMessage(payload []byte, headers ...string) string {
	m := eventstream.Message{Payload: payload}
	for i := 0; i+1 < len(headers); i += 2 {
		m.Headers.Set(headers[i], eventstream.StringValue(headers[i+1]))
	}
	var b bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&b, m); err != nil {
		panic("emulator: " + err.Error())
	}
	return b.String()
}
