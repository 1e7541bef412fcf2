package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bwmarrin/discordgo"

	"understudy/internal/secret"
)

// Time limits per kind of call.
const (
	callLimit       = 30 * time.Second
	uploadLimit     = 5 * time.Minute
	largestResponse = 16 << 20
	unknownWait     = 5 * time.Second // of a rate limit that states none
)

// request is one REST call. What names it in errors and logs: no URL does, because the addresses of
// interactions contain their tokens. Route is what a rate limit counts.
type request struct {
	what, method, url, route string
	body                     any
	files                    []*discordgo.File
	limit                    time.Duration // 0 = callLimit
}

// api makes REST calls.
type api struct {
	session   *discordgo.Session
	token     secret.String
	root      *url.URL
	transport http.RoundTripper
	limits    *limits
	heard     func(http.Header) // is given the header of every answer of the API
}

// callError is why a call brought no result.
type callError struct {
	what       string
	status     int // 0 = no answer
	code       int // Discord's error code
	message    string
	fields     string // what is wrong with the body, from the answer
	retryAfter time.Duration
	// written tells that the request may have gone out completely: what it asked for may have
	// happened.
	written bool
	// garbled tells that the answer was not one of Discord's API, for example a proxy's page.
	garbled bool
	cause   error // transport
}

// Error implements error; it never contains the token.
func (e *callError) Error() string {
	switch {
	case e.garbled:
		return fmt.Sprintf("discord %s: unreadable answer with status %d", e.what, e.status)
	case e.cause != nil:
		return fmt.Sprintf("discord %s: %v", e.what, e.cause)
	default:
		return fmt.Sprintf("discord %s: %d %s (code %d)%s", e.what, e.status, e.message, e.code, e.fields)
	}
}

// Unwrap returns the transport's error.
func (e *callError) Unwrap() error { return e.cause }

// errLimited is the cause of a call that was not made because its rate limit is used up.
var errLimited = errors.New("rate limit is used up")

func newAPI(cfg Config, transport http.RoundTripper) (*api, error) {
	root, err := url.Parse(cfg.APIRoot)
	if err != nil {
		return nil, err
	}
	session, err := discordgo.New(tokenPrefix + cfg.Token().Reveal())
	if err != nil {
		return nil, err
	}
	session.LogLevel = -1 // it logs contents
	return &api{session: session, token: cfg.Token(), root: root, transport: transport, limits: newLimits()}, nil
}

func (a *api) closeIdle() {
	if c, ok := a.transport.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// call makes one call and returns the body of the answer. The error is a *callError.
func (a *api) call(ctx context.Context, r request) (json.RawMessage, error) {
	if wait := a.limits.wait(r.route, time.Now()); wait > 0 {
		return nil, &callError{what: r.what, status: http.StatusTooManyRequests, retryAfter: wait, cause: errLimited}
	}
	if r.limit == 0 {
		r.limit = callLimit
	}
	ctx, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	kind, body, err := r.encode()
	if err != nil {
		return nil, &callError{what: r.what, cause: err}
	}
	seen := &recorder{root: a.root, transport: a.transport}
	_, err = a.session.RequestWithLockedBucket(r.method, r.url, kind, body, discordgo.NewRatelimiter().LockBucket(r.route), 0,
		discordgo.WithClient(&http.Client{Transport: seen, CheckRedirect: stay}), discordgo.WithContext(ctx),
		discordgo.WithRetryOnRatelimit(false), discordgo.WithRestRetries(0))
	if seen.status == 0 {
		return nil, &callError{what: r.what, cause: a.harmless(err), written: seen.written.Load()}
	}
	return a.judge(r, seen)
}

// stay keeps a client from following redirects: they could lead the token away.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func (r request) encode() (kind string, body []byte, err error) {
	switch {
	case len(r.files) > 0:
		return discordgo.MultipartBodyWithJSON(r.body, r.files)
	case r.body == nil:
		return "", nil, nil
	}
	body, err = json.Marshal(r.body)
	return "application/json", body, err
}

// judge turns a complete answer into a result or an error. The library's own judgement is not asked:
// it loses bodies, and takes a page for an answer.
func (a *api) judge(r request, seen *recorder) (json.RawMessage, error) {
	e := &callError{what: r.what, status: seen.status, written: true}
	if seen.status >= 200 && seen.status < 300 {
		a.limits.learn(r.route, seen.header, time.Now())
		if seen.status == http.StatusNoContent || json.Valid(seen.body) {
			a.heard(seen.header)
			return seen.body, nil
		}
		e.garbled = true
		return nil, e
	}
	var refusal struct {
		Code       int             `json:"code"`
		Message    string          `json:"message"`
		Errors     json.RawMessage `json:"errors"`
		RetryAfter float64         `json:"retry_after"`
		Global     bool            `json:"global"`
	}
	e.garbled = json.Unmarshal(seen.body, &refusal) != nil
	e.code, e.message = refusal.Code, a.scrub(clip(refusal.Message, 200))
	if len(refusal.Errors) > 0 {
		e.fields = " " + a.scrub(clip(string(refusal.Errors), 400))
	}
	if seen.status == http.StatusTooManyRequests {
		e.retryAfter = stated(refusal.RetryAfter, seen.header)
		everywhere := e.garbled || refusal.Global || seen.header.Get("X-RateLimit-Global") != ""
		a.limits.block(r.route, everywhere, time.Now().Add(e.retryAfter))
	} else {
		e.retryAfter = duration(refusal.RetryAfter)
		a.limits.learn(r.route, seen.header, time.Now())
	}
	return nil, e
}

// stated is the wait that an answer with 429 asks for.
func stated(body float64, h http.Header) time.Duration {
	if d := duration(body); d > 0 {
		return d
	}
	seconds, err := strconv.ParseFloat(h.Get("Retry-After"), 64)
	if d := duration(seconds); err == nil && d > 0 {
		return d
	}
	return unknownWait
}

// duration is a number of seconds from outside, at most a day.
func duration(seconds float64) time.Duration {
	if !(seconds > 0) {
		return 0
	}
	return time.Duration(min(seconds, 86400) * float64(time.Second))
}

// recorder is the transport of one call. It leads the library's fixed addresses to the configured
// server and keeps what the library drops: a complete answer, and whether the request was written.
type recorder struct {
	root      *url.URL
	transport http.RoundTripper
	status    int
	header    http.Header
	body      []byte
	written   atomic.Bool
}

// RoundTrip implements http.RoundTripper.
func (t *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	trace := &httptrace.ClientTrace{WroteRequest: func(i httptrace.WroteRequestInfo) { t.written.Store(i.Err == nil) }}
	req = req.Clone(httptrace.WithClientTrace(req.Context(), trace))
	req.URL.Scheme, req.URL.Host, req.Host = t.root.Scheme, t.root.Host, ""
	resp, err := t.transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, largestResponse+1))
	_ = resp.Body.Close()
	if err == nil && len(body) > largestResponse {
		err = errors.New("the answer is too large")
	}
	if err != nil {
		return nil, err
	}
	t.status, t.header, t.body = resp.StatusCode, resp.Header, body
	// The library gets a plain answer: it fails on headers that it cannot read.
	return &http.Response{StatusCode: http.StatusNoContent, Status: "204 No Content", Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(nil)), Request: req}, nil
}

// harmless returns an error without the request's URL, which may contain a token.
func (a *api) harmless(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if err == nil {
		return errors.New("no answer")
	}
	if strings.Contains(err.Error(), a.token.Reveal()) {
		return errors.New(a.scrub(err.Error()))
	}
	return err
}

func (a *api) scrub(s string) string { return strings.ReplaceAll(s, a.token.Reveal(), secret.Mask) }

// clip shortens a text of unknown length, at a character.
func clip(s string, most int) string {
	r := []rune(s)
	if len(r) <= most {
		return s
	}
	return string(r[:most-1]) + "…"
}
