package reply

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"understudy/chat"
	"understudy/failover/policy"
	"understudy/llm"
	"understudy/session"
)

// talker is a model whose tool calls are written in ways that do not survive a store as they are.
func talker(rt *rapid.T) behaviour {
	return func(ctx context.Context, n int, req llm.Request) seq {
		if rapid.IntRange(0, 2).Draw(rt, "works") > 0 {
			return says(rapid.SampledFrom([]string{"fine", "NO_REPLY", "bad \xff bytes", "<b> & more"}).Draw(rt, "answer"))(ctx, n, req)
		}
		return events(
			llm.Event{Text: "I look \xff\xfe"},
			llm.Event{Reasoning: &llm.Reasoning{Origin: req.Model, Opaque: json.RawMessage(`{ "signature": "a+/<=" }`)}},
			llm.Event{ToolCall: &llm.ToolCall{ID: fmt.Sprint(n), Name: "look.at it", Input: json.RawMessage(`{ "at": "<door> & wall" }`)}},
			llm.Event{ToolCall: &llm.ToolCall{ID: fmt.Sprint(n, "b"), Name: "look", Input: json.RawMessage(`{ "at": "<door> & wall" }`)}},
			llm.Event{Done: &llm.Done{Stop: llm.StopToolUse}},
		)(ctx, n, req)
	}
}

// Providers remember the beginning of a request for some minutes and ask less for it. So what a session
// asks begins with what it asked before, byte for byte, unless a pause let the memory run out.
func TestRequestsBeginAsTheOnesBefore(t *testing.T) {
	look := Tool{Tool: llm.Tool{Name: "look"}, Run: func(_ context.Context, c Call) (string, error) {
		return strings.Repeat("seen ", 2_000) + string(c.Input), nil
	}}
	other := Tool{Tool: llm.Tool{Name: "also"}}
	r := newRig(t, look)
	flip := false
	r.agent.Commitments = true
	r.runner.deps.ToolsFor = toolsInAnyOrder(&flip, look, other)
	r.runner.deps.Voice = func(q SpeechRequest) Voice { return Voice{Tagged: true, Certain: q.Voice} }
	key := 0
	rapid.Check(t, func(rt *rapid.T) {
		key++
		r.models["a1"] = talker(rt)
		var before *llm.Request
		day := session.Day(r.v.Now())
		base, whole := 0, false // how much of before has to stay; whether its turn is over
		for range rapid.IntRange(1, 7).Draw(rt, "turns") {
			q := message("hi")
			q.Key = fmt.Sprintf("agent:main:telegram:direct:%d", key)
			if rapid.Bool().Draw(rt, "overheard") {
				q.History = []HistoryLine{{Sender: "Bob", Text: "x", At: start}}
			}
			isTick := rapid.IntRange(0, 3).Draw(rt, "tick") == 0
			if isTick {
				q.Kind, q.In = Heartbeat, nil
			}
			paused := rapid.IntRange(0, 4).Draw(rt, "pause") == 0
			if paused {
				r.later(cacheTTL + time.Minute)
			} else {
				r.later(time.Minute)
			}
			if today := session.Day(r.v.Now()); today != day { // it stands in the system prompt
				before, day = nil, today
			}
			r.asked, r.creds.rows, flip = nil, policy.Health{}, !flip
			o := r.run(q)
			for i := range r.asked {
				now := &r.asked[i]
				if before != nil && !(i == 0 && paused) {
					keep := len(before.Messages)
					if i == 0 && !whole {
						keep = base
					}
					if fault := departs(before, now, keep); fault != "" {
						rt.Fatal(fault)
					}
				}
				if i == 0 {
					base = len(now.Messages) - 1
				}
				before = now
			}
			whole = !isTick || o.Status == Answered
		}
	})
}

// toolsInAnyOrder gives the same tools in another order every time.
func toolsInAnyOrder(flip *bool, a, b Tool) func(string, chat.Address) []Tool {
	return func(string, chat.Address) []Tool {
		if *flip {
			return []Tool{b, a}
		}
		return []Tool{a, b}
	}
}

// later lets time pass.
func (r *rig) later(d time.Duration) {
	r.v.Clock().AfterFunc(d, func() {})
	r.v.Run(r.v.Now().Add(d))
}

// departs tells where now does not begin as before, of which so many messages have to stay.
func departs(before, now *llm.Request, keep int) string {
	if before.System != now.System {
		return fmt.Sprintf("the system prompt changed: %q, then %q", before.System, now.System)
	}
	if a, b := bytesOfJSON(before.Tools), bytesOfJSON(now.Tools); !bytes.Equal(a, b) {
		return fmt.Sprintf("the tools changed: %s, then %s", a, b)
	}
	for i := range keep {
		if i >= len(now.Messages) {
			return fmt.Sprintf("only %d of %d messages are left", i, keep)
		}
		if a, b := exactly(before.Messages[i]), exactly(now.Messages[i]); a != b {
			return fmt.Sprintf("message %d changed:\n%s\nthen\n%s", i, a, b)
		}
	}
	return ""
}

func bytesOfJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// exactly writes a message so that no byte of it is lost.
func exactly(m llm.Message) string {
	var b strings.Builder
	for _, p := range m.Parts {
		fmt.Fprintf(&b, "%q %+v ", p.Text, p.Image)
		if p.ToolCall != nil {
			fmt.Fprintf(&b, "call %q %q %q ", p.ToolCall.ID, p.ToolCall.Name, p.ToolCall.Input)
		}
		if p.ToolResult != nil {
			fmt.Fprintf(&b, "result %+v ", *p.ToolResult)
		}
		if p.Reasoning != nil {
			fmt.Fprintf(&b, "thought %q %q ", p.Reasoning.Text, p.Reasoning.Opaque)
		}
	}
	return string(m.Role) + ": " + b.String()
}

// The table shows that the property above can fail.
func TestDeparturesAreNoticed(t *testing.T) {
	r := llm.Request{System: "s", Messages: []llm.Message{llm.Text(llm.RoleUser, "a"), {Role: llm.RoleAssistant, Parts: []llm.Part{{ToolCall: &llm.ToolCall{ID: "1", Input: []byte(`{"a":1}`)}}}}}}
	for name, change := range map[string]func(q *llm.Request){
		"system": func(q *llm.Request) { q.System = "t" },
		"tools":  func(q *llm.Request) { q.Tools = []llm.Tool{{Name: "x"}} },
		"text":   func(q *llm.Request) { q.Messages = []llm.Message{llm.Text(llm.RoleUser, "b"), q.Messages[1]} },
		"fewer":  func(q *llm.Request) { q.Messages = q.Messages[:1] },
		"a blank in a call": func(q *llm.Request) {
			q.Messages = []llm.Message{q.Messages[0], {Role: llm.RoleAssistant, Parts: []llm.Part{{ToolCall: &llm.ToolCall{ID: "1", Input: []byte(`{"a": 1}`)}}}}}
		},
	} {
		q := r
		if change(&q); departs(&r, &q, 2) == "" {
			t.Errorf("%s: nobody notices", name)
		}
	}
	if fault := departs(&r, &r, 2); fault != "" {
		t.Error(fault)
	}
}
