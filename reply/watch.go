package reply

import (
	"context"
	"sync"
	"time"

	"understudy/internal/clock"
)

// stalledAfter is how long a turn may show no sign of life before the log tells (spec/chat.md §1.4).
// What ends it is its own time limit.
const stalledAfter = 10 * time.Minute

// watch notices a turn that stands still. Signs of life are text, the end of a model's answer and
// those of tools.
type watch struct {
	mu    sync.Mutex
	last  time.Time
	timer *clock.Timer
	over  bool
}

// progress tells that the turn goes on.
func (t *turn) progress() {
	t.watch.mu.Lock()
	defer t.watch.mu.Unlock()
	t.watch.last = t.r.deps.Clock.Now()
}

// beginWatch watches the turn until the returned function is called. A turn is reported once.
func (t *turn) beginWatch(ctx context.Context) (end func()) {
	w, clk := &t.watch, t.r.deps.Clock
	t.progress()
	var look func()
	look = func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.over {
			return
		}
		if left := stalledAfter - clk.Since(w.last); left > 0 {
			w.timer = clk.AfterFunc(left, look)
			return
		}
		t.log.WarnContext(ctx, "turn_stalled", "seconds", clk.Since(w.last).Seconds())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = clk.AfterFunc(stalledAfter, look)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.over = true
		w.timer.Stop()
	}
}
