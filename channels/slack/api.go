package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/slack-go/slack"

	"understudy/internal/secret"
)

// Time and size limits of calls (spec/chat.md §9.2).
const (
	callLimit       = 30 * time.Second
	uploadLimit     = 5 * time.Minute
	largestResponse = 16 << 20
	longestWait     = time.Hour // of a Retry-After that is believed
	mostRedirects   = 3
)

// api makes calls to the Web API.
type api struct {
	bot, app secret.String
	endpoint string // ends with a slash
	client   *http.Client
	files    *http.Client      // follows redirects, for downloads
	heard    func(http.Header) // is given the header of every answer of the Web API
}

func newAPI(cfg Config, transport http.RoundTripper) *api {
	return &api{
		bot: cfg.BotToken, app: cfg.AppToken, endpoint: cfg.APIRoot + "/api/",
		client: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		files: &http.Client{
			Transport: transport,
			CheckRedirect: func(r *http.Request, via []*http.Request) error {
				if len(via) > mostRedirects || r.URL.Host != via[0].URL.Host && (r.URL.Scheme != "https" || !slackHost(r.URL.Hostname())) {
					return errors.New("redirected away from Slack")
				}
				return nil
			},
		},
	}
}

// slackHost reports whether a host is one of Slack's.
func slackHost(host string) bool {
	host = strings.ToLower(host)
	for _, domain := range []string{"slack.com", "slack-gov.com"} {
		if host == domain || strings.HasSuffix(host, "."+domain) {
			return true
		}
	}
	return false
}

func (a *api) closeIdle() { a.client.CloseIdleConnections() }

// callError is why a call brought no result.
type callError struct {
	method           string
	status           int    // HTTP status; 0 = no answer
	code             string // error code of Slack
	needed, provided string // scopes
	retryAfter       time.Duration
	// written tells that the request may have gone out completely: what it asked for may have
	// happened. A request small enough for a write buffer counts once there was a connection.
	written bool
	cause   error // transport, or an answer that cannot be read
}

// Error implements error; it never contains a token or an address.
func (e *callError) Error() string {
	switch {
	case e.needed != "":
		return fmt.Sprintf("slack %s: %s (needs %s, has %s)", e.method, e.code, e.needed, e.provided)
	case e.code != "":
		return fmt.Sprintf("slack %s: %s", e.method, e.code)
	case e.status != 0:
		return fmt.Sprintf("slack %s: unreadable answer with status %d", e.method, e.status)
	default:
		return fmt.Sprintf("slack %s: %v", e.method, e.cause)
	}
}

// Unwrap returns the transport's error.
func (e *callError) Unwrap() error { return e.cause }

// Codes that are no codes of the Web API's bodies, or that are looked for here.
const (
	codeRateLimited = "ratelimited"
	codeScope       = "missing_scope"
)

// doer makes one HTTP request for the library and keeps what the library drops.
type doer struct {
	client  *http.Client
	stream  bool // the body is a download and stays unread
	status  int
	header  http.Header
	body    []byte
	written atomic.Bool
}

// Do implements the library's HTTP client.
func (d *doer) Do(req *http.Request) (*http.Response, error) {
	trace := &httptrace.ClientTrace{WroteRequest: func(i httptrace.WroteRequestInfo) { d.written.Store(i.Err == nil) }}
	resp, err := d.client.Do(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	if err != nil {
		return nil, err
	}
	if d.stream {
		d.status, d.header = resp.StatusCode, resp.Header
		return resp, nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, largestResponse))
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	d.status, d.header, d.body = resp.StatusCode, resp.Header, body
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// requester is what the library makes HTTP requests with.
type requester interface {
	Do(*http.Request) (*http.Response, error)
}

// library returns slack-go's client over r. It logs nothing and retries nothing.
func (a *api) library(r requester) *slack.Client {
	return slack.New(a.bot.Reveal(), slack.OptionAppLevelToken(a.app.Reveal()), slack.OptionAPIURL(a.endpoint),
		slack.OptionHTTPClient(r), slack.OptionLog(log.New(io.Discard, "", 0)))
}

// call makes one call through the library. The error is a *callError.
func (a *api) call(ctx context.Context, method string, f func(context.Context, *slack.Client) error) error {
	return a.callWithin(ctx, callLimit, method, f)
}

func (a *api) callWithin(ctx context.Context, limit time.Duration, method string, f func(context.Context, *slack.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	d := &doer{client: a.client}
	if err := f(ctx, a.library(d)); err != nil {
		return a.failure(method, d, err)
	}
	a.heard(d.header)
	return nil
}

// raw makes one call and decodes its result into out, which holds only what is needed: the library
// would refuse a whole page of messages for one block that it cannot decode.
func (a *api) raw(ctx context.Context, method string, params url.Values, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	d := &doer{client: a.client}
	fail := func(err error) error { return a.failure(method, d, err) }
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.endpoint+method, strings.NewReader(params.Encode()))
	if err != nil {
		return fail(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "Bearer "+a.bot.Reveal())
	if _, err := d.Do(req); err != nil {
		return fail(err)
	}
	if err := d.refusal(); err != nil {
		return fail(err)
	}
	if err := json.Unmarshal(d.body, out); err != nil {
		return fail(err)
	}
	a.heard(d.header)
	return nil
}

// refusal returns the error in an answer of the Web API, nil if it says ok.
func (d *doer) refusal() error {
	var head slack.SlackResponse
	err := json.Unmarshal(d.body, &head)
	switch {
	case err != nil:
		return err
	case !head.Ok && head.Err() == nil:
		return errors.New("an answer that is neither ok nor an error")
	}
	return head.Err()
}

// respond posts a reply to the address of an interaction.
func (a *api) respond(ctx context.Context, address string, reply any) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	d := &doer{client: a.client}
	fail := func(err error) error { return a.failure("response_url", d, err) }
	body, err := json.Marshal(reply)
	if err != nil {
		return fail(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return fail(err)
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	if _, err := d.Do(req); err != nil {
		return fail(err)
	}
	if d.status == http.StatusOK && !bytes.HasPrefix(bytes.TrimSpace(d.body), []byte("{")) {
		return nil // "ok"
	}
	if err := d.refusal(); err != nil {
		return fail(err)
	}
	return nil
}

// failure says why a call failed.
func (a *api) failure(method string, d *doer, err error) *callError {
	e := &callError{method: method, status: d.status, written: d.written.Load()}
	var limited *slack.RateLimitedError
	var no slack.SlackErrorResponse
	switch {
	case errors.As(err, &limited):
		e.code, e.retryAfter = codeRateLimited, min(max(limited.RetryAfter, 0), longestWait)
	case d.status == http.StatusTooManyRequests:
		e.code, e.retryAfter = codeRateLimited, retryAfter(d.header)
	case errors.As(err, &no):
		e.code = plainCode(no.Err)
		e.needed, e.provided = a.scrub(clip(no.Needed)), a.scrub(clip(no.Provided))
	case d.status >= http.StatusBadRequest && errors.As(d.refusal(), &no):
		e.code = plainCode(no.Err)
	default:
		e.cause = a.harmless(err)
	}
	return e
}

func retryAfter(h http.Header) time.Duration {
	d, err := time.ParseDuration(strings.TrimSpace(h.Get("Retry-After")) + "s")
	if err != nil {
		return 0
	}
	return min(max(d, 0), longestWait)
}

// plainCode keeps an error code from being anything else.
func plainCode(code string) string {
	if code == "" || len(code) > 64 || strings.Trim(code, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
		return "unknown_error"
	}
	return code
}

// clip bounds what an error repeats of an answer.
func clip(s string) string {
	const most = 500
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// harmless returns an error without the address of the request, which can be a secret.
func (a *api) harmless(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if text := err.Error(); text != a.scrub(text) {
		return errors.New(a.scrub(text))
	}
	return err
}

func (a *api) scrub(s string) string {
	for _, token := range []secret.String{a.bot, a.app} {
		if !token.IsZero() {
			s = strings.ReplaceAll(s, token.Reveal(), secret.Mask)
		}
	}
	return s
}
