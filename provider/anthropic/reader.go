package anthropic

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"

	"understudy/llm"
	"understudy/provider"
)

// maxMessage bounds a whole answer.
const maxMessage = 16 << 20

var (
	errBadCall   = errors.New("a tool call without name, id or a JSON object of arguments")
	errNotJSON   = fmt.Errorf("an event of the stream is not JSON: %w", io.ErrUnexpectedEOF)
	errOversized = errors.New("the answer is larger than 16 MB")
)

// reader turns the response of one attempt into events, or into its failure.
type reader struct {
	client *Client
	rec    *provider.Recorder
	answer *answer
	yield  func(llm.Event, error) bool
	size   int // of the events so far
}

// read reads res to its end: one answer, or one failure.
func (r *reader) read(ctx context.Context, res *http.Response) {
	if res.StatusCode >= http.StatusMultipleChoices {
		err := provider.ReadError(res)
		r.fail(ctx, provider.Evidence{Err: err})
		return
	}
	body := bufio.NewReader(res.Body)
	if isDocument(res, body) {
		r.document(ctx, body)
		return
	}
	decoder := ssestream.NewDecoder(&http.Response{
		StatusCode: res.StatusCode,
		Header:     res.Header,
		Body: struct {
			io.Reader
			io.Closer
		}{body, res.Body},
	})
	for decoder.Next() {
		e := decoder.Event()
		if more := r.event(ctx, e.Type, bytes.TrimSpace(e.Data)); !more {
			return
		}
	}
	r.fail(ctx, provider.Evidence{Err: decoder.Err()})
}

// isDocument reports whether the host answered a stream request with one JSON document. What it
// calls its content is believed only where the first byte does not say otherwise.
func isDocument(res *http.Response, body *bufio.Reader) bool {
	first, err := body.Peek(1)
	if err != nil {
		return false
	}
	return first[0] == '{' || first[0] == '[' && strings.Contains(res.Header.Get("Content-Type"), "json")
}

// event handles one event of the stream and reports whether more may follow.
func (r *reader) event(ctx context.Context, name string, data []byte) bool {
	if len(data) == 0 || string(data) == "[DONE]" {
		return true
	}
	if r.size += len(data); r.size > maxMessage {
		r.fail(ctx, provider.Evidence{Err: errOversized})
		return false
	}
	var e event
	if decode(data, &e) != nil {
		r.fail(ctx, provider.Evidence{Err: errNotJSON})
		return false
	}
	if e.Type == "" {
		e.Type = name
	}
	if e.Type == "error" || e.Type == "" && len(e.Error) > 0 && string(e.Error) != "null" {
		r.fail(ctx, provider.Evidence{Event: data})
		return false
	}
	if !r.emit(r.answer.take(e)) {
		return false
	}
	if e.Type == "message_delta" && e.Delta.StopReason == "refusal" {
		r.fail(ctx, provider.Evidence{Event: data})
		return false
	}
	if e.Type == "message_stop" {
		r.finish(ctx)
		return false
	}
	return true
}

// document reads an answer that came in one piece.
func (r *reader) document(ctx context.Context, body io.Reader) {
	data, err := io.ReadAll(io.LimitReader(body, maxMessage+1))
	if err == nil && len(data) > maxMessage {
		err = errOversized
	}
	if err != nil {
		r.fail(ctx, provider.Evidence{Err: err})
		return
	}
	var m struct {
		Type string `json:"type"`
		message
	}
	if decode(data, &m) != nil || m.Type != "message" || m.StopReason == "refusal" {
		r.fail(ctx, provider.Evidence{Event: data})
		return
	}
	r.answer.count(m.Usage)
	r.answer.stop = m.StopReason
	for i, raw := range m.Content {
		if !r.emit(append(r.answer.start(i, raw), r.answer.end(i)...)) {
			return
		}
	}
	r.finish(ctx)
}

// finish ends a complete answer. One without text and calls is a failure, and so is one whose stop
// reason says so.
func (r *reader) finish(ctx context.Context) {
	if err := r.answer.finish(); err != nil {
		r.fail(ctx, provider.Evidence{Err: err})
		return
	}
	switch stop := r.answer.stop; {
	case failed(stop):
		r.fail(ctx, provider.Evidence{Message: "Provider finish_reason: " + stop[:min(len(stop), 64)]})
	case r.answer.spoken || r.answer.calls():
		if r.emit(r.answer.held) {
			r.yield(r.answer.done(), nil)
		}
	case stop == "model_context_window_exceeded":
		r.fail(ctx, provider.Evidence{Message: "context length exceeded: the prompt fills the context window"})
	default:
		r.empty(ctx)
	}
}

// failed reports whether a stop reason, of a host that invents its own, says that the answer is
// none.
func failed(stop string) bool {
	stop = strings.ToLower(stop)
	for _, word := range []string{"error", "abort", "cancel", "fail", "malformed", "filter", "safety", "sensitive", "prohibited"} {
		if strings.Contains(stop, word) {
			return true
		}
	}
	return false
}

func (r *reader) emit(events []llm.Event) bool {
	for _, e := range events {
		if !r.yield(e, nil) {
			return false
		}
	}
	return true
}

// empty reports an answer that is complete and holds nothing.
func (r *reader) empty(ctx context.Context) {
	r.yield(llm.Event{}, r.client.spec.Fail(ctx, provider.Evidence{Exchange: r.rec.Exchange()}))
}

// fail reports the failure of the attempt.
func (r *reader) fail(ctx context.Context, ev provider.Evidence) {
	ev.Exchange = r.rec.Exchange()
	ev.Began = r.answer.began
	r.yield(llm.Event{}, r.client.spec.Fail(ctx, ev))
}
