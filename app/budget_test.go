package app_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	emullm "understudy/internal/emulate/llm"
	emutg "understudy/internal/emulate/telegram"
)

// priced is a configuration in which beta costs money, gamma nothing, and of spare nobody knows.
func priced(fallbacks, budget string) string {
	return `agents: {defaults: {model: {primary: alpha/a1, fallbacks: [` + fallbacks + `]}, heartbeat: {every: 0}}}
models:
  providers:
    alpha: {api: openai-chat, baseUrl: http://models.test/v1, apiKey: "${ALPHA_KEY}"}
    beta: {api: anthropic-messages, baseUrl: http://models.test, models: [{id: b1, cost: {input: 5, output: 25}}]}
    gamma: {api: openai-responses, baseUrl: http://models.test/v1, models: [{id: g1, cost: {input: 0, output: 0}}]}
    spare: {api: openai-chat, baseUrl: http://models.test/v1}
budget: ` + budget + "\n"
}

func (w *clockwork) leadAway() {
	w.Models.Fault(emullm.Fault{Match: emullm.Match{Model: "a1"}, Status: 429, RetryAfter: 10 * time.Hour})
}

// press presses a button under the last message that has it.
func (w *clockwork) press(label string) {
	w.t.Helper()
	list := w.Telegram.Sent(alice)
	for i := len(list) - 1; i >= 0; i-- {
		if slices.ContainsFunc(list[i].Buttons, func(b emutg.Button) bool { return b.Text == label }) {
			w.Telegram.Press(alice, alice, list[i].ID, label)
			w.pass(10 * time.Second)
			return
		}
	}
	w.t.Fatalf("there is no button %q", label)
}

func TestAPaidStandInIsAskedForInTheChat(t *testing.T) {
	ticking(t, priced("beta/b1", "{fallback: {ask: true}}"), func(w *clockwork) {
		w.leadAway()
		said := w.says("hello")
		if len(said) != 1 || !strings.HasPrefix(said[0], "💸 May beta/b1 stand in? It costs $5.00 per million tokens of input and $25.00 of output.") {
			t.Fatalf("said %q", said)
		}
		if n := len(w.Models.Requests()); n != 1 {
			t.Fatalf("%d requests before anybody agreed", n)
		}
		before := len(w.texts())
		w.press("Use it")
		got := w.texts()[before:]
		if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "↪️ Model Fallback: beta/b1") }) || len(w.Models.Requests()) != 2 {
			t.Errorf("said %q", got)
		}
	})
}

func TestWithoutAWordAPaidStandInIsNotAsked(t *testing.T) {
	for _, how := range []string{"nobody answers", "no"} {
		t.Run(how, func(t *testing.T) {
			ticking(t, priced("beta/b1", "{fallback: {ask: true}}"), func(w *clockwork) {
				w.leadAway()
				w.says("hello")
				before := len(w.texts())
				if how == "no" {
					w.press("Don't")
				} else {
					w.pass(70 * time.Second)
				}
				got := strings.Join(w.texts()[before:], "\n")
				if !strings.Contains(got, "beta/b1 (not asked because of what it costs)") || !strings.Contains(got, "when you agree") {
					t.Errorf("said %q", got)
				}
				if n := len(w.Models.Requests()); n != 1 {
					t.Errorf("%d requests", n)
				}
			})
		})
	}
}

func TestAFreeStandInNeedsNoWord(t *testing.T) {
	ticking(t, priced("gamma/g1", "{fallback: {ask: true, maxPerDay: 0.01}}"), func(w *clockwork) {
		w.leadAway()
		if said := w.says("hello"); len(said) != 2 || !strings.HasPrefix(said[0], "↪️ Model Fallback: gamma/g1") {
			t.Errorf("said %q", said)
		}
	})
}

func TestTurnsThatNobodyAskedForDoNotAsk(t *testing.T) {
	ticking(t, priced("beta/b1", "{fallback: {ask: true}}"), func(w *clockwork) {
		w.leadAway()
		id := w.add(`"every 1h" Report`)
		before := len(w.texts())
		w.pass(61 * time.Minute)
		w.hears(w.texts()[before:])
		if r := w.runs(id); len(r) != 1 || r[0].Status != "error" || r[0].Reason != "rate-limit" {
			t.Errorf("%+v", r)
		}
	})
}

func TestTheDaysMoneyForStandInsEnds(t *testing.T) {
	ticking(t, priced("spare/s1, beta/b1", "{fallback: {maxPerDay: 1}}"), func(w *clockwork) {
		w.leadAway()
		w.Models.Reply(emullm.Reply{Match: emullm.Match{Model: "b1"}, Text: "here I am", InputTokens: 100_000, OutputTokens: 20_000}) // a dollar
		if said := strings.Join(w.says("hello"), "\n"); !strings.Contains(said, "here I am") || !strings.Contains(said, "spare/s1 was not asked to stand in: its price is unknown") {
			t.Errorf("said %q", said)
		}
		said := strings.Join(w.says("and now?"), "\n")
		if !strings.Contains(said, "not asked because of what it costs") || !strings.Contains(said, "Models that stand in have cost $1.00 today") {
			t.Errorf("said %q", said)
		}
		w.Stop()
		w.Start()
		w.pass(time.Minute)
		again := strings.Join(w.says("and now?"), "\n")
		if strings.Contains(again, "have cost") || !strings.Contains(again, "not asked because of what it costs") {
			t.Errorf("after a restart: %q", again)
		}
	})
}

func TestTheBackgroundHasAPurseOfItsOwn(t *testing.T) {
	ticking(t, priced("gamma/g1", "{background: {maxTokensPerDay: 1000}}"), func(w *clockwork) {
		w.Models.Reply(emullm.Reply{Match: emullm.Match{Contains: "Report"}, Text: "done", InputTokens: 900, OutputTokens: 200})
		id := w.add(`"every 1h" Report`)
		before := len(w.texts())
		w.pass(3*time.Hour + time.Minute)
		told := w.texts()[before:]
		if len(told) != 2 || !slices.Contains(told, "done") || !strings.Contains(strings.Join(told, "\n"), "Work in the background has used 1100 tokens today") {
			t.Errorf("said %q", told)
		}
		r := w.runs(id)
		if len(r) != 3 || r[0].Status != "ok" || r[1].Reason != "budget" || r[2].Status != "skipped" {
			t.Errorf("%+v", r)
		}
		if said := w.says("hello"); len(said) != 1 {
			t.Errorf("chats are held up: %q", said)
		}
		if said := w.says("/cron run " + id); len(said) != 2 || !slices.Contains(said, "done") {
			t.Errorf("by hand: %q", said)
		}
	})
}
