package stt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"understudy/chat"
	"understudy/tts/command"
	"understudy/tts/openai"
)

// largestText bounds what a provider answers with, in bytes.
const largestText = 1 << 20

// Errors of voice notes that no provider is asked about.
var (
	ErrTooLarge = errors.New("the voice note is too large")
	ErrNoSound  = errors.New("this is no sound that can be written down")
)

// errOverdue ends a provider that takes too long.
var errOverdue = errors.New("writing down the voice note took too long")

// Deps are what a Transcriber works with.
type Deps struct {
	Transport http.RoundTripper // nil = http.DefaultTransport
	Find      openai.Lookup     // finds the key of a model provider
	Log       *slog.Logger
}

// Transcriber writes down voice notes. It is safe for concurrent use.
type Transcriber struct {
	cfg  Config
	deps Deps
}

// New returns a Transcriber, nil when no provider is configured.
func New(cfg Config, deps Deps) (*Transcriber, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Provider == "" {
		return nil, nil
	}
	return &Transcriber{cfg, deps}, nil
}

// Transcribe writes down what is said in a, of which Data is set; "" = nothing was understood. One
// attempt is made. Errors name no key, address or text.
func (t *Transcriber) Transcribe(ctx context.Context, a chat.Attachment) (string, error) {
	kind := kindOf(a)
	switch {
	case len(a.Data) > t.cfg.MaxMB<<20:
		return "", ErrTooLarge
	case len(a.Data) == 0 || kind.extension == "":
		return "", ErrNoSound
	}
	call, cancel := context.WithTimeoutCause(ctx, time.Duration(t.cfg.TimeoutMs)*time.Millisecond, errOverdue)
	defer cancel()
	ask := t.service
	if t.cfg.Provider == Command {
		ask = t.program
	}
	text, err := ask(call, a.Data, kind)
	switch {
	case err != nil && errors.Is(context.Cause(call), errOverdue):
		return "", errOverdue
	case err != nil:
		return "", fmt.Errorf("%s: %w", t.cfg.Provider, err)
	}
	return clean(text), nil
}

// service asks POST /audio/transcriptions.
func (t *Transcriber) service(ctx context.Context, sound []byte, kind kind) (string, error) {
	to, err := openai.Resolve(ctx, t.deps.Find, t.cfg.BaseURL, t.cfg.APIKey, t.cfg.Auth)
	if err != nil {
		return "", err
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	fields := [][2]string{{"model", t.cfg.Model}, {"response_format", "json"}, {"language", t.cfg.Language}}
	for _, f := range fields {
		if f[1] != "" {
			_ = form.WriteField(f[0], f[1]) // writing to memory does not fail
		}
	}
	part, err := form.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {`form-data; name="file"; filename="voice` + kind.extension + `"`}, // never a stranger's name
		"Content-Type":        {kind.mediaType},
	})
	if err != nil {
		return "", err
	}
	_, _ = part.Write(sound)
	if err := form.Close(); err != nil {
		return "", err
	}
	data, err := to.Post(ctx, t.deps.Transport, "/audio/transcriptions", form.FormDataContentType(), &body, largestText)
	if err != nil {
		return "", err
	}
	var answer struct {
		Text *string `json:"text"`
	}
	if err := json.Unmarshal(data, &answer); err != nil || answer.Text == nil {
		return "", errors.New("the answer is not in the API's form")
	}
	return *answer.Text, nil
}

// program runs the configured program.
func (t *Transcriber) program(ctx context.Context, sound []byte, kind kind) (string, error) {
	dir, remove, err := command.TempDir()
	if err != nil {
		return "", err
	}
	defer remove()
	in, out := filepath.Join(dir, "voice"+kind.extension), filepath.Join(dir, "text.txt")
	if err := os.WriteFile(in, sound, 0o600); err != nil {
		return "", errors.New("the voice note could not be stored")
	}
	language := t.cfg.Language
	if language == "" {
		language = "auto"
	}
	args, _ := command.Expand(t.cfg.Args, map[string]string{"InputPath": in, "OutputPath": out, "OutputDir": dir, "Language": language})
	p := command.Program{
		Command: t.cfg.Command, Args: args, Env: t.cfg.Env, Cwd: t.cfg.Cwd, Dir: dir, Log: t.deps.Log,
		Limit: int64(largestText + 8*t.cfg.MaxMB<<20), // programs unpack the sound beside it
	}
	said, err := p.Run(ctx)
	if err != nil {
		return "", err
	}
	written, err := command.ReadFile(out, largestText)
	switch {
	case err != nil:
		return "", err
	case written != nil:
		said = written
	}
	if len(said) > largestText {
		return "", command.ErrTooMuch
	}
	return string(said), nil
}

// clean returns text without what is no text.
func clean(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "")))
}

// kind is what a file is.
type kind struct{ mediaType, extension string }

// kindOf tells it by the media type, else by the name. Only what providers read is named.
func kindOf(a chat.Attachment) kind {
	media, _, _ := strings.Cut(strings.ToLower(a.MediaType), ";")
	switch strings.TrimSpace(media) {
	case "audio/ogg", "audio/opus", "application/ogg":
		return kind{"audio/ogg", ".ogg"}
	case "audio/mpeg", "audio/mp3":
		return kind{"audio/mpeg", ".mp3"}
	case "audio/mp4", "audio/m4a", "audio/x-m4a", "audio/aac":
		return kind{"audio/mp4", ".m4a"}
	case "audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave":
		return kind{"audio/wav", ".wav"}
	case "audio/flac", "audio/x-flac":
		return kind{"audio/flac", ".flac"}
	case "audio/webm", "video/webm":
		return kind{"audio/webm", ".webm"}
	case "video/mp4":
		return kind{"video/mp4", ".mp4"}
	}
	switch strings.ToLower(filepath.Ext(a.Name)) {
	case ".ogg", ".oga", ".opus":
		return kind{"audio/ogg", ".ogg"}
	case ".mp3", ".mpga", ".mpeg":
		return kind{"audio/mpeg", ".mp3"}
	case ".m4a":
		return kind{"audio/mp4", ".m4a"}
	case ".wav":
		return kind{"audio/wav", ".wav"}
	case ".flac":
		return kind{"audio/flac", ".flac"}
	case ".webm":
		return kind{"audio/webm", ".webm"}
	case ".mp4":
		return kind{"video/mp4", ".mp4"}
	}
	return kind{}
}
