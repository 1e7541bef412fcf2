// Package openai talks to OpenAI's audio API and to the many services that imitate it, over plain HTTP:
// speech of text (Engine), and what package stt needs to write down speech (Endpoint).
//
// One call is one attempt. Redirects are not followed, because the key would go along. Errors carry a
// status and a short code, never an address, a key or a body.
package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"understudy/internal/secret"
)

// DefaultBaseURL is OpenAI itself.
const DefaultBaseURL = "https://api.openai.com/v1"

// largestProblem bounds how much of an error's body is read.
const largestProblem = 16 << 10

// Endpoint is where a request goes, with the key that belongs there.
type Endpoint struct {
	BaseURL string // up to /v1
	Key     secret.String
}

// Lookup finds the key of a model provider and the address it is for; "" = OpenAI's.
type Lookup func(ctx context.Context, provider string) (key secret.String, baseURL string, err error)

// Resolve decides where a request goes: to an address that is configured, with the key written beside
// it and no other; or to the model provider auth, with its key. Without both, key is for OpenAI.
func Resolve(ctx context.Context, find Lookup, baseURL string, key secret.String, auth string) (Endpoint, error) {
	switch {
	case baseURL != "":
		return Endpoint{strings.TrimRight(baseURL, "/"), key}, nil
	case !key.IsZero():
		return Endpoint{DefaultBaseURL, key}, nil
	case find == nil:
		return Endpoint{}, errors.New("no key is configured")
	}
	key, baseURL, err := find(ctx, auth)
	if err != nil {
		return Endpoint{}, fmt.Errorf("no key for %s: %w", auth, err)
	}
	if baseURL == "" {
		baseURL = DefaultBaseURL
	}
	return Endpoint{strings.TrimRight(baseURL, "/"), key}, nil
}

// StatusError is an answer that is none.
type StatusError struct {
	Status int
	Code   string // a short identifier of the service; "" = it gave none
}

// Error tells the status and the code.
func (e *StatusError) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("HTTP %d", e.Status)
	}
	return fmt.Sprintf("HTTP %d (%s)", e.Status, e.Code)
}

// errTooLarge ends an answer without end.
var errTooLarge = errors.New("the answer is too large")

// Post sends a body to path, such as /audio/speech, and returns the answer, which must not have more
// than limit bytes.
func (e Endpoint) Post(ctx context.Context, rt http.RoundTripper, path, contentType string, body io.Reader, limit int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.BaseURL+path, body)
	if err != nil {
		return nil, errors.New("the address cannot be used")
	}
	req.Header.Set("Content-Type", contentType)
	if !e.Key.IsZero() {
		req.Header.Set("Authorization", "Bearer "+e.Key.Reveal())
	}
	client := &http.Client{Transport: rt, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return nil, told(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, &StatusError{resp.StatusCode, code(resp.Body)}
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return nil, told(ctx, err)
	case int64(len(data)) > limit:
		return nil, errTooLarge
	}
	return data, nil
}

// told makes an error of the network fit to be shown: without addresses.
func told(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &dns):
		return errors.New("the host is not known")
	case errors.As(err, &op) && op.Op == "dial":
		return errors.New("no connection")
	}
	return errors.New("the connection broke")
}

// plainCode is a code that can carry nothing but a name.
var plainCode = regexp.MustCompile(`^[a-z][a-z0-9_.-]{0,47}$`)

// code reads what kind of error a body speaks of.
func code(body io.Reader) string {
	var q struct {
		Error struct {
			Code any    `json:"code"`
			Type string `json:"type"`
		} `json:"error"`
	}
	if json.NewDecoder(io.LimitReader(body, largestProblem)).Decode(&q) != nil {
		return ""
	}
	if c, ok := q.Error.Code.(string); ok && plainCode.MatchString(c) {
		return c
	}
	if plainCode.MatchString(q.Error.Type) {
		return q.Error.Type
	}
	return ""
}
