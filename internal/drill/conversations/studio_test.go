package conversations

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
)

// studio is a service that speaks and listens. A sound it makes holds its words. Nothing works at the
// host broken.test, and nowhere while the studio is closed.
type studio struct{ closed atomic.Bool }

// The beginnings of sounds, as far as anybody looks at them.
var sounds = map[string]string{
	"mp3":  "ID3" + strings.Repeat("\x00", 61),
	"opus": "OggS" + strings.Repeat("\x00", 24) + "OpusHead" + strings.Repeat("\x00", 28),
}

const said = "it says: "

// RoundTrip implements http.RoundTripper.
func (s *studio) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	status, kind, text := http.StatusOK, "application/json", `{"text": "what time is it"}`
	if s.closed.Load() || r.URL.Host == "broken.test" {
		status, text = http.StatusServiceUnavailable, `{"error": {"message": "closed"}}`
	} else if strings.HasSuffix(r.URL.Path, "/speech") {
		var q struct {
			Input  string `json:"input"`
			Format string `json:"response_format"`
		}
		if err := json.Unmarshal(body, &q); err != nil {
			return nil, err
		}
		kind, text = "application/octet-stream", sounds[q.Format]+said+q.Input
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)),
	}, nil
}

// describe names a file, and what a sound of the studio says.
func describe(name string, data []byte) string {
	if _, words, ok := bytes.Cut(data, []byte(said)); ok {
		return fmt.Sprintf("%s that says %q", name, words)
	}
	return fmt.Sprintf("%s, %d bytes", name, len(data))
}
