package app_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/app"
	emullm "understudy/internal/emulate/llm"
	"understudy/internal/emulate/telegram"
	"understudy/internal/sqlite"
)

// examined is what the doctor finds, by check, errors and warnings only.
func examined(t *testing.T, o app.Options, do app.DoctorOptions) map[string][]string {
	t.Helper()
	do.JSON = true
	exit, text := run(func(std app.Std) int { return app.Doctor(t.Context(), o, std, do) })
	var report struct {
		Findings []struct{ Check, Level, Message, Fix string }
	}
	if err := json.Unmarshal([]byte(text), &report); err != nil || exit != app.ExitOK {
		t.Fatalf("exit %d, %v: %s", exit, err, text)
	}
	found := map[string][]string{}
	for _, f := range report.Findings {
		if f.Level != "ok" {
			found[f.Check] = append(found[f.Check], f.Message+" → "+f.Fix)
		}
	}
	return found
}

func TestDoctorFindsWhatStandsStill(t *testing.T) {
	ticking(t, still, func(w *clockwork) {
		if found := examined(w.t, w.Options(), app.DoctorOptions{}); len(found["tasks"])+len(found["messages"])+len(found["sessions"]) > 0 {
			t.Errorf("at the start: %v", found)
		}
		w.Models.Fault(emullm.Fault{Status: 401})
		often, once := w.add(`"every 1m" Report often`), w.add(`20m Report once`)
		w.pass(21 * time.Minute)
		w.Models.Heal()
		w.Telegram.Inject(telegram.Fault{Method: "sendMessage", Status: http.StatusBadGateway, Times: -1})
		w.Telegram.UserSays(alice, alice, "hello")
		w.pass(6 * time.Minute)
		w.state(func(db *sqlite.DB) { // a turn that never ended, and ten failures in a row
			for _, change := range []string{
				`UPDATE inbound SET state = 'dispatched', received_at = received_at - 3600000 WHERE id = (SELECT max(id) FROM inbound)`,
				`UPDATE cron_jobs SET enabled = 0, next_run_at = NULL, disabled_reason = 'failed 10 times in a row', disabled_at = last_run_at WHERE once = 0`,
			} {
				if _, err := db.Writes().ExecContext(w.t.Context(), change); err != nil {
					t.Fatal(err)
				}
			}
		})
		found := examined(w.t, w.Options(), app.DoctorOptions{})
		for check, words := range map[string][]string{
			"messages": {"1 messages: to be sent for more than five minutes → bot channels status"},
			"sessions": {"telegram 1001 is stuck: 1 messages have waited for an answer since ", "/stop"},
		} {
			if got := found[check]; len(got) != 1 || !inOrder(got[0], words...) {
				t.Errorf("%s: %q", check, got)
			}
		}
		tasks := strings.Join(found["tasks"], "\n")
		for _, words := range [][]string{
			{`"Report often"`, often, "was switched off on ", "failed 10 times in a row", "bot cron enable " + often},
			{`"Report once"`, once, "was given up on ", "failed for good: the provider refused the credentials", "bot cron run " + once},
		} {
			if !inOrder(tasks, words...) {
				t.Errorf("no %q in %s", words, tasks)
			}
		}
	})
}

// installed are the options of verbs over a configuration that no bot runs with.
func installed(t *testing.T, config string) app.Options {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "bot.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return app.Options{Config: file, Env: func(name string) (string, bool) {
		return filepath.Join(dir, "state"), name == "OPENCLAW_STATE_DIR"
	}}
}

func TestDoctorMissesProgramsThatSpeak(t *testing.T) {
	o := installed(t, offlineModels+`tts: {auto: always, providers: {voice: {command: /nowhere/speak, args: ["{{Text}}"]}, away: {enabled: false, command: /nowhere/else, args: ["{{Text}}"]}}}
stt: {provider: command, command: /nowhere/listen, args: ["{{InputPath}}"]}
`)
	t.Setenv("PATH", t.TempDir())
	got := strings.Join(examined(t, o, app.DoctorOptions{})["speech"], "\n")
	if !inOrder(got, "voice cannot speak", "ffmpeg is not there: what voice says is sent as wav", "voice notes cannot be written down") || strings.Contains(got, "away") {
		t.Error(got)
	}
}

// late is a provider whose clock is behind.
type late struct{ by time.Duration }

// RoundTrip implements http.RoundTripper.
func (l late) RoundTrip(r *http.Request) (*http.Response, error) {
	date := time.Now().Add(-l.by).UTC().Format(http.TimeFormat)
	return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{"Date": {date}}, Body: http.NoBody, Request: r}, nil
}

func TestDoctorComparesTheClock(t *testing.T) {
	o := installed(t, `agents: {defaults: {model: alpha/a1}}
models: {providers: {alpha: {api: openai-chat, baseUrl: "https://models.test/v1", apiKey: "${ALPHA_KEY}"}}}
`)
	for by, want := range map[time.Duration]string{0: "", 2 * time.Minute: "ahead of", -2 * time.Minute: "behind"} {
		o.Transport = func(string) http.RoundTripper { return late{by} }
		got := strings.Join(examined(t, o, app.DoctorOptions{Probe: true})["system"], "\n")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q", by, got)
		}
	}
}
