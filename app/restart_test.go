package app_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/inbound"
	"understudy/internal/drill"
	emullm "understudy/internal/emulate/llm"
)

const (
	alice    = 1001
	question = "tell me a story"
)

// chain is the configuration of the tests that write none of their own.
const chain = "agents: {defaults: {model: {primary: alpha/a1, fallbacks: [beta/b1]}}}\n"

// The story that is told while the bot is killed, in two messages.
const (
	firstPart  = "The first half of the story is about a prince who went away and was not seen for a year and a day."
	secondPart = "The second half is about how he came home again in the end."
	brokenOff  = "Half an answer of the model that fails"
)

const storyConfig = chain + `
models:
  providers:
    alpha: {api: openai-chat, baseUrl: http://models.test/v1, apiKey: "${ALPHA_KEY}", timeoutSeconds: 10}
    beta: {api: anthropic-messages, baseUrl: http://models.test}
channels:
  telegram:
    apiRoot: http://telegram.test
    dmPolicy: allowlist
    allowFrom: ["1001"]
    textChunkLimit: 100
`

// TestKilledAtEveryCall kills the bot at every call it makes to anybody during a turn with a failed
// candidate, a preview, a notice and an answer of two messages: just before the call is done, and
// just after, when its receipt is lost. However it comes, the user reads the answer once, or is told
// that the bot cannot know (spec/chat.md §7.8); never two answers, never silence.
func TestKilledAtEveryCall(t *testing.T) {
	calls := 0
	synctest.Test(t, func(t *testing.T) {
		w := storyteller(t)
		w.Freeze(1000, false)
		w.Telegram.UserSays(alice, alice, question)
		pass(time.Minute)
		calls = w.Calls()
		checkAnsweredOnce(t, w, []string{firstPart, secondPart}, orderly)
	})
	if calls < 9 {
		t.Fatalf("the turn makes only %d calls", calls)
	}
	for n := range calls {
		for _, end := range []ending{killed, lost} {
			t.Run(fmt.Sprintf("call %d, done %t", n+1, end == lost), func(t *testing.T) {
				t.Parallel()
				name := t.Name()
				synctest.Test(t, func(t *testing.T) {
					w := storyteller(t)
					w.Freeze(n+1, end == lost)
					w.Telegram.UserSays(alice, alice, question)
					for range 600 {
						if pass(100 * time.Millisecond); w.Calls() > n {
							break
						}
					}
					w.Kill()
					w.Start()
					pass(10 * time.Minute)
					checkAnsweredOnce(t, w, []string{firstPart, secondPart}, end)
					shown.add(name, w.Outputs())
				})
			})
		}
	}
}

// storyteller is a running bot whose first model breaks off, so that its second tells the story.
func storyteller(t *testing.T) *drill.World {
	w := drill.New(t, drill.Options{Config: storyConfig})
	w.Models.Fault(emullm.Fault{Match: emullm.Match{Model: "a1", Times: 1}, Say: brokenOff, Hang: true, PingEvery: time.Second})
	w.Models.Reply(emullm.Reply{Text: firstPart + "\n\n" + secondPart, ChunkDelay: 250 * time.Millisecond})
	w.Start()
	settle(t, w)
	return w
}

// settle waits until the bot has connected.
func settle(t *testing.T, w *drill.World) {
	t.Helper()
	pass(time.Second)
	synctest.Wait()
	if len(w.Telegram.Calls("getUpdates")) == 0 {
		t.Fatal("the bot did not connect")
	}
}

// An ending is how a bot ended in the middle of a turn.
type ending uint8

const (
	orderly ending = iota
	killed         // a call that was under way may have been done: an apology is allowed
	lost           // … and was done: a preview may be left behind, which the bot cannot know of
)

// checkAnsweredOnce checks what stands in alice's chat.
func checkAnsweredOnce(t *testing.T, w *drill.World, parts []string, end ending) {
	t.Helper()
	counts := map[string]int{}
	for _, m := range w.Telegram.Sent(alice) {
		counts[m.Text]++
	}
	apologies := counts[inbound.Apology]
	if apologies > 1 || apologies == 1 && end == orderly {
		t.Errorf("%d apologies", apologies)
	}
	orphans := 0
	for text, n := range counts {
		answer := slices.Contains(parts, text)
		switch {
		case text == inbound.Apology, strings.HasPrefix(text, "↪️ Model Fallback: ") && n == 1, answer && n == 1:
		case !answer && (strings.HasPrefix(parts[0], text) || strings.HasPrefix(brokenOff, text)):
			orphans += n
		default:
			t.Errorf("%d times on the screen: %q", n, text)
		}
	}
	for _, p := range parts {
		if counts[p] == 0 && apologies == 0 {
			t.Errorf("not on the screen: %q", p)
		}
	}
	if orphans > 1 || orphans == 1 && end != lost {
		t.Errorf("%d previews are left behind", orphans)
	}
	if t.Failed() {
		for _, m := range w.Telegram.Messages(alice) {
			t.Logf("%d from %d: %q deleted=%t earlier=%q", m.ID, m.From, m.Text, m.Deleted, m.Versions)
		}
		t.Log(w.Log())
	}
}

// TestStoppedWhileWorking stops the bot in an orderly way at any second of a turn: the turn ends
// within the drain time and is answered, or it is answered by the next start.
func TestStoppedWhileWorking(t *testing.T) {
	for _, at := range []time.Duration{0, time.Second, 3 * time.Second, 8 * time.Second, 40 * time.Second} {
		t.Run(at.String(), func(t *testing.T) {
			t.Parallel()
			name := t.Name()
			synctest.Test(t, func(t *testing.T) {
				w := drill.New(t, drill.Options{Config: chain + "shutdown: {drain: 5s}\n"})
				w.Models.Reply(emullm.Reply{Text: "the whole answer", Latency: 12 * time.Second})
				w.Start()
				settle(t, w)
				w.Telegram.UserSays(alice, alice, question)
				pass(at)
				w.Stop()
				w.Start()
				pass(5 * time.Minute)
				checkAnsweredOnce(t, w, []string{"the whole answer"}, orderly)
				if n := len(w.Telegram.Sent(alice)); n != 1 {
					t.Errorf("%d messages", n)
				}
				shown.add(name, w.Outputs())
			})
		})
	}
}

// TestQueuedWhileDown takes what people wrote while nobody was there, in their order.
func TestQueuedWhileDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := drill.New(t, drill.Options{Config: chain + "queue: {mode: followup}\n"})
		for _, text := range []string{"one", "two", "three"} {
			w.Models.Reply(emullm.Reply{Match: emullm.Match{Contains: text}, Text: "to " + text})
		}
		w.Start()
		settle(t, w)
		w.Stop()
		for _, text := range []string{"one", "two", "three"} {
			w.Telegram.UserSays(alice, alice, text)
		}
		pass(time.Minute)
		w.Start()
		pass(time.Minute)
		var got []string
		for _, m := range w.Telegram.Sent(alice) {
			got = append(got, m.Text)
		}
		if text := strings.Join(got, " "); text != "to one to two to three" {
			t.Errorf("answered %q", text)
		}
		shown.add(t.Name(), w.Outputs())
	})
}
