package reply

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"understudy/failover"
	"understudy/failover/policy"
	"understudy/llm"
	"understudy/session"
)

func TestLargeResultsOfTheTurnAreTrimmedWhenNothingElseHelps(t *testing.T) {
	r := newRig(t, Tool{Tool: llm.Tool{Name: "read"}, Run: func(context.Context, Call) (string, error) {
		return "first " + strings.Repeat("middle ", 5_000) + "last", nil
	}})
	fits := func(ctx context.Context, n int, req llm.Request) seq {
		if estimate(req) > 2_000 {
			return fails(llm.ReasonContextOverflow)(ctx, n, req)
		}
		return says("fits")(ctx, n, req)
	}
	r.models["a1"] = inTurn(calls("", "read"), fits)
	o := r.say("go")
	if o.Status != Answered || o.Text != "fits" || r.story() != "a1 a1 a1" {
		t.Fatalf("%v %q after %s", o.Status, o.Text, r.story())
	}
	got := r.results()[0]
	if !strings.HasPrefix(got, "first ") || !strings.HasSuffix(got, "last") || !strings.Contains(got, "bytes are left out]") {
		t.Errorf("the model saw %.40q", got)
	}
	if e := r.transcript(); !strings.Contains(strings.Join(e, ""), strings.Repeat("middle ", 5_000)) {
		t.Error("the transcript was shortened")
	}
}

// A heartbeat on a small model in a long conversation sees its end, and leaves it as it is.
func TestHeartbeatOnASmallModelLeavesTheConversationAlone(t *testing.T) {
	r := newRig(t)
	r.info[ref("alpha/a1")] = failover.ModelInfo{Known: true, ContextWindow: 200_000}
	r.info[ref("gamma/g1")] = failover.ModelInfo{Known: true, ContextWindow: 16_000}
	r.say("hi")
	r.talked(12, 5_000)
	before := r.session()
	r.models["g1"] = says("HEARTBEAT_OK")
	r.asked = nil
	o := r.run(Request{
		Agent: "main", Key: message("").Key, Kind: Heartbeat, To: dm, Text: "Look.",
		Selection: &policy.Selection{Ref: ref("gamma/g1"), Source: policy.SourceHeartbeat},
	})
	if o.Status != Silent || r.story() != "g1" || estimate(r.last()) > 12_000 || len(r.last().Messages) < 2 {
		t.Errorf("%v after %s with %d tokens in %d messages", o.Status, r.story(), estimate(r.last()), len(r.last().Messages))
	}
	after := r.session()
	after.UpdatedAt = before.UpdatedAt
	if fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("the session was\n%+v\nand is\n%+v", before, after)
	}
	r.asked = nil
	r.say("hello")
	if r.story() != "a1" || len(r.last().Messages) != 2+24+1 {
		t.Errorf("asked %s with %d messages", r.story(), len(r.last().Messages))
	}
}

func TestHeartbeatThatOverflowsIsAskedWithLess(t *testing.T) {
	r := newRig(t)
	r.talked(8, 1_000)
	r.models["a1"] = inTurn(fails(llm.ReasonContextOverflow), says("HEARTBEAT_OK"))
	o := r.run(Request{Agent: "main", Key: message("").Key, Kind: Heartbeat, To: dm, Text: "Look."})
	if o.Status != Silent || r.story() != "a1 a1" || len(r.asked[1].Messages) >= len(r.asked[0].Messages) || r.session().Compactions != 0 {
		t.Errorf("%v after %s, %d then %d messages", o.Status, r.story(), len(r.asked[0].Messages), len(r.asked[1].Messages))
	}
}

func TestOverflowBehindAHeartbeatsModelIsExplained(t *testing.T) {
	r := newRig(t)
	r.agent.HeartbeatModel = ref("gamma/g1")
	r.ensure()
	r.models["a1"] = fails(llm.ReasonContextOverflow)
	if o := r.say("go"); o.Text != noLongerFits {
		t.Errorf("said %q", o.Text)
	}
	r.update(func(s *session.Session) { s.LastModel = ref("gamma/g1") })
	if o := r.say("go"); !strings.HasPrefix(o.Text, noLongerFits+" ") || !strings.Contains(o.Text, "heartbeat's model gamma/g1") {
		t.Errorf("said %q", o.Text)
	}
}

func TestSummariesAreBilledApart(t *testing.T) {
	r := newRig(t)
	r.talked(10, 5_000)
	r.runner.deps.Cost = func(_ llm.ModelRef, u llm.Usage) (float64, bool) { return float64(u.Input), true }
	r.models["a1"] = summarises(says("they talked"), overflows(says("fits")))
	if o := r.say("go"); o.CostUSD == nil || *o.CostUSD != 20 || o.Usage.Input != 10 {
		t.Errorf("cost %v, usage %+v", o.CostUSD, o.Usage)
	}
	list, err := r.sessions.Totals(t.Context(), "main", "2026-03-02")
	if err != nil || len(list) != 2 || list[0].Purpose != session.PurposeMessage || list[1].Purpose != session.PurposeSummary || list[1].CostMicros != 10_000_000 {
		t.Errorf("%+v %v", list, err)
	}
	r.talked(10, 5_000)
	r.models["a1"] = says("they talked again")
	if _, _, err := r.compactNow(""); err != nil {
		t.Fatal(err)
	}
	if list, err = r.sessions.Totals(t.Context(), "main", "2026-03-02"); err != nil || list[1].Turns != 2 {
		t.Errorf("a compaction on wish: %+v %v", list, err)
	}
}

func TestStalledTurnIsLogged(t *testing.T) {
	r := newRig(t)
	r.agent.Timeout = 0
	r.models["a1"] = r.after(25*time.Minute, says("late"))
	r.info[ref("alpha/a1")] = failover.ModelInfo{}
	r.build(r.sessions, Tool{Tool: llm.Tool{Name: "slow"}, Timeout: time.Hour, Run: func(ctx context.Context, _ Call) (string, error) {
		return "done", r.v.Clock().Sleep(ctx, 11*time.Minute)
	}}, Tool{Tool: llm.Tool{Name: "brisk"}, Timeout: time.Hour, Run: func(ctx context.Context, _ Call) (string, error) {
		return "done", r.v.Clock().Sleep(ctx, 9*time.Minute)
	}})
	r.models["a1"] = inTurn(calls("", "brisk", "brisk"), says("ok"), calls("", "slow"), says("ok"))
	r.say("go")
	if strings.Contains(r.log.String(), "turn_stalled") {
		t.Error("a turn that goes on is called stalled")
	}
	r.say("go")
	if n := strings.Count(r.log.String(), `"turn_stalled"`); n != 1 {
		t.Errorf("logged %d times", n)
	}
}

func TestFilesOfTheOperatorStandInTheSystemPrompt(t *testing.T) {
	r := newRig(t)
	r.agent.Files = []File{{"EMPTY.md", " \n"}, {"SOUL.md", "Be kind.\n"}}
	r.say("hi")
	if want := "You are a helpful bot.\n\n# SOUL.md\n\nBe kind.\n\nToday is"; !strings.HasPrefix(r.last().System, want) {
		t.Errorf("system prompt %q", r.last().System)
	}
	c, err := r.runner.Context(t.Context(), message(""))
	if err != nil || len(c.Files) != 1 || c.Files[0].Name != "SOUL.md" || c.Files[0].Tokens == 0 {
		t.Errorf("%+v %v", c, err)
	}
	q := Request{Agent: "main", Key: message("").Key, Kind: Heartbeat, To: dm, Text: "Look.", Light: true}
	r.run(q)
	if strings.Contains(r.last().System, "kind") {
		t.Error("a light turn takes the files along")
	}
}

func TestCompactionIsShownToThoseWhoAsk(t *testing.T) {
	r := newRig(t)
	r.talked(10, 5_000)
	r.update(func(s *session.Session) { s.Verbose = "on" })
	r.models["a1"] = summarises(says("they talked"), overflows(says("fits")))
	r.say("go")
	r.expect("said", r.out.said, "notice 🧹 Compacting context…", "notice 🧹 Compaction complete.", "assistant fits")
}

func TestAGuestLeavesItsResultOnce(t *testing.T) {
	r := newRig(t)
	r.say("hi")
	q := Request{ID: "run-1", Agent: "main", Key: message("").Key, Kind: Cron, To: dm, Text: "Report.", Tail: 3}
	before := r.session()
	r.run(q)
	r.run(q)
	r.expect("transcript", r.transcript(), "m user: hi", "m assistant: ok from a1", "m user: Report.", "m assistant: ok from a1")
	if s := r.session(); s.TokensIn != before.TokensIn || s.LastInteractionAt != before.LastInteractionAt {
		t.Errorf("the guest counted: %+v", s)
	}
}
