package app_test

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	emullm "understudy/internal/emulate/llm"
)

// reopens restarts the bot with another configuration.
func (e errands) reopens(old, text string) {
	e.t.Helper()
	e.close()
	b, err := os.ReadFile(e.file)
	if err != nil || !strings.Contains(string(b), old) {
		e.t.Fatalf("%v: %q does not stand in %s", err, old, b)
	}
	if err := os.WriteFile(e.file, []byte(strings.Replace(string(b), old, text, 1)), 0o600); err != nil {
		e.t.Fatal(err)
	}
	e.open()
}

// TestAChoiceEndsTheWaitForAModel: whyever it is waited for, the chosen one answers at once.
func TestAChoiceEndsTheWaitForAModel(t *testing.T) {
	for name, f := range map[string]emullm.Fault{
		"that said when":   {Match: emullm.Match{Model: "a1"}, Status: 429, RetryAfter: 50 * time.Second},
		"that is too busy": {Match: emullm.Match{Model: "a1"}, Status: 529},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newErrands(t)
				e.models.Fault(f)
				e.models.Reply(emullm.Reply{Match: emullm.Match{Model: "b1"}, Text: "from b1"})
				e.says(bobID, bobID, "hello")
				pass(2 * time.Second)
				before := e.asked()
				e.says(bobID, bobID, "/model beta/b1")
				pass(2 * time.Second)
				if got := e.asked(); before != strings.TrimSpace(strings.Repeat("a1 ", len(before)/2)) || got != before+" b1" {
					t.Errorf("asked %q, then %q", before, got)
				}
				if got := e.said(bobID, 0); strings.Count(got, "from b1") != 1 {
					t.Errorf("said %q", got)
				}
			})
		})
	}
}

// TestAChoiceReplacesAPreview: of the model that is left behind nothing stays in the chat.
func TestAChoiceReplacesAPreview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newErrands(t)
		e.reopens(`streaming: {mode: "off"}`, "streaming: {mode: partial}")
		e.models.Fault(emullm.Fault{Match: emullm.Match{Model: "a1"}, Say: strings.Repeat("half of an answer ", 40), Hang: true})
		e.models.Reply(emullm.Reply{Match: emullm.Match{Model: "b1"}, Text: "from b1"})
		e.says(bobID, bobID, "hello")
		pass(20 * time.Second)
		if got := e.said(bobID, 0); !strings.Contains(got, "half of an answer") {
			t.Fatalf("there is no preview: %q", got)
		}
		e.says(bobID, bobID, "/model beta/b1")
		pass(5 * time.Minute)
		synctest.Wait()
		var left []string
		for _, m := range e.tg.Sent(bobID) {
			if !m.Deleted {
				left = append(left, m.Text)
			}
		}
		if got := strings.Join(left, "|"); strings.Contains(got, "half of") || strings.Count(got, "from b1") != 1 || e.asked() != "a1 b1" {
			t.Errorf("asked %s; in the chat is %q", e.asked(), got)
		}
	})
}

// TestSoManyTurnsRunAtATimeAsConfigured: the next one begins when one of them ends.
func TestSoManyTurnsRunAtATimeAsConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newErrands(t)
		e.reopens("heartbeat: {every: 0}", "heartbeat: {every: 0}, maxConcurrent: 2")
		e.models.Reply(emullm.Reply{Latency: 20 * time.Second, Text: "well"})
		for _, who := range []int64{aliceID, bobID, daveID} {
			e.says(who, who, "hello")
			pass(time.Second)
		}
		pass(5 * time.Second)
		if got := e.asked(); got != "a1 a1" {
			t.Errorf("at a time asked %q", got)
		}
		e.settle()
		if got := e.asked(); got != "a1 a1 a1" {
			t.Errorf("in the end asked %q", got)
		}
	})
}
