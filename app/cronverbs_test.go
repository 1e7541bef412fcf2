package app_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy/app"
	"understudy/cron/webhook"
	"understudy/internal/emulate/discord"
	"understudy/internal/emulate/slack"
)

// exits runs a verb and checks how it ends.
func exits(t *testing.T, f func(std app.Std) int, exit int, says ...string) string {
	t.Helper()
	code, text := run(f)
	if code != exit {
		t.Errorf("exit %d: %s", code, text)
	}
	for _, s := range says {
		if !strings.Contains(text, s) {
			t.Errorf("it does not say %q:\n%s", s, text)
		}
	}
	return text
}

func ptr[T any](v T) *T { return &v }

// counts checks lines of the metrics.
func counts(t *testing.T, bot *app.App, lines ...string) {
	t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get(bot.URL() + "metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if !strings.Contains(string(text), line+"\n") {
			t.Errorf("no %s in\n%s", line, text)
		}
	}
}

func TestVerbsOfTasks(t *testing.T) {
	var o app.Options
	bot := served(t, "cron: {timezone: Europe/Berlin}\n", func(x *app.Options) { x.NoControl = false; o = *x })
	ctx := t.Context()
	exits(t, func(std app.Std) int { return app.CronList(ctx, o, std, true, false) }, app.ExitOK, "No task is scheduled")
	text := exits(t, func(std app.Std) int {
		return app.CronAdd(ctx, o, std, app.CronChange{Schedule: ptr("every day at 9"), Message: ptr("Report"), Name: ptr("Daily"), Announce: ptr(false), Keep: ptr(true)})
	}, app.ExitOK, "Scheduled: Daily (")
	if n := strings.Count(text, "09:00 CE"); n != 3 {
		t.Errorf("%d next times in %s", n, text)
	}
	id := regexp.MustCompile(`\(([a-z2-7]{10})\)`).FindStringSubmatch(text)[1]
	exits(t, func(std app.Std) int { return app.CronList(ctx, o, std, false, false) }, app.ExitOK, id, "Daily", "09:00 CE")
	exits(t, func(std app.Std) int { return app.CronShow(ctx, o, std, id, false) }, app.ExitOK, "the run log only", "session isolated", "Report")
	exits(t, func(std app.Std) int {
		return app.CronEdit(ctx, o, std, app.CronChange{ID: id, Schedule: ptr("every day at 10"), Fallbacks: &[]string{}})
	}, app.ExitOK, "Changed", "10:00 CE")
	exits(t, func(std app.Std) int { return app.CronShow(ctx, o, std, id, false) }, app.ExitOK, "and no other")
	for alert, says := range map[app.CronAlert]string{{After: 3, To: "slack:channel:C0123AB"}: "from failure 3 in a row on, to slack:channel:C0123AB", {Off: true}: "none"} {
		exits(t, func(std app.Std) int { return app.CronEdit(ctx, o, std, app.CronChange{ID: id, Alert: &alert}) }, app.ExitOK)
		exits(t, func(std app.Std) int { return app.CronShow(ctx, o, std, id, false) }, app.ExitOK, says)
	}
	exits(t, func(std app.Std) int { return app.CronSwitch(ctx, o, std, id, false) }, app.ExitOK, "Off")
	exits(t, func(std app.Std) int { return app.CronList(ctx, o, std, false, false) }, app.ExitOK, "No task")
	exits(t, func(std app.Std) int { return app.CronSwitch(ctx, o, std, id, true) }, app.ExitOK, "10:00 CE")
	exits(t, func(std app.Std) int { return app.CronRunNow(ctx, o, std, id, true, false) }, app.ExitFailed, "not due")
	exits(t, func(std app.Std) int { return app.CronRunNow(ctx, o, std, id, false, true) }, app.ExitOK, "succeeded", "sim/lead")
	exits(t, func(std app.Std) int { return app.CronRuns(ctx, o, std, id, 10, false) }, app.ExitOK, id+"-1", "ok")
	exits(t, func(std app.Std) int { return app.CronNextRuns(ctx, o, std, "", "", 3, false) }, app.ExitOK, id)
	exits(t, func(std app.Std) int { return app.CronNextRuns(ctx, o, std, "0 9 * * 1", "Asia/Tokyo", 2, false) }, app.ExitOK, "09:00 JST")
	exits(t, func(std app.Std) int { return app.CronNextRuns(ctx, o, std, "whenever", "", 2, false) }, app.ExitFailed, "schedule")
	for _, bad := range []app.CronChange{
		{Schedule: ptr("nonsense"), Message: ptr("x"), Announce: ptr(false)},
		{Schedule: ptr("20m"), Message: ptr("x")}, // nobody says where to
		{Schedule: ptr("20m"), Message: ptr("x"), Announce: ptr(false), Alert: &app.CronAlert{To: "general"}},
		{Schedule: ptr("20m"), Message: ptr("x"), Announce: ptr(false), Model: ptr("no/such")},
		{Schedule: ptr("20m"), Message: ptr("x"), Webhook: "http://example.com"},
	} {
		exits(t, func(std app.Std) int { return app.CronAdd(ctx, o, std, bad) }, app.ExitFailed)
	}
	exits(t, func(std app.Std) int { return app.HeartbeatNow(ctx, o, std, "") }, app.ExitFailed, "nobody is known who could be told")
	counts(t, bot, `bot_cron_runs_total{status="ok"} 1`, `bot_heartbeat_total{result="skipped"} 1`, `bot_queue_depth{state="waiting"} 0`,
		`bot_turns_total{channel="other",model="sim/lead",outcome="answered",provider="sim",trigger="cron"} 1`)
	exits(t, func(std app.Std) int { return app.CronRemove(ctx, o, std, id) }, app.ExitOK, "Removed")
	exits(t, func(std app.Std) int { return app.CronShow(ctx, o, std, id, false) }, app.ExitFailed, "no such scheduled task")
}

// retarget has heartbeats tell nobody.
func retarget(t *testing.T, file string) {
	t.Helper()
	text := strings.Replace(offlineModels, "fallbacks: [sim/understudy]}", "fallbacks: [sim/understudy]}, heartbeat: {target: none}", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestVerbsOfHeartbeats(t *testing.T) {
	o, _ := beside(t, "", func(o *app.Options) { retarget(t, o.Config) })
	ctx := t.Context()
	exits(t, func(std app.Std) int { return app.HeartbeatLast(ctx, o, std, "", false) }, app.ExitOK, "every 30m", "none yet")
	exits(t, func(std app.Std) int { return app.HeartbeatScratch(ctx, o, std, "", app.ScratchChange{}) }, app.ExitOK, "There is no checklist")
	file := filepath.Join(t.TempDir(), "list.md")
	if err := os.WriteFile(file, []byte("# List\n- [ ]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	exits(t, func(std app.Std) int { return app.HeartbeatScratch(ctx, o, std, "", app.ScratchChange{File: file}) }, app.ExitOK, "is stored")
	exits(t, func(std app.Std) int { return app.HeartbeatNow(ctx, o, std, "") }, app.ExitFailed, "the checklist is empty")
	exits(t, func(std app.Std) int {
		return app.HeartbeatScratch(ctx, o, std, "", app.ScratchChange{Set: ptr("- look")})
	}, app.ExitOK)
	exits(t, func(std app.Std) int { return app.HeartbeatNow(ctx, o, std, "") }, app.ExitOK, "alert")
	exits(t, func(std app.Std) int { return app.HeartbeatLast(ctx, o, std, "", false) }, app.ExitOK, "sim/lead", "found")
	exits(t, func(std app.Std) int { return app.HeartbeatNow(ctx, o, std, "nobody") }, app.ExitFailed, "no such agent")
	exits(t, func(std app.Std) int { return app.HeartbeatScratch(ctx, o, std, "", app.ScratchChange{Unset: true}) }, app.ExitOK, "There is no checklist")
}

func TestLookingNeedsNoBotAndChangingDoes(t *testing.T) {
	dir := t.TempDir()
	o := app.Options{Config: filepath.Join(dir, "bot.yaml"), Env: func(name string) (string, bool) { return filepath.Join(dir, "state"), name == "OPENCLAW_STATE_DIR" }}
	if err := os.WriteFile(o.Config, []byte("models: {providers: {sim: {}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	exits(t, func(std app.Std) int { return app.CronList(ctx, o, std, true, false) }, app.ExitOK, "No task")
	exits(t, func(std app.Std) int { return app.CronNextRuns(ctx, o, std, "every day at 9", "UTC", 1, false) }, app.ExitOK, "09:00 UTC")
	exits(t, func(std app.Std) int {
		return app.HeartbeatScratch(ctx, o, std, "", app.ScratchChange{Set: ptr("- look")})
	}, app.ExitOK, "is stored")
	exits(t, func(std app.Std) int { return app.HeartbeatLast(ctx, o, std, "", true) }, app.ExitOK, `"agent": "main"`)
	for _, f := range []func(std app.Std) int{
		func(std app.Std) int {
			return app.CronAdd(ctx, o, std, app.CronChange{Schedule: ptr("20m"), Message: ptr("x"), Announce: ptr(false)})
		},
		func(std app.Std) int { return app.CronRemove(ctx, o, std, "x") },
		func(std app.Std) int { return app.CronRunNow(ctx, o, std, "x", false, false) },
		func(std app.Std) int { return app.HeartbeatNow(ctx, o, std, "") },
	} {
		exits(t, f, app.ExitFailed, "no running bot")
	}
}

// names finds every host at a public address.
type names struct{}

func (names) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
}

func TestAResultIsPostedToAWebhookOnceItAnswers(t *testing.T) {
	var mu sync.Mutex
	var got []webhook.Message
	var tokens []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m webhook.Message
		_ = json.NewDecoder(r.Body).Decode(&m)
		mu.Lock()
		defer mu.Unlock()
		got, tokens = append(got, m), append(tokens, r.Header.Get("Authorization"))
	}))
	defer server.Close()
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	o, _ := beside(t, "cron: {webhookToken: webhook-token-1234}\n", func(o *app.Options) {
		o.Webhooks = webhook.Deps{Resolver: names{}, TLS: &tls.Config{RootCAs: pool}, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		}}
	})
	text := exits(t, func(std app.Std) int {
		return app.CronAdd(t.Context(), o, std, app.CronChange{Schedule: ptr("every day at 9"), Message: ptr("[[tts]] Report"), Webhook: "https://example.com/hook?k=very-secret"})
	}, app.ExitOK)
	id := regexp.MustCompile(`\(([a-z2-7]{10})\)`).FindStringSubmatch(text)[1]
	exits(t, func(std app.Std) int { return app.CronRunNow(t.Context(), o, std, id, false, true) }, app.ExitOK, "succeeded")
	if shown := exits(t, func(std app.Std) int { return app.CronShow(t.Context(), o, std, id, true) }, app.ExitOK, "a webhook"); strings.Contains(shown, "very-secret") {
		t.Error("the URL is shown")
	}
	mu.Lock()
	defer mu.Unlock()
	if len(got) != 1 || got[0].Run != id+"-1" || got[0].Job != id || !strings.Contains(got[0].Text, "Report") || strings.Contains(got[0].Text, "[[") || tokens[0] != "Bearer webhook-token-1234" {
		t.Errorf("posted %+v with %q", got, tokens)
	}
}

// A person is named where the platform has conversations: the private one is opened.
func TestResultsForAPersonGoToTheirPrivateChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, "")
		s, d := o.slackServer("slack.test", slack.Config{}), o.discordServer("discord.test", discord.Config{})
		o.configure("channels: {slack: " + slackBlock(s, slack.Root, "dmPolicy: allowlist, allowFrom: ["+slackAlice+"]") +
			", discord: {botToken: " + d.Token() + ", apiRoot: \"http://discord.test\", dmPolicy: allowlist, allowFrom: [\"" + discordAlice + "\"]}}\n")
		o.addTask("1m", "slack", "user:"+slackAlice)
		o.addTask("1m", "discord", "user:"+discordAlice)
		o.open()
		pass(5 * time.Minute)
		synctest.Wait()
		if n := len(s.Sent(slackDM)); n != 1 {
			t.Errorf("%d messages on Slack\n%s", n, o.logs)
		}
		if n := len(d.Sent(discordDM)); n != 1 {
			t.Errorf("%d messages on Discord\n%s", n, o.logs)
		}
	})
}
