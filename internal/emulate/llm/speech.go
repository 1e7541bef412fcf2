package llm

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Audio serves OpenAI's audio endpoints, /audio/speech and /audio/transcriptions, beside everything that
// the Server in it serves, with the same faults, replies, keys and log. In the log LastUser is the text
// that is to be spoken, or the name of the file to be written down. Sound is a real header in the format
// that was asked for and then nothing to be heard; a transcript is the reply's text.
type Audio struct{ *Server }

// NewAudio returns a server of both. It must be made before s hands out its first Transport.
func NewAudio(s *Server) Audio {
	a := Audio{s}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wire == nil {
		s.wire = newWire(a)
	}
	return a
}

// ServeHTTP implements http.Handler.
func (a Audio) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var p *protocol
	switch {
	case strings.HasSuffix(r.URL.Path, "/audio/speech"):
		p = speechProtocol()
	case strings.HasSuffix(r.URL.Path, "/audio/transcriptions"):
		p = transcriptionProtocol(r.Header.Get("Content-Type"))
	}
	if p == nil || r.Method != http.MethodPost {
		a.Server.ServeHTTP(w, r)
		return
	}
	a.begin(1)
	defer a.begin(-1)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		p.reject(w, &refusal{status: http.StatusRequestEntityTooLarge, kind: "invalid_request_error", message: "request body too large"})
		return
	}
	req := &Request{At: time.Now(), Host: hostOnly(r.Host), Path: r.URL.Path, Key: p.key(r.Header), Header: map[string][]string(r.Header.Clone()), Body: body}
	c, bad := p.parse(a.Server, req)
	if c == nil {
		c = &call{Request: req}
	}
	fault, reply := a.take(req, bad == nil)
	if !a.wait(r, fault.Latency) || a.fail(w, r, p, c, fault) {
		return
	}
	if refused := a.admit(req); refused != nil {
		bad = refused
	}
	if bad != nil {
		p.reject(w, bad)
		return
	}
	a.answer(w, r, p, c, fault, reply)
}

// spoken are the formats of /audio/speech with their media types.
var spoken = map[string]string{
	"mp3": "audio/mpeg", "opus": "audio/ogg", "aac": "audio/aac", "flac": "audio/flac", "wav": "audio/wav", "pcm": "audio/pcm",
}

type speechRequest struct {
	Model          string   `json:"model"`
	Input          string   `json:"input"`
	Voice          string   `json:"voice"`
	Instructions   string   `json:"instructions"`
	ResponseFormat string   `json:"response_format"`
	StreamFormat   string   `json:"stream_format"`
	Speed          *float64 `json:"speed"`
}

// speechProtocol is POST /audio/speech. Its sound arrives in pieces, as the real one's does.
func speechProtocol() *protocol {
	p := &protocol{key: bearer, refuse: refuseOpenAI, errorFrame: func(body string) string { return body }}
	format := "mp3"
	p.parse = func(_ *Server, r *Request) (*call, *refusal) {
		var q speechRequest
		d := json.NewDecoder(bytes.NewReader(r.Body))
		d.DisallowUnknownFields()
		if err := d.Decode(&q); err != nil {
			return nil, badRequest("", "We could not parse the JSON body of your request.")
		}
		r.Model, r.LastUser, r.Stream = q.Model, q.Input, true
		if q.ResponseFormat != "" {
			format = q.ResponseFormat
		}
		p.stream = spoken[format]
		switch {
		case q.Model == "" || q.Voice == "" || q.Input == "":
			return nil, badRequest("", "model, voice and input are required.")
		case utf8.RuneCountInString(q.Input) > 4096:
			return nil, badRequest("input", "String should have at most 4096 characters")
		case p.stream == "":
			return nil, badRequest("response_format", "Unsupported format.")
		case q.Speed != nil && (*q.Speed < 0.25 || *q.Speed > 4):
			return nil, badRequest("speed", "Input should be between 0.25 and 4.")
		}
		return &call{Request: r}, nil
	}
	p.frames = func(*call, Reply) []frame {
		var all []frame
		for _, piece := range slices.Collect(slices.Chunk(Sound(format), 256)) {
			all = append(all, frame{text: string(piece), content: true})
		}
		return append(all, frame{terminal: true})
	}
	p.whole = func(*call, Reply) []byte { return Sound(format) }
	return p
}

// Sound returns bytes that begin like sound of a format: mp3, opus, aac, flac or wav.
func Sound(format string) []byte {
	heads := map[string]string{
		"mp3":  "ID3\x04\x00\x00\x00\x00\x00\x00\xff\xfb\x90\x64",
		"opus": "OggS\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x13OpusHead\x01\x01\x38\x01\x80\xbb\x00\x00\x00\x00\x00",
		"aac":  "\xff\xf1\x50\x80",
		"flac": "fLaC\x00\x00\x00\x22",
		"wav":  "RIFF\x24\x04\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x80\x3e\x00\x00\x00\x7d\x00\x00\x02\x00\x10\x00data\x00\x04\x00\x00",
	}
	return append([]byte(heads[format]), make([]byte, 1024)...)
}

// heard are the files that /audio/transcriptions takes.
var heard = []string{".flac", ".mp3", ".mp4", ".mpeg", ".mpga", ".m4a", ".ogg", ".wav", ".webm"}

// transcriptionProtocol is POST /audio/transcriptions with a body of the given type.
func transcriptionProtocol(contentType string) *protocol {
	p := &protocol{key: bearer, refuse: refuseOpenAI, errorFrame: func(body string) string { return body }}
	p.parse = func(_ *Server, r *Request) (*call, *refusal) {
		_, params, err := mime.ParseMediaType(contentType)
		if err != nil || params["boundary"] == "" {
			return nil, badRequest("", "Could not parse multipart form")
		}
		form, err := multipart.NewReader(bytes.NewReader(r.Body), params["boundary"]).ReadForm(maxBody)
		if err != nil {
			return nil, badRequest("", "Could not parse multipart form")
		}
		first := func(key string) string {
			if v := form.Value[key]; len(v) > 0 {
				return v[0]
			}
			return ""
		}
		r.Model = first("model")
		files := form.File["file"]
		if len(files) != 1 || r.Model == "" {
			return nil, badRequest("", "file and model are required.")
		}
		r.LastUser = files[0].Filename
		for key := range form.Value {
			if !slices.Contains([]string{"model", "language", "prompt", "response_format", "temperature"}, key) {
				return nil, badRequest(key, "Unknown parameter: '"+key+"'.")
			}
		}
		switch format := first("response_format"); {
		case format != "" && format != "json":
			return nil, badRequest("response_format", "The emulator speaks JSON only.")
		case !slices.Contains(heard, path.Ext(files[0].Filename)):
			return nil, badRequest("file", "Invalid file format.")
		case files[0].Size == 0:
			return nil, badRequest("file", "The audio file is empty.")
		}
		return &call{Request: r}, nil
	}
	p.whole = func(_ *call, rep Reply) []byte { return mustJSON(map[string]string{"text": rep.Text}) }
	p.frames = func(c *call, rep Reply) []frame { return []frame{{text: string(p.whole(c, rep)), content: true}} }
	return p
}
