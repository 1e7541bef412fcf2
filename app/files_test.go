package app_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	emullm "understudy/internal/emulate/llm"
)

// TestWhatAToolDrawsIsSent: with an answer, with the result of a task, and with what a heartbeat finds,
// also where there is nothing to say.
func TestWhatAToolDrawsIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, models, tools := painters(t)
		draws := func(then string) {
			models.Reply(emullm.Reply{Match: emullm.Match{Times: 1}, ToolCalls: []emullm.ToolCall{{Name: "shop__draw", Arguments: "{}"}}})
			models.Reply(emullm.Reply{Match: emullm.Match{Times: 1}, Text: then})
		}
		seen := 0
		sent := func(after time.Duration, drawings int, words ...string) {
			t.Helper()
			pass(after)
			list := o.tg.Sent(aliceID)
			var texts []string
			for _, m := range list[seen:] {
				if m.Media != "" && string(m.Data) == drawing {
					drawings--
				}
				texts = append(texts, m.Text)
			}
			seen = len(list)
			if text := strings.Join(texts, "\n"); drawings != 0 || !inOrder(text, words...) {
				t.Errorf("%d drawings too few, said %q\n%s", drawings, texts, o.logs)
			}
		}
		draws("Here is the chart.")
		o.tg.UserSays(aliceID, aliceID, "draw me a chart")
		sent(20*time.Second, 1, "Here is the chart.")
		o.tg.UserSays(aliceID, aliceID, "/cron add 20m Draw the chart of the day")
		sent(20*time.Second, 0, "Next: ")
		draws("The chart of the day.")
		sent(20*time.Minute, 1, "The chart of the day.")
		o.tg.UserSays(aliceID, aliceID, "/cron add 20m Draw quietly")
		sent(20*time.Second, 0, "Next: ")
		draws("NO_REPLY")
		sent(20*time.Minute, 1)
		draws("HEARTBEAT_OK")
		o.tg.UserSays(aliceID, aliceID, "/heartbeat now")
		sent(time.Minute, 1, "begins")
		if tools.ran.Load() != 4 {
			t.Errorf("drew %d times", tools.ran.Load())
		}
	})
}
