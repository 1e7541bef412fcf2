package app_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/app"
	"understudy/internal/drill"
	emullm "understudy/internal/emulate/llm"
)

// still is a configuration without heartbeats, so that only tasks happen.
const still = "agents: {defaults: {model: {primary: alpha/a1, fallbacks: [beta/b1]}, heartbeat: {every: 0}}}\n"

// clockwork is a bot in a bubble whose owner makes tasks.
type clockwork struct {
	*drill.World
	t *testing.T
}

// ticking runs a test with a running bot.
func ticking(t *testing.T, config string, f func(w *clockwork)) {
	t.Helper()
	name := t.Name()
	synctest.Test(t, func(t *testing.T) {
		w := &clockwork{drill.New(t, drill.Options{Config: config}), t}
		w.Start()
		settle(t, w.World)
		f(w)
		synctest.Wait()
		shown.add(name, w.Outputs())
	})
}

func (w *clockwork) pass(d time.Duration) {
	pass(d)
	synctest.Wait()
}

// says has alice, who owns the bot, write; it returns what the bot said since.
func (w *clockwork) says(text string) []string {
	w.t.Helper()
	before := len(w.texts())
	w.Telegram.UserSays(alice, alice, text)
	w.pass(10 * time.Second)
	return w.texts()[before:]
}

// texts are what stands in alice's chat from the bot.
func (w *clockwork) texts() []string {
	var out []string
	for _, m := range w.Telegram.Sent(alice) {
		if !m.Deleted {
			out = append(out, m.Text)
		}
	}
	return out
}

var taskID = regexp.MustCompile(`[a-z2-7]{10}`)

// add makes a task with /cron add and returns its id.
func (w *clockwork) add(text string) string {
	w.t.Helper()
	said := w.says("/cron add " + text)
	if len(said) != 1 || !strings.Contains(said[0], "Next: ") {
		w.t.Fatalf("said %q", said)
	}
	return taskID.FindString(said[0][strings.Index(said[0], "("):])
}

// runs returns the run log of a task, the oldest first.
func (w *clockwork) runs(id string) []app.CronRun {
	w.t.Helper()
	var out bytes.Buffer
	if app.CronRuns(w.t.Context(), w.Options(), app.Std{Out: &out, Err: &out}, id, 100, true) != app.ExitOK {
		w.t.Fatal(out.String())
	}
	var list []app.CronRun
	if err := json.Unmarshal(out.Bytes(), &list); err != nil {
		w.t.Fatal(err)
	}
	slices.Reverse(list)
	return list
}

// asked lists the requests to models since the last call, as model: last words.
func (w *clockwork) asked() (list []string) {
	for _, r := range w.Models.Requests() {
		_, last, found := strings.Cut(r.LastUser, "]\n")
		if !found {
			last = r.LastUser
		}
		list = append(list, r.Model+": "+last)
	}
	w.Models.ClearRequests()
	return list
}

func (w *clockwork) hears(got []string, want ...string) {
	w.t.Helper()
	if !slices.Equal(got, want) {
		w.t.Errorf("got  %q\nwant %q\n%s", got, want, w.Log())
	}
}

func TestATaskRunsUnattendedAndReports(t *testing.T) {
	ticking(t, still, func(w *clockwork) {
		w.Models.Reply(emullm.Reply{Match: emullm.Match{Contains: "Report X"}, Text: "X is fine."})
		id := w.add(`20m keep=on Report X`)
		w.asked()
		before := len(w.texts())
		w.pass(21 * time.Minute)
		w.hears(w.texts()[before:], "X is fine.")
		body := string(w.Models.Requests()[0].Body)
		if strings.Count(body, "Report X") != 1 || !strings.Contains(body, "Nobody is there to answer questions") || !strings.Contains(body, "HEARTBEAT_OK") {
			t.Errorf("asked with %s", body)
		}
		r := w.runs(id)
		if len(r) != 1 || r[0].Status != "ok" || r[0].Completion != "succeeded" || r[0].Model != "alpha/a1" || r[0].StoodIn || len(r[0].Receipts) != 1 {
			t.Errorf("%+v", r)
		}
	})
}

func TestEverythingThatMakesATaskTellsTheNextThreeTimes(t *testing.T) {
	ticking(t, still, func(w *clockwork) {
		for _, text := range []string{`/cron add "every weekday at 9" look`, "/loop 15m look", "/remind every day at 9 stretch"} {
			said := w.says(text)
			if len(said) != 1 {
				t.Fatalf("%s: %q", text, said)
			}
			_, next, _ := strings.Cut(said[0], "Next: ")
			next, _, _ = strings.Cut(next, "\n")
			if n := len(strings.Split(next, ",")); n != 3 {
				t.Errorf("%s: %q", text, said)
			}
		}
		if said := w.says("/remind 20m to stretch"); len(said) != 1 || !strings.Contains(said[0], "I will remind you: stretch") {
			t.Errorf("%q", said)
		}
		if said := w.says("/remind call Anna tomorrow 9:00"); len(said) != 1 || !strings.Contains(said[0], "call Anna") {
			t.Errorf("%q", said)
		}
		if said := w.says("/remind nonsense without a time"); len(said) != 1 || !strings.Contains(said[0], "I do not understand when") {
			t.Errorf("%q", said)
		}
		before := len(w.texts())
		w.pass(21 * time.Minute)
		if said := w.texts()[before:]; !slices.Contains(said, "⏰ stretch") {
			t.Errorf("said %q", said)
		}
		if n := len(w.Models.Requests()); n != 1 { // of the loop
			t.Errorf("%d requests", n)
		}
	})
}

func TestAnotherTimeZoneReachesTasksWithoutARestart(t *testing.T) {
	ticking(t, still, func(w *clockwork) { // at midnight UTC
		id := w.add(`"every day at 3:00" Report`)
		moved := strings.Replace(still, "defaults: {", "defaults: {userTimezone: Asia/Kolkata, ", 1) // half past five
		w.Configure(moved)
		w.pass(time.Minute)
		if r := w.runs(id); len(r) != 1 || r[0].Status != "ok" {
			t.Errorf("three o'clock was left out: %+v\n%s", r, w.Log())
		}
		if said := w.says("/cron show " + id); len(said) != 1 || !strings.Contains(said[0], "03:00 Asia/Kolkata") {
			t.Errorf("%q", said)
		}
		w.Configure(moved + "cron: {timezone: Europe/Lisbon}\n") // the hours of UTC: it comes a second time
		w.pass(time.Minute)
		if said := w.says("/cron show " + id); len(said) != 1 || !strings.Contains(said[0], "Next: Sun 2 Jan 03:00") {
			t.Errorf("%q", said)
		}
		if log := w.Log(); strings.Contains(log, "config_needs_restart") {
			t.Error(log)
		}
	})
}

func TestATasksModelUsesTheConfiguredChainAndStaysItsOwn(t *testing.T) {
	ticking(t, still, func(w *clockwork) {
		w.Models.Fault(emullm.Fault{Match: emullm.Match{Model: "g1"}, Status: 429})
		id := w.add(`"every 1h" model=gamma/g1 session=current Report`)
		w.asked()
		w.pass(61 * time.Minute)
		w.hears(w.asked(), "g1: Report", "b1: Report")
		r := w.runs(id)[0]
		if r.Requested != "gamma/g1" || r.Model != "beta/b1" || !r.StoodIn || r.Because != "rate_limit" {
			t.Errorf("%+v", r)
		}
		if said := w.says("/cron list"); len(said) != 1 {
			t.Errorf("%q", said)
		}
		if said := w.says("/failover"); len(said) != 1 || !strings.Contains(said[0], "⏰ Report: answered by beta/b1, which stood in, ") {
			t.Errorf("%q", said)
		}
		if said := w.says("/cron show " + id); len(said) != 1 || !strings.Contains(said[0], "beta/b1, which stood in") {
			t.Errorf("%q", said)
		}
		w.asked()
		w.says("hello")
		if got := w.asked(); len(got) != 1 || !strings.HasPrefix(got[0], "a1: ") {
			t.Errorf("the chat went on with %q", got)
		}
		if said := w.says("/model"); len(said) == 0 || strings.Contains(said[0], "pinned") {
			t.Errorf("%q", said)
		}
		if len(w.Records("model_fallback_decision")) == 0 {
			t.Error("the log does not tell the steps")
		}
		for _, text := range w.texts() {
			if strings.Contains(text, "Model Fallback") {
				t.Errorf("a notice of a task reached the chat: %q", text)
			}
		}
	})
}

func TestAModelThatWentAwayFailsTheRunAndIsNotReplaced(t *testing.T) {
	ticking(t, still, func(w *clockwork) {
		id := w.add(`"every 1h" model=gamma/g1 Report`)
		w.Configure(still + "models: {providers: {alpha: {api: openai-chat, baseUrl: http://models.test/v1, apiKey: \"${ALPHA_KEY}\"}, beta: {api: anthropic-messages, baseUrl: http://models.test}}}\n")
		w.pass(time.Minute)
		w.asked()
		w.pass(time.Hour)
		w.hears(w.asked())
		if r := w.runs(id); len(r) == 0 || r[0].Reason != "model-unknown" || r[0].Status != "error" {
			t.Errorf("%+v", r)
		}
	})
}

func TestALateAnswerIsNotUsedAndTheConnectionIsClosed(t *testing.T) {
	ticking(t, "agents: {defaults: {model: {primary: alpha/a1}, heartbeat: {every: 0}}}\n", func(w *clockwork) {
		w.Models.Reply(emullm.Reply{Match: emullm.Match{Contains: "Report", Times: 1}, Text: "too late", Latency: 45 * time.Second}, emullm.Reply{Text: "in time"})
		id := w.add(`20m timeout=30s keep=on Report`)
		before := len(w.texts())
		w.pass(20*time.Minute + 5*time.Second)
		if w.Models.InFlight() != 1 {
			t.Fatalf("%d requests under way", w.Models.InFlight())
		}
		w.pass(20 * time.Second)
		if w.Models.InFlight() != 0 {
			t.Error("the connection is open after the time limit")
		}
		w.pass(10 * time.Minute)
		w.hears(w.texts()[before:], "in time")
		r := w.runs(id)
		if len(r) != 2 || r[0].Reason != "timeout" || r[1].Status != "ok" {
			t.Errorf("%+v", r)
		}
	})
}

func TestAFailureIsReportedOnceNotForEveryRun(t *testing.T) {
	ticking(t, still, func(w *clockwork) {
		w.Models.Fault(emullm.Fault{Status: 401})
		id := w.add(`"every 5m" Report`)
		before := len(w.texts())
		w.pass(26 * time.Minute)
		said := w.texts()[before:]
		if len(said) != 1 || !strings.HasPrefix(said[0], `⏰ Cron "Report" failed 2× — `) || !strings.Contains(said[0], "bot cron runs "+id) {
			t.Errorf("said %q", said)
		}
		for _, r := range w.runs(id) {
			if r.Status != "error" || r.Reason != "auth" {
				t.Errorf("%+v", r)
			}
		}
	})
}

func TestALongResultIsSplitLikeAnyOther(t *testing.T) {
	ticking(t, still, func(w *clockwork) {
		long := strings.TrimSpace(strings.Repeat("This is one sentence of a long report. ", 230))
		w.Models.Reply(emullm.Reply{Match: emullm.Match{Contains: "Report"}, Text: long})
		id := w.add(`20m keep=on Report`)
		before := len(w.texts())
		w.pass(21 * time.Minute)
		said := w.texts()[before:]
		if len(said) != 3 || strings.Join(strings.Fields(strings.Join(said, " ")), " ") != long {
			t.Errorf("%d messages", len(said))
		}
		if r := w.runs(id)[0]; r.Completion != "succeeded" || len(r.Receipts) != 3 {
			t.Errorf("%+v", r)
		}
	})
}

func TestNothingToReportSaysNothing(t *testing.T) {
	ticking(t, still, func(w *clockwork) {
		for _, answer := range []string{"HEARTBEAT_OK", "**HEARTBEAT_OK**", "NO_REPLY", "no_reply"} {
			w.Models.Reply(emullm.Reply{Match: emullm.Match{Contains: "Report", Times: 1}, Text: answer})
		}
		id := w.add(`"every 10m" Report`)
		before := len(w.texts())
		w.pass(41 * time.Minute)
		w.hears(w.texts()[before:])
		for _, r := range w.runs(id) {
			if r.Status != "ok" || r.Completion != "succeeded" {
				t.Errorf("%+v", r)
			}
		}
	})
}

func TestWhatTheAgentSentItselfIsNotSentAgain(t *testing.T) {
	ticking(t, still, func(w *clockwork) {
		w.Models.Reply(
			emullm.Reply{Match: emullm.Match{Contains: "Report", Times: 1}, ToolCalls: []emullm.ToolCall{{Name: "send_message", Arguments: `{"text":"X is fine."}`}}},
			emullm.Reply{Match: emullm.Match{Contains: "Report"}, Text: "I told you that X is fine."},
		)
		id := w.add(`20m keep=on Report`)
		before := len(w.texts())
		w.pass(21 * time.Minute)
		w.hears(w.texts()[before:], "X is fine.")
		if r := w.runs(id)[0]; r.Completion != "succeeded" || !strings.Contains(r.Excerpt, "I told you") {
			t.Errorf("%+v", r)
		}
	})
}

func TestARefusedDeliveryIsNoSuccessAndAsksNoModelAgain(t *testing.T) {
	ticking(t, still, func(w *clockwork) {
		id := w.add(`20m Report`)
		w.asked()
		w.Telegram.Block(alice, "Forbidden: bot was blocked by the user")
		w.pass(3 * time.Hour)
		if got := w.asked(); len(got) != 1 {
			t.Errorf("asked %q", got)
		}
		r := w.runs(id)
		if len(r) != 1 || r[0].Status != "ok" || r[0].Completion != "failed" || r[0].Reason != "rejected" {
			t.Errorf("%+v", r)
		}
		var out bytes.Buffer
		if app.CronShow(w.t.Context(), w.Options(), app.Std{Out: &out, Err: &out}, id, false) != app.ExitOK {
			t.Errorf("the task is gone: %s", out.String())
		}
	})
}

func TestAResultGoesToItsOwnPlaceWhoeverWroteLast(t *testing.T) {
	ticking(t, still, func(w *clockwork) {
		const bob = 1002
		id := w.add(`20m keep=on Report`)
		w.Telegram.UserSays(bob, bob, "hello")
		w.pass(21 * time.Minute)
		if n := len(w.Telegram.Sent(bob)); n != 1 {
			t.Errorf("bob reads %d messages", n)
		}
		if r := w.runs(id)[0]; r.Completion != "succeeded" {
			t.Errorf("%+v", r)
		}
	})
}

func TestATaskInACurrentSessionIsRememberedThere(t *testing.T) {
	ticking(t, still, func(w *clockwork) {
		w.says("my cat is called Tom")
		w.Models.Reply(emullm.Reply{Match: emullm.Match{Contains: "Feed"}, Text: "Tom was fed."})
		w.add(`20m session=current Feed the cat`)
		w.Models.ClearRequests()
		w.pass(21 * time.Minute)
		if body := string(w.Models.Requests()[0].Body); !strings.Contains(body, "my cat is called Tom") {
			t.Errorf("the task does not know the conversation: %s", body)
		}
		w.Models.ClearRequests()
		w.says("what happened?")
		if body := string(w.Models.Requests()[0].Body); strings.Count(body, "Tom was fed.") != 1 {
			t.Errorf("the conversation does not know the task: %s", body)
		}
	})
}

func TestIsolatedRunsBeginAfresh(t *testing.T) {
	ticking(t, still, func(w *clockwork) {
		w.says("my cat is called Tom")
		w.add(`"every 10m" Report`)
		w.Models.ClearRequests()
		w.pass(21 * time.Minute)
		for _, r := range w.Models.Requests() {
			if body := string(r.Body); strings.Contains(body, "Tom") || strings.Count(body, "Report") != 1 {
				t.Errorf("asked with %s", body)
			}
		}
	})
}
