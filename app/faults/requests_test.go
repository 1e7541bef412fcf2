package faults

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/authstore"
	"understudy/chat"
	"understudy/failover"
	"understudy/failover/policy"
	emulate "understudy/internal/emulate/llm"
	"understudy/internal/secret"
	"understudy/llm"
	"understudy/reply"
	"understudy/session"
)

// body is what the tests look at in a request of either API.
type body struct {
	Model    string
	System   json.RawMessage
	Messages []struct {
		Role       string
		Content    json.RawMessage
		ToolCallID string                `json:"tool_call_id"`
		ToolCalls  []struct{ ID string } `json:"tool_calls"`
	}
	Tools []struct {
		Name     string
		Function struct{ Name string }
	}
}

func bodyOf(t *testing.T, r emulate.Request) body {
	t.Helper()
	var b body
	if err := json.Unmarshal(r.Body, &b); err != nil {
		t.Fatalf("request to %s: %v", r.Host, err)
	}
	return b
}

func (b body) toolNames() (names []string) {
	for _, x := range b.Tools {
		names = append(names, x.Name+x.Function.Name)
	}
	return names
}

// The understudy gets the same scene: the question as it was asked, the instructions, the tools, and
// nothing of what a failed attempt had begun to say.
func TestTheFallbackGetsTheWholeQuestion(t *testing.T) {
	const question = "What is the capital of Peru?"
	for name, fault := range map[string]emulate.Fault{
		"a refusal":       {Status: 429},
		"a broken stream": {Say: "The answer is", Reset: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, chain)
				h.tools = []reply.Tool{{
					Tool: llm.Tool{Name: "look", Description: "looks", Schema: []byte(`{"type":"object"}`)},
					Run:  func(context.Context, reply.Call) (string, error) { return "", nil },
				}}
				h.open(h.sessions)
				h.apis.Strict = true
				fault.Match = emulate.Match{Model: "a1"}
				h.apis.Fault(fault)
				h.expectAnswer(h.says(question), "beta/b1")
				log := h.apis.Requests()
				if len(log) != 2 {
					t.Fatalf("requests: %s", h.calls())
				}
				first, second := bodyOf(t, log[0]), bodyOf(t, log[1])
				if len(second.Messages) != 1 || second.Messages[0].Role != "user" ||
					!strings.HasSuffix(log[1].LastUser, question) || log[1].LastUser != log[0].LastUser {
					t.Errorf("the fallback was asked: %s", log[1].Body)
				}
				if !strings.Contains(string(second.System), "TESTBOT-42") {
					t.Errorf("the fallback's instructions: %s", second.System)
				}
				if d := cmp.Diff(first.toolNames(), second.toolNames()); d != "" {
					t.Errorf("tools (-primary +fallback):\n%s", d)
				}
			})
		})
	}
}

func TestEveryHostSeesItsOwnModelAndKeyOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, "agents: {defaults: {model: {primary: alpha/a1, fallbacks: [gamma/g1]}}}\n"+providers)
		h.apis.Fault(emulate.Fault{Match: emulate.Match{Host: "alpha.test"}, Status: 429})
		h.expectAnswer(h.says("hi"), "gamma/g1")
		var got []string
		for _, r := range h.apis.Requests() {
			got = append(got, r.Host+" "+r.Model+" "+r.Key)
		}
		if d := cmp.Diff([]string{"alpha.test a1 key-alpha:p1", "gamma.test g1 key-gamma:p1"}, got); d != "" {
			t.Errorf("requests (-want +got):\n%s", d)
		}
	})
}

// A conversation led with one provider holds its thinking, its signatures and its ids of tool calls.
// Another provider gets none of the first two, and ids that it accepts.
func TestForeignArtefactsDoNotReachAFallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, "agents: {defaults: {model: {primary: beta/b1, fallbacks: [mistral/m1]}}}\n"+providers+
			"    mistral: {baseUrl: \"http://mistral.test/v1\", api: openai-chat}\n", "beta:p1", "mistral:p1")
		h.tools = []reply.Tool{{
			Tool: llm.Tool{Name: "look", Description: "looks", Schema: []byte(`{"type":"object"}`)},
			Run:  func(context.Context, reply.Call) (string, error) { return "a cat", nil },
		}}
		h.open(h.sessions)
		h.apis.Strict = true
		h.apis.Reply(emulate.Reply{
			Match:     emulate.Match{Model: "b1", Times: 1},
			Reasoning: "I should look first.", ToolCalls: []emulate.ToolCall{{ID: "toolu_01AbC", Name: "look"}},
		})
		h.expectAnswer(h.says("what is there?"), "beta/b1")
		h.apis.Fault(emulate.Fault{Match: emulate.Match{Model: "b1"}, Status: 529})
		h.expectAnswer(h.says("and now?"), "mistral/m1")
		log := h.apis.Requests()
		last := log[len(log)-1]
		for _, word := range []string{"thinking", "signature", "I should look first"} {
			if strings.Contains(string(last.Body), word) {
				t.Errorf("the fallback received %q: %s", word, last.Body)
			}
		}
		var called, answered []string
		for _, m := range bodyOf(t, last).Messages {
			for _, c := range m.ToolCalls {
				called = append(called, c.ID)
			}
			if m.Role == "tool" {
				answered = append(answered, m.ToolCallID)
			}
		}
		if len(called) != 1 || !cmp.Equal(called, answered) || !regexp.MustCompile(`^[a-zA-Z0-9]{9}$`).MatchString(called[0]) {
			t.Errorf("ids of calls %q, of results %q; they must agree and fit the provider", called, answered)
		}
		if n := strings.Count(h.calls(), "m1@"); n != 1 {
			t.Errorf("the fallback was asked %d times: %s", n, h.calls())
		}
	})
}

// lostSessions is a memory that cannot be read.
type lostSessions struct{ *session.Store }

// Ensure implements reply.Sessions.
func (lostSessions) Ensure(context.Context, session.Seed) (session.Session, bool, error) {
	return session.Session{}, false, errors.New("run displaced")
}

func TestAFaultOfOursBurnsNoChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, chain)
		h.open(lostSessions{h.sessions})
		o := h.says("hi")
		if o.Status != reply.Failed || o.Reason != llm.ReasonInternal {
			t.Errorf("the turn ended %s (%s)", o.Status, o.Reason)
		}
		h.expectCalls("")
		if strings.Contains(o.Text, "a1") || strings.Contains(o.Text, "displaced") || !strings.Contains(o.Text, "turn-1") {
			t.Errorf("the user reads %q", o.Text)
		}
		if !strings.Contains(h.log.String(), "run displaced") {
			t.Error("the log does not say what happened")
		}
	})
}

func TestHealthIsPerAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, "agents: {defaults: {model: {primary: alpha/a1, fallbacks: [beta/b1]}}, list: [{id: main, default: true}, {id: ops}]}\n"+providers)
		h.must(h.stores["ops"].Put(t.Context(), authstore.Profile{ID: "alpha:p1", Kind: llm.KindAPIKey, Secret: secret.New("key-ops:own")}))
		h.apis.Fault(emulate.Fault{Match: emulate.Match{Key: "key-ops:own"}, Status: 429})
		h.expectAnswer(h.turn(t.Context(), "ops", chat.Direct, "hi"), "beta/b1")
		h.expectAnswer(h.turn(t.Context(), "main", chat.Direct, "hi"), "alpha/a1")
		if w := h.rowOf("ops", "alpha:p1", "a1").Cooldown; w.Until.IsZero() {
			t.Error("the limited agent's row has no window")
		}
		if w := h.rowOf("main", "alpha:p1", "a1").Cooldown; !w.Until.IsZero() {
			t.Errorf("the other agent's row has %+v", w)
		}
	})
}

// Where the owner of shared rooms wants it, they hear answers only. The state is kept all the same,
// so that nothing is told twice in a private chat either.
func TestNoticesInSharedRooms(t *testing.T) {
	const fallback = "notice:↪️ Model Fallback: beta/b1 (selected alpha/a1; rate limit)"
	const cleared = "notice:↪️ Model Fallback cleared: alpha/a1 (was beta/b1)"
	for mode, want := range map[string]string{
		"direct": "assistant:ok | assistant:ok",
		"off":    "assistant:ok | assistant:ok",
		"all":    fallback + " | assistant:ok | " + cleared + " | assistant:ok",
	} {
		t.Run(mode, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, chain+"notices: {fallback: "+mode+"}\n")
				h.apis.Fault(emulate.Fault{Match: emulate.Match{Model: "a1", Times: 1}, Status: 429})
				h.expectAnswer(h.turn(t.Context(), "main", chat.Group, "hi"), "beta/b1")
				s, _, err := h.sessions.Ensure(t.Context(), session.Seed{Key: "main:room"})
				h.must(err)
				if s.Notice.Active.String() != "beta/b1" {
					t.Errorf("the session remembers %+v", s.Notice)
				}
				h.expectAnswer(h.turn(t.Context(), "main", chat.Group, "again"), "alpha/a1")
				if got := h.heard(); got != want {
					t.Errorf("the room heard %q, want %q", got, want)
				}
				for _, hidden := range []string{"p1", "key-"} {
					if strings.Contains(h.heard(), hidden) {
						t.Errorf("the room heard %q", hidden)
					}
				}
			})
		})
	}
}

// Every step of a chain stands in the log, so that the first failure can be found after the last.
func TestTheLogTellsEveryStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, "agents: {defaults: {model: {primary: alpha/a1, fallbacks: [beta/b1, gamma/g1]}}}\n"+providers)
		h.apis.Fault(
			emulate.Fault{Match: emulate.Match{Model: "a1"}, Empty: true},
			emulate.Fault{Match: emulate.Match{Model: "b1"}, Hang: true},
		)
		h.expectAnswer(h.says("hi"), "gamma/g1")
		var steps []string
		for line := range strings.Lines(h.log.String()) {
			var r struct {
				Msg      string
				Decision string
				From     string `json:"fallbackStepFromModel"`
				To       string `json:"fallbackStepToModel"`
				Reason   string `json:"fallbackStepFromFailureReason"`
			}
			h.must(json.Unmarshal([]byte(line), &r))
			if r.Msg == "model_fallback_decision" && r.Decision == "candidate_failed" {
				steps = append(steps, r.From+" -> "+r.To+" "+r.Reason)
			}
		}
		want := []string{"alpha/a1 -> beta/b1 empty_response", "beta/b1 -> gamma/g1 timeout"}
		if d := cmp.Diff(want, steps); d != "" {
			t.Errorf("steps (-want +got):\n%s\n%s", d, h.log.String())
		}
	})
}

// busyStore cannot hand out a credential in time, once.
type busyStore struct {
	failover.Store
	asked int
}

// Credential implements failover.Store.
func (s *busyStore) Credential(ctx context.Context, id llm.ProfileID) (llm.Credential, error) {
	if s.asked++; s.asked == 1 {
		return llm.Credential{}, errors.New("the store is busy")
	}
	return s.Store.Credential(ctx, id)
}

// A recovery probe that a fault of ours kept from being sent does not use up the provider's slot.
func TestAProbeThatWasNotSentIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, chain)
		busy := &busyStore{Store: h.stores["main"]}
		h.store = func(string) (failover.Store, error) { return busy, nil }
		now := time.Now()
		h.must(h.stores["main"].ImportHealth(t.Context(), policy.Health{
			{Profile: "alpha:p1", Model: "a1"}: {
				ErrorCount: 1, LastFailureAt: now, Cooldown: policy.Window{Since: now, Until: now.Add(time.Minute), Reason: llm.ReasonRateLimit},
			},
		}, nil))
		h.expectAnswer(h.says("hi"), "beta/b1")
		h.expectAnswer(h.says("again"), "alpha/a1")
	})
}
