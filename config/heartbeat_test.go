package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/chat"
	"understudy/heartbeat"
)

func TestHeartbeatsInheritKeyByKey(t *testing.T) {
	c := must(t, `
agents:
  defaults:
    model: anthropic/claude-opus-4-8
    userTimezone: Europe/Berlin
    heartbeat: {every: 20, activeHours: {start: "08:00", end: "24:00"}, isolatedSession: true, timeoutSeconds: 90, showOk: true, byChannel: {slack: {showOk: false}}}
  list:
    - {id: main, default: true}
    - {id: ops, heartbeat: {every: 1h, target: telegram, to: "-100:topic:7", accountId: default, directPolicy: block, allowFallbacks: false, isolatedSession: false, showAlerts: false}}
models: {providers: {anthropic: {apiKey: sk-ant-1}}}
`)
	berlin, _ := time.LoadLocation("Europe/Berlin")
	same := cmp.Comparer(func(a, b *time.Location) bool { return a.String() == b.String() })
	want := heartbeat.Settings{
		Every: 20 * time.Minute, Hours: &heartbeat.Hours{Start: 480, End: 1440, Zone: berlin}, Target: heartbeat.TargetOwner, Implied: true,
		Isolated: true, Prompt: heartbeat.DefaultPrompt, Timeout: 90 * time.Second,
		Show: heartbeat.Show{OK: true, Alerts: true, Indicator: true}, ShowOn: map[string]heartbeat.Show{"slack": {Alerts: true, Indicator: true}},
	}
	if diff := cmp.Diff(want, c.Agent("main").Heartbeat, same); diff != "" {
		t.Error(diff)
	}
	want.Every, want.Target, want.Implied, want.Isolated, want.BlockDirect, want.NoFallbacks = time.Hour, "telegram", false, false, true, true
	want.To = chat.Address{Channel: "telegram", Conversation: "-100", Thread: "7", Kind: chat.Group}
	want.Show.Alerts = false
	if diff := cmp.Diff(want, c.Agent("ops").Heartbeat, same); diff != "" {
		t.Error(diff)
	}
}

func TestHeartbeatsThatMakeNoSense(t *testing.T) {
	for text, hint := range map[string]string{
		"every: 10s":             "heartbeat.every",
		"target: telegram":       "heartbeat.target",
		"target: nowhere, to: x": "heartbeat.target",
		"to: x":                  "heartbeat.to",
		"target: last, to: x":    "heartbeat.to",
		"activeHours: {start: \"8\", end: \"9:00\"}": "heartbeat.activeHours",
		"activeHours: {start: \"08:00\"}":            "heartbeat.activeHours",
		"session: \"../x\"":                          "heartbeat.session",
		"timeoutSeconds: -1":                         "heartbeat.timeoutSeconds",
		"directPolicy: perhaps":                      "heartbeat.directPolicy",
	} {
		_, _, err := parse("bot.yaml", []byte("agents: {defaults: {heartbeat: {"+text+"}}}"), Options{Env: env()})
		if err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestTasksAndBudgetsAreChecked(t *testing.T) {
	for text, hint := range map[string]string{
		"cron: {catchUp: always}":                     "cron.catchUp",
		"cron: {timezone: Nowhere}":                   "cron.timezone",
		"cron: {failureAlert: {channel: telegram}}":   "cron.failureAlert.to",
		"budget: {background: {maxTokensPerDay: -1}}": "budget.background.maxTokensPerDay",
		"budget: {fallback: {maxPerDay: -0.5}}":       "budget.fallback.maxPerDay",
		"budget: {fallback: {maxPerDay: much}}":       "budget.fallback.maxPerDay",
	} {
		if _, _, err := parse("bot.yaml", []byte(text), Options{Env: env()}); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("%s: %v", text, err)
		}
	}
	c := must(t, "cron: {webhookToken: token-1234}\nbudget: {fallback: {maxPerDay: 2.5, ask: true}, background: {maxTokensPerDay: 1000, maxCostPerDay: 1}}")
	if c.Cron.WebhookToken.Reveal() != "token-1234" || c.Cron.MaxConcurrentRuns != 4 || c.Budget.Fallback.MaxPerDay != 2.5 || !c.Budget.Fallback.Ask || c.Budget.Background.MaxTokensPerDay != 1000 {
		t.Errorf("%+v %+v", c.Cron, c.Budget)
	}
}
