package failover_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"understudy/failover"
	"understudy/failover/policy"
	"understudy/llm"
)

var (
	limited    = fails(llm.Failure{Reason: llm.ReasonRateLimit, Status: 429})
	overloaded = fails(llm.Failure{Reason: llm.ReasonOverloaded, Status: 529})
	overflow   = fails(llm.Failure{Reason: llm.ReasonContextOverflow, Status: 400})
	denied     = fails(llm.Failure{Reason: llm.ReasonAuth, Status: 401})
)

func TestFallbackAnswersAndTheLogTellsEachStep(t *testing.T) {
	s := newStage(t)
	s.answer["a1"] = func(ctx context.Context, n int, q llm.Request) seq { return says("  ")(ctx, n, q) }
	s.answer["b1"] = s.hangs()
	a, run, err := s.turn(plan("alpha/a1 beta/b1 gamma/g1"), &host{})
	if err != nil || a.Ref.String() != "gamma/g1" || a.Message.PlainText() != "ok from g1" {
		t.Fatalf("answered by %s: %v", a.Ref, err)
	}
	var steps []string
	for _, d := range s.decisions() {
		steps = append(steps, strings.Join([]string{
			d["decision"].(string), d["fallbackStepFromModel"].(string), d["fallbackStepToModel"].(string),
			d["fallbackStepFromFailureReason"].(string), d["fallbackStepFinalOutcome"].(string),
		}, " "))
	}
	want := "candidate_failed alpha/a1 beta/b1 empty_response next_fallback\n" +
		"candidate_failed beta/b1 gamma/g1 timeout next_fallback\n" +
		"candidate_succeeded beta/b1 gamma/g1 timeout succeeded"
	if got := strings.Join(steps, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if n := len(run.Trail()); n != 3 {
		t.Errorf("%d records, want 3", n)
	}
}

func TestHangingCandidateLeavesTimeForTheOthers(t *testing.T) {
	s := newStage(t)
	s.answer["a1"] = s.hangs()
	p := plan("alpha/a1 beta/b1 gamma/g1")
	p.Deadline = start.Add(60 * time.Second)
	if a, _, err := s.turn(p, &host{}); err != nil || a.Ref.Provider != "beta" {
		t.Fatalf("%s: %v", a.Ref, err)
	}
	if got := s.at[1]; got != 20*time.Second {
		t.Errorf("the next one was asked after %s, want an equal share of 20s", got)
	}
}

func TestIdleStreamIsGivenUp(t *testing.T) {
	s := newStage(t)
	s.idle = 30 * time.Second
	s.answer["a1"] = s.hangs("The answer is")
	h := &host{}
	a, _, err := s.turn(plan("alpha/a1 beta/b1"), h)
	if err != nil || a.Ref.Provider != "beta" {
		t.Fatalf("%s: %v", a.Ref, err)
	}
	if s.at[1] != 30*time.Second || h.forgotten != 1 || h.text != "ok from b1" {
		t.Errorf("asked b1 after %s, forgot %d times, shown %q", s.at[1], h.forgotten, h.text)
	}
}

func TestSlowButSteadyStreamIsLeftAlone(t *testing.T) {
	s := newStage(t)
	s.idle = 30 * time.Second
	s.answer["a1"] = s.drips(180, time.Second)
	a, _, err := s.turn(plan("alpha/a1 beta/b1"), &host{})
	if err != nil || len(a.Message.PlainText()) != 180 {
		t.Errorf("%d characters: %v", len(a.Message.PlainText()), err)
	}
	s.expect("a1@p1")
}

func TestStopEndsTheTurnSilently(t *testing.T) {
	s := newStage(t)
	s.answer["a1"] = s.hangs("half")
	ctx, cancel := context.WithCancelCause(context.Background())
	s.v.Clock().AfterFunc(2*time.Second, func() { cancel(llm.ErrStopped) })
	_, _, err := s.turnWith(ctx, plan("alpha/a1 beta/b1"), &host{})
	if failover.ReasonOf(err) != llm.ReasonAborted {
		t.Errorf("ended with %v, want aborted", err)
	}
	s.expect("a1@p1")
	if len(s.store.rows) != 0 {
		t.Errorf("a stop cost something: %v", s.store.rows)
	}
}

func TestTurnLimitIsATimeoutAndTold(t *testing.T) {
	s := newStage(t)
	s.answer["a1"], s.answer["b1"] = s.hangs(), s.hangs()
	ctx, cancel := s.v.Clock().WithTimeout(context.Background(), 40*time.Second, llm.ErrTurnTimeout)
	defer cancel()
	p := plan("alpha/a1 beta/b1")
	p.Deadline = start.Add(40 * time.Second)
	_, _, err := s.turnWith(ctx, p, &host{})
	if failover.ReasonOf(err) != llm.ReasonTimeout || !errors.Is(err, llm.ErrTurnTimeout) {
		t.Errorf("ended with %v", err)
	}
	s.expect("a1@p1 b1@p1")
	if !s.store.rows[policy.Key{Profile: "beta:p1", Model: "b1"}].Cooldown.Active(s.v.Now()) {
		t.Error("the request that the limit cut counts as a timeout like any other")
	}
}

func TestOverloadIsRetriedAndToldOnce(t *testing.T) {
	for _, x := range []struct {
		name   string
		chain  string
		n      int
		quiet  bool
		told   int
		answer string
	}{
		{"a short blip stays silent", "alpha/a1 beta/b1", 3, false, 0, "alpha/a1"},
		{"a long one is told at 30 seconds", "alpha/a1 beta/b1", 6, false, 1, "alpha/a1"},
		{"a strict one is retried too", "alpha/a1", 6, false, 1, "alpha/a1"},
		{"a heartbeat is not told", "alpha/a1 beta/b1", 6, true, 0, "alpha/a1"},
		{"after ten rounds the turn fails", "alpha/a1 beta/b1", 100, false, 1, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := newStage(t)
			s.answer["a1"], s.answer["b1"] = first(x.n, overloaded, says("back")), overloaded
			p := plan(x.chain)
			p.Quiet = x.quiet
			h := &host{}
			a, _, err := s.turn(p, h)
			if got := a.Ref.String(); got != x.answer {
				t.Errorf("answered by %q, want %q: %v", got, x.answer, err)
			}
			if len(h.retrying) != x.told || (x.told == 1 && h.retrying[0] != 30*time.Second) {
				t.Errorf("told at %v, want %d times at 30s", h.retrying, x.told)
			}
			if x.answer == "" && s.count["a1"] != 11 {
				t.Errorf("%d rounds, want 11: %s", s.count["a1"], s.when())
			}
		})
	}
}

func TestStopEndsAWaitAtOnce(t *testing.T) {
	s := newStage(t)
	s.answer["a1"], s.answer["b1"] = overloaded, overloaded
	ctx, cancel := context.WithCancelCause(context.Background())
	s.v.Clock().AfterFunc(20*time.Second, func() { cancel(llm.ErrStopped) })
	h := &host{}
	_, _, err := s.turnWith(ctx, plan("alpha/a1 beta/b1"), h)
	if failover.ReasonOf(err) != llm.ReasonAborted || len(h.retrying) != 0 {
		t.Errorf("%v, told %v", err, h.retrying)
	}
	if last := s.at[len(s.at)-1]; last > 20*time.Second {
		t.Errorf("asked %s after the stop", last-20*time.Second)
	}
}

func TestOverflowCompactsAndAsksTheSameModelOnce(t *testing.T) {
	s := newStage(t)
	s.answer["a1"] = first(1, overflow, says("shorter"))
	h := &host{compacted: func() ([]llm.Message, bool) { return []llm.Message{llm.Text(llm.RoleUser, "summary")}, true }}
	a, _, err := s.turn(plan("alpha/a1 beta/b1"), h)
	if err != nil || a.Message.PlainText() != "shorter" {
		t.Fatalf("%q: %v", a.Message.PlainText(), err)
	}
	s.expect("a1@p1 a1@p1")
	if len(s.store.rows[policy.Key{Profile: "alpha:p1"}].FailureCounts) != 0 {
		t.Error("an overflow marks no health")
	}
}

func TestSecondOverflowIsTold(t *testing.T) {
	s := newStage(t)
	s.answer["a1"] = overflow
	h := &host{compacted: func() ([]llm.Message, bool) { return nil, true }}
	_, _, err := s.turn(plan("alpha/a1 beta/b1"), h)
	if failover.ReasonOf(err) != llm.ReasonContextOverflow {
		t.Errorf("ended with %v", err)
	}
	s.expect("a1@p1 a1@p1")
}

func TestWorkBindsLaterRequests(t *testing.T) {
	s := newStage(t, "alpha:p1", "alpha:p2", "beta:p1")
	s.answer["a1"] = first(1, says("calling"), limited)
	var err error
	s.v.Clock().Go(func() {
		ctx := context.Background()
		run := s.runner.Begin(ctx, plan("alpha/a1 beta/b1"), &host{now: s.v.Now})
		defer run.Finish()
		if _, e := run.Ask(ctx, llm.Request{}); e != nil {
			t.Error(e)
		}
		run.Working()
		_, err = run.Ask(ctx, llm.Request{})
	})
	s.v.Run(start.Add(time.Hour))
	var one *failover.AttemptError
	if !errors.As(err, &one) || !one.Work || one.Reason != llm.ReasonRateLimit {
		t.Errorf("ended with %v", err)
	}
	s.expect("a1@p1 a1@p1")
}

func TestTextThatLeftEndsTheTurn(t *testing.T) {
	s := newStage(t)
	s.answer["a1"] = func(ctx context.Context, n int, q llm.Request) seq {
		return func(yield func(llm.Event, error) bool) {
			yield(llm.Event{Text: "half"}, nil)
			yield(llm.Event{}, &llm.Error{Failure: llm.Failure{Reason: llm.ReasonTimeout, Detail: llm.DetailNetwork}})
		}
	}
	_, _, err := s.turn(plan("alpha/a1 beta/b1"), &host{left: true})
	if err == nil {
		t.Error("went on after text had left")
	}
	s.expect("a1@p1")
}

func TestStreamWithoutAnEndIsAFailure(t *testing.T) {
	s := newStage(t)
	s.answer["a1"] = func(context.Context, int, llm.Request) seq {
		return func(yield func(llm.Event, error) bool) { yield(llm.Event{Text: "Let me check"}, nil) }
	}
	a, _, err := s.turn(plan("alpha/a1 beta/b1"), &host{})
	if err != nil || a.Ref.Provider != "beta" {
		t.Errorf("%s: %v", a.Ref, err)
	}
}

func TestLiveSwitch(t *testing.T) {
	t.Run("to a later candidate jumps", func(t *testing.T) {
		s := newStage(t)
		s.answer["a1"] = limited
		h := &host{switched: []failover.Plan{plan("gamma/g1")}}
		h.switched = nil
		s.answer["a1"] = func(ctx context.Context, n int, q llm.Request) seq {
			h.switched = []failover.Plan{plan("gamma/g1")}
			return limited(ctx, n, q)
		}
		a, run, err := s.turn(plan("alpha/a1 beta/b1 gamma/g1"), h)
		if err != nil || a.Ref.Provider != "gamma" || run.Plan().Selected.Provider != "gamma" {
			t.Errorf("%s: %v", a.Ref, err)
		}
		s.expect("a1@p1 g1@p1")
	})
	t.Run("to another model restarts", func(t *testing.T) {
		s := newStage(t)
		h := &host{}
		s.answer["a1"] = func(ctx context.Context, n int, q llm.Request) seq {
			h.switched = []failover.Plan{plan("gamma/g1")}
			return limited(ctx, n, q)
		}
		a, _, err := s.turn(plan("alpha/a1 beta/b1"), h)
		if err != nil || a.Ref.Provider != "gamma" {
			t.Errorf("%s: %v", a.Ref, err)
		}
		s.expect("a1@p1 g1@p1")
	})
	t.Run("during a pause is taken at once", func(t *testing.T) {
		s := newStage(t)
		h := &host{}
		s.answer["a1"], s.answer["b1"] = overloaded, overloaded
		s.v.Clock().AfterFunc(20*time.Second, func() {
			h.switched = []failover.Plan{plan("gamma/g1")}
			s.runner.Switched("s1")
		})
		a, _, err := s.turn(plan("alpha/a1 beta/b1"), h)
		if err != nil || a.Ref.Provider != "gamma" || s.at[len(s.at)-1] != 20*time.Second {
			t.Errorf("%s after %s: %v", a.Ref, s.when(), err)
		}
	})
	t.Run("that chooses the same again leaves the pause alone", func(t *testing.T) {
		s := newStage(t)
		h := &host{}
		s.answer["a1"], s.answer["b1"] = first(4, overloaded, says("back")), overloaded
		s.v.Clock().AfterFunc(20*time.Second, func() {
			h.switched = []failover.Plan{plan("alpha/a1 beta/b1")}
			s.runner.Switched("s1")
		})
		a, _, err := s.turn(plan("alpha/a1 beta/b1"), h)
		if err != nil || a.Ref.Provider != "alpha" || s.at[len(s.at)-1] != 37500*time.Millisecond {
			t.Errorf("%s after %s: %v", a.Ref, s.when(), err)
		}
	})
	t.Run("a third one fails the turn", func(t *testing.T) {
		s := newStage(t)
		h := &host{}
		again := func(next string) behaviour {
			return func(ctx context.Context, n int, q llm.Request) seq {
				h.switched = []failover.Plan{plan(next)}
				return limited(ctx, n, q)
			}
		}
		s.answer["a1"], s.answer["b1"], s.answer["g1"] = again("beta/b1"), again("gamma/g1"), again("alpha/a2")
		_, run, err := s.turn(plan("alpha/a1"), h)
		if !errors.Is(err, failover.ErrSwitchedTooOften) || failover.ReasonOf(err) != llm.ReasonRateLimit {
			t.Errorf("ended with %v", err)
		}
		if got := run.Plan().Selected.String(); got != "alpha/a2" {
			t.Errorf("the newest selection is %s, want alpha/a2", got)
		}
		s.expect("a1@p1 b1@p1 g1@p1")
	})
}

func TestSkipCache(t *testing.T) {
	s := newStage(t)
	s.settings.SkipTTL = 10 * time.Minute
	s.answer["a1"], s.answer["b1"] = limited, denied
	chain := "alpha/a1 beta/b1 gamma/g1"
	if _, _, err := s.turn(plan(chain), &host{}); err != nil {
		t.Fatal(err)
	}
	clear(s.store.rows)
	if _, _, err := s.turn(plan(chain), &host{}); err != nil {
		t.Fatal(err)
	}
	clear(s.store.rows)
	other := plan(chain)
	other.Session = "s2"
	if _, _, err := s.turn(other, &host{}); err != nil {
		t.Fatal(err)
	}
	clear(s.store.rows)
	if _, _, err := s.turn(plan("beta/b1"), &host{}); err == nil {
		t.Error("the first candidate's failure is hidden")
	}
	s.expect("a1@p1 b1@p1 g1@p1 a1@p1 g1@p1 a1@p1 b1@p1 g1@p1 b1@p1")
}

func TestCredentialFaults(t *testing.T) {
	t.Run("a refused refresh costs the profile", func(t *testing.T) {
		s := newStage(t, "alpha:p1", "alpha:p2")
		s.store.refused = map[llm.ProfileID]error{"alpha:p1": &llm.Error{Failure: llm.Failure{Reason: llm.ReasonAuthPermanent}}}
		if _, run, err := s.turn(plan("alpha/a1"), &host{}); err != nil || run.Trail()[0].Reason != llm.ReasonAuthPermanent {
			t.Error(err)
		}
		s.expect("a1@p2")
		if !s.store.rows[policy.Key{Profile: "alpha:p1"}].Disabled.Active(start) {
			t.Error("the revoked sign-in is not disabled")
		}
	})
	t.Run("a lock time-out costs nothing", func(t *testing.T) {
		s := newStage(t, "alpha:p1", "alpha:p2")
		s.store.refused = map[llm.ProfileID]error{"alpha:p1": errors.New("busy")}
		if _, _, err := s.turn(plan("alpha/a1"), &host{}); err != nil {
			t.Error(err)
		}
		s.expect("a1@p2")
		if _, marked := s.store.rows[policy.Key{Profile: "alpha:p1", Model: "a1"}]; marked {
			t.Error("the profile was blamed")
		}
	})
	t.Run("a probe that made no call gives its slot back", func(t *testing.T) {
		s := newStage(t)
		s.store.cool("alpha:p1", "a1", llm.ReasonRateLimit, time.Minute)
		s.store.refused = map[llm.ProfileID]error{"alpha:p1": errors.New("busy")}
		if _, _, err := s.turn(plan("alpha/a1 beta/b1"), &host{}); err != nil {
			t.Error(err)
		}
		if s.store.released != 1 {
			t.Error("the slot is gone")
		}
	})
}

func TestBrokenStoreNeverFailsATurn(t *testing.T) {
	s := newStage(t)
	if _, _, err := s.turn(plan("alpha/a1"), &host{}); err != nil {
		t.Fatal(err)
	}
	s.store.broken = errors.New("database is locked")
	if _, _, err := s.turn(plan("alpha/a1"), &host{}); err != nil {
		t.Errorf("the turn failed: %v", err)
	}
	if !strings.Contains(s.log.String(), "auth_profile_bookkeeping_dropped") {
		t.Error("the log does not say what was dropped")
	}
}

func TestUnfitCandidatesArePassedOver(t *testing.T) {
	s := newStage(t)
	ref := func(x string) llm.ModelRef { r, _ := llm.ParseRef(x); return r }
	s.info[ref("beta/b1")] = failover.ModelInfo{Known: true}
	s.info[ref("gamma/g1")] = failover.ModelInfo{Known: true, Images: true, ContextWindow: 1000}
	s.answer["a1"] = limited
	p := plan("alpha/a1 beta/b1 gamma/g1 nowhere/n1 alpha/a2")
	p.Images, p.Tokens = true, 2000
	a, run, err := s.turn(p, &host{})
	if err != nil || a.Ref.Model != "a2" {
		t.Fatalf("%s: %v", a.Ref, err)
	}
	s.expect("a1@p1 a2@p1")
	var why []string
	for _, r := range run.Trail() {
		why = append(why, string(r.Why))
	}
	if got := strings.Join(why, " "); got != "free capability capability unknown_model free" {
		t.Errorf("trail: %s", got)
	}
}

func TestSummaryNamesEveryCandidate(t *testing.T) {
	s := newStage(t)
	s.answer["a1"], s.answer["b1"] = limited, fails(llm.Failure{Reason: llm.ReasonBilling, Status: 402})
	_, _, err := s.turn(plan("alpha/a1 beta/b1"), &host{})
	var many *failover.FallbackSummaryError
	if !errors.As(err, &many) || len(many.Attempts) != 2 {
		t.Fatalf("%v", err)
	}
	if got := many.SoonestExpiry.Sub(start); got != 30*time.Second {
		t.Errorf("soonest in %s, want 30s", got)
	}
	if got := many.SoonestPassing.Sub(start); got != 30*time.Second {
		t.Errorf("the first to pass by itself in %s, want 30s", got)
	}
	if failover.ReasonOf(err) != llm.ReasonBilling {
		t.Errorf("the turn's reason is %s, want that of the last request", failover.ReasonOf(err))
	}
}

// A key that is wrong is not back when its rest ends.
func TestSummaryTellsWhatPassesByItself(t *testing.T) {
	s := newStage(t)
	s.answer["a1"], s.answer["b1"] = fails(llm.Failure{Reason: llm.ReasonAuth, Status: 401}), fails(llm.Failure{Reason: llm.ReasonRateLimit, RetryAfter: time.Hour})
	_, _, err := s.turn(plan("alpha/a1 beta/b1"), &host{})
	var many *failover.FallbackSummaryError
	if !errors.As(err, &many) || many.SoonestExpiry.Sub(start) != 30*time.Second || many.SoonestPassing.Sub(start) != time.Hour {
		t.Errorf("%v: %+v", err, many)
	}
}

func TestPins(t *testing.T) {
	pinned := func(user bool) failover.Plan {
		p := plan("alpha/a1 beta/b1")
		p.Pin = policy.Pin{Profile: "alpha:p2", User: user}
		return p
	}
	t.Run("a preference goes first and may rotate", func(t *testing.T) {
		s := newStage(t, "alpha:p1", "alpha:p2", "beta:p1")
		s.answer["a1"] = first(1, limited, says("ok"))
		if _, _, err := s.turn(pinned(false), &host{}); err != nil {
			t.Error(err)
		}
		s.expect("a1@p2 a1@p1")
	})
	t.Run("a lock goes to the next model", func(t *testing.T) {
		s := newStage(t, "alpha:p1", "alpha:p2", "beta:p1")
		s.answer["a1"] = limited
		if _, _, err := s.turn(pinned(true), &host{}); err != nil {
			t.Error(err)
		}
		s.expect("a1@p2 b1@p1")
	})
	t.Run("a lock holds although the order leaves it out", func(t *testing.T) {
		s := newStage(t, "alpha:p1", "alpha:p2", "beta:p1")
		s.settings.Order = map[string][]llm.ProfileID{"alpha": {"alpha:p1"}}
		if _, _, err := s.turn(pinned(true), &host{}); err != nil {
			t.Error(err)
		}
		s.expect("a1@p2")
	})
	t.Run("an order of nobody closes the provider to a lock, too", func(t *testing.T) {
		s := newStage(t, "alpha:p1", "alpha:p2", "beta:p1")
		s.settings.Order = map[string][]llm.ProfileID{"alpha": {}}
		if _, _, err := s.turn(pinned(true), &host{}); err != nil {
			t.Error(err)
		}
		s.expect("b1@p1")
	})
	t.Run("a lost one is dropped and named", func(t *testing.T) {
		s := newStage(t, "alpha:p1", "beta:p1")
		_, run, err := s.turn(pinned(true), &host{})
		if err != nil || run.LostPin() != "alpha:p2" {
			t.Errorf("%q: %v", run.LostPin(), err)
		}
		s.expect("a1@p1")
	})
	t.Run("a cooling preference yields", func(t *testing.T) {
		s := newStage(t, "alpha:p1", "alpha:p2", "beta:p1")
		s.store.cool("alpha:p2", "a1", llm.ReasonRateLimit, time.Hour)
		_, run, err := s.turn(pinned(false), &host{})
		if err != nil || !run.PinYielded() {
			t.Errorf("%v", err)
		}
		s.expect("a1@p1")
	})
}
