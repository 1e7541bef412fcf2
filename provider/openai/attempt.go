package openai

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"understudy/llm"
	"understudy/provider"
)

// maxWhole bounds a body that is not streamed, and the text of one that is.
const maxWhole = 16 << 20

// decoder turns the body of one API's success response into events. It is used once.
type decoder interface {
	// event digests one event of a stream.
	event(data []byte) step
	// whole digests a body that is one JSON document.
	whole(data []byte) step
	// end is asked when the stream ended in order, or broke after its terminal event: the rest of
	// the answer, or a step that is neither done nor failed when the answer is not complete.
	end() step
	// complete reports whether the terminal event was there.
	complete() bool
}

// step is what one event meant.
type step struct {
	events []llm.Event
	done   *llm.Done
	fail   *provider.Evidence // Event or Message only
}

// attempt carries one response to its consumer.
type attempt struct {
	ctx   context.Context // of the attempt; lives no longer than Stream
	spec  provider.Spec
	rec   *provider.Recorder
	dec   decoder
	yield func(llm.Event, error) bool

	began bool // an event of the answer arrived
	spoke bool // text or a call was yielded
	size  int  // bytes of the text so far
}

// fail ends the sequence with the classified error.
func (a *attempt) fail(ev provider.Evidence) {
	ev.Exchange, ev.Began = a.rec.Exchange(), a.began
	a.yield(llm.Event{}, a.spec.Fail(a.ctx, ev))
}

// read reads the response to its end, closes it, and yields what it holds.
func (a *attempt) read(res *http.Response) {
	defer res.Body.Close()
	if res.StatusCode >= http.StatusMultipleChoices {
		_ = provider.ReadError(res) // what could be read decides
		a.fail(provider.Evidence{})
		return
	}
	body := bufio.NewReader(res.Body)
	first, err := sniff(body)
	switch {
	case errors.Is(err, io.EOF):
		a.fail(provider.Evidence{})
	case err != nil:
		a.fail(provider.Evidence{Err: err})
	case first == '{' || first == '[' || first == '<':
		a.document(body, first)
	default:
		a.stream(body)
	}
}

// sniff skips white space, which some hosts send while they wait, and returns the first byte of
// the body. It decides what the body is: content types lie.
func sniff(r *bufio.Reader) (byte, error) {
	for {
		b, err := r.Peek(1)
		if err != nil {
			return 0, err
		}
		switch b[0] {
		case ' ', '\t', '\r', '\n':
			_, _ = r.Discard(1)
		default:
			return b[0], nil
		}
	}
}

// document reads a body that is no stream: a whole answer, an error, a web page.
func (a *attempt) document(r io.Reader, first byte) {
	data, err := io.ReadAll(io.LimitReader(r, maxWhole+1))
	switch {
	case err != nil:
		a.fail(provider.Evidence{Err: err})
	case len(data) > maxWhole:
		a.fail(provider.Evidence{Err: errTooLong})
	case first == '<':
		a.fail(provider.Evidence{})
	case cutOff(data):
		a.fail(provider.Evidence{Err: errBrokenEvent})
	default:
		st := a.dec.whole(data)
		if st.fail == nil && st.done == nil {
			st.fail = &provider.Evidence{Event: clip(data)}
		}
		a.take(st)
	}
}

// cutOff reports whether data is the beginning of a JSON document.
func cutOff(data []byte) bool {
	var v json.RawMessage
	return errors.Is(json.NewDecoder(bytes.NewReader(data)).Decode(&v), io.ErrUnexpectedEOF)
}

var errTooLong = fmt.Errorf("the response is longer than %d MB", maxWhole>>20)

// maxEvidence is how much of an in-stream error is classified.
const maxEvidence = 64 << 10

func clip(b []byte) []byte {
	return bytes.Clone(b[:min(len(b), maxEvidence)])
}

// stream reads events until the answer is complete, fails, or the consumer leaves.
func (a *attempt) stream(r *bufio.Reader) {
	events := newEventReader(r)
	for {
		data, err := events.next()
		if err != nil {
			a.streamEnded(err)
			return
		}
		data = bytes.TrimSpace(data)
		if bytes.Equal(data, []byte("[DONE]")) {
			a.finish(a.dec.end())
			return
		}
		st := a.dec.event(data)
		a.began = a.began || (st.fail == nil && data[0] == '{')
		if !a.take(st) {
			return
		}
	}
}

// streamEnded judges the end of the body. A break behind the terminal event does no harm, unless
// a person stopped the turn.
func (a *attempt) streamEnded(err error) {
	switch {
	case a.dec.complete() && !stopped(a.ctx):
		a.finish(a.dec.end())
	case errors.Is(err, io.EOF) && a.ctx.Err() == nil:
		a.fail(provider.Evidence{}) // clean, but early
	default:
		a.fail(provider.Evidence{Err: err})
	}
}

func stopped(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, context.Canceled) || errors.Is(cause, llm.ErrStopped) ||
		errors.Is(cause, llm.ErrInterrupted) || errors.Is(cause, llm.ErrShutdown)
}

// finish yields the last step, which must be done or failed.
func (a *attempt) finish(st step) {
	if st.done == nil && st.fail == nil {
		st.fail = &provider.Evidence{}
	}
	a.take(st)
}

// take yields a step and reports whether to go on.
func (a *attempt) take(st step) bool {
	for _, ev := range st.events {
		a.spoke = a.spoke || ev.Text != "" || ev.ToolCall != nil
		a.size += len(ev.Text)
		if r := ev.Reasoning; r != nil {
			a.size += len(r.Text) + len(r.Opaque)
		}
		if a.size > maxWhole { // a broken host may never end
			a.fail(provider.Evidence{Err: errTooLong})
			return false
		}
		if !a.yield(ev, nil) {
			return false
		}
	}
	switch {
	case st.fail != nil:
		a.fail(*st.fail)
		return false
	case st.done != nil && !a.spoke:
		a.empty()
		return false
	case st.done != nil:
		a.yield(llm.Event{Done: st.done}, nil)
		return false
	}
	return true
}

// empty ends a success that says nothing (spec/failover.md §6, empty_response).
func (a *attempt) empty() {
	a.yield(llm.Event{}, &llm.Error{
		Failure: llm.Failure{Reason: llm.ReasonEmptyResponse, Status: a.rec.Exchange().Status, Rule: "provider-empty"},
		Err:     errEmpty,
	})
}

var errEmpty = errors.New("the answer holds neither text nor a tool call")
