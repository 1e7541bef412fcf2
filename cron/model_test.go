package cron

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"understudy/cron/schedule"
)

// story is what happens to a few jobs over some hours: when the process is there, and how each run
// of each job ends.
type story struct {
	catchUp CatchUp
	jobs    []string // schedules as typed
	ends    [][]Reason
	windows []window
}

// window is a time in which the process is there, in seconds from the begin.
type window struct{ from, to int }

func drawStory(t *rapid.T) story {
	s := story{catchUp: rapid.SampledFrom([]CatchUp{CatchUpSkip, CatchUpOnce}).Draw(t, "catchUp")}
	for range rapid.IntRange(1, 4).Draw(t, "jobs") {
		s.jobs = append(s.jobs, rapid.OneOf(
			rapid.Map(rapid.IntRange(7, 90), func(n int) string { return fmt.Sprintf("every %dm", n) }),
			rapid.Map(rapid.IntRange(1, 300), func(n int) string { return fmt.Sprintf("%dm", n) }),
			rapid.Map(rapid.IntRange(9, 30), func(n int) string { return fmt.Sprintf("*/%d 1-3 * * *", n) }),
			rapid.Map(rapid.IntRange(0, 59), func(n int) string { return fmt.Sprintf("%d */2 * * *", n) }),
		).Draw(t, "schedule"))
		s.ends = append(s.ends, rapid.SliceOfN(rapid.SampledFrom([]Reason{"", "", ReasonOverloaded, ReasonAuth}), 1, 12).Draw(t, "ends"))
	}
	at := 0
	for range rapid.IntRange(1, 4).Draw(t, "windows") {
		// Seconds that no slot and no retry falls on.
		to := at + 60*rapid.IntRange(2, 90).Draw(t, "up") - at%60 + 17
		s.windows = append(s.windows, window{at, to})
		at = to + 60*rapid.IntRange(1, 60).Draw(t, "down")
	}
	return s
}

// reference is the plainest scheduler there is: one job, no clock, no database.
func reference(sched schedule.Schedule, ends []Reason, windows []window, catchUp CatchUp, begin time.Time) (log []string) {
	next, on := sched.Next(begin)
	slot, failures, tries := next, 0, 0
	line := func(trigger Trigger, rest string) {
		log = append(log, fmt.Sprintf("%s %s %s", slot.UTC().Format("02T15:04:05"), trigger, rest))
	}
	run := func(at time.Time, trigger Trigger) {
		if tries++; tries > 1 && sched.Once() {
			trigger = OnRetry
		}
		why := ends[len(log)%len(ends)]
		if why == "" {
			line(trigger, "ok succeeded")
			failures = 0
		} else {
			line(trigger, "error failed "+string(why))
			failures++
		}
		if sched.Once() {
			if on = why == ReasonOverloaded && tries < 3; on {
				next = at.Add([]time.Duration{30 * time.Second, time.Minute}[tries-1])
			}
			return
		}
		next, on = sched.Next(at)
		if failures > 0 {
			wait := []time.Duration{30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour}[min(failures, 5)-1]
			for next.Before(at.Add(wait)) {
				next, _ = sched.Next(next)
			}
		}
		slot, on = next, on && failures < 10
	}
	for _, w := range windows {
		from, to := begin.Add(time.Duration(w.from)*time.Second), begin.Add(time.Duration(w.to)*time.Second)
		if on && next.Before(from) {
			if sched.Once() || catchUp == CatchUpOnce {
				run(from, OnCatchUp)
			} else {
				line(OnSchedule, "skipped missed")
				next, on = sched.Next(from)
				slot = next
			}
		}
		for on && next.Before(to) {
			run(next, OnSchedule)
		}
	}
	return log
}

// TestTheSchedulerFollowsTheReference plays stories with restarts and failures.
func TestTheSchedulerFollowsTheReference(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawStory(rt)
		var wrong []string
		bubble(t, func(t *testing.T, w *world) {
			wrong = s.play(w)
		})
		if wrong != nil {
			rt.Fatalf("%s", strings.Join(wrong, "\n"))
		}
	})
}

// play has the real scheduler live through a story and returns where it differs.
func (s story) play(w *world) (wrong []string) {
	w.lasting = true
	w.close()
	w.cfg.CatchUp, w.pace = s.catchUp, 20*time.Minute
	w.boot()
	begin, ends := time.Now(), map[string][]Reason{}
	var cards []Card
	for i, text := range s.jobs {
		c := w.add(text, func(d *Draft) { d.Keep, d.Exact, d.FailureAlert = true, true, Alert{Off: true} })
		ends[c.ID] = s.ends[i]
		cards = append(cards, c)
	}
	w.work = func(_ context.Context, task Task) (Result, error) {
		of := ends[task.Job.ID] // by the number of lines before this one
		if why := of[(task.Job.State.Runs-1)%int64(len(of))]; why != "" {
			return Result{}, &Error{Reason: why}
		}
		return Result{Text: "done"}, nil
	}
	for i, win := range s.windows {
		if i > 0 {
			w.wait(time.Duration(win.from-s.windows[i-1].to) * time.Second)
			w.boot()
		}
		w.pass(time.Duration(win.to-win.from) * time.Second)
		w.close()
	}
	w.lasting = false
	for i, c := range cards {
		sched, err := w.s.compile(c.Job)
		if err != nil {
			return []string{err.Error()}
		}
		want, got := reference(sched, s.ends[i], s.windows, s.catchUp, begin), w.log(c.ID)
		if !slices.Equal(want, got) {
			wrong = append(wrong, fmt.Sprintf("%q with %v:\n got  %q\n want %q", s.jobs[i], s.ends[i], got, want))
		}
	}
	if d := w.doubled(); d != nil && !slices.ContainsFunc(w.runs, func(t Task) bool { return t.Trigger == OnRetry }) {
		wrong = append(wrong, fmt.Sprintf("run twice: %v", d))
	}
	return wrong
}
