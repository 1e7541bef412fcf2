package telegram

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/channels"
	"understudy/channels/channelstest"
	"understudy/chat"
	"understudy/internal/emulate/pipe"
	"understudy/internal/secret"

	emulator "understudy/internal/emulate/telegram"
)

const (
	hookURL    = "https://bot.test/telegram-webhook"
	hookSecret = "a-secret_of-the-webhook-1"
)

// doorway is the listener behind the public address of a webhook.
type doorway struct {
	net    *pipe.Network
	server *http.Server
	to     atomic.Pointer[Bot]
	ended  chan struct{}
}

func newDoorway() *doorway {
	d := &doorway{net: pipe.New(), ended: make(chan struct{})}
	d.server = &http.Server{Handler: d, ReadHeaderTimeout: time.Minute}
	go func() {
		defer close(d.ended)
		_ = d.server.Serve(d.net) // ends with close
	}()
	return d
}

// ServeHTTP is what the gateway does.
func (d *doorway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if b := d.to.Load(); b != nil && r.URL.Path == b.Path() {
		b.ServeHTTP(w, r)
		return
	}
	http.NotFound(w, r)
}

func (d *doorway) close() {
	_ = d.server.Close()
	<-d.ended
}

func withWebhook(c *Config) {
	c.WebhookURL, c.WebhookSecret = "https://bot.test", secret.New(hookSecret)
}

// The suite again, with a webhook instead of polls.
func TestConformanceByWebhook(t *testing.T) {
	start := func(t *testing.T, token, account string) *channelstest.Subject {
		d := newDoorway()
		s := subject(t, emulator.Config{Token: token, Webhook: d.net.Transport()}, account, func(c *Config, _ *Deps) { withWebhook(c) })
		b := s.Adapter.(*Bot)
		d.to.Store(b)
		s.Close = func() {
			b.Close()
			d.close()
		}
		return s
	}
	channelstest.Run(t, func(t *testing.T) *channelstest.Subject {
		s := start(t, "", "")
		s.Second = func(t *testing.T) *channelstest.Subject { return start(t, "220:other", "second") }
		return s
	})
}

// listening runs test with an account that has a webhook.
func listening(t *testing.T, prepare func(*emulator.Server, *Config, *Deps), test func(*testing.T, *account, *doorway)) {
	var d *doorway
	cfg := emulator.Config{Webhook: lateTransport(func(r *http.Request) (*http.Response, error) { return d.net.Transport().RoundTrip(r) })}
	running(t, cfg, func(srv *emulator.Server, c *Config, deps *Deps) {
		d = newDoorway()
		withWebhook(c)
		if prepare != nil {
			prepare(srv, c, deps)
		}
	}, func(t *testing.T, a *account) {
		defer d.close()
		d.to.Store(a.Bot)
		test(t, a, d)
	})
}

type lateTransport func(*http.Request) (*http.Response, error)

func (f lateTransport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestWebhookIsSet(t *testing.T) {
	listening(t, nil, func(t *testing.T, a *account, _ *doorway) {
		want := map[string]string{"url": hookURL, "secret_token": hookSecret, "allowed_updates": allowedUpdates, "max_connections": webhookCalls}
		if diff := cmp.Diff(want, a.lastCall(t, "setWebhook")); diff != "" {
			t.Error(diff)
		}
		if n := len(a.srv.Calls("getUpdates")); n != 0 {
			t.Errorf("%d polls", n)
		}
		a.stop()
		<-a.done
		a.done <- nil
		if got := a.srv.Webhook(); got != hookURL {
			t.Errorf("after the end the webhook is %q: what comes until the next start would be polled for in vain", got)
		}
	})
}

// An account that changes from one way to the other takes the webhook along, and loses nothing.
func TestModesChange(t *testing.T) {
	listening(t, nil, func(t *testing.T, a *account, d *doorway) {
		a.srv.UserSays(ann, ann, "by webhook")
		first := a.got.Next(t)
		synctest.Wait() // until Telegram knows that it is stored
		a.stop()
		<-a.done
		d.to.Store(nil)
		a.srv.UserSays(ann, ann, "between")
		polling := newBot(t, a.srv, nil)
		a.Bot = polling
		a.start(t)
		if in := a.got.Next(t); in.Text != "between" || in.EventKey == first.EventKey {
			t.Errorf("got %+v", in)
		}
		if got := a.srv.Webhook(); got != "" {
			t.Errorf("the webhook %q is still set", got)
		}
	})
}

// Telegram is told that it may forget an update only once the update is stored.
func TestWebhookAnswersOnceStored(t *testing.T) {
	listening(t, nil, func(t *testing.T, a *account, _ *doorway) {
		a.got.Refuse(errors.New("disk full"))
		a.srv.UserSays(ann, ann, "important")
		refused := a.got.Refused(t)
		synctest.Wait()
		if s := a.got.Statuses(); s[len(s)-1].State != channels.Down || !strings.Contains(s[len(s)-1].Detail, "disk full") {
			t.Errorf("status %+v", s[len(s)-1])
		}
		if a.srv.Unconfirmed() != 1 {
			t.Error("the update is confirmed")
		}
		a.got.Refuse(nil)
		if in := a.got.Next(t); in.EventKey != refused.EventKey {
			t.Errorf("keys %q and %q", in.EventKey, refused.EventKey)
		}
		a.await(t, time.Minute, func() bool { return a.srv.Unconfirmed() == 0 })
		if s := a.got.State(); s != channels.Connected {
			t.Errorf("state %q", s)
		}
	})
}

// One message that cannot be stored keeps the account down, whatever else is stored.
func TestWebhookStateWhileOneIsNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoorway()
		srv := newServer(emulator.Config{Webhook: d.net.Transport()})
		b := newBot(t, srv, func(c *Config, _ *Deps) { withWebhook(c) })
		d.to.Store(b)
		got := channelstest.NewRecorder()
		var broken atomic.Bool
		broken.Store(true)
		ctx, stop := newContext(t)
		done := make(chan error, 1)
		go func() { done <- b.Run(ctx, pickySink{got, &broken}) }()
		synctest.Wait()
		srv.UserSays(bob, bob, "broken")
		for range 20 {
			srv.UserSays(ann, ann, "fine")
			timer := time.NewTimer(10 * time.Second)
			<-timer.C
		}
		connected := 0
		for _, s := range got.Statuses() {
			if s.State == channels.Connected {
				connected++
			}
		}
		if s := got.State(); s != channels.Down || connected != 1 {
			t.Errorf("state %q, connected %d times", s, connected)
		}
		broken.Store(false)
		timer := time.NewTimer(2 * time.Minute)
		<-timer.C
		if s := got.State(); s != channels.Connected || got.Pending() != 21 {
			t.Errorf("state %q, %d messages", s, got.Pending())
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		b.Close()
		d.close()
		srv.Close()
	})
}

// pickySink cannot store one message for a while.
type pickySink struct {
	*channelstest.Recorder
	broken *atomic.Bool
}

func (s pickySink) Accept(ctx context.Context, m chat.Inbound) error {
	if m.Text == "broken" && s.broken.Load() {
		return errors.New("constraint")
	}
	return s.Recorder.Accept(ctx, m)
}

// A delivery whose answer is lost comes again under the same key.
func TestWebhookRetriesAreRecognised(t *testing.T) {
	prepare := func(srv *emulator.Server, _ *Config, _ *Deps) {
		srv.Inject(emulator.Fault{Method: "webhook", DropAfter: true})
	}
	listening(t, prepare, func(t *testing.T, a *account, _ *doorway) {
		a.srv.UserSays(ann, ann, "hello")
		if one, two := a.got.Next(t), a.got.Next(t); one.EventKey != two.EventKey {
			t.Errorf("keys %q and %q", one.EventKey, two.EventKey)
		}
	})
}

func TestWebhookRefusesStrangers(t *testing.T) {
	update := `{"update_id":1,"message":{"message_id":1,"text":"hi","chat":{"id":1001,"type":"private"},"from":{"id":1001}}}`
	tests := []struct {
		name, method, secret, body string
		want                       int
	}{
		{"right", http.MethodPost, hookSecret, update, http.StatusOK},
		{"no secret", http.MethodPost, "", update, http.StatusUnauthorized},
		{"wrong secret", http.MethodPost, hookSecret + "x", update, http.StatusUnauthorized},
		{"looked at", http.MethodGet, hookSecret, "", http.StatusMethodNotAllowed},
		{"too large", http.MethodPost, hookSecret, strings.Repeat("x", largestUpdate+1), http.StatusRequestEntityTooLarge},
		{"not an update", http.MethodPost, hookSecret, "<html>", http.StatusOK}, // would come for ever
		{"nothing", http.MethodPost, hookSecret, "", http.StatusOK},
	}
	listening(t, nil, func(t *testing.T, a *account, _ *doorway) {
		for _, tt := range tests {
			r := httptest.NewRequest(tt.method, hookURL, bytes.NewReader([]byte(tt.body)))
			if tt.secret != "" {
				r.Header.Set(secretHeader, tt.secret)
			}
			w := httptest.NewRecorder()
			a.ServeHTTP(w, r)
			if w.Code != tt.want {
				t.Errorf("%s: status %d, want %d", tt.name, w.Code, tt.want)
			}
			if strings.Contains(w.Body.String(), hookSecret) {
				t.Errorf("%s: the secret is in the answer", tt.name)
			}
		}
		if in := a.got.Next(t); in.Text != "hi" || a.got.Pending() != 0 {
			t.Errorf("got %+v and %d more", in, a.got.Pending())
		}
	})
}

// Without a run, or by polling, nobody is served.
func TestWebhookWithoutRun(t *testing.T) {
	srv := Config{BotToken: newToken()}
	polling, err := New(srv, Deps{Offsets: &memory{}})
	if err != nil {
		t.Fatal(err)
	}
	withWebhook(&srv)
	resting, err := New(srv, Deps{Offsets: &memory{}})
	if err != nil {
		t.Fatal(err)
	}
	for want, b := range map[int]*Bot{http.StatusNotFound: polling, http.StatusServiceUnavailable: resting} {
		r := httptest.NewRequest(http.MethodPost, hookURL, strings.NewReader("{}"))
		r.Header.Set(secretHeader, hookSecret)
		w := httptest.NewRecorder()
		b.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("status %d, want %d", w.Code, want)
		}
	}
	if polling.Path() != "" || resting.Path() != "/telegram-webhook" {
		t.Errorf("paths %q and %q", polling.Path(), resting.Path())
	}
}

// Run does not return while an update is being stored.
func TestWebhookEndsBehindItsLastUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoorway()
		srv := newServer(emulator.Config{Webhook: d.net.Transport()})
		b := newBot(t, srv, func(c *Config, _ *Deps) { withWebhook(c) })
		d.to.Store(b)
		release, storing := make(chan struct{}), make(chan struct{})
		a := &account{Bot: b, srv: srv, got: channelstest.NewRecorder(), done: make(chan error, 1)}
		slow := &slowSink{Recorder: a.got, storing: storing, release: release}
		ctx, stop := newContext(t)
		go func() { a.done <- b.Run(ctx, slow) }()
		synctest.Wait()
		srv.UserSays(ann, ann, "last words")
		<-storing
		stop()
		synctest.Wait()
		select {
		case err := <-a.done:
			t.Error("Run has returned while an update was stored")
			a.done <- err
		default:
		}
		close(release)
		if err := <-a.done; err != nil {
			t.Errorf("Run ended with %v", err)
		}
		b.Close()
		d.close()
		srv.Close()
	})
}

func TestWebhookTakenByOthers(t *testing.T) {
	listening(t, nil, func(t *testing.T, a *account, _ *doorway) {
		a.srv.SetWebhook("https://elsewhere.test/hook")
		a.srv.UserSays(ann, ann, "hello")
		a.got.Next(t)
		if !slices.ContainsFunc(a.got.Statuses(), func(s channels.Status) bool {
			return s.State == channels.Down && strings.Contains(s.Detail, "another")
		}) {
			t.Errorf("statuses %+v", a.got.Statuses())
		}
		a.await(t, 5*time.Minute, func() bool { return a.got.State() == channels.Connected })
	})
}

func TestWebhookThatIsNotReached(t *testing.T) {
	listening(t, nil, func(t *testing.T, a *account, d *doorway) {
		d.to.Store(nil)
		a.srv.UserSays(ann, ann, "hello")
		began := time.Now()
		a.await(t, 10*time.Minute, func() bool { return time.Since(began) > 2*time.Minute && a.got.State() == channels.Down })
		if s := a.got.Statuses(); !strings.Contains(s[len(s)-1].Detail, "404") {
			t.Errorf("status %+v", s[len(s)-1])
		}
		d.to.Store(a.Bot)
		a.got.Next(t)
		synctest.Wait()
		if s := a.got.State(); s != channels.Connected {
			t.Errorf("state %q", s)
		}
	})
}
