package classify

import (
	"time"

	"understudy/llm"
)

// The kinds of model APIs, as Input.API and `bot classify` name them.
const (
	APIOpenAIChat        = "openai-chat"
	APIOpenAIResponses   = "openai-responses"
	APIAnthropicMessages = "anthropic-messages"
	APIGemini            = "gemini"
	APIBedrock           = "bedrock"
	APIOllama            = "ollama"
	APITransport         = "transport" // no HTTP response: only Message and Transport
)

// The positions of a failure in a stream.
const (
	PositionFirst = "first" // before any content
	PositionMid   = "mid"   // behind some
)

// Input is one failed, or seemingly successful, response.
type Input struct {
	Provider string            // provider id as configured
	API      string            // one of the API constants; "" = unknown
	Status   int               // HTTP status; 0 = no response
	Header   map[string]string // names in lower case
	// Body is the response body as sent, or the JSON of one in-stream event (then with the stream's
	// Status and Position).
	Body     []byte
	Stream   bool   // a stream was asked for
	Position string // PositionFirst or PositionMid; "" = not a stream
	// Transport is what broke below HTTP; TransportNone and TransportOther leave it to Message.
	Transport llm.Transport
	Message   string    // text of an error without HTTP
	ErrorType string    // what the error was in Go, kept as Failure.Code; TransportOf maps it
	Now       time.Time // the present, for relative resets and for what is absurd; zero = unknown
}

// Classify returns why the response failed; failed is false when it did not, that is when a
// successful response carries text or a tool call. It never fails itself: what no rule knows is
// llm.ReasonUnclassified (spec/failover.md §6).
func Classify(in Input) (f llm.Failure, failed bool) {
	if v, notSent, ok := transportVerdict(in.Transport); ok {
		v.notSent = notSent
		return v.failure(in.Status, in.ErrorType, redact([]byte(in.Message))), true
	}
	r := report{http: in.Status}
	r.body(in.Body)
	if len(in.Body) == 0 && in.Message != "" {
		r.plain([]byte(in.Message))
		if r.http < 400 && r.n > 0 {
			r.causes[0].status = statusIn([]byte(in.Message))
		}
	}
	j := judge{report: &r, in: &in, fam: familyOf(in.Provider, in.API)}
	v, c := j.verdict()
	if v.reason == "" {
		return llm.Failure{}, false
	}
	return j.conclude(v, c), true
}

// failure fills the plain fields.
func (v verdict) failure(status int, code, message string) llm.Failure {
	return llm.Failure{
		Reason: v.reason, Detail: v.detail, Scope: v.scope, Status: status, Code: code, Message: message,
		NotSent: v.notSent, Rule: v.rule,
	}
}
