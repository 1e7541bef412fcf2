package telegram

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// listener plays the bot behind a webhook: it answers per text, and notes what it got.
type listener struct {
	mu     sync.Mutex
	got    []string
	secret []string
	refuse map[string]int // text → how often
}

// RoundTrip implements http.RoundTripper.
func (l *listener) RoundTrip(r *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(r.Body)
	var u struct {
		Message struct {
			Text string `json:"text"`
		} `json:"message"`
	}
	if json.Unmarshal(body, &u) != nil || r.URL.Path != "/hook" {
		return nil, errors.New("unexpected call")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.secret = append(l.secret, r.Header.Get("X-Telegram-Bot-Api-Secret-Token"))
	status := http.StatusOK
	text := u.Message.Text
	if l.refuse[text] > 0 {
		l.refuse[text]--
		status, text = http.StatusServiceUnavailable, text+"?"
	}
	l.got = append(l.got, text)
	return &http.Response{StatusCode: status, Status: "503 Service Unavailable", Body: http.NoBody, Request: r}, nil
}

func (l *listener) texts() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.got, " ")
}

// hooked calls setWebhook for a listener.
func hooked(t *testing.T, l *listener, test func(*testing.T, *Server, client)) {
	inBubble(t, Config{Webhook: l}, func(t *testing.T, s *Server, c client) {
		a, err := c.call(t.Context(), "setWebhook", "url", "https://bot.test/hook", "secret_token", "abc", "allowed_updates", `["message"]`)
		if err != nil || !a.OK {
			t.Fatalf("%+v, %v", a, err)
		}
		test(t, s, c)
	})
}

// What is refused comes again, behind what other chats say, before what its own chat says next.
func TestWebhookKeepsTheOrderOfAChat(t *testing.T) {
	l := &listener{refuse: map[string]int{"a1": 2}}
	hooked(t, l, func(t *testing.T, s *Server, c client) {
		s.UserSays(1, 1, "a1")
		s.UserSays(1, 1, "a2")
		s.UserSays(2, 2, "b1")
		synctest.Wait()
		if got := l.texts(); got != "a1? b1" {
			t.Errorf("at once: %q", got)
		}
		a, _ := c.call(t.Context(), "getWebhookInfo")
		if info := string(a.Result); !strings.Contains(info, `"pending_update_count":2`) || !strings.Contains(info, "503") || !strings.Contains(info, "https://bot.test/hook") {
			t.Errorf("info %s", info)
		}
		timer := time.NewTimer(time.Minute)
		<-timer.C
		if got := l.texts(); got != "a1? b1 a1? a1 a2" {
			t.Errorf("later: %q", got)
		}
		if s.Unconfirmed() != 0 || l.secret[0] != "abc" {
			t.Errorf("%d left, secret %q", s.Unconfirmed(), l.secret[0])
		}
	})
}

func TestWebhookFaults(t *testing.T) {
	l := &listener{}
	hooked(t, l, func(t *testing.T, s *Server, _ client) {
		s.Inject(Fault{Method: "webhook", Drop: true})
		s.Inject(Fault{Method: "webhook", DropAfter: true, Delay: time.Second})
		s.Inject(Fault{Status: 500}) // of any method: not of deliveries
		s.UserSays(1, 1, "once")
		s.UserReacts(1, 1, 1, "👍") // is not among the allowed updates
		timer := time.NewTimer(time.Minute)
		<-timer.C
		if got := l.texts(); got != "once once" || s.Unconfirmed() != 0 {
			t.Errorf("got %q, %d left", got, s.Unconfirmed())
		}
	})
}

func TestWebhookAndPolling(t *testing.T) {
	l := &listener{}
	hooked(t, l, func(t *testing.T, s *Server, c client) {
		if a, _ := c.call(t.Context(), "getUpdates"); a.ErrorCode != http.StatusConflict {
			t.Errorf("poll beside a webhook: %+v", a)
		}
		if a, _ := c.call(t.Context(), "deleteWebhook"); !a.OK || s.Webhook() != "" {
			t.Errorf("%+v, webhook %q", a, s.Webhook())
		}
		s.UserSays(1, 1, "hello")
		synctest.Wait()
		if a, _ := c.call(t.Context(), "getUpdates"); !strings.Contains(string(a.Result), "hello") || l.texts() != "" {
			t.Errorf("poll %s, webhook %q", a.Result, l.texts())
		}
	})
}

func TestMoreRefusals(t *testing.T) {
	keys := func(n int) string {
		return `{"inline_keyboard":[[` + strings.TrimSuffix(strings.Repeat(`{"text":"a","callback_data":"x"},`, n), ",") + `]]}`
	}
	tests := []struct {
		name   string
		method string
		params []string
		want   string
	}{
		{"webhook over http", "setWebhook", []string{"url", "http://bot.test"}, "Bad Request: bad webhook: An HTTPS URL must be provided for webhook"},
		{"webhook port", "setWebhook", []string{"url", "https://bot.test:8787"}, "Bad Request: bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443"},
		{"webhook secret", "setWebhook", []string{"url", "https://bot.test", "secret_token", "a b"}, "Bad Request: secret token contains unallowed characters"},
		{"reaction", "setMessageReaction", []string{"chat_id", "1", "message_id", "1", "reaction", `[{"type":"emoji","emoji":"⏳"}]`}, "Bad Request: REACTION_INVALID"},
		{"reactions", "setMessageReaction", []string{"chat_id", "1", "message_id", "1", "reaction", `[{"type":"emoji","emoji":"👍"},{"type":"emoji","emoji":"👀"}]`}, "Bad Request: REACTIONS_TOO_MANY"},
		{"wide row", "sendMessage", []string{"chat_id", "1", "text", "x", "reply_markup", keys(9)}, "Bad Request: reply markup is too long"},
		{"no webhook", "setWebhook", []string{"url", ""}, ""},
	}
	inBubble(t, Config{}, func(t *testing.T, s *Server, c client) {
		s.UserSays(1, 1, "hello")
		for _, tt := range tests {
			a, err := c.call(t.Context(), tt.method, tt.params...)
			if err != nil || a.OK != (tt.want == "") || a.Description != tt.want {
				t.Errorf("%s: got %+v, %v, want %q", tt.name, a, err, tt.want)
			}
		}
	})
}

func TestPressesAreAnsweredOnce(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server, c client) {
		if a, err := c.call(t.Context(), "sendMessage", "chat_id", "1", "text", "x", "reply_markup", `{"inline_keyboard":[[{"text":"a","callback_data":"d"}]]}`); err != nil || !a.OK {
			t.Fatalf("%+v, %v", a, err)
		}
		query := s.Press(1, 1, 1, "a")
		answer := func(text string) answer {
			a, err := c.call(t.Context(), "answerCallbackQuery", "callback_query_id", query, "text", text)
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		if a := answer(strings.Repeat("x", 201)); a.OK {
			t.Error("a toast of any length is taken")
		}
		if a := answer("done"); !a.OK || !s.Answered(query) {
			t.Errorf("%+v", a)
		}
		if a := answer("again"); a.OK {
			t.Error("a press is answered twice")
		}
		if diff := cmp.Diff([]string{"done"}, s.Toasts(1)); diff != "" {
			t.Error(diff)
		}
		a, err := c.call(t.Context(), "editMessageReplyMarkup", "chat_id", "1", "message_id", "1", "reply_markup", `{"inline_keyboard":[]}`)
		if err != nil || !a.OK || len(s.Sent(1)[0].Buttons) != 0 || s.Sent(1)[0].Text != "x" {
			t.Errorf("%+v, %v, message %+v", a, err, s.Sent(1)[0])
		}
	})
}

func TestCutAndRevoke(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server, c client) {
		type result struct {
			answer
			err error
		}
		poll := func() chan result {
			done := make(chan result, 1)
			go func() {
				a, err := c.call(t.Context(), "getUpdates", "timeout", "50")
				done <- result{a, err}
			}()
			synctest.Wait()
			return done
		}
		cut := poll()
		s.Cut()
		if r := <-cut; r.err == nil {
			t.Errorf("a cut poll ends with %+v", r.answer)
		}
		revoked := poll()
		s.Revoke()
		if r := <-revoked; r.err != nil || r.ErrorCode != http.StatusUnauthorized {
			t.Errorf("%+v", r)
		}
		if a, err := c.call(t.Context(), "getMe"); err != nil || a.ErrorCode != http.StatusUnauthorized {
			t.Errorf("%+v, %v", a, err)
		}
	})
}

// The weather is as likely as told, and the same for the same seed.
func TestWeather(t *testing.T) {
	run := func(seed uint64) (out string) {
		inBubble(t, Config{}, func(t *testing.T, s *Server, c client) {
			s.SetWeather(Weather{Seed: seed, Drop: 0.2, DropAfter: 0.2, Limited: 0.2, Ill: 0.2, Slow: 0.1, SlowBy: time.Second, Duplicate: 0.5})
			for range 100 {
				a, err := c.call(t.Context(), "sendMessage", "chat_id", "1", "text", "x")
				switch {
				case err != nil:
					out += "-"
				case a.OK:
					out += "."
				default:
					out += string(rune('0' + a.ErrorCode%10))
				}
			}
			for range 100 {
				s.UserSays(1, 1, "x")
			}
			if n := s.Unconfirmed(); n < 120 || n > 180 {
				t.Errorf("%d updates of 100 messages", n)
			}
			s.SetWeather(Weather{})
			if a, err := c.call(t.Context(), "sendMessage", "chat_id", "1", "text", "x"); err != nil || !a.OK {
				t.Errorf("%+v, %v", a, err)
			}
		})
		return out
	}
	one, again, other := run(1), run(1), run(2)
	if one != again || one == other {
		t.Errorf("%s\n%s\n%s", one, again, other)
	}
	for _, kind := range []string{"-", ".", "9"} {
		if n := strings.Count(one, kind); n < 5 {
			t.Errorf("%q happens %d times: %s", kind, n, one)
		}
	}
}
