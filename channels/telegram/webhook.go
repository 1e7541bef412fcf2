package telegram

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"understudy/channels"
)

const (
	largestUpdate = 1 << 20 // bytes of a call (spec/chat.md §8, S6)
	secretHeader  = "X-Telegram-Bot-Api-Secret-Token"
	// webhookCalls is how many deliveries Telegram may have under way. It keeps the order within a
	// chat whatever the number.
	webhookCalls   = "8"
	webhookChecked = time.Minute
)

// hook connects ServeHTTP with the run that takes what it gets.
type hook struct {
	run  atomic.Pointer[hooked] // nil while nothing runs
	turn chan struct{}          // held while an update is handled
}

// hooked is a run that waits for calls.
type hooked struct {
	*intake
	ended    <-chan struct{}
	lastGood atomic.Int64 // when a delivery was stored, in Unix seconds of Telegram

	mu      sync.Mutex
	waiting map[int64]string // update id → why it could not be stored, until it is
}

// mostWaiting bounds what is remembered of updates that come again.
const mostWaiting = 100

// settle notes how an update fared and reports the connection: down until every update that could not
// be stored has come again and is. change returns the updates that are still missing.
func (h *hooked) settle(change func(waiting map[int64]string) map[int64]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting = change(h.waiting); len(h.waiting) == 0 {
		h.report(channels.Connected, "")
		return
	}
	h.report(channels.Down, h.waiting[slices.Min(slices.Collect(maps.Keys(h.waiting)))])
}

func newHook() hook { return hook{turn: make(chan struct{}, 1)} }

// Path implements channels.Webhook.
func (b *Bot) Path() string {
	if b.cfg.Webhook() == "" {
		return ""
	}
	return b.cfg.WebhookPath
}

// ServeHTTP implements channels.Webhook. It answers 200 once the update is stored, or can never be;
// after any other answer Telegram delivers the update again.
func (b *Bot) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case b.Path() == "":
		http.NotFound(w, r)
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	case !b.authentic(r):
		http.Error(w, "unauthorized", http.StatusUnauthorized)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestUpdate))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
	case err != nil:
		http.Error(w, "unreadable", http.StatusBadRequest)
	case !b.delivered(r.Context(), body):
		w.Header().Set("Retry-After", "5")
		http.Error(w, "not stored", http.StatusServiceUnavailable)
	}
}

// authentic compares the secret in a time that tells nothing about it.
func (b *Bot) authentic(r *http.Request) bool {
	want := sha256.Sum256([]byte(b.cfg.WebhookSecret.Reveal()))
	got := sha256.Sum256([]byte(r.Header.Get(secretHeader)))
	return !b.cfg.WebhookSecret.IsZero() && subtle.ConstantTimeCompare(want[:], got[:]) == 1
}

// delivered handles an update, one at a time, and reports whether Telegram may forget it.
func (b *Bot) delivered(ctx context.Context, body []byte) bool {
	h := b.hook.run.Load()
	if h == nil {
		return false
	}
	select {
	case b.hook.turn <- struct{}{}:
	case <-h.ended:
		return false
	case <-ctx.Done():
		return false
	}
	defer func() { <-b.hook.turn }()
	if b.hook.run.Load() != h { // it ended while this one waited
		return false
	}
	id := updateID(body)
	err := h.take(ctx, id, body)
	if err != nil {
		h.log.Warn("webhook failed", "error", err)
	} else {
		h.lastGood.Store(h.skew.There(time.Now()).Unix())
	}
	h.settle(func(waiting map[int64]string) map[int64]string {
		switch {
		case err == nil:
			delete(waiting, id)
		case waiting == nil:
			waiting = map[int64]string{id: err.Error()}
		case len(waiting) < mostWaiting:
			waiting[id] = err.Error()
		}
		return waiting
	})
	return err == nil
}

// listen receives by webhook until ctx ends or the account is refused for good. The webhook stays
// set: Telegram keeps what comes meanwhile for the next start, up to a day.
func (in *intake) listen(ctx context.Context) error {
	h := &hooked{intake: in, ended: ctx.Done()}
	in.hook.run.Store(h)
	defer func() {
		in.hook.run.Store(nil)
		in.hook.turn <- struct{}{} // the update in hand is the last
		<-in.hook.turn
	}()
	if err := in.persist(ctx, func() error { return in.setWebhook(ctx) }); err != nil {
		return err
	}
	in.log.Info("connected", "bot_id", in.self.ID, "username", in.self.Username, "webhook_path", in.cfg.WebhookPath)
	in.report(channels.Connected, "")
	for failures := 0; ; {
		sleep(ctx, webhookChecked)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		err := h.check(ctx)
		if err == nil {
			failures = 0
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if final := permanent(err); final != nil {
			return final
		}
		failures++
		in.fail(ctx, err, failures)
	}
}

func (in *intake) setWebhook(ctx context.Context) error {
	_, err := in.api.call(ctx, in.api.calls, "setWebhook", tgbotapi.Params{
		"url":             in.cfg.Webhook(),
		"secret_token":    in.cfg.WebhookSecret.Reveal(),
		"allowed_updates": allowedUpdates,
		"max_connections": webhookCalls,
	})
	return err
}

// webhookInfo is what Telegram knows about a bot's webhook.
type webhookInfo struct {
	URL       string `json:"url"`
	Pending   int    `json:"pending_update_count"`
	ErrorAt   int64  `json:"last_error_date"`
	ErrorText string `json:"last_error_message"`
}

func (b *Bot) webhookInfo(ctx context.Context) (webhookInfo, error) {
	var info webhookInfo
	result, err := b.api.call(ctx, b.api.calls, "getWebhookInfo", nil)
	if err != nil {
		return info, err
	}
	if json.Unmarshal(result, &info) != nil {
		return info, &callError{method: "getWebhookInfo", garbled: true, code: http.StatusOK}
	}
	return info, nil
}

// check looks whether Telegram still delivers here: nothing else would tell that a token was revoked,
// that another process took the updates, or that calls do not arrive.
func (h *hooked) check(ctx context.Context) error {
	info, err := h.webhookInfo(ctx)
	switch {
	case err != nil:
		return err
	case info.URL != h.cfg.Webhook():
		h.log.Warn("webhook was changed by somebody else and is set again")
		h.report(channels.Down, "another process polls this bot token or has set another webhook")
		return h.setWebhook(ctx)
	case info.Pending > 0 && info.ErrorAt > h.lastGood.Load():
		detail := "Telegram cannot deliver to webhookUrl: " + h.scrub(info.ErrorText)
		h.log.Warn("webhook is not reached", "error", detail, "pending", info.Pending)
		h.report(channels.Down, detail)
	default:
		h.settle(func(waiting map[int64]string) map[int64]string {
			if info.Pending == 0 { // Telegram has given up on the rest
				return nil
			}
			return waiting
		})
	}
	return nil
}

// scrub removes the account's secrets from a text of the platform.
func (b *Bot) scrub(s string) string {
	return hide(b.api.scrub(s), b.cfg.WebhookSecret)
}
