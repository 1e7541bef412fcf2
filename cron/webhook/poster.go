package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"understudy/internal/guard"
	"understudy/internal/secret"
)

// Bounds of one post.
const (
	postTime     = 15 * time.Second
	maxRedirects = 3
	maxAnswer    = 64 << 10 // bytes that are read of an answer, so that the connection ends well
)

// Deps are what a Poster works with; the zero value is the real network.
type Deps struct {
	Resolver guard.Resolver
	Dial     guard.Dial
	TLS      *tls.Config
}

// Poster posts to webhooks. It is safe for concurrent use.
type Poster struct{ client *http.Client }

// New returns a Poster.
func New(deps Deps) *Poster {
	if deps.Resolver == nil {
		deps.Resolver = net.DefaultResolver
	}
	if deps.Dial == nil {
		deps.Dial = (&net.Dialer{Timeout: 5 * time.Second}).DialContext
	}
	g := guard.Dialer{Resolver: deps.Resolver, Dial: deps.Dial}
	return &Poster{&http.Client{
		Timeout: postTime,
		// No proxy: it would connect to whatever it is told.
		Transport: &http.Transport{DialContext: g.DialContext, TLSClientConfig: deps.TLS, DisableKeepAlives: true, ForceAttemptHTTP2: false},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			switch {
			case len(via) > maxRedirects:
				return errors.New("too many redirects")
			case r.URL.Scheme != "https":
				return errors.New("redirects to an address without https")
			}
			if r.URL.Host != via[0].URL.Host {
				r.Header.Del("Authorization")
			}
			return nil
		},
	}}
}

// Message is what is posted, as JSON.
type Message struct {
	// Run is the same when the same result is posted again; it also is the header Idempotency-Key.
	Run  string    `json:"runId"`
	Job  string    `json:"jobId"`
	Text string    `json:"text"`
	At   time.Time `json:"at"`
}

// Refusal is an answer that says no for good.
type Refusal struct{ Status int }

// Error implements error.
func (e *Refusal) Error() string { return fmt.Sprintf("the webhook answered with status %d", e.Status) }

// Post posts m once. Only 2xx is success. A *Refusal, or guard.ErrForbidden, will be the same next time; after
// any other error the same message may be posted again. No error holds the URL: it may be a secret.
func (p *Poster) Post(ctx context.Context, target string, token secret.String, m Message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encoding a result: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil || r.URL.Scheme != "https" {
		return &Refusal{}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", m.Run)
	r.Header.Set("User-Agent", "understudy")
	if !token.IsZero() {
		r.Header.Set("Authorization", "Bearer "+token.Reveal())
	}
	resp, err := p.client.Do(r)
	if err != nil {
		return nameless(err)
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer)) // what it says does not matter
	switch s := resp.StatusCode; {
	case s >= 200 && s < 300:
		return nil
	case s == http.StatusRequestTimeout, s == http.StatusTooManyRequests, s == http.StatusTooEarly, s >= 500:
		return fmt.Errorf("the webhook answered with status %d", s)
	default:
		return &Refusal{s}
	}
}

// nameless is an error of the client without the URL that it would repeat.
func nameless(err error) error {
	var u *url.Error
	for errors.As(err, &u) {
		err = u.Err
	}
	if errors.Is(err, guard.ErrForbidden) {
		return guard.ErrForbidden
	}
	if text := err.Error(); strings.Contains(text, "://") {
		return errors.New("the webhook cannot be reached")
	}
	return err
}
