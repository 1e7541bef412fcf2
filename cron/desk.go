package cron

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"strings"
	"time"

	"understudy/cron/internal/crondb"
	"understudy/cron/schedule"
	"understudy/llm"
)

// previews is how many coming runs a confirmation shows.
const previews = 3

// Card is a job with what people want to read about it.
type Card struct {
	Job
	Description string      // of the schedule, in words
	Next        []time.Time // the next runs, at most three, in the job's zone
}

// Card makes the card of a job.
func (s *Scheduler) Card(job Job) Card {
	c := Card{Job: job}
	sched, err := s.compile(job)
	if err != nil {
		c.Description = "the schedule cannot be read: " + err.Error()
		return c
	}
	c.Description = sched.Describe()
	if next := job.State.NextRunAt; job.Enabled && !next.IsZero() {
		c.Next = append([]time.Time{next.In(sched.Zone())}, sched.Upcoming(later(next, s.now()), previews-1)...)
	}
	return c
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Add checks a draft and stores the job. Its error is an *Invalid for what the person can mend, or
// ErrTooMany.
func (s *Scheduler) Add(ctx context.Context, d Draft) (Card, error) {
	def, err := d.definition()
	if err != nil {
		return Card{}, err
	}
	if d.ID == "" {
		d.ID = s.deps.NewID()
	}
	job := Job{ID: d.ID, Revision: 1, Enabled: true, Definition: def, CreatedAt: s.now(), UpdatedAt: s.now()}
	sched, err := s.parse(&job, d.Schedule, d.Zone)
	if err != nil {
		return Card{}, err
	}
	job.DeleteAfterRun = sched.Once() && !d.Keep
	if err := job.check(s.deps.CheckModel); err != nil {
		return Card{}, err
	}
	job.plans(sched, s.now())
	row, err := rowOf(job)
	if err != nil {
		return Card{}, err
	}
	added, err := s.store.q.InsertJob(context.WithoutCancel(ctx), row, MaxJobs)
	if err != nil {
		return Card{}, fmt.Errorf("storing a task: %w", err)
	}
	if !added {
		return Card{}, ErrTooMany
	}
	s.touch(job.ID)
	return s.Card(job), nil
}

// parse reads a schedule for a job and stores it there.
func (s *Scheduler) parse(job *Job, text, tz string) (schedule.Schedule, error) {
	f, err := s.frame(tz)
	if err != nil {
		return schedule.Schedule{}, err
	}
	sched, err := schedule.Parse(text, f)
	if err != nil {
		return sched, &Invalid{"schedule", err}
	}
	if !job.Exact {
		sched = sched.Staggered(job.ID)
	}
	job.Schedule = sched.Spec()
	return sched, nil
}

// plans sets the first run after now.
func (j *Job) plans(sched schedule.Schedule, now time.Time) {
	next, ok := sched.Next(now)
	if !ok {
		next = time.Time{}
	}
	j.State.NextRunAt, j.State.SlotAt, j.State.planZone = next, next, planZone(*j, sched)
}

// Edit changes a job. Its next run moves only when the patch says something about the schedule. Errors
// as in Add, ErrNotFound and ErrEdited.
func (s *Scheduler) Edit(ctx context.Context, id string, p Patch) (Card, error) {
	job, err := s.store.Get(ctx, id)
	if err != nil {
		return Card{}, err
	}
	if err := p.apply(&job.Definition); err != nil {
		return Card{}, err
	}
	if p.touchesPlan() {
		if err := s.reschedule(&job, p); err != nil {
			return Card{}, err
		}
	}
	if err := job.check(s.deps.CheckModel); err != nil {
		return Card{}, err
	}
	return s.save(ctx, job, p.touchesPlan())
}

// reschedule gives a job the schedule of a patch.
func (s *Scheduler) reschedule(job *Job, p Patch) error {
	tz, wasOnce := job.Schedule.TZ, job.once()
	set(&tz, p.Zone)
	var sched schedule.Schedule
	var err error
	if p.Schedule != nil {
		sched, err = s.parse(job, *p.Schedule, tz)
	} else {
		job.Schedule.TZ, job.Schedule.StaggerMs = tz, 0
		if sched, err = s.compile(*job); err == nil && !job.Exact {
			sched = sched.Staggered(job.ID)
			job.Schedule = sched.Spec()
		}
		if err != nil {
			err = &Invalid{"schedule", err}
		}
	}
	if err != nil {
		return err
	}
	if sched.Once() && !wasOnce && p.Keep == nil {
		job.DeleteAfterRun = true
	}
	if job.Enabled {
		job.plans(sched, s.now())
	}
	return nil
}

// save stores an edited job, and with a new plan also when it runs.
func (s *Scheduler) save(ctx context.Context, job Job, plan bool) (Card, error) {
	job.UpdatedAt = s.now()
	row, err := rowOf(job)
	if err != nil {
		return Card{}, err
	}
	err = s.store.write(ctx, func(ctx context.Context, q *crondb.Queries) error {
		if ok, err := q.SetDefinition(ctx, row); err != nil || !ok {
			return firstError(err, ErrEdited)
		}
		if !plan {
			return nil
		}
		_, err := q.SetPlan(ctx, row)
		return err
	})
	if err != nil {
		return Card{}, fmt.Errorf("task %s: %w", job.ID, err)
	}
	s.touch(job.ID)
	job, err = s.store.Get(ctx, job.ID)
	return s.Card(job), err
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Enable switches a job on. Its next run is the first one after now; earlier failures are forgotten. A
// single job whose time is over is refused with an *Invalid.
func (s *Scheduler) Enable(ctx context.Context, id string) (Card, error) {
	job, err := s.store.Get(ctx, id)
	if err != nil {
		return Card{}, err
	}
	if job.Enabled {
		return s.Card(job), nil
	}
	sched, err := s.compile(job)
	if err != nil {
		return Card{}, &Invalid{"schedule", err}
	}
	if job.plans(sched, s.now()); job.State.NextRunAt.IsZero() {
		return Card{}, invalid("schedule", "its time is over; give it another one, or run it now")
	}
	job.Enabled = true
	return s.save(ctx, job, true)
}

// Disable switches a job off. A run that is under way goes on.
func (s *Scheduler) Disable(ctx context.Context, id string) (Card, error) {
	job, err := s.store.Get(ctx, id)
	if err != nil {
		return Card{}, err
	}
	job.Enabled, job.State.NextRunAt, job.State.SlotAt = false, time.Time{}, time.Time{}
	return s.save(ctx, job, true)
}

// Remove deletes a job and stops its run; what the run would have said is not said. Its run log stays
// for a while.
func (s *Scheduler) Remove(ctx context.Context, id string) error {
	err := s.store.write(ctx, func(ctx context.Context, q *crondb.Queries) error {
		found, err := q.DeleteJob(ctx, id)
		if err != nil || !found {
			return firstError(err, ErrNotFound)
		}
		if err := q.DropLetters(ctx, id); err != nil {
			return err
		}
		return q.OrphanRuns(ctx, id)
	})
	if err != nil {
		return fmt.Errorf("removing task %s: %w", clip(id, 40), err)
	}
	s.stop(id, llm.ErrStopped)
	s.touch(id)
	return nil
}

// newID makes an id of ten characters (spec/chat.md §5.1).
func newID() string {
	var b [7]byte
	_, _ = rand.Read(b[:]) // never fails
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))[:10]
}

// maxPreview bounds Preview.
const maxPreview = 100

// Preview reads a schedule as Add would and returns it in words with its next runs. tz is as in Draft.
func (s *Scheduler) Preview(text, tz string, n int) (description string, next []time.Time, err error) {
	f, err := s.frame(tz)
	if err != nil {
		return "", nil, err
	}
	sched, err := schedule.Parse(text, f)
	if err != nil {
		return "", nil, &Invalid{"schedule", err}
	}
	return sched.Describe(), sched.Upcoming(s.now(), min(max(n, 1), maxPreview)), nil
}
