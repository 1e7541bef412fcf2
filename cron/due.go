package cron

import (
	"time"

	"understudy/cron/schedule"
)

// Waiting is what Due has to know of a job.
type Waiting struct {
	ID        string
	Once      bool      // it has a single slot
	NextRunAt time.Time // zero = it waits for nothing
	Running   bool
	LastSlot  time.Time // zero = none yet
}

// Verb is what is to be done with a job.
type Verb uint8

// The verbs.
const (
	Start  Verb = iota + 1 // run it now
	Miss                   // a recurring job's slot passed while nobody was there
	GiveUp                 // a single job's did, too long ago
	Pass                   // the run before is still going on
	Reset                  // the clock was wrong when the next run was settled
)

// Step is one decision of Due.
type Step struct {
	ID      string
	Verb    Verb
	CatchUp bool // the slot to Start was missed
}

// Rules are the settings of Due.
type Rules struct {
	CatchUp CatchUp
	Grace   time.Duration // how late a single job may be
}

// wrongClock is how far in the future a slot that has been run must lie for the clock to have been
// wrong then; less is a clock that was set back a little, and then no slot is run twice.
const wrongClock = 24 * time.Hour

// Due decides what is to be done at a moment (spec/chat.md §5.3, §5.4). Since is the moment from which
// on the scheduler has been there without a gap: what was due before was missed.
func Due(now, since time.Time, rules Rules, jobs []Waiting) []Step {
	var steps []Step
	for _, j := range jobs {
		if s, ok := j.due(now, since, rules); ok {
			steps = append(steps, s)
		}
	}
	return steps
}

func (j Waiting) due(now, since time.Time, rules Rules) (Step, bool) {
	missed := j.NextRunAt.Before(since)
	switch {
	case j.NextRunAt.IsZero():
		return Step{}, false
	case !j.Running && !j.Once && j.LastSlot.Sub(now) > wrongClock:
		return Step{ID: j.ID, Verb: Reset}, true
	case j.NextRunAt.After(now):
		return Step{}, false
	case j.Running && j.Once:
		return Step{}, false // its turn comes when the run by hand is over
	case j.Running:
		return Step{ID: j.ID, Verb: Pass}, true
	case !missed:
		return Step{ID: j.ID, Verb: Start}, true
	case j.Once && now.Sub(j.NextRunAt) >= rules.Grace:
		return Step{ID: j.ID, Verb: GiveUp}, true
	case j.Once || rules.CatchUp == CatchUpOnce:
		return Step{ID: j.ID, Verb: Start, CatchUp: true}, true
	}
	return Step{ID: j.ID, Verb: Miss}, true
}

// ladder is how long a failure in a row delays the next run (spec/chat.md §5.7).
func ladder(failures int) time.Duration {
	steps := [...]time.Duration{30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour}
	return steps[min(max(failures, 1), len(steps))-1]
}

// Limits of patience (spec/chat.md §5.7).
const (
	maxTries          = 3  // of a single job
	maxErrors         = 10 // in a row, of a recurring one
	maxScheduleErrors = 3
)

// delayed is the first slot that is not before the given moment: a delay never moves a job out of the
// hours it is meant for.
func delayed(s schedule.Schedule, notBefore time.Time) (time.Time, bool) {
	return s.Next(notBefore.Add(-time.Millisecond))
}
