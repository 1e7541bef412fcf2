package failover_test

import (
	"context"
	"testing"
	"time"

	"understudy/llm"
)

// A turn that waits tells for what and since when, and what failed before; once it is over it tells nothing.
func TestATurnUnderWayTellsWhatItWaitsFor(t *testing.T) {
	s := newStage(t)
	s.answer["a1"] = first(1, fails(llm.Failure{Reason: llm.ReasonRateLimit, Status: 429, RetryAfter: 20 * time.Second}), s.hangs())
	looked := 0
	look := func(at time.Duration, asked string, pause time.Duration) {
		s.v.Clock().Go(func() {
			if s.v.Clock().Sleep(context.Background(), at) != nil {
				return
			}
			looked++
			u, ok := s.runner.Underway("s1")
			if !ok || !u.Began.Equal(start) || len(u.Trail) != 1 || u.Selected.Model != "a1" || u.Asked.Model != asked {
				t.Errorf("after %s: %v %+v", at, ok, u)
			}
			if asked != "" && u.Asked.StartedAt.Sub(start) != 20*time.Second {
				t.Errorf("asked since %s", u.Asked.StartedAt)
			}
			if pause != 0 && u.Pause.Sub(start) != pause || pause == 0 && !u.Pause.IsZero() {
				t.Errorf("after %s: waits until %s", at, u.Pause)
			}
		})
	}
	look(10*time.Second, "", 20*time.Second)
	look(time.Minute, "a1", 0)
	if _, _, err := s.turn(plan("alpha/a1"), &host{}); err == nil || looked != 2 {
		t.Errorf("looked %d times, ended with %v", looked, err)
	}
	if _, ok := s.runner.Underway("s1"); ok {
		t.Error("it is over")
	}
}
