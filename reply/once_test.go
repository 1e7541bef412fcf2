package reply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"understudy/failover/policy"
	"understudy/llm"
)

// troubles are the ways in which a request may end badly.
var troubles = []llm.Reason{
	llm.ReasonRateLimit, llm.ReasonOverloaded, llm.ReasonTimeout, llm.ReasonBilling, llm.ReasonAuth, llm.ReasonFormat,
	llm.ReasonContextOverflow, llm.ReasonSessionExpired, llm.ReasonModelNotFound, llm.ReasonEmptyResponse, llm.ReasonUnclassified,
}

// drawModel makes a model that answers, calls tools or fails, at random.
func drawModel(rt *rapid.T) behaviour {
	return func(ctx context.Context, n int, req llm.Request) seq {
		name := req.Model.Model
		switch rapid.IntRange(0, 5).Draw(rt, name) {
		case 0:
			return says("done")(ctx, n, req)
		case 1, 2:
			var evs []llm.Event
			for i := range rapid.IntRange(1, 3).Draw(rt, "calls") {
				evs = append(evs, llm.Event{ToolCall: &llm.ToolCall{
					ID: fmt.Sprintf("%s-%d-%d", name, n, i), Name: rapid.SampledFrom([]string{"ok", "bad", "hang", "crash"}).Draw(rt, "tool"),
					Input: fmt.Appendf(nil, `{"id": "%s-%d-%d"}`, name, n, i),
				}})
			}
			evs = append(evs, llm.Event{Done: &llm.Done{Stop: llm.StopToolUse}})
			return events(evs...)(ctx, n, req)
		case 3:
			return failsAfter("half an answer", rapid.SampledFrom(troubles).Draw(rt, "late"))(ctx, n, req)
		}
		return fails(rapid.SampledFrom(troubles).Draw(rt, "why"))(ctx, n, req)
	}
}

// The heart of the matter: wherever requests fail, a tool call runs at most once, nobody else takes
// over once one ran, people get exactly one answer or error, and every call on record has its result.
func TestNoCallIsRepeatedWhereverRequestsFail(t *testing.T) {
	ran := map[string]int{}
	var r *rig
	tool := func(name string, end func(context.Context) error) Tool {
		return Tool{Tool: llm.Tool{Name: name}, Timeout: time.Second, Run: func(ctx context.Context, c Call) (string, error) {
			ran[string(c.Input)]++
			return "done", end(ctx)
		}}
	}
	r = newRig(
		t,
		tool("ok", func(context.Context) error { return nil }),
		tool("bad", func(context.Context) error { return context.Canceled }),
		tool("hang", func(ctx context.Context) error { return r.v.Clock().Sleep(ctx, time.Hour) }),
		tool("crash", func(context.Context) error { panic("bug") }),
	)
	turn := 0
	rapid.Check(t, func(rt *rapid.T) {
		turn++
		clear(ran)
		r.asked, r.creds.rows = nil, policy.Health{}
		for _, m := range []string{"a1", "b1", "g1"} {
			r.models[m] = drawModel(rt)
		}
		q := message("go")
		q.Key = fmt.Sprintf("agent:main:telegram:direct:%d", turn)
		o := r.run(q)
		for input, n := range ran {
			if n > 1 {
				rt.Fatalf("%s ran %d times", input, n)
			}
		}
		if fault := takenOver(r.asked, ran); fault != "" {
			rt.Fatalf("%s: %s", fault, r.story())
		}
		if n := len(slices.DeleteFunc(slices.Clone(r.out.said), func(s string) bool { return strings.HasPrefix(s, "notice") || strings.HasPrefix(s, "progress") })); n != 1 {
			rt.Fatalf("said %q", r.out.said)
		}
		if o.Acted != (len(ran) > 0) {
			rt.Fatalf("acted: %v, with %d calls", o.Acted, len(ran))
		}
		entries, err := r.sessions.Load(t.Context(), r.sessionOf(q.Key).ID)
		if err != nil {
			rt.Fatal(err)
		}
		if len(complete(entries)) != len(entries) {
			rt.Fatal("a call on record has no result")
		}
	})
}

// takenOver reports whether another model was asked once a tool had run.
func takenOver(asked []llm.Request, ran map[string]int) string {
	worker := llm.ModelRef{}
	for _, q := range asked {
		if !worker.IsZero() && q.Model != worker && !isSummary(q) {
			return "another model took over after a tool"
		}
		for _, m := range q.Messages {
			for _, p := range m.Parts {
				if p.ToolCall != nil && ran[`{"id": "`+p.ToolCall.ID+`"}`] > 0 {
					worker = q.Model
				}
			}
		}
	}
	return ""
}
