package slack

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Bounds of HTTP requests (spec/chat.md §8, S6).
const (
	largestRequest = 1 << 20
	readLimit      = 5 * time.Second
)

// Path implements channels.Webhook.
func (b *Bot) Path() string {
	if b.cfg.Mode != modeHTTP {
		return ""
	}
	return b.cfg.WebhookPath
}

// ServeHTTP implements channels.Webhook: events, slash commands and interactions, by their shape. A
// request is answered with 200 once it is stored; with 503, Slack delivers it again. It is looked at
// only when its signature proves that it comes from Slack; that it may come twice is the journal's
// concern.
func (b *Bot) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "POST only", http.StatusMethodNotAllowed)
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readLimit)) // not every server can
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestRequest))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		http.Error(w, "unreadable", http.StatusBadRequest)
		return
	case !b.signed(r.Header, body):
		http.Error(w, "not signed by Slack", http.StatusUnauthorized)
		return
	}
	kind, payload := classify(r.Header.Get("Content-Type"), body)
	var o outer
	if kind == kindEvents && decode(payload, &o) == nil && o.Type == "url_verification" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = io.WriteString(w, clip(o.Challenge)) // the client may be gone
		return
	}
	b.deliver(w, r, kind, payload)
}

// signedWithin is how old a signature may be (spec/chat.md §8, S6).
const signedWithin = 5 * time.Minute

// signed reports whether a request was signed with the signing secret within the last five minutes of
// Slack's clock. The library would take ours: one that is off would refuse everything.
func (b *Bot) signed(h http.Header, body []byte) bool {
	stamp := h.Get("X-Slack-Request-Timestamp")
	at, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || b.cfg.SigningSecret.IsZero() || b.skew.There(time.Now()).Sub(time.Unix(at, 0)).Abs() > signedWithin {
		return false
	}
	mac := hmac.New(sha256.New, []byte(b.cfg.SigningSecret.Reveal()))
	_, _ = mac.Write([]byte("v0:" + stamp + ":")) // a hash takes everything
	_, _ = mac.Write(body)
	return hmac.Equal([]byte("v0="+hex.EncodeToString(mac.Sum(nil))), []byte(h.Get("X-Slack-Signature")))
}

// classify tells what a request is by its content alone; its address says nothing.
func classify(contentType string, body []byte) (kind string, payload []byte) {
	if !strings.HasPrefix(contentType, "application/x-www-form-urlencoded") {
		return kindEvents, body
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return kindSlash, nil
	}
	if form.Has("payload") {
		return kindInteractive, []byte(form.Get("payload"))
	}
	fields := make(map[string]string, len(form))
	for key, values := range form {
		fields[key] = values[0]
	}
	payload, _ = json.Marshal(fields) // a map of texts always can be
	return kindSlash, payload
}

// deliver gives a request to the inbox and answers it.
func (b *Bot) deliver(w http.ResponseWriter, r *http.Request, kind string, payload []byte) {
	in := b.inbox.Load()
	if in == nil {
		http.Error(w, "not running", http.StatusServiceUnavailable)
		return
	}
	answered := false
	ack := sync.OnceFunc(func() { // perhaps while the handler still works
		answered = true
		w.Header().Set("Content-Length", "0")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush() // not every server can
	})
	ctx := r.Context()
	if kind != kindEvents { // it goes on when the platform has its answer
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), callLimit)
		defer cancel()
	}
	if err := in.receive(ctx, kind, payload, ack); err != nil {
		b.log.Warn("event not stored", "kind", kind, "error", err)
		if !answered {
			http.Error(w, "not stored", http.StatusServiceUnavailable)
		}
	}
}
