package slack

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	emulator "understudy/internal/emulate/slack"
)

// post sends a request of a test's own to the webhook.
func (r *rig) post(method, query string, h http.Header, body io.Reader) (int, string) {
	r.Helper()
	address, client := r.srv.Hook()
	req, err := http.NewRequestWithContext(r.Context(), method, address+query, body)
	if err != nil {
		r.Fatal(err)
	}
	req.Header = h
	resp, err := client.Do(req)
	if err != nil {
		r.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

const eventBody = `{"type":"event_callback","team_id":"T0TEAM001","event_id":"Ev1","event":{"type":"message","channel":"D0ANN0001","channel_type":"im","user":"U0ANN0001","text":"hi","ts":"1.1"}}`

func TestForgedRequestsAreRefused(t *testing.T) {
	other := func(r *rig) http.Header {
		h := r.srv.Sign([]byte(eventBody), time.Now())
		h.Set("X-Slack-Signature", "v0="+strings.Repeat("ab", 32))
		return h
	}
	for name, forge := range map[string]func(*rig) http.Header{
		"unsigned":          func(*rig) http.Header { return http.Header{} },
		"wrong signature":   other,
		"of another body":   func(r *rig) http.Header { return r.srv.Sign([]byte(eventBody+" "), time.Now()) },
		"too old":           func(r *rig) http.Header { return r.srv.Sign([]byte(eventBody), time.Now().Add(-6*time.Minute)) },
		"from the future":   func(r *rig) http.Header { return r.srv.Sign([]byte(eventBody), time.Now().Add(6*time.Minute)) },
		"without a version": func(r *rig) http.Header { h := other(r); h.Set("X-Slack-Signature", "abcd"); return h },
		"short":             func(r *rig) http.Header { h := other(r); h.Set("X-Slack-Signature", "v0=ab"); return h },
		"without a time":    func(r *rig) http.Header { h := other(r); h.Del("X-Slack-Request-Timestamp"); return h },
		"with an odd time":  func(r *rig) http.Header { h := other(r); h.Set("X-Slack-Request-Timestamp", "now"); return h },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{bot: overHTTP}, func(r *rig) {
				if status, body := r.post(http.MethodPost, "", forge(r), strings.NewReader(eventBody)); status != http.StatusUnauthorized {
					r.Errorf("answered with %d %q", status, body)
				}
				r.none()
			})
		})
	}
	inBubble(t, setup{bot: overHTTP}, func(r *rig) { // and the true one is taken
		if status, body := r.post(http.MethodPost, "", r.srv.Sign([]byte(eventBody), time.Now()), strings.NewReader(eventBody)); status != http.StatusOK || body != "" {
			r.Errorf("answered with %d %q", status, body)
		}
		r.sink.Next(r.T)
	})
}

// A signature is as old as Slack's clock says: by one of ours that is off every request would be too old.
func TestAWrongClockRefusesNoSignature(t *testing.T) {
	for _, offset := range []time.Duration{-2 * time.Hour, 26 * time.Hour} {
		inBubble(t, setup{server: emulator.Config{Offset: offset}, bot: overHTTP}, func(r *rig) {
			there := time.Now().Add(offset)
			for at, want := range map[time.Time]int{there: http.StatusOK, there.Add(-8 * time.Minute): http.StatusUnauthorized, time.Now(): http.StatusUnauthorized} {
				if status, _ := r.post(http.MethodPost, "", r.srv.Sign([]byte(eventBody), at), strings.NewReader(eventBody)); status != want {
					r.Errorf("%v ahead: signed %v ago, answered with %d", -offset, there.Sub(at), status)
				}
			}
			r.sink.Next(r.T)
		})
	}
}

// TestReplaysAreKnown: within five minutes a request can be replayed; its keys tell.
func TestReplaysAreKnown(t *testing.T) {
	inBubble(t, setup{bot: overHTTP}, func(r *rig) {
		h := r.srv.Sign([]byte(eventBody), time.Now())
		for range 3 {
			if status, _ := r.post(http.MethodPost, "", h, strings.NewReader(eventBody)); status != http.StatusOK {
				r.Errorf("answered with %d", status)
			}
		}
		r.sink.Next(r.T)
		r.none()
		settle(6 * time.Minute)
		if status, _ := r.post(http.MethodPost, "", h, strings.NewReader(eventBody)); status != http.StatusUnauthorized {
			r.Errorf("an old request is answered with %d", status)
		}
	})
}

func TestRequestsAreBounded(t *testing.T) {
	inBubble(t, setup{bot: overHTTP}, func(r *rig) {
		large := bytes.Repeat([]byte(" "), largestRequest+1)
		if status, _ := r.post(http.MethodPost, "", r.srv.Sign(large, time.Now()), bytes.NewReader(large)); status != http.StatusRequestEntityTooLarge {
			r.Errorf("answered with %d", status)
		}
		if status, _ := r.post(http.MethodGet, "", http.Header{}, http.NoBody); status != http.StatusMethodNotAllowed {
			r.Errorf("GET is answered with %d", status)
		}
		slow, hold := io.Pipe()
		defer func() { _ = hold.Close() }()
		began := time.Now()
		address, client := r.srv.Hook()
		req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, address, slow)
		if err != nil {
			r.Fatal(err)
		}
		if resp, err := client.Do(req); err == nil {
			if _ = resp.Body.Close(); resp.StatusCode != http.StatusBadRequest {
				r.Errorf("answered with %d", resp.StatusCode)
			}
		}
		if took := time.Since(began); took > readLimit {
			r.Errorf("a body that does not come is awaited for %v", took)
		}
	})
}

// TestOnlyTheBodyCounts: the address is not signed.
func TestOnlyTheBodyCounts(t *testing.T) {
	inBubble(t, setup{bot: overHTTP}, func(r *rig) {
		body := "ssl_check=1"
		h := r.srv.Sign([]byte(body), time.Now())
		h.Set("Content-Type", "application/x-www-form-urlencoded")
		query := "?payload=%7B%22type%22%3A%22block_actions%22%7D&command=%2Fbot&user_id=U0ANN0001&channel_id=D0ANN0001&text=evil"
		if status, _ := r.post(http.MethodPost, query, h, strings.NewReader(body)); status != http.StatusOK {
			r.Errorf("answered with %d", status)
		}
		r.none()
	})
}

func TestAddressIsVerified(t *testing.T) {
	inBubble(t, setup{bot: overHTTP}, func(r *rig) {
		if status, body := r.srv.Verify(); status != http.StatusOK || !strings.HasPrefix(body, "3eZbrw1a") {
			r.Errorf("answered with %d %q", status, body)
		}
		r.none()
	})
	inBubble(t, setup{}, func(r *rig) {
		if r.bot.Path() != "" {
			r.Errorf("Socket Mode listens at %q", r.bot.Path())
		}
	})
}

func TestUnstoredRequestsComeAgain(t *testing.T) {
	inBubble(t, setup{bot: overHTTP}, func(r *rig) {
		r.sink.Refuse(errors.New("disk full"))
		r.srv.UserSays(dm, ann, "important")
		first := r.sink.Refused(r.T)
		settle(30 * time.Second) // the first repetition follows at once
		for r.srv.Pending() == 0 {
			r.Fatal("acknowledged though it is not stored")
		}
		r.sink.Refuse(nil)
		again := r.sink.Next(r.T)
		if again.EventKey != first.EventKey {
			r.Errorf("keys %q and %q", first.EventKey, again.EventKey)
		}
		settle(10 * time.Minute)
		r.none()
		d := r.srv.Deliveries()
		if last := d[len(d)-1]; last.Attempt == 0 || last.Acked.IsZero() || last.Reason == "" {
			r.Errorf("deliveries %+v", d)
		}
	})
}

// TestWebhookWaitsForRun: what arrives before the account runs comes again.
func TestWebhookWaitsForRun(t *testing.T) {
	inBubble(t, setup{bot: overHTTP, idle: true}, func(r *rig) {
		h := r.srv.Sign([]byte(eventBody), time.Now())
		if status, _ := r.post(http.MethodPost, "", h, strings.NewReader(eventBody)); status != http.StatusServiceUnavailable {
			r.Errorf("answered with %d", status)
		}
	})
}

func TestInteractionsOverHTTP(t *testing.T) {
	inBubble(t, setup{bot: overHTTP}, func(r *rig) {
		r.srv.Slash(general, ann, "/bot", "model a+b &amp; 100% &lt;x&gt;")
		in := r.sink.Next(r.T)
		if in.Text != "/model a+b & 100% <x>" || in.Address != room || in.Via == "" {
			r.Errorf("got %+v", in)
		}
		p := replyTo(in, "choose")
		p.Buttons = menuOf(3)
		if _, err := r.bot.Send(r.Context(), p); err != nil {
			r.Fatal(err)
		}
		r.srv.Press(general, ann, r.last(general).TS, shorten(p.Buttons[2].Label, longestLabel))
		if in := r.sink.Next(r.T); in.Text != "/model m2" || in.Via == "" {
			r.Errorf("got %+v", in)
		}
	})
}

func TestProbe(t *testing.T) {
	lines := func(r *rig) string {
		found, err := r.bot.Probe(r.Context())
		return fmt.Sprintf("%v, %v", found, err)
	}
	inBubble(t, setup{idle: true}, func(r *rig) {
		if got, want := lines(r), "[{bot token works: understudy (U0BOT0001) in the workspace Understudy (T0TEAM001) } "+
			"{all 19 scopes are granted } {app token works: Socket Mode opens }], <nil>"; got != want {
			r.Errorf("got  %s\nwant %s", got, want)
		}
		if r.srv.Sockets() != 0 {
			r.Error("connected")
		}
	})
	inBubble(t, setup{idle: true, before: nil}, func(r *rig) {
		r.srv.Revoke()
		if got := lines(r); !strings.Contains(got, "check botToken") {
			r.Errorf("got %s", got)
		}
	})
	inBubble(t, setup{idle: true, bot: func(c *Config, _ *Deps) {
		c.Channels = map[string]Room{"*": {}, general: {}, "C0OUTSIDE": {}, "C0OLD0001": {}, "C0NOWHERE": {}}
	}}, func(r *rig) {
		r.srv.AddChannel(emulator.Channel{ID: "C0OUTSIDE", Kind: "channel", Name: "outside", NotMember: true})
		r.srv.AddChannel(emulator.Channel{ID: "C0OLD0001", Kind: "channel", Name: "old", Archived: true})
		got := lines(r)
		for _, want := range []string{
			"the bot is not in the channel C0OUTSIDE (outside) write /invite @understudy there", "the channel C0OLD0001 (old) is archived",
			"the channel C0NOWHERE is not there, or private and without the bot", "the bot is in 1 configured channels", "app token works",
		} {
			if !strings.Contains(got, want) {
				r.Errorf("%q is not in %s", want, got)
			}
		}
	})
	short := setup{idle: true}
	short.server.Scopes = []string{"chat:write", "commands"}
	short.bot = overHTTP
	inBubble(t, short, func(r *rig) {
		got := lines(r)
		for _, want := range []string{"add files:read under OAuth & Permissions", "the scope im:history is missing: direct messages do not arrive", "awaited over HTTP at /slack/events"} {
			if !strings.Contains(got, want) {
				r.Errorf("%q is not in %s", want, got)
			}
		}
		if strings.Contains(got, "scope commands") {
			r.Errorf("got %s", got)
		}
	})
}
