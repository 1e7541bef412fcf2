package telegram

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
	"strings"
	"sync/atomic"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"understudy/channels"
	"understudy/internal/secret"
)

// Time limits per kind of call (spec/chat.md §9.3, T13).
const (
	pollTimeout     = 50 * time.Second // what the server is asked to wait
	pollLimit       = 60 * time.Second // a poll without an answer by then never gets one
	callLimit       = 30 * time.Second
	uploadLimit     = 5 * time.Minute
	largestResponse = 32 << 20
)

// lane is a kind of call with its own time limit; polling has its own connections too.
type lane struct {
	client *http.Client
	limit  time.Duration
}

// api makes raw Bot API calls.
type api struct {
	token secret.String
	root  string
	poll  lane
	calls lane
	files lane
	heard func(http.Header) // is given the header of every answer of the Bot API
}

// callError is why a call brought no result.
type callError struct {
	method      string
	code        int    // error_code of the answer, or the HTTP status when it was no Bot API answer; 0 = no answer
	description string // of the answer
	retryAfter  time.Duration
	migrateTo   int64
	// written tells that the request may have gone out completely: what it asked for may have
	// happened. A request small enough for a write buffer counts once there was a connection.
	written bool
	// garbled tells that the answer was not one of the Bot API, for example a proxy's page.
	garbled bool
	cause   error // transport
}

// Error implements error; it never contains the token.
func (e *callError) Error() string {
	switch {
	case e.garbled:
		return fmt.Sprintf("telegram %s: unreadable answer with status %d", e.method, e.code)
	case e.cause != nil:
		return fmt.Sprintf("telegram %s: %v", e.method, e.cause)
	default:
		return fmt.Sprintf("telegram %s: %d %s", e.method, e.code, e.description)
	}
}

// Unwrap returns the transport's error.
func (e *callError) Unwrap() error { return e.cause }

func newAPI(cfg Config, transport func() http.RoundTripper) *api {
	client := func() *http.Client {
		return &http.Client{
			Transport:     transport(),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	shared := client()
	return &api{
		token: cfg.BotToken,
		root:  cfg.APIRoot,
		poll:  lane{client: client(), limit: pollLimit},
		calls: lane{client: shared, limit: callLimit},
		files: lane{client: shared, limit: uploadLimit},
	}
}

func (a *api) closeIdle() {
	a.poll.client.CloseIdleConnections()
	a.calls.client.CloseIdleConnections()
}

// doer gives the library's requests a context and keeps what the library drops: the status of a
// complete answer, and whether the request was written.
type doer struct {
	ctx     context.Context
	client  *http.Client
	status  int
	header  http.Header
	written atomic.Bool
}

// Do implements tgbotapi.HTTPClient.
func (d *doer) Do(req *http.Request) (*http.Response, error) {
	trace := &httptrace.ClientTrace{WroteRequest: func(i httptrace.WroteRequestInfo) {
		d.written.Store(i.Err == nil)
	}}
	resp, err := d.client.Do(req.WithContext(httptrace.WithClientTrace(d.ctx, trace)))
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, largestResponse))
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	d.status, d.header = resp.StatusCode, resp.Header
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// call makes one call and returns its result. The error is a *callError.
func (a *api) call(ctx context.Context, l lane, method string, params tgbotapi.Params, files ...tgbotapi.RequestFile) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, l.limit)
	defer cancel()
	d := &doer{ctx: ctx, client: l.client}
	bot := &tgbotapi.BotAPI{Token: a.token.Reveal(), Client: d, Buffer: 1}
	bot.SetAPIEndpoint(a.root + "/bot%s/%s")
	var resp *tgbotapi.APIResponse
	var err error
	if len(files) > 0 {
		resp, err = bot.UploadFiles(method, params, files)
	} else {
		resp, err = bot.MakeRequest(method, params)
	}
	if err == nil {
		a.heard(d.header)
		return resp.Result, nil
	}
	return nil, a.failure(method, d, resp, err)
}

func (a *api) failure(method string, d *doer, resp *tgbotapi.APIResponse, err error) *callError {
	e := &callError{method: method, code: d.status, written: d.written.Load()}
	var refused *tgbotapi.Error
	switch {
	case errors.As(err, &refused) && resp != nil && resp.ErrorCode != 0:
		e.code = resp.ErrorCode
		e.description = a.scrub(refused.Message)
		e.retryAfter = time.Duration(max(refused.RetryAfter, 0)) * time.Second
		e.migrateTo = refused.MigrateToChatID
	case d.status != 0:
		e.garbled = true
	default:
		e.cause = a.harmless(err)
	}
	return e
}

// harmless returns an error without the request's URL, which contains the token.
func (a *api) harmless(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if strings.Contains(err.Error(), a.token.Reveal()) {
		return errors.New(a.scrub(err.Error()))
	}
	return err
}

func (a *api) scrub(s string) string { return hide(s, a.token) }

func hide(s string, hidden secret.String) string {
	if hidden.IsZero() {
		return s
	}
	return strings.ReplaceAll(s, hidden.Reveal(), secret.Mask)
}

// get downloads a file of at most limit bytes.
func (a *api) get(ctx context.Context, path string, limit int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, a.files.limit)
	defer cancel()
	link := a.root + "/file/bot" + a.token.Reveal() + "/" + (&url.URL{Path: path}).EscapedPath()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	if err != nil {
		return nil, fmt.Errorf("telegram file: %w", a.harmless(err))
	}
	resp, err := a.files.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("telegram file: %w", a.harmless(err))
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("telegram file: status %d", resp.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("telegram file: %w", a.harmless(err))
	case int64(len(data)) > limit:
		return nil, fmt.Errorf("telegram file: %w", channels.ErrTooLarge)
	}
	return data, nil
}
