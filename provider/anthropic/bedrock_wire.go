package anthropic

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream/eventstreamapi"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"understudy/internal/secret"
	"understudy/llm"
	"understudy/provider"
)

// bedrockWire is the http.RoundTripper of one attempt at Bedrock. It says who asks, and turns the
// answer's event stream into the server-sent events of the Messages API.
type bedrockWire struct {
	base    http.RoundTripper
	prefix  string // escaped path of the base URL
	headers map[string]secret.String
	region  string
	bearer  secret.String
	keys    *aws.Credentials // to sign with, where there is no bearer; nil = the request says nobody
	now     func() time.Time
}

// RoundTrip implements http.RoundTripper.
func (w *bedrockWire) RoundTrip(r *http.Request) (*http.Response, error) {
	out := r.Clone(r.Context())
	if err := w.authorize(out); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	res, err := w.base.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if res.StatusCode < http.StatusMultipleChoices && kind == "application/vnd.amazon.eventstream" {
		res.Header.Set("Content-Type", "text/event-stream")
		res.Header.Del("Content-Length")
		res.ContentLength = -1
		res.Body = &unwrapped{body: res.Body, decoder: eventstream.NewDecoder()}
	}
	return res, nil
}

// authorize completes the request. Nothing may change it afterwards: a signature covers it whole.
func (w *bedrockWire) authorize(r *http.Request) error {
	if w.prefix != "" {
		u, err := r.URL.Parse(w.prefix + r.URL.EscapedPath())
		if err != nil {
			return fmt.Errorf("building the path: %w", err)
		}
		r.URL = u
	}
	r.Header.Del("Authorization")
	for name, value := range w.headers {
		r.Header.Set(name, value.Reveal())
	}
	switch {
	case !w.bearer.IsZero():
		r.Header.Set("Authorization", "Bearer "+w.bearer.Reveal())
	case w.keys != nil:
		return w.sign(r)
	}
	return nil
}

// sign signs the request with SigV4.
func (w *bedrockWire) sign(r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil {
		return fmt.Errorf("reading the request to sign it: %w", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.ContentLength = int64(len(body))
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(r.Context(), *w.keys, r, hex.EncodeToString(sum[:]), "bedrock", w.region, w.now()); err != nil {
		return fmt.Errorf("signing the request: %w", err)
	}
	return nil
}

// unwrapped reads an AWS event stream as server-sent events. An exception in it becomes the
// Messages API's event "error", with the exception's name as the type of the error.
type unwrapped struct {
	body    io.ReadCloser
	decoder *eventstream.Decoder
	events  bytes.Buffer
	err     error
}

// Read implements io.Reader.
func (u *unwrapped) Read(p []byte) (int, error) {
	for u.events.Len() == 0 {
		if u.err != nil {
			return 0, u.err
		}
		m, err := u.next()
		if err == nil {
			err = u.unwrap(m)
		}
		u.err = err
	}
	return u.events.Read(p)
}

// next reads a message. The decoder panics on a header of an unknown type, before it has compared
// the checksum; that is a damaged stream like any other.
func (u *unwrapped) next() (m eventstream.Message, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = damaged(fmt.Errorf("%v", p))
		}
	}()
	m, err = u.decoder.Decode(u.body, nil)
	if err != nil && provider.TransportOf(err) == llm.TransportOther {
		err = damaged(err)
	}
	return m, err
}

// Close implements io.Closer.
func (u *unwrapped) Close() error { return u.body.Close() }

func damaged(err error) error {
	return fmt.Errorf("the event stream is damaged: %w: %w", err, io.ErrUnexpectedEOF)
}

// unwrap writes the event that m carries, if it carries one.
func (u *unwrapped) unwrap(m eventstream.Message) error {
	header := func(name string) string {
		if v := m.Headers.Get(name); v != nil {
			return v.String()
		}
		return ""
	}
	switch header(eventstreamapi.MessageTypeHeader) {
	case eventstreamapi.EventMessageType:
		if header(eventstreamapi.EventTypeHeader) != "chunk" {
			return nil
		}
		var chunk struct {
			Bytes []byte `json:"bytes"`
		}
		if err := json.Unmarshal(m.Payload, &chunk); err != nil {
			return damaged(err)
		}
		return u.write(chunk.Bytes)
	case eventstreamapi.ExceptionMessageType:
		return u.fail(header(eventstreamapi.ExceptionTypeHeader), m.Payload)
	case eventstreamapi.ErrorMessageType:
		text, err := json.Marshal(map[string]string{"message": header(eventstreamapi.ErrorMessageHeader)})
		if err != nil {
			return damaged(err)
		}
		return u.fail(header(eventstreamapi.ErrorCodeHeader), text)
	}
	return nil
}

// fail writes an exception as an error event. A payload that is no object is its message.
func (u *unwrapped) fail(kind string, payload []byte) error {
	var said struct {
		Message         string `json:"message"`
		OriginalMessage string `json:"originalMessage"` // of the model behind modelStreamErrorException
	}
	if json.Unmarshal(payload, &said) != nil {
		said.Message = string(bytes.ToValidUTF8(payload, nil))
	}
	if said.OriginalMessage != "" {
		said.Message += " " + said.OriginalMessage
	}
	data, err := json.Marshal(map[string]any{"type": "error", "error": map[string]string{"type": kind, "message": said.Message}})
	if err != nil {
		return damaged(err)
	}
	return u.write(data)
}

// write writes one event, on one line.
func (u *unwrapped) write(data []byte) error {
	var line bytes.Buffer
	if err := json.Compact(&line, data); err != nil {
		return damaged(err)
	}
	u.events.WriteString("data: ")
	u.events.Write(line.Bytes())
	u.events.WriteString("\n\n")
	return nil
}
