package clock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/clock"
)

var start = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

func TestVirtualTimePassesOnlyWhenEverybodyWaits(t *testing.T) {
	v := clock.NewVirtual(start)
	c := v.Clock()
	var log []string
	note := func(s string) { log = append(log, fmt.Sprintf("%s %s", c.Now().Sub(start), s)) }
	c.Go(func() {
		note("a begins")
		_ = c.Sleep(t.Context(), 3*time.Second)
		note("a ends")
	})
	c.Go(func() {
		note("b begins")
		_ = c.Sleep(t.Context(), time.Second)
		note("b between")
		_ = c.Sleep(t.Context(), time.Second)
		note("b ends")
	})
	c.AfterFunc(2500*time.Millisecond, func() { note("timer") })
	if v.Run(start.Add(time.Hour)) {
		t.Error("something is left")
	}
	want := []string{"0s a begins", "0s b begins", "1s b between", "2s b ends", "2.5s timer", "3s a ends"}
	if !slices.Equal(log, want) {
		t.Errorf("got %q, want %q", log, want)
	}
}

func TestVirtualRunStopsAtItsLimit(t *testing.T) {
	v := clock.NewVirtual(start)
	fired := false
	v.Clock().AfterFunc(time.Minute, func() { fired = true })
	if more := v.Run(start.Add(59 * time.Second)); fired || !more {
		t.Error("ran past the limit")
	}
	if more := v.Run(start.Add(time.Minute)); !fired || more {
		t.Error("the limit is inclusive")
	}
}

func TestVirtualCancellationEndsASleep(t *testing.T) {
	v := clock.NewVirtual(start)
	c := v.Clock()
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	var got error
	var at time.Time
	c.Go(func() {
		got = c.Sleep(ctx, time.Hour)
		at = c.Now()
	})
	c.AfterFunc(time.Second, func() { cancel(why) })
	v.Run(start.Add(2 * time.Hour))
	if !errors.Is(got, why) || !at.Equal(start.Add(time.Second)) {
		t.Errorf("ended with %v at +%s, want the cause at +1s", got, at.Sub(start))
	}
}

func TestVirtualAwait(t *testing.T) {
	v := clock.NewVirtual(start)
	c := v.Clock()
	done := make(chan struct{})
	var waited time.Time
	c.Go(func() {
		if err := c.Await(t.Context(), done); err != nil {
			t.Error(err)
		}
		waited = c.Now()
	})
	c.Go(func() {
		_ = c.Sleep(t.Context(), 5*time.Second)
		close(done)
	})
	v.Run(start.Add(time.Hour))
	if !waited.Equal(start.Add(5 * time.Second)) {
		t.Errorf("woke at +%s, want +5s", waited.Sub(start))
	}
}

func TestStoppedTimersDoNotFire(t *testing.T) {
	v := clock.NewVirtual(start)
	timer := v.Clock().AfterFunc(time.Second, func() { t.Error("fired") })
	if !timer.Stop() || timer.Stop() {
		t.Error("Stop reports the wrong thing")
	}
	v.Run(start.Add(time.Hour))
}

// The real clock, in a bubble, keeps the same promises.
func TestRealClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clock.Clock
		began := c.Now()
		if err := c.Sleep(t.Context(), time.Minute); err != nil || c.Since(began) != time.Minute {
			t.Errorf("slept %s: %v", c.Since(began), err)
		}
		why := errors.New("why")
		ctx, cancel := c.WithTimeout(t.Context(), time.Second, why)
		defer cancel()
		if err := c.Sleep(ctx, time.Hour); !errors.Is(err, why) {
			t.Errorf("got %v, want the cause", err)
		}
		if err := c.Await(ctx, make(chan struct{})); !errors.Is(err, why) {
			t.Errorf("got %v, want the cause", err)
		}
		closed := make(chan struct{})
		close(closed)
		if err := c.Await(ctx, closed); err != nil {
			t.Errorf("what was awaited came first, but: %v", err)
		}
	})
}
