package signin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// patience is how long a person may take at the page.
const patience = 10 * time.Minute

// attempt is one visit to the page.
type attempt struct {
	address  string
	redirect string
	state    string
	verifier string
}

// begin prepares a visit that ends at redirect.
func (c *Client) begin(redirect string) (attempt, error) {
	page, err := url.Parse(c.provider.AuthorizeURL)
	if err != nil || c.provider.AuthorizeURL == "" {
		return attempt{}, ErrNoFlow
	}
	a := attempt{redirect: redirect, state: rand.Text(), verifier: rand.Text() + rand.Text()}
	sum := sha256.Sum256([]byte(a.verifier))
	q := page.Query()
	for k, v := range c.provider.extra {
		q.Set(k, v)
	}
	for k, v := range map[string]string{
		"response_type": "code", "client_id": c.provider.ClientID, "redirect_uri": redirect, "state": a.state,
		"scope": strings.Join(c.provider.Scopes, " "), "audience": c.provider.Audience,
		"code_challenge": base64.RawURLEncoding.EncodeToString(sum[:]), "code_challenge_method": "S256",
	} {
		if v != "" {
			q.Set(k, v)
		}
	}
	page.RawQuery = q.Encode()
	a.address = page.String()
	return a, nil
}

// finish reads what the browser brought back.
func (a attempt) finish(q url.Values) (code string, err error) {
	if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(a.state)) != 1 {
		return "", ErrWrongPaste
	}
	switch {
	case q.Get("error") != "":
		return "", refusal(q.Get("error"))
	case q.Get("code") == "":
		return "", ErrWrongPaste
	}
	return q.Get("code"), nil
}

func (c *Client) exchange(ctx context.Context, a attempt, code string) (Account, error) {
	return c.redeem(ctx, url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {a.redirect}, "code_verifier": {a.verifier},
	})
}

// Browser shows the address of the page and waits on loopback for the browser to come back, ten
// minutes at most.
func (c *Client) Browser(ctx context.Context, show func(address string)) (Account, error) {
	listeners, redirect, err := c.listen(ctx)
	if err != nil {
		return Account{}, err
	}
	a, err := c.begin(redirect)
	if err != nil {
		for _, l := range listeners {
			err = errors.Join(err, l.Close())
		}
		return Account{}, err
	}
	ctx, cancel := c.clock.WithTimeout(ctx, patience, ErrExpired)
	defer cancel()
	code, err := a.await(ctx, listeners, func() { show(a.address) })
	if err != nil {
		return Account{}, err
	}
	return c.exchange(ctx, a, code)
}

// listen opens the loopback address that the provider sends the browser to. "localhost" may mean
// either family, so both are served where both exist.
func (c *Client) listen(ctx context.Context) (list []net.Listener, redirect string, err error) {
	var lc net.ListenConfig
	if c.provider.redirect == "" {
		l, err := lc.Listen(ctx, "tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, "", fmt.Errorf("listening for the browser: %w", err)
		}
		return []net.Listener{l}, "http://" + l.Addr().String() + "/callback", nil
	}
	u, err := url.Parse(c.provider.redirect)
	if err != nil {
		return nil, "", fmt.Errorf("redirect address: %w", err)
	}
	l, err := lc.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", u.Port()))
	if err != nil {
		return nil, "", fmt.Errorf("listening for the browser (another sign-in may be under way; --paste needs no port): %w", err)
	}
	list = []net.Listener{l}
	if six, err := lc.Listen(ctx, "tcp6", net.JoinHostPort("::1", u.Port())); err == nil {
		list = append(list, six)
	}
	return list, c.provider.redirect, nil
}

// visit is what a browser brought back.
type visit struct {
	code string
	err  error
}

// await serves the redirect until it comes or ctx ends. Requests that are not the redirect of this
// very sign-in change nothing.
func (a attempt) await(ctx context.Context, listeners []net.Listener, ready func()) (string, error) {
	came := make(chan visit, 1)
	server := &http.Server{Handler: a.handler(came), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 32 << 10}
	done := make(chan struct{}, len(listeners))
	for _, l := range listeners {
		go func() {
			_ = server.Serve(l) // ends with Shutdown
			done <- struct{}{}
		}()
	}
	ready()
	var v visit
	select {
	case v = <-came:
	case <-ctx.Done():
		v.err = context.Cause(ctx)
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if server.Shutdown(grace) != nil {
		_ = server.Close()
	}
	for range listeners {
		<-done
	}
	return v.code, v.err
}

func (a attempt) handler(came chan<- visit) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("Cache-Control", "no-store")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Connection", "close")
		u, err := url.Parse(a.redirect)
		if err != nil || r.URL.Path != u.Path || r.Method != http.MethodGet {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "Nothing is here.\n")
			return
		}
		code, err := a.finish(r.URL.Query())
		switch {
		case errors.Is(err, ErrWrongPaste):
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, "This belongs to another sign-in. Begin again from the terminal.\n")
			return
		case err != nil:
			_, _ = io.WriteString(w, "You are not signed in. The terminal says more; this page may be closed.\n")
		default:
			_, _ = io.WriteString(w, "The bot received the sign-in. This page may be closed; the terminal tells how it went.\n")
		}
		select {
		case came <- visit{code, err}:
		default: // the browser came twice
		}
	})
}

// Paste shows the address of the page and lets a person paste the address that their browser was
// sent to, for machines without one. read returns a line.
func (c *Client) Paste(ctx context.Context, show func(address string), read func() (string, error)) (Account, error) {
	redirect := c.provider.redirect
	if redirect == "" {
		redirect = "http://127.0.0.1:8976/callback" // nobody listens there: the address bar is all that counts
	}
	a, err := c.begin(redirect)
	if err != nil {
		return Account{}, err
	}
	show(a.address)
	line, err := read()
	if err != nil {
		return Account{}, err
	}
	code, err := a.pasted(strings.TrimSpace(line))
	if err != nil {
		return Account{}, err
	}
	return c.exchange(ctx, a, code)
}

// pasted reads the whole address, its query, or the bare code, which the verifier binds to this
// sign-in as well as the state does.
func (a attempt) pasted(line string) (string, error) {
	if line == "" || len(line) > 16<<10 {
		return "", ErrWrongPaste
	}
	query := line
	if _, after, ok := strings.Cut(line, "?"); ok {
		query, _, _ = strings.Cut(after, "#")
	}
	if !strings.Contains(query, "=") {
		if strings.ContainsAny(line, "/ ") {
			return "", ErrWrongPaste
		}
		return line, nil
	}
	q, err := url.ParseQuery(query)
	if err != nil {
		return "", ErrWrongPaste
	}
	return a.finish(q)
}
