package llm

import (
	"strings"
	"time"
)

// Match picks requests. Empty fields match everything. After and Times count the requests that fit
// the other fields and that no earlier entry of the same list took.
type Match struct {
	Host     string // as the client named it, without port
	Model    string
	Key      string // the bare API key or token
	Contains string // text of the last user message
	After    int    // so many fitting requests pass first
	Times    int    // then so many are taken; 0 = all
}

// Fault makes requests fail. Without any effect set it only delays (Latency) and the reply follows.
type Fault struct {
	Match

	Latency time.Duration // before the first byte

	// Status answers with an HTTP error. Body is sent as it is; empty = the API's usual error body
	// for the status. ContentType defaults to application/json.
	Status      int
	Body        string
	ContentType string
	Header      map[string]string
	RetryAfter  time.Duration // a retry-after header, in seconds, rounded up

	// Raw sends Body as it is, even if it is empty.
	Raw bool

	// Say is text that a stream brings before the rest of the fault happens; it begins the stream.
	Say string
	// Error is the JSON of an error that arrives inside the stream.
	Error string
	// Cut ends the stream cleanly without its terminal event.
	Cut bool
	// Reset tears the connection down: at once, or after Say.
	Reset bool
	// Hang sends nothing more until the client goes away: no response at all, or after Say.
	Hang bool
	// PingEvery makes a hanging stream send comments, which are no content.
	PingEvery time.Duration
	// Empty completes the answer without content.
	Empty bool
}

// breaks reports whether the fault happens inside a stream that began.
func (f Fault) breaks() bool {
	return f.Say != "" || f.Error != "" || f.Cut || (f.Hang && f.PingEvery > 0)
}

// Reply is how a model answers.
type Reply struct {
	Match

	Text      string
	Echo      bool   // answer with the last user message instead of Text
	Reasoning string // thought before the answer
	ToolCalls []ToolCall
	// Finish overrides the finish reason: "stop", "length", "tool_calls", "content_filter", "error",
	// in OpenAI's words, or whatever the client is to be surprised with.
	Finish string
	// Served is the model id that the response names; "" = the requested one.
	Served string

	Latency    time.Duration // before the first byte
	ChunkDelay time.Duration // before every further piece
	ChunkSize  int           // bytes of text in a piece, at least; 0 = 12
	// AsJSON answers a request for a stream with one JSON body, as some hosts do.
	AsJSON bool

	InputTokens, OutputTokens, CachedTokens int // 0 = counted roughly
}

// ToolCall is a call that a Reply makes.
type ToolCall struct {
	ID        string // "" = one in the API's usual form
	Name      string
	Arguments string // a JSON object; "" = {}
}

// Request is one entry of the log.
type Request struct {
	At     time.Time
	Host   string
	Path   string
	Model  string
	Key    string
	Header map[string][]string
	Body   []byte
	Stream bool
	// LastUser is the text of the last user message.
	LastUser string
}

// counter applies After and Times of a Match.
type counter struct{ seen int }

// takes reports whether the entry with this counter takes r.
func (c *counter) takes(m Match, r *Request) bool {
	if !m.fits(r) {
		return false
	}
	c.seen++
	return c.seen > m.After && (m.Times <= 0 || c.seen <= m.After+m.Times)
}

func (m Match) fits(r *Request) bool {
	return (m.Host == "" || strings.EqualFold(m.Host, r.Host)) &&
		(m.Model == "" || m.Model == r.Model) &&
		(m.Key == "" || m.Key == r.Key) &&
		(m.Contains == "" || strings.Contains(r.LastUser, m.Contains))
}

// pieces cuts text into pieces of at least size bytes, never inside a character.
func pieces(text string, size int) []string {
	if size <= 0 {
		size = 12
	}
	var out []string
	start := 0
	for i := range text {
		if i-start >= size {
			out = append(out, text[start:i])
			start = i
		}
	}
	if start < len(text) {
		out = append(out, text[start:])
	}
	return out
}

// tokens is a rough count, good enough for bills in tests.
func tokens(text string) int { return len(text)/4 + 1 }
