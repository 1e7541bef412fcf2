package reply

import (
	"context"
	"fmt"
	"testing"

	"understudy/failover/policy"
	"understudy/llm"
	"understudy/session"
)

// moment is a point of a turn at which somebody may choose another model.
type moment int

const (
	never       moment = iota
	beforeTurn         // while the message waits
	inAttempt          // before the first request fails
	inStream           // behind its first text
	inFallback         // while the second candidate works
	inTool             // while a tool runs
	afterTool          // in the request behind it
	inSummary          // while the conversation is shortened
	beforeWrite        // when the answer is there, and not yet written
	moments
)

func (m moment) String() string {
	return [...]string{"never", "before the turn", "in the attempt", "in the stream", "in the fallback", "in the tool", "after the tool", "in the summary", "before the write"}[m]
}

// lateSwitch is a store in which somebody chooses just before a turn is written.
type lateSwitch struct {
	Sessions
	do func()
}

func (l lateSwitch) FinishTurn(ctx context.Context, key string, t session.Turn) error {
	l.do()
	return l.Sessions.FinishTurn(ctx, key, t)
}

// switchStory is one interleaving of a turn with two choices.
type switchStory struct {
	first, second   moment
	to, then        string // models: one later in the chain, one outside
	tool, overflows bool   // the turn uses a tool; it has to be shortened
}

func (s switchStory) String() string {
	return fmt.Sprintf("%s→%s, %s→%s, tool %v, overflow %v", s.first, s.to, s.second, s.then, s.tool, s.overflows)
}

// play runs a turn with its switches and then another one. It returns what went wrong.
func (s switchStory) play(r *rig) string {
	newest := ""
	at := func(m moment) {
		for when, model := range map[moment]string{s.first: s.to, s.second: s.then} {
			if when == m && m != never {
				r.update(func(x *session.Session) { x.Select(ref(model), "", m != beforeTurn) })
				newest = model
			}
		}
	}
	r.models = map[string]behaviour{}
	step := func(b behaviour) behaviour { // how an attempt goes on that is not the first
		return meanwhile(func() { at(inFallback) }, b)
	}
	work := says("done")
	if s.tool {
		r.runner.deps.Tools = []Tool{{Tool: llm.Tool{Name: "f"}, Run: func(context.Context, Call) (string, error) { at(inTool); return "ok", nil }}}
		work = inTurn(calls("", "f"), meanwhile(func() { at(afterTool) }, says("done")))
	}
	for _, m := range []string{"b1", "b2", "g1", "g2"} {
		r.models[m] = step(work)
	}
	r.models["a1"] = s.lead(at)
	if s.first == beforeTurn && (s.second == inAttempt || s.second == inStream) { // the chosen one leads
		r.models[ref(s.to).Model] = s.lead(at)
	}
	r.build(lateSwitch{r.sessions, func() { at(beforeWrite) }}, r.runner.deps.Tools...)
	at(beforeTurn)
	first := r.say("go")
	if first.Status != Answered {
		return fmt.Sprintf("the turn %s: %s", first.Status, first.Text)
	}
	if r.session().Override.Model.String() != newest {
		return fmt.Sprintf("%q is selected, not %q", r.session().Override.Model, newest)
	}
	if safe := s.safe(); safe != "" && first.Model.String() != safe {
		return fmt.Sprintf("answered by %s, chosen was %s at a safe point", first.Model, safe)
	}
	r.build(r.sessions)
	for m := range r.models {
		r.models[m] = nil
	}
	second := r.say("again")
	if want := newest; want != "" && second.Model.String() != want {
		return fmt.Sprintf("the next turn was answered by %s, chosen was %s", second.Model, want)
	}
	if r.session().SwitchPending {
		return "a switch is still pending"
	}
	return ""
}

// lead is the first candidate, which always fails once.
func (s switchStory) lead(at func(moment)) behaviour {
	return func(ctx context.Context, n int, req llm.Request) seq {
		return func(yield func(llm.Event, error) bool) {
			if isSummary(req) {
				at(inSummary)
				says("they talked")(ctx, n, req)(yield)
				return
			}
			if s.overflows && n == 1 {
				fails(llm.ReasonContextOverflow)(ctx, n, req)(yield)
				return
			}
			at(inAttempt)
			if !yield(llm.Event{Text: "half"}, nil) {
				return
			}
			at(inStream)
			yield(llm.Event{}, &llm.Error{Failure: llm.Failure{Reason: llm.ReasonTimeout}})
		}
	}
}

// safe is the choice that this turn has to follow: the newest made before the first candidate failed.
func (s switchStory) safe() string {
	choice := ""
	for m := beforeTurn; m <= inStream; m++ {
		for when, model := range map[moment]string{s.first: s.to, s.second: s.then} {
			if when == m {
				choice = model
			}
		}
	}
	return choice
}

// Whenever people choose another model while a turn runs, once or twice: the newest choice is what the
// session is set to, what the next turn asks, and what this turn asks if it is not too late. None is
// lost, and none stays pending.
func TestNoChoiceIsLostWheneverItIsMade(t *testing.T) {
	r := newRig(t)
	played := 0
	for first := never; first < moments; first++ {
		for second := first; second < moments; second++ {
			if second == first && first != never {
				continue
			}
			for _, pair := range [][2]string{{"gamma/g1", "beta/b2"}, {"gamma/g2", "beta/b1"}} {
				for _, tool := range []bool{false, true} {
					for _, overflows := range []bool{false, true} {
						s := switchStory{first: first, second: second, to: pair[0], then: pair[1], tool: tool, overflows: overflows}
						if !tool && (first == inTool || second == inTool || first == afterTool || second == afterTool) || !overflows && (first == inSummary || second == inSummary) {
							continue
						}
						if _, err := r.sessions.Reset(t.Context(), message("").Key); err != nil && played > 0 {
							t.Fatal(err)
						}
						r.ensure()
						r.update(func(x *session.Session) { x.SelectDefault("", false); x.SwitchPending = false })
						if overflows {
							r.talked(6, 5_000)
						}
						r.asked, r.creds.rows = nil, policy.Health{}
						if fault := s.play(r); fault != "" {
							t.Errorf("%s: %s; asked %s", s, fault, r.story())
						}
						played++
					}
				}
			}
		}
	}
	if played < 150 {
		t.Errorf("only %d stories", played)
	}
}
