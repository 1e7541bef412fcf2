package failover_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"understudy/failover"
	"understudy/failover/policy"
	"understudy/llm"
)

// purse answers for a person and counts what was asked and spent.
type purse struct {
	allow  []string
	asked  []string
	spent  []string
	think  func(ctx context.Context) // before an answer
	lonely bool                      // it was asked for a turn that nobody watches
}

func (p *purse) MayStandIn(ctx context.Context, _ failover.Ref, ref llm.ModelRef, unattended bool) bool {
	p.asked = append(p.asked, ref.String())
	p.lonely = p.lonely || unattended
	if p.think != nil {
		p.think(ctx)
	}
	return slices.Contains(p.allow, ref.String())
}

func (p *purse) StoodIn(_ context.Context, ref llm.ModelRef, u llm.Usage) {
	p.spent = append(p.spent, ref.String())
}

// guarded gives the stage a purse.
func (s *stage) guarded(p *purse) {
	deps := failover.Deps{
		Store: func(string) (failover.Store, error) { return s.store, nil }, Models: func() failover.Models { return s },
		Settings: func() *failover.Settings { return &s.settings }, Clock: s.v.Clock(), Log: slog.New(slog.NewJSONHandler(&s.log, nil)), Purse: p,
	}
	s.runner = failover.New(deps)
}

func TestAStandInIsAskedForOnceAndCounted(t *testing.T) {
	s := newStage(t)
	p := &purse{allow: []string{"beta/b1"}}
	s.guarded(p)
	s.answer["a1"] = limited
	a, run, err := s.turn(plan("alpha/a1 beta/b1"), &host{})
	if err != nil || a.Ref.String() != "beta/b1" {
		t.Fatalf("%s: %v", a.Ref, err)
	}
	if !slices.Equal(p.asked, []string{"beta/b1"}) || !slices.Equal(p.spent, []string{"beta/b1"}) {
		t.Errorf("asked %v, spent %v", p.asked, p.spent)
	}
	s.v.Clock().Go(func() { _, _ = run.Ask(t.Context(), llm.Request{}) }) // the next step of the same turn
	s.v.Run(s.v.Now().Add(time.Hour))
	if len(p.asked) != 1 || len(p.spent) != 2 {
		t.Errorf("asked %v, spent %v", p.asked, p.spent)
	}
}

func TestTheLeadCostsWhatItCosts(t *testing.T) {
	s := newStage(t)
	p := &purse{}
	s.guarded(p)
	if _, _, err := s.turn(plan("alpha/a1 beta/b1"), &host{}); err != nil || len(p.asked)+len(p.spent) != 0 {
		t.Errorf("asked %v, spent %v: %v", p.asked, p.spent, err)
	}
}

func TestAStandInThatMayNotIsPassedOver(t *testing.T) {
	s := newStage(t)
	p := &purse{allow: []string{"gamma/g1"}}
	s.guarded(p)
	s.answer["a1"] = limited
	a, run, err := s.turn(plan("alpha/a1 beta/b1 gamma/g1"), &host{})
	if err != nil || a.Ref.String() != "gamma/g1" {
		t.Fatalf("%s: %v", a.Ref, err)
	}
	r := run.Trail()[1]
	if !r.Skipped || r.Why != policy.WhyBudget || r.Reason != llm.ReasonRateLimit || r.Ref().String() != "beta/b1" {
		t.Errorf("%+v", r)
	}
	s.expect("a1@p1 g1@p1")
}

func TestWithoutConsentTheTurnFailsWithTheLeadsReason(t *testing.T) {
	s := newStage(t)
	p := &purse{}
	s.guarded(p)
	s.answer["a1"] = limited
	_, _, err := s.turn(plan("alpha/a1 beta/b1"), &host{})
	if failover.ReasonOf(err) != llm.ReasonRateLimit {
		t.Errorf("%v", err)
	}
	s.expect("a1@p1")
	if p.lonely {
		t.Error("a turn that somebody watches counts as unattended")
	}
}

func TestATurnThatNobodyWatchesSaysSo(t *testing.T) {
	s := newStage(t)
	p := &purse{allow: []string{"beta/b1"}}
	s.guarded(p)
	s.answer["a1"] = limited
	q := plan("alpha/a1 beta/b1")
	q.Quiet = true
	if _, _, err := s.turn(q, &host{}); err != nil || !p.lonely {
		t.Errorf("unattended %t: %v", p.lonely, err)
	}
}

func TestAStopEndsTheQuestion(t *testing.T) {
	s := newStage(t)
	p := &purse{think: func(ctx context.Context) { _ = s.v.Clock().Sleep(ctx, time.Minute) }}
	s.guarded(p)
	s.answer["a1"] = limited
	ctx, cancel := context.WithCancelCause(t.Context())
	s.v.Clock().AfterFunc(5*time.Second, func() { cancel(llm.ErrStopped) })
	_, _, err := s.turnWith(ctx, plan("alpha/a1 beta/b1"), &host{})
	if failover.ReasonOf(err) != llm.ReasonAborted {
		t.Errorf("%v", err)
	}
	s.expect("a1@p1")
}
