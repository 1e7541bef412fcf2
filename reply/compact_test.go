package reply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"understudy/failover"
	"understudy/llm"
	"understudy/session"
)

const noLongerFits = "⚠️ This conversation no longer fits alpha/a1's context window. Use /compact, /new, or a model with a larger window."

// talked fills the session with turns of about so many tokens each.
func (r *rig) talked(turns, tokens int) {
	r.Helper()
	r.ensure()
	var list []session.Entry
	for i := range turns {
		list = append(
			list,
			session.Entry{Kind: session.KindMessage, Message: llm.Text(llm.RoleUser, fmt.Sprintf("question %d", i))},
			session.Entry{Kind: session.KindNote, Message: llm.Text(llm.RoleUser, "for people only")},
			session.Entry{Kind: session.KindMessage, Message: llm.Text(llm.RoleAssistant, fmt.Sprintf("answer %d %s", i, strings.Repeat("blah", tokens)))},
		)
	}
	if err := r.sessions.Append(r.Context(), r.session().ID, list); err != nil {
		r.Fatal(err)
	}
}

// isSummary reports whether a request asks for a summary.
func isSummary(q llm.Request) bool { return q.System == summaryPrompt }

// summarises answers requests for a summary like s, and everything else like b.
func summarises(s, b behaviour) behaviour {
	return func(ctx context.Context, n int, req llm.Request) seq {
		if isSummary(req) {
			return s(ctx, n, req)
		}
		return b(ctx, n, req)
	}
}

// overflows until the conversation has a summary.
func overflows(b behaviour) behaviour {
	return func(ctx context.Context, n int, req llm.Request) seq {
		if strings.HasPrefix(req.Messages[0].PlainText(), "[Summary of the conversation so far]\n") {
			return b(ctx, n, req)
		}
		return fails(llm.ReasonContextOverflow)(ctx, n, req)
	}
}

func TestOverflowIsCompactedOnceAndAskedAgain(t *testing.T) {
	r := newRig(t)
	r.talked(10, 5_000)
	r.models["a1"] = summarises(says("they talked"), overflows(says("fits")))
	o := r.say("go")
	if o.Status != Answered || o.Text != "fits" || r.story() != "a1 a1 a1" {
		t.Errorf("%v %q after %s", o.Status, o.Text, r.story())
	}
	r.expect("said", r.out.said, "assistant fits")
	got := lines(r.last().Messages)
	if got[0] != "user: [Summary of the conversation so far]\nthey talked" || got[len(got)-1] != "user: go" || len(got) != 8 {
		t.Errorf("asked with %d messages: %.80q", len(got), got)
	}
	ask := r.asked[1]
	if ask.Thinking != "low" || len(ask.Tools) != 0 || strings.Contains(ask.Messages[0].PlainText(), "for people only") {
		t.Errorf("the summary was asked for with thinking %q and %d tools", ask.Thinking, len(ask.Tools))
	}
	s := r.session()
	if s.Compactions != 1 || s.SwitchPending || s.Override != (session.Override{}) {
		t.Errorf("%d compactions, pending %v", s.Compactions, s.SwitchPending)
	}
	for _, a := range r.creds.settled {
		if a.Failure != nil {
			t.Errorf("health was charged: %+v", a.Failure)
		}
	}
	// The next turn goes on from the summary; everything is still on disk.
	r.say("more")
	if got := r.last().Messages; !strings.HasPrefix(got[0].PlainText(), "[Summary") || line(got[len(got)-2]) != "assistant: fits" {
		t.Errorf("the next turn was asked with %.60q", lines(got))
	}
	all, err := r.sessions.Page(t.Context(), s.ID, 0, 1000)
	if err != nil || len(all) != 30+1+2+2 {
		t.Errorf("%d entries on disk: %v", len(all), err)
	}
}

func TestFailedCompactionLosesNothing(t *testing.T) {
	for name, summary := range map[string]behaviour{
		"the model refuses":     fails(llm.ReasonRefusal),
		"nobody can":            fails(llm.ReasonRateLimit),
		"it is hardly shorter":  says(strings.Repeat("long", 40_000)),
		"it says nothing":       events(end),
		"it overflows itself":   fails(llm.ReasonContextOverflow),
		"it does not come back": nil,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			if summary == nil {
				summary = r.after(compactionTimeout*2, says("late"))
			}
			r.talked(10, 5_000)
			before := r.transcript()
			for _, m := range []string{"a1", "b1", "g1"} {
				r.models[m] = summarises(summary, fails(llm.ReasonContextOverflow))
			}
			o := r.say("go")
			if o.Status != Failed || o.Reason != llm.ReasonContextOverflow {
				t.Errorf("%v %s", o.Status, o.Reason)
			}
			r.expect("said", r.out.said, "error "+noLongerFits)
			if !slices.Equal(before, r.transcript()) || r.session().Compactions != 0 {
				t.Error("the conversation changed")
			}
			for _, q := range r.asked {
				if q.Model != ref("alpha/a1") && !isSummary(q) {
					t.Errorf("%s was asked with what is too long", q.Model)
				}
			}
		})
	}
}

func TestSecondOverflowIsTold(t *testing.T) {
	r := newRig(t)
	r.talked(10, 5_000)
	r.models["a1"] = summarises(says("they talked"), fails(llm.ReasonContextOverflow))
	o := r.say("go")
	if o.Text != noLongerFits || r.story() != "a1 a1 a1" {
		t.Errorf("%q after %s", o.Text, r.story())
	}
}

func TestOneLongMessageIsTold(t *testing.T) {
	r := newRig(t)
	r.models["a1"] = fails(llm.ReasonContextOverflow)
	if o := r.say(strings.Repeat("word ", 200_000)); o.Text != noLongerFits || r.story() != "a1" {
		t.Errorf("%q after %s", o.Text, r.story())
	}
}

func TestLongConversationIsCompactedBeforeTheTurn(t *testing.T) {
	r := newRig(t)
	r.agent.Compaction.Notify = true
	r.info[ref("alpha/a1")] = failover.ModelInfo{Known: true, ContextWindow: 60_000}
	r.talked(10, 5_000)
	r.models["a1"] = summarises(says("they talked"), overflows(says("fits")))
	if o := r.say("go"); o.Text != "fits" || r.story() != "a1 a1" {
		t.Errorf("%q after %s", o.Text, r.story())
	}
	r.expect("said", r.out.said, "notice 🧹 Compacting context…", "notice 🧹 Compaction complete.", "assistant fits")
}

func TestSmallWindowsAreNotFilledToTheBrim(t *testing.T) {
	r := newRig(t)
	r.info[ref("alpha/a1")] = failover.ModelInfo{Known: true, ContextWindow: 8_000}
	r.talked(7, 1_000)
	r.models["a1"] = summarises(says("they talked"), says("fits"))
	r.say("go")
	if r.story() != "a1 a1" || !isSummary(r.asked[0]) {
		t.Errorf("asked %s", r.story())
	}
	if n := len(r.asked[0].Messages[0].PlainText()); n > 8_000*bytesPerToken {
		t.Errorf("the summary was asked for with %d bytes", n)
	}
}

func TestSummaryFallsBackButIsNotWrittenBack(t *testing.T) {
	r := newRig(t)
	r.talked(10, 5_000)
	r.models["a1"] = summarises(fails(llm.ReasonBilling), overflows(says("fits")))
	r.models["b1"] = summarises(says("they talked"), fails(llm.ReasonUnclassified))
	r.info[ref("beta/b1")] = failover.ModelInfo{}
	o := r.say("go")
	if r.story() != "a1 a1 b1 a1" || o.Text != "fits" {
		t.Errorf("%q after %s", o.Text, r.story())
	}
	r.expect("said", r.out.said, "assistant fits")
}

func TestSummaryModelIsExact(t *testing.T) {
	r := newRig(t)
	r.agent.Compaction.Model = ref("gamma/g9")
	r.talked(10, 5_000)
	r.models["a1"] = overflows(says("fits"))
	r.models["g9"] = fails(llm.ReasonBilling)
	if o := r.say("go"); r.story() != "a1 g9" || o.Text != noLongerFits {
		t.Errorf("%q after %s", o.Text, r.story())
	}
}

func TestCompactionKeepsThePinUntilTheNextTurn(t *testing.T) {
	r := newRig(t)
	r.creds.profiles = newCredentials("alpha:p1", "alpha:p2").profiles
	r.say("hi")
	r.talked(10, 5_000)
	r.models["a1"] = summarises(says("they talked"), overflows(says("fits")))
	r.say("go")
	if got := r.session().Pin; got.Profile != "alpha:p1" || got.Compactions != 0 {
		t.Errorf("pin after the turn: %+v", got)
	}
	r.say("more")
	if got := r.session().Pin; got.Profile != "alpha:p2" || got.Compactions != 1 {
		t.Errorf("pin after the next turn: %+v", got)
	}
}

func TestCompactionBeforeTheTurnMovesThePinInIt(t *testing.T) {
	r := newRig(t)
	r.creds.profiles = newCredentials("alpha:p1", "alpha:p2").profiles
	r.say("hi")
	r.talked(10, 5_000)
	r.info[ref("alpha/a1")] = failover.ModelInfo{Known: true, ContextWindow: 60_000}
	r.models["a1"] = summarises(says("they talked"), says("fits"))
	r.say("go")
	if got := r.session().Pin; got.Profile != "alpha:p2" || got.Compactions != 1 {
		t.Errorf("pin after the turn: %+v", got)
	}
}

// compactNow is /compact.
func (r *rig) compactNow(focus string) (before, after int, err error) {
	r.v.Clock().Go(func() { before, after, err = r.runner.Compact(context.Background(), message(""), focus) })
	r.v.Run(r.v.Now().Add(1 << 50))
	return before, after, err
}

func TestCompactOnWish(t *testing.T) {
	r := newRig(t)
	r.ensure()
	if before, after, err := r.compactNow(""); before != after || err != nil || len(r.asked) != 0 {
		t.Errorf("an empty conversation: %d → %d, %v", before, after, err)
	}
	r.talked(10, 5_000)
	r.models["a1"] = says("they talked")
	before, after, err := r.compactNow("the price")
	if err != nil || before < 50_000 || after > before/2 {
		t.Errorf("%d → %d tokens: %v", before, after, err)
	}
	if !strings.HasSuffix(r.last().Messages[0].PlainText(), "\nPay special attention to: the price") {
		t.Error("the focus is not passed on")
	}
	if !r.session().LastInteractionAt.IsZero() || r.session().Compactions != 1 {
		t.Errorf("left %+v", r.session())
	}
	// Compacting at once again gains nothing and asks nobody.
	n := len(r.asked)
	if before, after, err := r.compactNow(""); before != after || err != nil || len(r.asked) != n {
		t.Errorf("again: %d → %d, %v, %d requests", before, after, err, len(r.asked)-n)
	}
	r.models["a1"] = fails(llm.ReasonRefusal)
	r.talked(10, 5_000)
	if _, _, err := r.compactNow(""); err == nil {
		t.Error("a failure is not reported")
	}
}

// drawTranscript is a random transcript for the property below: turns with several messages, collected
// before them or steered into them, with calls and with or without an answer.
func drawTranscript(rt *rapid.T) []session.Entry {
	var list []session.Entry
	id := ""
	add := func(k session.Kind, m llm.Message) {
		list = append(list, session.Entry{Kind: k, Message: m, Seq: int64(len(list) + 1), Turn: id})
	}
	text := func(role llm.Role) llm.Message {
		return llm.Text(role, strings.Repeat("x", rapid.IntRange(0, 200).Draw(rt, "size")))
	}
	if rapid.Bool().Draw(rt, "summary") {
		add(session.KindCompaction, text(llm.RoleUser))
	}
	for n := range rapid.IntRange(0, 8).Draw(rt, "turns") {
		id = fmt.Sprint("t", n)
		for range rapid.IntRange(1, 3).Draw(rt, "collected") {
			add(session.KindMessage, text(llm.RoleUser))
		}
		for range rapid.IntRange(0, 2).Draw(rt, "calls") {
			add(session.KindMessage, llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{ToolCall: &llm.ToolCall{ID: "1", Name: "f"}}}})
			add(session.KindMessage, llm.Message{Role: llm.RoleTool, Parts: []llm.Part{{ToolResult: &llm.ToolResult{ID: "1"}}}})
			if rapid.Bool().Draw(rt, "steered") {
				add(session.KindMessage, text(llm.RoleUser))
			}
		}
		if rapid.Bool().Draw(rt, "note") {
			add(session.KindNote, text(llm.RoleUser))
		}
		if rapid.Bool().Draw(rt, "answered") {
			add(session.KindMessage, text(llm.RoleAssistant))
		}
	}
	return list
}

func turnsIn(entries []session.Entry) int {
	ids := map[string]bool{}
	for _, e := range entries {
		if e.Kind == session.KindMessage {
			ids[e.Turn] = true
		}
	}
	return len(ids)
}

func cutFault(entries []session.Entry, keep, cut int) error {
	switch {
	case cut < 0 || cut > len(entries):
		return errors.New("outside of the transcript")
	case cut == firstTurn(entries):
		return nil
	case cut < len(entries) && turnsIn(entries[:cut])+turnsIn(entries[cut:]) != turnsIn(entries):
		return errors.New("not at the beginning of a turn")
	case turnsIn(entries[cut:]) < keepRecentTurns:
		return errors.New("fewer turns stay than must")
	case turnsIn(entries[cut:]) > keepRecentTurns && bytesOf(entries[cut:])/bytesPerToken > keep:
		return errors.New("more stays than should")
	}
	return nil
}

func TestKeepFrom(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		entries := drawTranscript(rt)
		for i := range entries { // notes are no part of the size
			if entries[i].Kind == session.KindNote {
				entries[i].Message = llm.Text(llm.RoleUser, "")
			}
		}
		keep := rapid.IntRange(0, 300).Draw(rt, "keep")
		cut := keepFrom(entries, keep)
		if err := cutFault(entries, keep, cut); err != nil {
			rt.Fatalf("cut at %d of %d: %v", cut, len(entries), err)
		}
		if turnsIn(entries) > keepRecentTurns && cut == firstTurn(entries) && turnsIn(entries[:cut]) == 0 && bytesOf(entries)/bytesPerToken > keep {
			rt.Fatalf("nothing is older although %d turns are too much", turnsIn(entries))
		}
	})
}
