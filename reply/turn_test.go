package reply

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/chat"
	"understudy/failover"
	"understudy/failover/policy"
	"understudy/llm"
	"understudy/session"
)

// expect compares lists of words with a readable difference.
func (r *rig) expect(what string, got []string, want ...string) {
	r.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		r.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestAnswer(t *testing.T) {
	r := newRig(t)
	o := r.say("hello")
	if o.Status != Answered || o.Text != "ok from a1" || o.Model != ref("alpha/a1") || len(o.Trail) != 1 {
		t.Errorf("outcome: %+v", o)
	}
	r.expect("said", r.out.said, "assistant ok from a1")
	r.expect("transcript", r.transcript(), "m user: hello", "m assistant: ok from a1")
	if s := r.session(); !s.LastInteractionAt.Equal(start) {
		t.Errorf("the interaction time is %s", s.LastInteractionAt)
	}
}

func TestTranscriptKeepsWhoWroteAndWhatItCost(t *testing.T) {
	r := newRig(t, echoTool(new(int)))
	r.models["a1"] = inTurn(calls("one moment", "echo"), says("done"))
	r.say("go")
	entries, err := r.sessions.Load(t.Context(), r.session().ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		byModel := e.Message.Role == llm.RoleAssistant
		if (e.Model == ref("alpha/a1")) != byModel || (e.Usage != nil) != byModel {
			t.Errorf("%s: model %q, usage %+v", line(e.Message), e.Model, e.Usage)
		}
	}
	if s := r.session(); s.TokensIn != 10 || s.TokensOut != 2 || s.TokensContext != 12 {
		t.Errorf("counted %d in, %d out, context %d", s.TokensIn, s.TokensOut, s.TokensContext)
	}
}

func TestThinkingLevelReachesTheModel(t *testing.T) {
	r := newRig(t)
	r.ensure()
	r.update(func(s *session.Session) { s.Think = "high" })
	r.say("hello")
	if got := r.last().Thinking; got != "high" {
		t.Errorf("the model was asked with thinking level %q", got)
	}
}

// echoTool counts its calls.
func echoTool(n *int) Tool {
	return Tool{Tool: llm.Tool{Name: "echo"}, Run: func(context.Context, Call) (string, error) { *n++; return "echoed", nil }}
}

func TestToolLoop(t *testing.T) {
	n := 0
	r := newRig(t, echoTool(&n))
	r.models["a1"] = inTurn(calls("Let me look.", "echo", "echo"), says("The answer."))
	o := r.say("go")
	if n != 2 || o.Text != "Let me look.\n\nThe answer." {
		t.Errorf("%d calls, answer %q", n, o.Text)
	}
	r.expect("second request", lines(r.last().Messages),
		"user: go", "assistant: Let me look., call echo, call echo", "tool: result echoed, result echoed")
	r.expect("preview", r.out.shown, "Let me look.", "Let me look.\n\n", "Let me look.\n\nThe answer.")
}

func TestToolFailuresAreNoProviderFailures(t *testing.T) {
	for name, run := range map[string]func(context.Context, Call) (string, error){
		"error": func(context.Context, Call) (string, error) { return "", errors.New("no such file") },
		"crash": func(context.Context, Call) (string, error) { panic("boom") },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Tool{Tool: llm.Tool{Name: "f"}, Run: run})
			r.models["a1"] = inTurn(calls("", "f", "unknown"), says("It did not work."))
			o := r.say("go")
			if o.Status != Answered || r.story() != "a1 a1" {
				t.Errorf("%v after asking %s", o.Status, r.story())
			}
			results := r.last().Messages[2].Parts
			if !results[0].ToolResult.IsError || !results[1].ToolResult.IsError || strings.Contains(results[0].ToolResult.Text, "goroutine") {
				t.Errorf("results: %+v %+v", results[0].ToolResult, results[1].ToolResult)
			}
			for _, a := range r.creds.settled {
				if a.Failure != nil {
					t.Errorf("health was charged: %+v", a)
				}
			}
		})
	}
}

func TestToolOutputIsBoundedAndValid(t *testing.T) {
	r := newRig(t, Tool{Tool: llm.Tool{Name: "f"}, Run: func(context.Context, Call) (string, error) {
		return strings.Repeat("x", maxToolOutput-1) + "é and more", nil
	}})
	r.models["a1"] = inTurn(calls("", "f"), says("ok"))
	r.say("go")
	got := r.last().Messages[2].Parts[0].ToolResult.Text
	if len(got) > maxToolOutput+16 || !strings.HasSuffix(got, "xx\n[cut]") {
		t.Errorf("%d bytes ending in %q", len(got), got[len(got)-12:])
	}
}

func TestEndlessToolCallsAreStopped(t *testing.T) {
	n := 0
	r := newRig(t, echoTool(&n))
	r.models["a1"] = calls("", "echo")
	o := r.say("go")
	if n != maxSteps || o.Status != Failed || o.Reason != llm.ReasonInternal || !strings.Contains(o.Text, "25 times") {
		t.Errorf("%d calls; %v %s: %s", n, o.Status, o.Reason, o.Text)
	}
}

func TestNoToolRunsTwiceAndNobodyStepsInAfterOne(t *testing.T) {
	n := 0
	r := newRig(t, echoTool(&n))
	r.models["a1"] = inTurn(calls("", "echo"), fails(llm.ReasonRateLimit))
	o := r.say("go")
	if n != 1 || r.story() != "a1 a1" || o.Status != Failed || !strings.Contains(o.Text, "Part of the work was already done") {
		t.Errorf("%d calls, asked %s: %s", n, r.story(), o.Text)
	}
	r.expect("transcript", r.transcript(), "m user: go", "m assistant: call echo", "m tool: result echoed")
}

func TestStopBetweenToolsStartsNoFurtherOne(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	n := 0
	stop := Tool{Tool: llm.Tool{Name: "stop"}, Run: func(context.Context, Call) (string, error) { cancel(llm.ErrStopped); return "sent", nil }}
	r := newRig(t, stop, echoTool(&n))
	r.models["a1"] = calls("", "stop", "echo")
	o := r.runCtx(ctx, message("go"))
	if o.Status != Stopped || o.Reason != llm.ReasonAborted || n != 0 {
		t.Errorf("%v %s, %d calls after the stop", o.Status, o.Reason, n)
	}
	r.expect("said", r.out.said, "cancel")
	r.expect("transcript", r.transcript(), "m user: go", "m assistant: call stop, call echo", "m tool: result sent, result "+errNotRun.Error())
}

func TestStopLeavesTheUsersWords(t *testing.T) {
	for name, x := range map[string]struct {
		cause  error
		status Status
		memory []string
	}{
		"stop":      {llm.ErrStopped, Stopped, []string{"m user: go"}},
		"interrupt": {llm.ErrInterrupted, Stopped, []string{"m user: go"}},
		"shutdown":  {llm.ErrShutdown, Interrupted, nil}, // the next start runs it again
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			ctx, cancel := context.WithCancelCause(context.Background())
			r.models["a1"] = r.after(time.Hour, says("late"))
			r.v.Clock().AfterFunc(time.Second, func() { cancel(x.cause) })
			o := r.runCtx(ctx, message("go"))
			if o.Status != x.status || o.Text != "" || len(r.asked) != 1 {
				t.Errorf("%v %q after %d requests", o.Status, o.Text, len(r.asked))
			}
			r.expect("said", r.out.said, "cancel")
			r.expect("transcript", r.transcript(), x.memory...)
		})
	}
}

func TestStopThatComesTooLateLosesNoAnswer(t *testing.T) {
	r := newRig(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	r.models["a1"] = func(context.Context, int, llm.Request) seq {
		return func(yield func(llm.Event, error) bool) {
			yield(llm.Event{Text: "here"}, nil)
			yield(end, nil)
			cancel(llm.ErrStopped)
		}
	}
	if o := r.runCtx(ctx, message("go")); o.Status != Answered || o.Text != "here" {
		t.Errorf("%v %q", o.Status, o.Text)
	}
}

func TestTurnTimeLimit(t *testing.T) {
	slow := Tool{Tool: llm.Tool{Name: "slow"}}
	r := newRig(t, slow)
	r.runner.deps.Tools[0].Run = func(ctx context.Context, _ Call) (string, error) {
		return "", r.v.Clock().Sleep(ctx, time.Hour)
	}
	for name, b := range map[string]behaviour{
		"in a tool":    calls("", "slow"),
		"in a request": inTurn(calls("", "slow2"), r.after(11*time.Minute, says("late"))),
	} {
		r.Run(name, func(t *testing.T) {
			r.asked, r.models["a1"], r.models["b1"], r.models["g1"] = nil, b, b, b
			r.agent.Timeout = time.Minute
			o := r.say("go")
			if o.Status != Failed || o.Reason != llm.ReasonTimeout || !strings.Contains(o.Text, "ran out of time") {
				t.Errorf("%v %s: %s", o.Status, o.Reason, o.Text)
			}
		})
	}
}

func TestFailureKeepsTheMessageUnlessItPoisons(t *testing.T) {
	for reason, kept := range map[llm.Reason]bool{
		llm.ReasonRateLimit: true, llm.ReasonAuth: true, llm.ReasonTimeout: true, llm.ReasonUnclassified: true,
		llm.ReasonFormat: false, llm.ReasonContextOverflow: false, llm.ReasonRefusal: false,
	} {
		t.Run(string(reason), func(t *testing.T) {
			r := newRig(t)
			for _, m := range []string{"a1", "b1", "g1"} {
				r.models[m] = fails(reason)
			}
			o := r.say("go")
			if o.Status != Failed || o.Reason != reason || len(r.out.said) != 1 || r.out.said[0] != "error "+o.Text {
				t.Errorf("%v %s, said %q", o.Status, o.Reason, r.out.said)
			}
			if got := slices.Equal(r.transcript(), []string{"m user: go"}); got != kept {
				t.Errorf("kept the message: %v, want %v (%v)", got, kept, r.transcript())
			}
			if strings.Contains(o.Text, "RAW") || strings.Contains(o.Text, "sk-") {
				t.Errorf("provider text in %q", o.Text)
			}
		})
	}
}

func TestSilence(t *testing.T) {
	for name, x := range map[string]struct {
		model behaviour
		tools int
	}{
		"NO_REPLY":                  {says(" no_reply\n"), 0},
		"NO_REPLY after a remark":   {inTurn(calls("Noted.", "echo"), says("NO_REPLY")), 1},
		"nothing but scaffolding":   {says("<think>hm</think>"), 0},
		"scaffolding then NO_REPLY": {says("<think>hm</think>NO_REPLY"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			r := newRig(t, echoTool(&n))
			r.models["a1"] = fails(llm.ReasonRateLimit)
			r.models["b1"] = x.model
			o := r.say("go")
			if o.Status != Silent || o.Text != "" || n != x.tools {
				t.Errorf("%v %q, %d calls", o.Status, o.Text, n)
			}
			// The notice goes out although the turn has no text (spec/failover.md §10).
			r.expect("said", r.out.said, "notice ↪️ Model Fallback: beta/b1 (selected alpha/a1; rate limit)", "cancel")
			if r.out.preview != "" {
				t.Errorf("left on the screen: %q", r.out.preview)
			}
		})
	}
}

func TestScaffoldingIsNotSaid(t *testing.T) {
	r := newRig(t)
	r.models["a1"] = says("<think>hm</think>Hello!")
	if o := r.say("go"); o.Text != "Hello!" {
		t.Errorf("said %q", o.Text)
	}
}

func TestPreviewOfAFailedCandidateGoes(t *testing.T) {
	n := 0
	r := newRig(t, echoTool(&n))
	cut := failsAfter("half an ans", llm.ReasonTimeout)
	r.models["a1"] = cut
	r.models["b1"] = says("whole")
	if o := r.say("go"); o.Text != "whole" || r.out.preview != "whole" {
		t.Errorf("answer %q, preview %q", o.Text, r.out.preview)
	}
	// What an earlier step of the turn said stays.
	r.models["a1"] = inTurn(cut, calls("Looking.", "echo"), cut)
	r.asked, r.creds.rows = nil, policy.Health{}
	r.models["b1"] = cut
	r.models["g1"] = inTurn(calls("Looking.", "unknown"), cut)
	r.say("go")
	if r.out.preview != "Looking." {
		t.Errorf("preview %q", r.out.preview)
	}
}

func failsAfter(text string, reason llm.Reason) behaviour {
	return func(context.Context, int, llm.Request) seq {
		return func(yield func(llm.Event, error) bool) {
			if yield(llm.Event{Text: text}, nil) {
				yield(llm.Event{}, &llm.Error{Failure: llm.Failure{Reason: reason}})
			}
		}
	}
}

func TestNothingIsAskedAgainOnceTextLeftForGood(t *testing.T) {
	r := newRig(t)
	r.out.committed = true
	r.models["a1"] = failsAfter("half", llm.ReasonTimeout)
	if o := r.say("go"); o.Status != Failed || r.story() != "a1" {
		t.Errorf("%v after asking %s", o.Status, r.story())
	}
}

func TestInternalTurns(t *testing.T) {
	for _, kind := range []Kind{Cron, Heartbeat} {
		r := newRig(t)
		r.models["a1"] = fails(llm.ReasonBilling)
		q := Request{
			Agent: "main", Key: "agent:main:cron:1", Kind: kind, To: dm, Text: "report",
			Selection: &policy.Selection{Ref: ref("alpha/a1"), Source: policy.SourceCron},
		}
		o := r.run(q)
		if o.Status != Answered || o.Model != ref("beta/b1") {
			t.Errorf("%v by %s", o.Status, o.Model)
		}
		r.expect("said", r.out.said, q.class().String()+" ok from b1")
		r.expect("shown while it ran", r.out.shown)
		s := r.sessionOf(q.Key)
		if !s.LastInteractionAt.IsZero() || s.Pin != (session.Pin{}) || s.Notice != (session.Pair{}) {
			t.Errorf("an internal turn left its mark: %+v", s)
		}
		if !strings.Contains(r.heard(), "Nobody is there") {
			t.Error("the model is not told that nobody is there")
		}
	}
}

func TestImageTurns(t *testing.T) {
	picture := func() Request {
		q := message("what is this?")
		q.In.Attachments = []chat.Attachment{{Name: "x.png", MediaType: "image/png", Ref: string(drawn(1, 1))}}
		return q
	}
	blind, seeing := failover.ModelInfo{Known: true}, failover.ModelInfo{Known: true, Images: true}
	for name, x := range map[string]struct {
		image  policy.Models
		user   bool
		a1, b1 failover.ModelInfo
		asked  string
		text   string
	}{
		"the selected model sees":          {policy.Models{Primary: ref("gamma/g1")}, false, seeing, blind, "a1", ""},
		"the image chain takes over":       {policy.Models{Primary: ref("gamma/g1")}, false, blind, blind, "g1", ""},
		"without one who cannot is passed": {policy.Models{}, false, blind, seeing, "b1", ""},
		"a user's choice stays alone":      {policy.Models{Primary: ref("gamma/g1")}, true, blind, seeing, "", "cannot take this message"},
		"a model nobody knows is asked":    {policy.Models{Primary: ref("gamma/g1")}, false, failover.ModelInfo{}, blind, "a1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.agent.ImageModel = x.image
			r.info[ref("alpha/a1")], r.info[ref("beta/b1")] = x.a1, x.b1
			r.ensure()
			if x.user {
				r.update(func(s *session.Session) { s.Select(ref("alpha/a1"), "", false) })
			}
			o := r.run(picture())
			if r.story() != x.asked || !strings.Contains(o.Text, x.text) {
				t.Errorf("asked %q, said %q", r.story(), o.Text)
			}
			// The picture of an earlier turn does not choose the model.
			r.asked = nil
			if r.say("thanks"); r.story() != "a1" {
				t.Errorf("the next turn asked %q", r.story())
			}
		})
	}
}

func TestDeliveryThatFailsIsReported(t *testing.T) {
	r := newRig(t)
	r.out.broken = errors.New("disk full")
	var err error
	r.v.Clock().Go(func() { _, err = r.runner.Run(context.Background(), message("go")) })
	r.v.Run(start.Add(time.Hour))
	if !errors.Is(err, r.out.broken) {
		t.Errorf("got %v", err)
	}
	r.expect("the way out is closed", r.out.said, "cancel")
}

func TestACrashOfOursIsToldAndCostsNobody(t *testing.T) {
	r := newRig(t)
	r.models["a1"] = func(context.Context, int, llm.Request) seq { panic("bug") }
	o := r.say("go")
	if o.Status != Failed || o.Reason != llm.ReasonInternal || !strings.Contains(o.Text, "Reference: t1") || len(r.creds.settled) != 0 {
		t.Errorf("%v %s: %s", o.Status, o.Reason, o.Text)
	}
	if !strings.Contains(r.log.String(), "turn_panicked") {
		t.Error("the log does not explain it")
	}
	r.expect("transcript", r.transcript(), "m user: go")
}
