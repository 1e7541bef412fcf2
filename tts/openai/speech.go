package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"understudy/tts"
)

// Engine speaks with a service that has OpenAI's audio API.
type Engine struct {
	Transport http.RoundTripper // nil = http.DefaultTransport
	// Find is asked for a provider without an address of its own.
	Find Lookup
}

// speechRequest is the body of POST /audio/speech.
type speechRequest struct {
	Model          string  `json:"model"`
	Input          string  `json:"input"`
	Voice          string  `json:"voice"`
	ResponseFormat string  `json:"response_format"`
	Speed          float64 `json:"speed,omitempty"`
	Instructions   string  `json:"instructions,omitempty"`
}

// Speak implements tts.Engine.
func (e Engine) Speak(ctx context.Context, j tts.Job) ([]byte, error) {
	auth := j.Provider.Auth
	if auth == "" {
		auth = j.ID
	}
	to, err := Resolve(ctx, e.Find, j.Provider.BaseURL, j.Provider.APIKey, auth)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(speechRequest{
		Model: j.Provider.Model, Input: j.Text, Voice: j.Voice, ResponseFormat: wire(j.Format),
		Speed: j.Speed, Instructions: j.Instructions,
	})
	if err != nil {
		return nil, err
	}
	return to.Post(ctx, e.Transport, "/audio/speech", "application/json", bytes.NewReader(body), tts.LargestSound)
}

// wire is the API's name of a format; mp3 for those it does not have.
func wire(f tts.Format) string {
	switch f {
	case tts.Opus, tts.AAC, tts.FLAC, tts.WAV:
		return string(f)
	}
	return string(tts.MP3)
}
