package app_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/app"
	"understudy/chat"
	"understudy/gateway"
	"understudy/internal/emulate/slack"
	"understudy/internal/emulate/telegram"
)

// served runs a bot with its listener on loopback until the test ends, and returns it.
func served(t *testing.T, config string, change func(*app.Options)) *app.App {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "bot.yaml")
	if err := os.WriteFile(file, []byte(offlineModels+config), 0o600); err != nil {
		t.Fatal(err)
	}
	o := app.Options{
		Version: "test", Config: file, Listen: "127.0.0.1:0", NoControl: true, Log: slog.New(slog.DiscardHandler),
		Env: func(name string) (string, bool) {
			v, ok := map[string]string{"OPENCLAW_STATE_DIR": filepath.Join(dir, "state"), "OLLAMA_HOST": "127.0.0.1:1"}[name]
			return v, ok
		},
	}
	change(&o)
	bot, err := app.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- bot.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := bot.Close(); err != nil {
			t.Error(err)
		}
	})
	return bot
}

// patience bounds how long something real may take.
const patience = 30 * time.Second

// connected waits until an account is connected: nothing tells a test outside of a bubble.
func connected(t *testing.T, bot *app.App, channel string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		st, err := bot.Status(ctx, chat.Address{})
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(st.Channels, func(c gateway.ChannelStatus) bool { return c.Channel == channel && c.State == "connected" }) {
			return
		}
		<-look.C
	}
}

func waitFor(t *testing.T, f func(context.Context, func() bool) error, cond func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := f(ctx, cond); err != nil {
		t.Fatal(err)
	}
}

func TestSlackOverHTTPThroughTheGateway(t *testing.T) {
	s := slack.New(slack.Config{})
	defer s.Close()
	s.AddChannel(slack.Channel{ID: slackDM, Kind: "im", With: slackAlice})
	bot := served(t, fmt.Sprintf("channels: {slack: {mode: http, botToken: %s, signingSecret: %s, allowFrom: [%s], apiRoot: %q}}\n",
		s.Config().BotToken, s.Config().SigningSecret, slackAlice, slack.Root),
		func(o *app.Options) { o.Slack, o.Dial = s.Transport, s.Dial })
	listener, err := url.Parse(bot.URL())
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(listener)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	proxy.Transport = transport
	s.PostTo(proxy, "/slack/events")
	connected(t, bot, "slack")
	if status, _ := s.Verify(); status != http.StatusOK {
		t.Errorf("the address is not verified: %d", status)
	}
	s.UserSays(slackDM, slackAlice, "hello over http")
	waitFor(t, s.WaitFor, func() bool {
		sent := s.Sent(slackDM)
		return len(sent) == 1 && strings.Contains(sent[0].Text, "“hello over http”")
	})
	if n := s.Sockets(); n != 0 {
		t.Errorf("%d sockets beside HTTP", n)
	}
	res, err := (&http.Client{Transport: transport}).Post(bot.URL()+"slack/events", "application/json", strings.NewReader(
		`{"type":"event_callback","team_id":"T0TEAM001","event_id":"EvForged","event":{"type":"message","channel_type":"im","channel":"`+slackDM+`","user":"`+slackAlice+`","ts":"1.1","text":"forged"}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusUnauthorized && res.StatusCode != http.StatusForbidden {
		t.Errorf("a forged call: %d", res.StatusCode)
	}
}

// leads is a transport that brings every request to one server, as a reverse proxy with TLS does.
type leads struct {
	*http.Transport
	to chan *url.URL // holds the server's address, once it is known
}

// RoundTrip implements http.RoundTripper.
func (l leads) RoundTrip(r *http.Request) (*http.Response, error) {
	to := <-l.to
	l.to <- to
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = to.Scheme, to.Host
	return l.Transport.RoundTrip(r)
}

func TestTelegramWebhookThroughTheGateway(t *testing.T) {
	public := leads{&http.Transport{}, make(chan *url.URL, 1)}
	defer public.CloseIdleConnections()
	tg := telegram.New(telegram.Config{Webhook: public})
	defer tg.Close()
	bot := served(t, fmt.Sprintf("channels: {telegram: {botToken: %q, apiRoot: %q, webhookUrl: 'https://bot.example.com', webhookSecret: a-secret-of-some-length, dmPolicy: allowlist, allowFrom: [%d]}}\n",
		tg.Token(), telegram.Root, alice), func(o *app.Options) { o.Telegram = tg.Transport })
	listener, err := url.Parse(bot.URL())
	if err != nil {
		t.Fatal(err)
	}
	public.to <- listener
	connected(t, bot, "telegram")
	tg.UserSays(alice, alice, "/status")
	waitFor(t, tg.WaitFor, func() bool { return len(tg.Sent(alice)) == 1 })
	if polls := len(tg.Calls("getUpdates")); polls != 0 {
		t.Errorf("polled %d times beside the webhook", polls)
	}
	res, err := (&http.Client{Transport: public}).Post("https://bot.example.com/telegram-webhook", "application/json", strings.NewReader(`{"update_id":1}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusOK {
		t.Error("a call without the secret is taken")
	}
}

func TestAccountThatIsCalledNeedsTheListener(t *testing.T) {
	s := slack.New(slack.Config{})
	defer s.Close()
	bot := served(t, fmt.Sprintf("channels: {slack: {mode: http, botToken: %s, signingSecret: %s, apiRoot: %q}}\n", s.Config().BotToken, s.Config().SigningSecret, slack.Root),
		func(o *app.Options) { o.Slack, o.Dial, o.Listen = s.Transport, s.Dial, "off" })
	connected(t, bot, "web")
	for state, problems := bot.Ready(t.Context()); ; state, problems = bot.Ready(t.Context()) {
		if state == "starting" { // it is ready a moment later
			continue
		}
		if state != "degraded" || len(problems) != 1 || !strings.Contains(problems[0].Detail, "the listener is off") {
			t.Errorf("%s %v", state, problems)
		}
		return
	}
}
