package app_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/drill"
	emullm "understudy/internal/emulate/llm"
	emutg "understudy/internal/emulate/telegram"
)

func TestOverloadedRunsAreRetriedWithTheWholeTask(t *testing.T) {
	ticking(t, "agents: {defaults: {model: {primary: alpha/a1}, heartbeat: {every: 0}}}\n", func(w *clockwork) {
		w.Models.Fault(emullm.Fault{Match: emullm.Match{Times: 1}, Status: 529})
		w.add(`20m Report X`)
		w.asked()
		w.pass(25 * time.Minute)
		for _, r := range w.Models.Requests() {
			if strings.Count(string(r.Body), "Report X") != 1 {
				t.Errorf("asked with %s", r.Body)
			}
		}
		if n := len(w.Models.Requests()); n != 2 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestAStopDuringARunIsOnRecordAndNothingIsDoubled(t *testing.T) {
	ticking(t, still, func(w *clockwork) {
		w.Models.Reply(emullm.Reply{Match: emullm.Match{Contains: "Report"}, Text: "done", Latency: 60 * time.Second})
		id := w.add(`"every 1h" Report`)
		before := len(w.texts())
		w.pass(time.Hour - 5*time.Second) // the run is 5 to 15 s old
		w.Configure(still + "shutdown: {drain: 5s}\n")
		w.pass(10 * time.Second)
		w.Stop()
		w.pass(20 * time.Second)
		w.Start()
		w.pass(50 * time.Minute)
		r := w.runs(id)
		if len(r) != 1 || r[0].Reason != "interrupted" || r[0].Completion != "unknown" {
			t.Errorf("%+v", r)
		}
		w.pass(20 * time.Minute)
		if r = w.runs(id); len(r) != 2 || r[1].Status != "ok" {
			t.Errorf("the next slot: %+v", r)
		}
		w.hears(w.texts()[before:], "done")
	})
}

// A restart at any call of a run: the result is said once, or the run is on record as one of which nobody
// knows; never twice, and never nothing.
func TestKilledAtAnyCallOfARun(t *testing.T) {
	config := still
	calls := 0
	start := func(t *testing.T) (*clockwork, string) {
		w := &clockwork{drill.New(t, drill.Options{Config: config}), t}
		w.Models.Fault(emullm.Fault{Match: emullm.Match{Model: "a1"}, Status: 500})
		w.Models.Reply(emullm.Reply{Match: emullm.Match{Contains: "Report"}, Text: "the result"})
		w.Start()
		settle(t, w.World)
		return w, w.add(`"every 1h" Report`)
	}
	synctest.Test(t, func(t *testing.T) {
		w, _ := start(t)
		w.Freeze(1000, false)
		w.pass(61 * time.Minute)
		calls = w.Calls()
	})
	if calls < 3 {
		t.Fatalf("a run makes only %d calls", calls)
	}
	for n := range calls {
		for _, done := range []bool{false, true} {
			t.Run(fmt.Sprintf("call %d, done %t", n+1, done), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w, id := start(t)
					w.Freeze(n+1, done)
					for range 700 {
						if w.pass(6 * time.Second); w.Calls() > n {
							break
						}
					}
					w.pass(5 * time.Second)
					w.Kill()
					w.Start()
					w.pass(20 * time.Minute)
					said := 0
					for _, text := range w.texts() {
						if text == "the result" {
							said++
						}
					}
					r := w.runs(id)
					if len(r) != 1 || said > 1 || said == 0 && r[0].Completion != "unknown" && r[0].Completion != "failed" || said == 1 && r[0].Completion == "failed" {
						t.Errorf("said %d times; %+v\n%s", said, r, w.Log())
					}
				})
			})
		}
	}
}

func TestTheSchedulersSlotsSurviveRestarts(t *testing.T) {
	ticking(t, strings.Replace(still, "heartbeat:", "userTimezone: America/Sao_Paulo, heartbeat:", 1), func(w *clockwork) {
		zone, err := time.LoadLocation("America/Sao_Paulo")
		if err != nil {
			w.t.Fatal(err)
		}
		id := w.add(`"0 21 * * *" Report`)
		w.pass(25 * time.Hour)
		for range 5 {
			w.Stop()
			w.pass(10 * time.Minute)
			w.Start()
			w.pass(time.Hour)
		}
		ran := 0
		for _, r := range w.runs(id) {
			if h, m, _ := r.Scheduled.In(zone).Clock(); h != 21 || m != 0 {
				t.Errorf("a slot at %s", r.Scheduled)
			}
			if r.Status == "ok" {
				ran++
			}
		}
		if ran != 1 && ran != 2 {
			t.Errorf("%d runs: %+v", ran, w.runs(id))
		}
	})
}

func TestAMissedSlotIsOnRecordAndASingleTaskRunsLate(t *testing.T) {
	ticking(t, still, func(w *clockwork) {
		once := w.add(`30m keep=on Report once`)
		often := w.add(`"every 2h" Report often`)
		w.pass(29 * time.Minute)
		w.Stop()
		w.pass(3 * time.Hour)
		w.Start()
		w.pass(5 * time.Minute)
		if r := w.runs(once); len(r) != 1 || r[0].Status != "ok" || r[0].Trigger != "catch-up" {
			t.Errorf("%+v", r)
		}
		if r := w.runs(often); len(r) != 1 || r[0].Status != "skipped" || r[0].Reason != "missed" {
			t.Errorf("%+v", r)
		}
	})
}

func TestTasksOfOthersChatsStayTheirs(t *testing.T) {
	ticking(t, still, func(w *clockwork) {
		const bob = 1002
		w.says("/remind 1h alice's secret")
		w.Models.Reply(
			emullm.Reply{Match: emullm.Match{Contains: "list", Times: 1}, ToolCalls: []emullm.ToolCall{{Name: "cron", Arguments: `{"action":"list"}`}}},
			emullm.Reply{Match: emullm.Match{Contains: "schedule", Times: 1}, ToolCalls: []emullm.ToolCall{{Name: "cron", Arguments: `{"action":"add","schedule":"every 1m","text":"spend"}`}}},
			emullm.Reply{Match: emullm.Match{Contains: "remind", Times: 1}, ToolCalls: []emullm.ToolCall{{Name: "cron", Arguments: `{"action":"add","schedule":"20m","text":"stretch","reminder":true}`}}},
			emullm.Reply{Text: "ok"},
		)
		for _, text := range []string{"list", "schedule", "remind"} {
			w.Telegram.UserSays(bob, bob, text)
			w.pass(10 * time.Second)
		}
		var results []string
		for _, r := range w.Models.Requests() {
			if strings.Contains(string(r.Body), `"tool"`) {
				results = append(results, string(r.Body))
			}
		}
		all := strings.Join(results, "\n")
		if strings.Contains(all, "secret") || !strings.Contains(all, "only the bot's owner may schedule prompts") {
			t.Errorf("bob's model was told: %s", all)
		}
		w.pass(21 * time.Minute)
		sent := w.Telegram.Sent(bob)
		if last := sent[len(sent)-1].Text; last != "⏰ stretch" {
			t.Errorf("bob reads %q", last)
		}
	})
}

func TestPlatformsTroubleDelaysAResultAndDoesNotLoseIt(t *testing.T) {
	ticking(t, still, func(w *clockwork) {
		w.Models.Reply(emullm.Reply{Match: emullm.Match{Contains: "Report"}, Text: "the result"})
		id := w.add(`20m keep=on Report`)
		before := len(w.texts())
		w.Telegram.Inject(emutg.Fault{Method: "sendMessage", Times: 30, Status: 502})
		w.pass(2 * time.Hour)
		w.hears(w.texts()[before:], "the result")
		if r := w.runs(id); len(r) != 1 || r[0].Completion != "succeeded" {
			t.Errorf("%+v", r)
		}
	})
}
