package failover

import (
	"sync"
	"time"

	"understudy/llm"
)

// Underway is how far a turn that runs has come, for people who wait for it.
type Underway struct {
	Began    time.Time
	Selected llm.ModelRef
	Trail    []Record // every attempt and skip so far, in order
	// Asked is the attempt under way; its StartedAt is zero when none is.
	Asked Record
	// Pause is until when the turn waits before it asks again (spec §9, §14); zero = it does not.
	Pause time.Time
}

// Underway returns how far the turn of a session has come; ok is false when none runs. A background
// probe is no turn.
func (r *Runner) Underway(session string) (u Underway, ok bool) {
	return r.underway.of(session)
}

// underway knows the runs of the sessions. Of two in one session, such as a turn and a question beside
// it, the first is shown.
type underway struct {
	mu   sync.Mutex
	runs map[string][]*Run
}

func (x *underway) begin(run *Run) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.runs == nil {
		x.runs = map[string][]*Run{}
	}
	x.runs[run.key] = append(x.runs[run.key], run)
}

func (x *underway) end(run *Run) {
	x.mu.Lock()
	defer x.mu.Unlock()
	list := x.runs[run.key]
	for i, other := range list {
		if other != run {
			continue
		}
		if len(list) == 1 {
			delete(x.runs, run.key)
			return
		}
		x.runs[run.key] = append(list[:i:i], list[i+1:]...)
		return
	}
}

func (x *underway) of(session string) (u Underway, ok bool) {
	x.mu.Lock()
	list := x.runs[session]
	x.mu.Unlock()
	if len(list) == 0 {
		return u, false
	}
	run := list[0]
	u.Trail = run.Trail()
	run.mu.Lock()
	defer run.mu.Unlock()
	u.Began, u.Selected, u.Asked, u.Pause = run.begun, run.wanted, run.asked, run.paused
	return u, true
}

// doing notes what the run does now: an attempt, a pause, or neither.
func (run *Run) doing(asked Record, paused time.Time) {
	run.mu.Lock()
	defer run.mu.Unlock()
	run.asked, run.paused, run.wanted = asked, paused, run.plan.Selected
}
