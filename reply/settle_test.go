package reply

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"understudy/chat"
	"understudy/failover/policy"
	"understudy/llm"
	"understudy/session"
)

const (
	fellBack = "notice ↪️ Model Fallback: beta/b1 (selected alpha/a1; rate limit)"
	cameBack = "notice ↪️ Model Fallback cleared: alpha/a1 (was beta/b1)"
)

// over moves the clock behind every cooldown of this test.
func (r *rig) over() {
	r.v.Clock().AfterFunc(10*time.Minute, func() {})
	r.v.Run(r.v.Now().Add(time.Hour))
}

func TestNoticesComeBeforeTheAnswerAndOncePerChange(t *testing.T) {
	r := newRig(t)
	r.models["a1"] = fails(llm.ReasonRateLimit)
	r.say("1")
	r.expect("first", r.out.said, fellBack, "assistant ok from b1")
	r.say("2")
	r.expect("same pair", r.out.said, "assistant ok from b1")
	r.over()
	r.models["a1"] = fails(llm.ReasonOverloaded)
	r.say("3")
	r.expect("another reason", r.out.said, "assistant ok from b1")
	if p := r.session().Notice; p.Reason != "overloaded" {
		t.Errorf("the newest reason is not kept: %+v", p)
	}
	r.over()
	r.models["a1"], r.models["b1"], r.models["g1"] = fails(llm.ReasonBilling), fails(llm.ReasonBilling), fails(llm.ReasonBilling)
	r.say("4")
	if len(r.out.said) != 1 || !strings.HasPrefix(r.out.said[0], "error ") || r.session().Notice.Active != ref("beta/b1") {
		t.Errorf("a failed turn says %q and leaves %+v", r.out.said, r.session().Notice)
	}
	r.creds.rows = policy.Health{}
	r.models["a1"] = nil
	r.say("5")
	r.expect("back", r.out.said, cameBack, "assistant ok from a1")
	r.say("6")
	r.expect("still back", r.out.said, "assistant ok from a1")
	for _, l := range r.transcript() {
		if strings.Contains(l, "Fallback") {
			t.Errorf("a notice in the transcript: %s", l)
		}
	}
}

func TestNoticesCanBeHidden(t *testing.T) {
	r := newRig(t)
	r.notices.Fallback = "off"
	r.models["a1"] = fails(llm.ReasonRateLimit)
	r.say("go")
	r.expect("said", r.out.said, "assistant ok from b1")
	if r.session().Notice.Active != ref("beta/b1") {
		t.Error("the state is not kept, so /status cannot tell")
	}
}

// brokenEnd is a store that cannot write the end of a turn.
type brokenEnd struct{ Sessions }

func (brokenEnd) FinishTurn(context.Context, string, session.Turn) error {
	return errors.New("disk full")
}

func TestAnswerThatCannotBeRecorded(t *testing.T) {
	r := newRig(t)
	r.build(brokenEnd{r.sessions})
	r.models["a1"] = fails(llm.ReasonRateLimit)
	if o := r.say("go"); o.Status != Answered {
		t.Errorf("the user gets no answer: %v", o.Status)
	}
	r.expect("what is not on record is not told", r.out.said, "assistant ok from b1")
	if !strings.Contains(r.log.String(), "turn_not_recorded") {
		t.Error("the log does not tell")
	}
}

func TestSelectionChangedDuringTheTurn(t *testing.T) {
	r := newRig(t)
	r.ensure()
	pick := func(m string) func() {
		return func() { r.update(func(s *session.Session) { s.Select(ref(m), "", true) }) }
	}
	// Between attempts the run takes it, jumping forward in the chain.
	r.models["a1"] = meanwhile(pick("gamma/g1"), fails(llm.ReasonRateLimit))
	o := r.say("go")
	if o.Model != ref("gamma/g1") || r.story() != "a1 g1" || r.session().SwitchPending {
		t.Errorf("answered by %s after %s, pending %v", o.Model, r.story(), r.session().SwitchPending)
	}
	r.expect("said", r.out.said, "assistant ok from g1")

	// During the last request it waits for the next turn; the notice compares with the choice.
	r = newRig(t)
	r.ensure()
	r.models["a1"] = inTurn(meanwhile(pick("beta/b1"), says("mine")))
	r.say("go")
	r.expect("said", r.out.said, "notice ↪️ Model Fallback: alpha/a1 (selected beta/b1; not asked)", "assistant mine")
	r.say("again")
	r.expect("then", r.out.said, "notice ↪️ Model Fallback cleared: beta/b1 (was alpha/a1)", "assistant ok from b1")
}

func TestSwitchAfterAToolWaits(t *testing.T) {
	r := newRig(t)
	r.runner.deps.Tools = []Tool{{Tool: llm.Tool{Name: "f"}, Run: func(context.Context, Call) (string, error) {
		r.update(func(s *session.Session) { s.Select(ref("beta/b1"), "", true) })
		return "ok", nil
	}}}
	r.models["a1"] = inTurn(calls("", "f"), says("done"))
	if o := r.say("go"); o.Model != ref("alpha/a1") || r.story() != "a1 a1" {
		t.Errorf("answered by %s after %s", o.Model, r.story())
	}
	r.models["a1"] = nil
	if o := r.say("again"); o.Model != ref("beta/b1") {
		t.Errorf("the next turn went to %s", o.Model)
	}
}

func TestSwitchedTooOften(t *testing.T) {
	r := newRig(t)
	r.ensure()
	choices := []string{"beta/b2", "gamma/g2", "beta/b3", "gamma/g3"}
	fail := func(ctx context.Context, n int, req llm.Request) seq {
		if len(choices) > 0 {
			r.update(func(s *session.Session) { s.Select(ref(choices[0]), "", true) })
			choices = choices[1:]
		}
		return fails(llm.ReasonRateLimit)(ctx, n, req)
	}
	for _, m := range []string{"a1", "b2", "g2", "b3"} {
		r.models[m] = fail
	}
	o := r.say("go")
	if o.Status != Failed || o.Reason != llm.ReasonRateLimit || !strings.Contains(o.Text, "beta/b3 is selected now") {
		t.Errorf("asked %s; %v %s: %s", r.story(), o.Status, o.Reason, o.Text)
	}
}

func TestStrictSelection(t *testing.T) {
	r := newRig(t)
	r.ensure()
	r.update(func(s *session.Session) { s.Select(ref("beta/b1"), "", false) })
	r.models["b1"] = fails(llm.ReasonAuth)
	o := r.say("go")
	if o.Status != Failed || r.story() != "b1" || !strings.Contains(o.Text, "You selected this model") || !strings.Contains(o.Text, "/model default") {
		t.Errorf("asked %s: %s", r.story(), o.Text)
	}
}

func TestLegacyAutomaticOverride(t *testing.T) {
	seed := func(r *rig) {
		r.ensure()
		r.update(func(s *session.Session) {
			s.Override = session.Override{Model: ref("beta/b1"), Source: session.SourceAuto, Origin: ref("alpha/a1")}
		})
	}
	r := newRig(t)
	seed(r)
	r.say("go")
	r.expect("it answers, and that was told before", r.out.said, "assistant ok from b1")
	if !r.session().Override.Auto() {
		t.Error("the override is gone")
	}
	// When its origin answers it has no purpose any more.
	r.models["b1"] = fails(llm.ReasonBilling)
	r.models["g1"] = fails(llm.ReasonBilling)
	r.say("go")
	r.expect("the origin is back", r.out.said, cameBack, "assistant ok from a1")
	if s := r.session(); s.Override != (session.Override{}) || s.Notice != (session.Pair{}) {
		t.Errorf("left: %+v %+v", s.Override, s.Notice)
	}
	if r.story() != "b1 b1 g1 a1" {
		t.Errorf("asked %s", r.story())
	}
}

func TestThreadsInheritTheSelection(t *testing.T) {
	r := newRig(t)
	r.ensure()
	r.update(func(s *session.Session) { s.Select(ref("gamma/g1"), "", false) })
	q := message("in a thread")
	q.Key, q.Parent = q.Key+":thread:1", q.Key
	if o := r.run(q); o.Model != ref("gamma/g1") {
		t.Errorf("answered by %s", o.Model)
	}
	r.expect("said", r.out.said, "assistant ok from g1")
	if s := r.sessionOf(q.Key); s.Override != (session.Override{}) {
		t.Errorf("the thread got an override of its own: %+v", s.Override)
	}
}

func TestPins(t *testing.T) {
	used := func(r *rig) string {
		return string(r.creds.settled[len(r.creds.settled)-1].Profile)
	}
	pinned := func(r *rig, want session.Pin) {
		t.Helper()
		if got := r.session().Pin; got != want {
			t.Errorf("pin %+v, want %+v", got, want)
		}
	}
	auto := func(p llm.ProfileID, n int) session.Pin {
		return session.Pin{Profile: p, Source: session.SourceAuto, Compactions: n}
	}
	three := func(t *testing.T) *rig {
		r := newRig(t)
		r.creds.profiles = newCredentials("alpha:p1", "alpha:p2", "alpha:p3", "beta:p1").profiles
		return r
	}
	t.Run("the first answer's profile is kept", func(t *testing.T) {
		r := three(t)
		for range 3 {
			r.say("go")
			pinned(r, auto("alpha:p1", 0))
			if used(r) != "alpha:p1" {
				t.Errorf("used %s", used(r))
			}
		}
	})
	t.Run("a rotation inside a turn leaves it, a cooling profile loses it", func(t *testing.T) {
		r := three(t)
		r.say("go")
		r.models["a1"] = inTurn(nil, fails(llm.ReasonRateLimit), says("b"), says("c"))
		r.say("go")
		pinned(r, auto("alpha:p1", 0))
		r.say("go")
		pinned(r, auto("alpha:p3", 0))
		r.over()
		r.say("go")
		pinned(r, auto("alpha:p3", 0))
	})
	t.Run("a compaction moves it on", func(t *testing.T) {
		r := three(t)
		r.say("go")
		r.update(func(s *session.Session) { s.Compactions++ })
		r.say("go")
		pinned(r, auto("alpha:p2", 1))
		r.say("go")
		pinned(r, auto("alpha:p2", 1))
	})
	t.Run("another provider's fallback sets none", func(t *testing.T) {
		r := three(t)
		r.models["a1"] = fails(llm.ReasonModelNotFound)
		r.say("go")
		pinned(r, session.Pin{})
	})
	t.Run("a user's lock stays", func(t *testing.T) {
		r := three(t)
		r.ensure()
		lock := session.Pin{Profile: "alpha:p3", Source: session.SourceUser}
		r.update(func(s *session.Session) { s.SelectDefault("alpha:p3", false) })
		r.models["a1"] = fails(llm.ReasonRateLimit)
		if o := r.say("go"); o.Model != ref("beta/b1") || len(r.asked) != 2 {
			t.Errorf("%s after %s", o.Model, r.story())
		}
		pinned(r, lock)
	})
	t.Run("a lock on a profile that is gone is told and dropped", func(t *testing.T) {
		r := three(t)
		r.ensure()
		r.update(func(s *session.Session) { s.SelectDefault("alpha:gone", false) })
		r.say("go")
		if len(r.out.said) != 2 || !strings.HasPrefix(r.out.said[0], "notice 🔑 The pinned profile alpha:gone no longer exists") {
			t.Errorf("said %q", r.out.said)
		}
		pinned(r, auto("alpha:p1", 0))
		r.say("go")
		r.expect("told once", r.out.said, "assistant ok from a1")
	})
}

func TestResetDuringTheTurnKeepsTheNewSessionClean(t *testing.T) {
	r := newRig(t)
	r.ensure()
	r.models["a1"] = fails(llm.ReasonRateLimit)
	r.models["b1"] = meanwhile(func() {
		if _, err := r.sessions.Reset(t.Context(), message("").Key); err != nil {
			t.Error(err)
		}
	}, says("late"))
	r.say("go")
	if s := r.session(); s.Notice != (session.Pair{}) || s.Pin != (session.Pin{}) {
		t.Errorf("the old turn marked the new session: %+v", s)
	}
	r.expect("transcript", r.transcript())
}

func TestDecisionIsRecorded(t *testing.T) {
	r := newRig(t)
	r.models["a1"] = fails(llm.ReasonRateLimit)
	r.say("go")
	list, err := r.sessions.Decisions(t.Context(), message("").Key, 10)
	if err != nil || len(list) != 1 {
		t.Fatalf("%d decisions: %v", len(list), err)
	}
	got := string(list[0].Record)
	for _, want := range []string{`"turn":"t1"`, `"outcome":"answered"`, `"selected":"alpha/a1"`, `"model":"beta/b1"`, `"rate_limit"`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	if strings.Contains(got, "sk-secret") && !strings.Contains(got, "RAW provider text") {
		t.Error("a secret is on record")
	}
}

func TestStillRetrying(t *testing.T) {
	r := newRig(t)
	r.agent.Models.Fallbacks = nil
	n := 0
	r.models["a1"] = func(ctx context.Context, k int, req llm.Request) seq {
		if n++; n > 6 {
			return says("at last")(ctx, k, req)
		}
		return fails(llm.ReasonOverloaded)(ctx, k, req)
	}
	r.say("go")
	r.expect("said", r.out.said,
		"progress The AI service is temporarily overloaded. I’m still retrying; this may take a few minutes.", "assistant at last")
	// Never for heartbeats.
	n = 0
	q := Request{Agent: "main", Key: "hb", Kind: Heartbeat, To: dm, Text: "tick", Selection: &policy.Selection{Ref: ref("alpha/a1"), Source: policy.SourceHeartbeat}}
	r.run(q)
	r.expect("heartbeat", r.out.said, chat.Heartbeat.String()+" at last")
}
