package app_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/app"
	"understudy/gateway"
	emullm "understudy/internal/emulate/llm"
	emutg "understudy/internal/emulate/telegram"
	"understudy/internal/sqlite"
)

// carolID is somebody who is not let in.
const carolID = 1003

// promising is a configuration in which the model may offer reminders.
const promising = "agents: {defaults: {userTimezone: Europe/Berlin, model: {primary: alpha/a1, fallbacks: []}, heartbeat: {every: 0}, commitments: {enabled: true}}}\n"

// promises has the model offer a reminder in its next answer, which is the text.
func promises(m *emullm.Server, what, when, text string) {
	in, _ := json.Marshal(map[string]string{"text": what, "when": when})
	once := emullm.Match{Times: 1}
	m.Reply(emullm.Reply{Match: once, ToolCalls: []emullm.ToolCall{{Name: "offer_reminder", Arguments: string(in)}}})
	m.Reply(emullm.Reply{Match: once, Text: text})
}

// offered is the newest message with two buttons in a chat.
func (w *clockwork) offered(chat int64) emutg.Message {
	w.t.Helper()
	for _, m := range slices.Backward(w.Telegram.Sent(chat)) {
		if len(m.Buttons) == 2 {
			return m
		}
	}
	w.t.Fatalf("nothing is offered: %+v\n%s", w.Telegram.Sent(chat), w.Log())
	return emutg.Message{}
}

// in are the texts that stand in a chat.
func (w *clockwork) in(chat int64) (list []string) {
	for _, m := range w.Telegram.Sent(chat) {
		list = append(list, m.Text)
	}
	return list
}

// tasks counts the scheduled tasks.
func (w *clockwork) tasks() (n int) {
	w.t.Helper()
	w.state(func(db *sqlite.DB) {
		if err := db.Reader().QueryRowContext(w.t.Context(), `SELECT count(*) FROM cron_jobs`).Scan(&n); err != nil {
			w.t.Fatal(err)
		}
	})
	return n
}

// token is what the buttons of the only offer stand for.
func (w *clockwork) token() (token string) {
	w.t.Helper()
	known := map[string]json.RawMessage{}
	w.state(func(db *sqlite.DB) {
		text := ""
		if err := db.Reader().QueryRowContext(w.t.Context(), `SELECT value FROM cursors WHERE channel = 'offers'`).Scan(&text); err != nil {
			w.t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(text), &known); err != nil || len(known) != 1 {
			w.t.Fatalf("%v: %s", err, text)
		}
	})
	for token = range known {
	}
	return token
}

func TestAnOfferIsForThePersonItWasMadeToAndIsTakenOnce(t *testing.T) {
	ticking(t, promising, func(w *clockwork) {
		promises(w.Models, "to look at the build", "tomorrow 9:00", "I'll look tomorrow at nine.")
		w.Telegram.UserSays(opsGroup, bobID, "@understudy_bot is the build green?")
		w.pass(20 * time.Second)
		q := w.offered(opsGroup)
		if len(w.in(opsGroup)) != 2 || q.Text != "⏰ Shall I remind you: look at the build\nWhen: Sun 2 Jan 09:00" || q.ReplyTo != 0 {
			t.Fatalf("offered %q after %q", q.Text, w.in(opsGroup))
		}
		w.Telegram.SetUser(emutg.User{ID: carolID, FirstName: "Carol"})
		w.Telegram.Press(opsGroup, carolID, q.ID, "Remind me") // nobody the bot knows
		w.pass(5 * time.Second)
		if len(w.in(opsGroup)) != 2 || w.tasks() != 0 {
			t.Fatalf("a stranger is heard: %q", w.in(opsGroup))
		}
		for range 3 {
			w.Telegram.Press(opsGroup, bobID, q.ID, "Remind me")
		}
		w.Telegram.Press(opsGroup, bobID, q.ID, "No, thanks")
		w.pass(20 * time.Second)
		got := w.in(opsGroup)
		if len(got) != 3 || !strings.HasPrefix(got[1], "⏰ I will remind you: look at the build (") || !strings.HasSuffix(got[1], "Next: Sun 2 Jan 09:00") ||
			got[2] != "This offer is answered already. /remind list shows your reminders." {
			t.Errorf("%q", got)
		}
		if len(w.Telegram.Sent(opsGroup)[1].Buttons) != 0 || w.tasks() != 1 {
			t.Errorf("%d tasks; %+v", w.tasks(), w.Telegram.Sent(opsGroup))
		}
		w.Telegram.UserSays(opsGroup, bobID, "/remind list")
		w.pass(5 * time.Second)
		if got = w.in(opsGroup); !strings.Contains(got[len(got)-1], "look at the build") {
			t.Errorf("it is not his own: %q", got[len(got)-1])
		}
	})
}

func TestAnOwnerMaySettleAnOfferAndNobodyElseMay(t *testing.T) {
	ticking(t, promising, func(w *clockwork) {
		promises(w.Models, "look at the build", "in 2h", "In two hours.")
		w.says("will you look?") // alice is promised something, in private
		w.asked()
		q := w.offered(alice)
		w.Telegram.UserSays(bobID, bobID, "/accept "+w.token())
		w.pass(5 * time.Second)
		if got := w.in(bobID); len(got) != 1 || !strings.HasPrefix(got[0], "This offer is over.") {
			t.Errorf("elsewhere: %q", got)
		}
		w.Telegram.Press(alice, alice, q.ID, "No, thanks")
		w.pass(5 * time.Second)
		if got := w.texts(); got[len(got)-1] != "⏰ No reminder: look at the build" || w.tasks() != 0 {
			t.Errorf("%q", got)
		}

		promises(w.Models, "look again", "in 3h", "In three hours.")
		w.Telegram.UserSays(opsGroup, alice, "@understudy_bot will you look again?")
		w.pass(20 * time.Second)
		q = w.offered(opsGroup)
		w.Telegram.Press(opsGroup, bobID, q.ID, "No, thanks")
		w.pass(5 * time.Second)
		if got := w.in(opsGroup); len(got) != 3 || !strings.Contains(got[2], "or the bot owner, can decide that") {
			t.Errorf("%q", got)
		}

		promises(w.Models, "look for bob", "in 3h", "In three hours, Bob.")
		w.Telegram.UserSays(opsGroup, bobID, "@understudy_bot and for me?")
		w.pass(20 * time.Second)
		newer := w.offered(opsGroup)
		w.Telegram.Press(opsGroup, alice, q.ID, "Remind me") // it has given way to the newer one
		w.Telegram.Press(opsGroup, alice, newer.ID, "Remind me")
		w.pass(20 * time.Second)
		if got := w.in(opsGroup); len(got) != 6 || !strings.HasPrefix(got[4], "⏰ I will remind you: look for bob") || !strings.HasPrefix(got[5], "This offer is over.") || w.tasks() != 1 {
			t.Errorf("%q", got)
		}
	})
}

func TestAnOfferOutlivesARestartButNotHalfAnHour(t *testing.T) {
	ticking(t, promising, func(w *clockwork) {
		promises(w.Models, "look at the build", "in 2h", "In two hours.")
		w.says("will you look?")
		q, token := w.offered(alice), w.token()
		w.Stop()
		w.Start()
		settle(t, w.World)
		w.Telegram.Press(alice, alice, q.ID, "Remind me")
		w.pass(5 * time.Second)
		if w.tasks() != 1 {
			t.Fatalf("%q\n%s", w.texts(), w.Log())
		}

		w.Stop() // what was known of the press is lost, but not what came of it
		w.state(func(db *sqlite.DB) {
			if _, err := db.Writer().ExecContext(w.t.Context(), `UPDATE cursors SET value = replace(value, '"by"', '"was"') WHERE channel = 'offers'`); err != nil {
				t.Fatal(err)
			}
		})
		w.Start()
		settle(t, w.World)
		if said := w.says("/accept " + token); len(said) != 0 || w.tasks() != 1 || !strings.HasPrefix(w.texts()[1], "⏰ I will remind you: look at the build (") {
			t.Errorf("%d tasks; %q", w.tasks(), w.texts())
		}

		promises(w.Models, "look again", "in 20m", "In twenty minutes.")
		w.says("and again?")
		q, token = w.offered(alice), w.token()
		w.pass(25 * time.Minute)
		before := len(w.texts())
		w.Telegram.Press(alice, alice, q.ID, "Remind me")
		w.pass(5 * time.Second)
		if got := w.texts(); len(got) != before || got[before-1] != "⏰ The time for this reminder is over, so I did not set it: look again" {
			t.Errorf("%q", got)
		}
		w.pass(6 * time.Minute)
		if got := w.says("/accept " + token); len(got) != 1 || !strings.HasPrefix(got[0], "This offer is over.") || w.tasks() != 1 {
			t.Errorf("%q", got)
		}
	})
}

// TestOffersThatAreNotMade: a model is told why, and people are shown nothing, where an offer makes no sense
// or the answer fails.
func TestOffersThatAreNotMade(t *testing.T) {
	ticking(t, promising, func(w *clockwork) {
		for when, why := range map[string]string{
			"some day":         "is not a schedule",
			"2026-01-01 09:00": "is over",
			"in 5s":            "too soon to ask somebody first",
			"every 10s":        "the shortest interval is one minute",
		} {
			when = strings.Replace(when, "2026", "1999", 1)
			promises(w.Models, "x", when, "I cannot.")
			if said := w.says("when?"); len(said) != 1 || said[0] != "I cannot." {
				t.Errorf("%s: said %q", when, said)
			}
			list := w.Models.Requests()
			if !strings.Contains(string(list[len(list)-1].Body), why) {
				t.Errorf("%s: the model is not told that it %s: %s", when, why, list[len(list)-1].Body)
			}
		}
		promises(w.Models, "x", "in 2h", "NO_REPLY")
		if said := w.says("(to somebody else)"); len(said) != 0 {
			t.Errorf("a silent turn: %q", said)
		}
		promises(w.Models, "x", "in 2h", "never said")
		w.Models.Fault(emullm.Fault{Match: emullm.Match{After: 1, Times: 1}, Status: 401})
		if said := w.says("will you?"); len(said) != 1 || !strings.Contains(said[0], "alpha") {
			t.Errorf("a failed turn: %q", said)
		}
	})
}

func TestNothingIsOfferedUnlessTheOperatorWantsIt(t *testing.T) {
	ticking(t, still, func(w *clockwork) {
		promises(w.Models, "x", "in 2h", "I cannot.")
		if said := w.says("will you?"); !slices.Equal(said, []string{"I cannot."}) {
			t.Errorf("%q", said)
		}
		if body := string(w.Models.Requests()[0].Body); strings.Contains(body, "offer_reminder") {
			t.Error("the model is given the tool")
		}
		w.Configure(promising)
		w.pass(10 * time.Second)
		promises(w.Models, "look", "in 2h", "I will.")
		w.says("will you?")
		w.Configure(still) // and not any more
		w.pass(10 * time.Second)
		w.press("Remind me")
		if got := w.texts(); !strings.HasPrefix(got[len(got)-1], "This offer is over.") || w.tasks() != 0 {
			t.Errorf("%q", got)
		}
	})
}

// TestOffersWithoutAChat: a terminal is told what to type, and a program is offered nothing.
func TestOffersWithoutAChat(t *testing.T) {
	models := emullm.New()
	defer models.Close()
	in, err := os.Create(filepath.Join(t.TempDir(), "typed"))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := io.WriteString(in, "will you look?\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	const config = promising + `models: {providers: {alpha: {api: openai-chat, baseUrl: "http://models.test/v1", apiKey: key}}}` + "\n"
	promises(models, "the `build`", "every day at 9", "I will.")
	dir := t.TempDir()
	file := filepath.Join(dir, "bot.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, notes bytes.Buffer
	o := app.Options{
		Version: "test", Config: file, Listen: "off", Log: slog.New(slog.DiscardHandler), Transport: func(string) http.RoundTripper { return models.Transport() },
		Env: func(name string) (string, bool) {
			v, ok := map[string]string{"OPENCLAW_STATE_DIR": filepath.Join(dir, "state"), "OLLAMA_HOST": "127.0.0.1:1"}[name]
			return v, ok
		},
	}
	if code := app.Chat(t.Context(), o, app.Std{In: in, Out: &out, Err: &notes}, "main"); code != app.ExitOK {
		t.Errorf("exit %d: %s", code, notes.String())
	}
	text := regexp.MustCompile(`When: .* 09:00, .* 09:00, .* 09:00\n`).ReplaceAllString(out.String(), "When: WHEN\n")
	if want := "I will.\n⏰ Shall I remind you: the `build`\nWhen: WHEN\nIf so, write `/remind every day at 9 the 'build'`\n"; text != want {
		t.Errorf("got  %q\nwant %q", text, want)
	}

	models.ClearRequests()
	promises(models, "the build", "in 2h", "I will.")
	_, state := beside(t, "", func(b *app.Options) { b.Config, b.Transport = o.Config, o.Transport })
	client := gateway.NewControlClient(filepath.Join(state, gateway.ControlSocket))
	var result app.TurnResult
	if err := client.CallRPC(t.Context(), "turn.run", json.RawMessage(`{"session": "script", "message": "will you look?"}`), &result, nil); err != nil {
		t.Fatal(err)
	}
	if result.Text != "I will." || strings.Contains(string(models.Requests()[0].Body), `"name":"offer_reminder"`) {
		t.Errorf("%+v", result)
	}
}
