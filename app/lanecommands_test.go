package app_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	emullm "understudy/internal/emulate/llm"
)

// asked lists the models that were asked, in order.
func (e errands) asked() string {
	var out []string
	for _, r := range e.models.Requests() {
		out = append(out, r.Model)
	}
	return strings.Join(out, " ")
}

// said is what the bot said in a chat since it had said so many things.
func (e errands) said(chat int64, since int) string {
	return strings.Join(tgTexts(e.office, chat)[since:], "|")
}

// hangs has the first message with a text be answered late.
func (e errands) hangs(contains string, latency time.Duration) {
	e.models.Reply(emullm.Reply{Match: emullm.Match{Contains: contains, Times: 1}, Latency: latency, Text: "late"})
}

func TestStopEndsACompaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newErrands(t)
		for i := range 5 {
			e.asks(bobID, bobID, fmt.Sprintf("message %d %s", i, strings.Repeat("words ", 400)))
		}
		before := len(e.tg.Sent(bobID))
		e.hangs("message 0", 100*time.Second)
		e.says(bobID, bobID, "/compact")
		pass(5 * time.Second)
		e.says(bobID, bobID, "/stop")
		pass(time.Second)
		e.models.Reply(emullm.Reply{Match: emullm.Match{Contains: "hello again"}, Text: "here"})
		e.says(bobID, bobID, "hello again")
		pass(5 * time.Second)
		if got := e.said(bobID, before); got != "⏹ Stopped.|🧹 Stopped; the conversation is as it was.|here" && got != "🧹 Stopped; the conversation is as it was.|⏹ Stopped.|here" {
			t.Errorf("said %q\n%s", got, e.logs)
		}
		if r := e.models.Requests(); !strings.Contains(string(r[len(r)-1].Body), "message 0") {
			t.Error("the conversation was shortened")
		}
	})
}

func TestACompactionThatARestartInterruptsIsDoneAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newErrands(t, "shutdown: {drain: 1s}\n")
		for i := range 5 {
			e.asks(bobID, bobID, fmt.Sprintf("message %d %s", i, strings.Repeat("words ", 400)))
		}
		before := len(e.tg.Sent(bobID))
		e.hangs("message 0", 100*time.Second)
		e.says(bobID, bobID, "/compact")
		pass(5 * time.Second)
		e.close()
		e.models.Reply(emullm.Reply{Match: emullm.Match{Contains: "message 0"}, Text: "a summary"})
		e.open()
		e.settle()
		if got := e.said(bobID, before); !strings.HasPrefix(got, "🧹 Compacted: ") || strings.Contains(got, "|") {
			t.Errorf("said %q\n%s", got, e.logs)
		}
	})
}

func TestNothingEndsForACommandThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newErrands(t)
		for text, refusal := range map[string]string{
			"/new beta/b1@nobody": "I don't know the profile beta:nobody.",
			"/reset now\nplease":  "/reset takes one line of at most 4 KB, so I did nothing. A text of several lines has to go without the command.",
		} {
			before := len(e.tg.Sent(bobID))
			e.hangs("a question", 20*time.Second)
			e.says(bobID, bobID, "a question")
			pass(3 * time.Second)
			e.says(bobID, bobID, text)
			e.settle()
			if got := e.said(bobID, before); got != refusal+"|late" {
				t.Errorf("%q: said %q", text, got)
			}
		}
	})
}

// TestARestartDoesNotRepeatWhatAMessageChose: it waited, something else was chosen meanwhile, and that counts.
func TestARestartDoesNotRepeatWhatAMessageChose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newErrands(t, "queue: {mode: followup}\nshutdown: {drain: 1s}\n")
		e.hangs("first", 100*time.Second)
		e.says(bobID, bobID, "first")
		pass(3 * time.Second)
		e.says(bobID, bobID, "second /model beta/b1 and /status please")
		pass(3 * time.Second)
		e.says(bobID, bobID, "/model default")
		pass(3 * time.Second)
		before := len(e.tg.Sent(bobID))
		e.close()
		e.models.ClearRequests()
		e.open()
		e.settle()
		if got := e.asked(); got != "a1 a1" {
			t.Errorf("after the restart asked %s", got)
		}
		if n := len(e.tg.Sent(bobID)) - before; n != 2 {
			t.Errorf("said %q", e.said(bobID, before))
		}
		if got := e.asks(bobID, bobID, "/status"); !strings.Contains(got, "alpha/a1 (default)") {
			t.Errorf("said %q", got)
		}
	})
}

// TestAChoiceOutlivesTheEndOfAnIdleSession: the session begins anew with the choice and not behind it.
func TestAChoiceOutlivesTheEndOfAnIdleSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newErrands(t, "session: {reset: {mode: idle, idleMinutes: 2}}\n")
		for i, choice := range []string{"/model beta/b1@env", "so /model beta/b1@env", "/think high /model beta/b1@env"} {
			old := fmt.Sprintf("OLD-%d", i)
			e.says(bobID, bobID, old+" /model default")
			e.settle()
			pass(3 * time.Minute)
			e.says(bobID, bobID, choice)
			e.settle()
			e.asks(bobID, bobID, "hello")
			if got := e.asks(bobID, bobID, "/status"); !strings.Contains(got, "beta/b1 (pinned by you)") || !strings.Contains(got, "beta:env (locked)") {
				t.Errorf("%q: said %q", choice, got)
			}
			r := e.models.Requests()
			if body := string(r[len(r)-1].Body); strings.Contains(body, old) || r[len(r)-1].Model != "b1" {
				t.Errorf("%q: %s was asked %s", choice, r[len(r)-1].Model, body)
			}
		}
	})
}

// TestWhoMayUseNoCommandsLearnsTheOwnId: in private only, and nothing else.
func TestWhoMayUseNoCommandsLearnsTheOwnId(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newErrands(t)
		if got := e.asks(daveID, daveID, "/id"); !strings.Contains(got, fmt.Sprintf("sender id: %d", daveID)) {
			t.Errorf("said %q", got)
		}
		e.says(daveID, daveID, "/status")
		e.says(opsGroup, daveID, "/whoami")
		e.settle()
		if got := e.said(daveID, 1) + e.said(opsGroup, 0); got != "" || len(e.models.Requests()) > 0 {
			t.Errorf("said %q", got)
		}
	})
}

func TestACommandOfSeveralLinesIsRefusedAndNotAskedOfAModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newErrands(t)
		got := e.asks(aliceID, aliceID, "/cron add 20m look at\nthe build")
		if !strings.HasPrefix(got, "/cron takes one line") || len(e.models.Requests()) > 0 {
			t.Errorf("said %q", got)
		}
		e.asks(aliceID, aliceID, "/think high\nwhat is new?")
		e.asks(aliceID, aliceID, "/nothing\nlike that")
		if n := len(e.models.Requests()); n != 2 {
			t.Errorf("asked %d times", n)
		}
	})
}

// TestAMessageThatChangesAfterItsAnswerIsContext: the next answer knows, and nothing else happens.
func TestAMessageThatChangesAfterItsAnswerIsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newErrands(t)
		id := e.tg.UserSays(bobID, bobID, "meet at 5")
		e.settle()
		e.tg.UserEdits(bobID, id, "meet at SEVEN")
		e.settle()
		if n := len(e.models.Requests()); n != 1 {
			t.Errorf("asked %d times", n)
		}
		e.asks(bobID, bobID, "when do we meet?")
		r := e.models.Requests()
		if got := r[len(r)-1].LastUser; !inOrder(got, "context", "(changed an earlier message, which now reads:) meet at SEVEN", "when do we meet?") {
			t.Errorf("asked %q", got)
		}
	})
}

// TestInterruptAnswersTheNewestMessageAlone: the words before it stay in the conversation.
func TestInterruptAnswersTheNewestMessageAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newErrands(t, "queue: {mode: interrupt}\n")
		e.hangs("first", 20*time.Second)
		e.hangs("second", 20*time.Second)
		e.models.Reply(emullm.Reply{Match: emullm.Match{Contains: "third"}, Text: "to the third"})
		for _, text := range []string{"the first", "the second", "the third"} {
			e.says(bobID, bobID, text)
			pass(3 * time.Second)
		}
		e.settle()
		if got := e.said(bobID, 0); got != "to the third" {
			t.Errorf("said %q", got)
		}
		r := e.models.Requests()
		if len(r) != 3 || !inOrder(string(r[2].Body), "the first", "the second", "the third") {
			t.Errorf("asked %d times, last %s", len(r), r[len(r)-1].Body)
		}
	})
}
