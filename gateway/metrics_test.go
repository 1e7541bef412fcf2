package gateway

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestMetricLabelsAreClosed(t *testing.T) {
	m := NewMetrics(MetricsConfig{Channels: []string{"web"}, Models: []string{"openai/gpt-5.5"}, Voices: []string{"robot"}})
	m.MessageReceived("web", "direct")
	m.MessageReceived("somebody's channel", "direct")
	m.TurnEnded(Turn{Channel: "web", Model: "openai/gpt-5.5", Outcome: "answered", Trigger: "message", Duration: time.Second})
	m.TurnEnded(Turn{Channel: "web", Model: "openai/typed-by-a-user", Outcome: "answered", Trigger: "message"})
	m.ModelFailover("openai/gpt-5.5", "x/y", "rate_limit")
	m.Notice("fallback", "sent")
	m.Delivery("web", "assistant", "sent", "none")
	m.ChannelUp("web", 0, true)
	m.ChannelReconnect("web")
	m.RateLimited("web", "send")
	m.Probe("openai", "rate_limit")
	m.CronRun("skipped")
	m.Heartbeat("alert")
	m.FirstText(time.Second)
	m.Speech("robot", "timeout")
	m.Speech("sk-key", "loud")
	m.Compaction("ok")
	m.Tokens("openai/gpt-5.5", "input", 12)
	m.QueueDepth("waiting", 3)
	m.ProfilesResting([]Resting{{"groq", "billing"}})
	m.Configured([]string{"groq/new"})
	m.Tokens("groq/new", "output", 1)
	m.ProfilesResting([]Resting{{"openai", "auth_permanent"}, {"openai", "auth_permanent"}, {"sk-key", "billing"}})
	text := scrape(t, m)
	for _, want := range []string{
		`bot_messages_received_total{channel="web",chat_type="direct"} 1`,
		`bot_messages_received_total{channel="other",chat_type="direct"} 1`,
		`bot_turns_total{channel="web",model="openai/gpt-5.5",outcome="answered",provider="openai",trigger="message"} 1`,
		`bot_turns_total{channel="web",model="other",outcome="answered",provider="openai",trigger="message"} 1`,
		`bot_turn_duration_seconds_count 1`,
		`bot_model_failover_total{from_model="openai/gpt-5.5",reason="rate_limit",to_model="other"} 1`,
		`bot_notices_total{kind="fallback",outcome="sent"} 1`,
		`bot_deliveries_total{channel="web",error_class="none",kind="assistant",outcome="sent"} 1`,
		`bot_channel_up{account="0",channel="web"} 1`,
		`bot_tokens_total{model="openai/gpt-5.5",provider="openai",type="input"} 12`,
		`bot_queue_depth{state="waiting"} 3`,
		`bot_profile_resting{provider="openai",reason="auth_permanent"} 2`,
		`bot_profile_resting{provider="other",reason="billing"} 1`,
		`bot_tokens_total{model="groq/new",provider="groq",type="output"} 1`,
		`bot_tts_total{outcome="timeout",provider="robot"} 1`,
		`bot_tts_total{outcome="other",provider="other"} 1`,
		`bot_probe_total{outcome="rate_limit",provider="openai"} 1`,
		`bot_compactions_total{outcome="ok"} 1`,
		`bot_cron_runs_total{status="skipped"} 1`,
		`bot_heartbeat_total{result="alert"} 1`,
		`bot_first_token_seconds_count 1`,
		`bot_channel_reconnects_total{channel="web"} 1`,
		`bot_rate_limited_total{channel="web",method="send"} 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("missing: %s", want)
		}
	}
	explained, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (bot_\w+) `).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(string(explained), "`"+m[1]+"`") {
			t.Errorf("docs/operations.md does not explain %s", m[1])
		}
	}
	if n := strings.Count(text, "bot_profile_resting{"); n != 2 {
		t.Errorf("%d sorts of credentials rest", n)
	}
	for _, bad := range []string{"somebody", "typed-by"} {
		if strings.Contains(text, bad) {
			t.Errorf("a label holds %q", bad)
		}
	}
	var none *Metrics
	none.MessageReceived("web", "direct")
	none.TurnEnded(Turn{})
}

func TestMetricSeriesAreBounded(t *testing.T) {
	var models []string
	for i := range 60 {
		models = append(models, "p/"+strings.Repeat("m", i+1))
	}
	m := NewMetrics(MetricsConfig{Models: models})
	for _, from := range models {
		for _, to := range models {
			m.ModelFailover(from, to, "timeout")
		}
	}
	if n := strings.Count(scrape(t, m), "bot_model_failover_total{"); n > MaxSeries+1 {
		t.Errorf("%d series", n)
	}
}

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := &recorder{header: http.Header{}}
	m.Handler().ServeHTTP(w, &http.Request{Method: "GET", Header: http.Header{}})
	return w.body.String()
}

type recorder struct {
	header http.Header
	body   strings.Builder
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }
func (r *recorder) WriteHeader(int)             {}
