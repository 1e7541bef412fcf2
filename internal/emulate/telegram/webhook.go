package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// webhook is where updates go instead of to polls.
type webhook struct {
	url, secret string
	allowed     []string
	stop        context.CancelFunc // of its deliveries

	errorAt   int64
	errorText string
}

const (
	firstRetry   = time.Second
	longestRetry = time.Minute
	webhookLimit = 60 * time.Second
)

func (s *Server) setWebhook(c Call) (any, *reply) {
	address := c.Params["url"]
	u, err := url.Parse(address)
	secret := c.Params["secret_token"]
	switch {
	case address == "":
		return s.deleteWebhook(), nil
	case err != nil || u.Scheme != "https" || u.Host == "":
		return nil, badRequest("bad webhook: An HTTPS URL must be provided for webhook")
	case !slices.Contains([]string{"", "443", "80", "88", "8443"}, u.Port()):
		return nil, badRequest("bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443")
	case len(secret) > 256 || strings.Trim(secret, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") != "":
		return nil, badRequest("secret token contains unallowed characters")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropWebhook()
	ctx, stop := context.WithCancel(context.Background())
	s.webhook = webhook{url: address, secret: secret, stop: stop}
	_ = json.Unmarshal([]byte(c.Params["allowed_updates"]), &s.webhook.allowed) // absent = all
	if s.poll != nil {
		close(s.poll)
		s.poll = nil
	}
	if s.cfg.Webhook != nil {
		s.serves.Go(func() { s.deliver(ctx, s.cfg.Webhook, s.webhookOf()) })
	}
	s.touch()
	return true, nil
}

func (s *Server) deleteWebhook() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropWebhook()
	s.touch()
	return true
}

// dropWebhook ends the deliveries; the lock is held.
func (s *Server) dropWebhook() {
	if s.webhook.stop != nil {
		s.webhook.stop()
	}
	s.webhook = webhook{}
}

// SetWebhook pretends that somebody else has set a webhook, which gets nothing and makes getUpdates
// fail until it is deleted.
func (s *Server) SetWebhook(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropWebhook()
	s.webhook = webhook{url: url}
	if s.poll != nil {
		close(s.poll)
		s.poll = nil
	}
}

// Webhook returns the address that is set, "" = none.
func (s *Server) Webhook() string { return s.webhookOf().url }

func (s *Server) webhookOf() webhook {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.webhook
}

func (s *Server) webhookInfo() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := map[string]any{"url": s.webhook.url, "has_custom_certificate": false, "pending_update_count": len(s.updates)}
	if s.webhook.errorAt != 0 {
		info["last_error_date"], info["last_error_message"] = s.webhook.errorAt, s.webhook.errorText
	}
	return info
}

// deliver sends updates to the webhook, one at a time, in the order of each chat. What is not
// answered with 2xx is sent again, later and later; meanwhile other chats go on.
func (s *Server) deliver(ctx context.Context, transport http.RoundTripper, hook webhook) {
	client := &http.Client{Transport: transport, Timeout: webhookLimit}
	waits := map[int64]time.Duration{} // by chat, while its first update fails
	due := map[int64]time.Time{}
	for {
		u, wait, changed := s.nextDelivery(hook, due)
		if u == nil {
			timer := time.NewTimer(wait)
			select {
			case <-changed:
			case <-timer.C:
			case <-ctx.Done():
			case <-s.closed:
			}
			timer.Stop()
			if ctx.Err() != nil || s.isClosed() {
				return
			}
			continue
		}
		problem := s.deliverOne(ctx, client, hook, *u)
		if ctx.Err() != nil || s.isClosed() {
			return
		}
		s.delivered(u.id, problem)
		if problem == "" {
			delete(due, u.chat)
			delete(waits, u.chat)
			continue
		}
		waits[u.chat] = min(max(2*waits[u.chat], firstRetry), longestRetry)
		due[u.chat] = time.Now().Add(waits[u.chat])
	}
}

func (s *Server) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// nextDelivery is the first update whose chat need not wait, or how long nothing is due.
func (s *Server) nextDelivery(hook webhook, due map[int64]time.Time) (next *update, wait time.Duration, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.updates = slices.DeleteFunc(s.updates, func(u update) bool {
		return u.kind != "" && len(hook.allowed) > 0 && !slices.Contains(hook.allowed, u.kind)
	})
	wait = longestRetry
	for _, u := range s.updates {
		left := time.Until(due[u.chat])
		if left <= 0 {
			return &u, 0, s.changed
		}
		wait = min(wait, left)
	}
	return nil, wait, s.changed
}

// deliverOne makes one call and returns what was wrong with it.
func (s *Server) deliverOne(ctx context.Context, client *http.Client, hook webhook, u update) string {
	s.mu.Lock()
	f := s.due(Call{Method: webhookMethod, Params: map[string]string{"chat_id": fmt.Sprint(u.chat)}})
	s.mu.Unlock()
	if f != nil && f.Delay > 0 {
		timer := time.NewTimer(f.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		case <-s.closed:
		}
	}
	if f != nil && f.Drop {
		return "Connection timed out"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, hook.url, bytes.NewReader(u.body))
	if err != nil {
		return err.Error()
	}
	if strings.HasPrefix(req.URL.Scheme, "https") {
		req.URL.Scheme = "http" // the certificate is the business of whoever stands in front
	}
	req.Header.Set("Content-Type", "application/json")
	if hook.secret != "" {
		req.Header.Set("X-Telegram-Bot-Api-Secret-Token", hook.secret)
	}
	resp, err := client.Do(req)
	if err != nil {
		return "Connection refused"
	}
	_ = resp.Body.Close()
	switch {
	case f != nil && f.DropAfter:
		return "Read timeout expired"
	case resp.StatusCode/100 != 2:
		return "Wrong response from the webhook: " + resp.Status
	}
	return ""
}

// delivered forgets an update that arrived, or notes why it did not.
func (s *Server) delivered(id int64, problem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if problem != "" {
		s.webhook.errorAt, s.webhook.errorText = s.now().Unix(), problem
	} else {
		s.updates = slices.DeleteFunc(s.updates, func(u update) bool { return u.id == id })
	}
	s.touch()
}
