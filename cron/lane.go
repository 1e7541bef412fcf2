package cron

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"understudy/cron/internal/crondb"
)

// dispatch starts errands while there is a place in the lane.
func (s *Scheduler) dispatch(ctx context.Context) {
	for e := s.take(); e != nil; e = s.take() {
		s.begin(ctx, e)
	}
}

// take returns the next errand, with its place in the lane; nil when there is none.
func (s *Scheduler) take() *errand {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || len(s.queue) == 0 || s.active >= s.config().MaxConcurrentRuns {
		return nil
	}
	e := s.queue[0]
	s.queue = s.queue[1:]
	s.active++
	return e
}

// leave gives a place in the lane back. Again has the job looked at anew at once; a job that cannot
// begin for a reason that lasts is left to the next tick.
func (s *Scheduler) leave(e *errand, again bool) {
	s.mu.Lock()
	s.active--
	delete(s.live, e.task.RunID)
	if !e.claimed {
		delete(s.queued, e.job)
	}
	if again {
		s.dirty[e.job] = true
	}
	s.mu.Unlock()
	s.nudge()
}

// errLater tells that a job cannot run beside a run of it that does not end.
var errLater = errors.New("an earlier run does not end")

// begin claims an errand's slot and starts the run. Without a claim there is none: somebody else was
// faster, or the job was edited.
func (s *Scheduler) begin(ctx context.Context, e *errand) {
	if !e.claimed {
		ok, err := s.claim(ctx, e)
		if err != nil && !errors.Is(err, errLater) {
			s.trouble(ctx, "run cannot begin", err)
		}
		if err != nil || !ok {
			s.leave(e, err == nil)
			return
		}
	}
	base, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	if e.cancel = cancel; e.dropped != nil {
		cancel(e.dropped)
	}
	s.mu.Unlock()
	s.spawn(func() {
		defer cancel(context.Canceled)
		s.execute(base, e)
		s.leave(e, true)
		s.post(ctx)
	})
}

// runID names the next run of a job.
func runID(job Job) string { return job.ID + "-" + strconv.FormatInt(job.State.Runs+1, 10) }

// claim takes the slot: the run and the time of the next one are written down before the run begins.
// It reports whether there is a run to do.
func (s *Scheduler) claim(ctx context.Context, e *errand) (bool, error) {
	now := s.now()
	job, err := s.store.Get(ctx, e.job)
	if err != nil {
		return false, ignoreMissing(err)
	}
	if !job.Enabled || !job.State.NextRunAt.Equal(e.slot) || job.State.Running() {
		return false, nil // the next look decides anew
	}
	sched, err := s.compile(job)
	if err != nil {
		return false, s.commit(ctx, func(ctx context.Context, p *page) error { return s.broken(ctx, p, job, now) })
	}
	if s.isLagging(job.ID) {
		if job.once() {
			return false, errLater
		}
		return false, s.commit(ctx, func(ctx context.Context, p *page) error {
			return s.passOne(ctx, p, now, Step{ID: job.ID, Verb: Pass})
		})
	}
	next := s.after(job, sched, now)
	before := job.State
	zone := planZone(job, sched)
	if job.once() {
		job.State.Tries++
		if job.State.Tries > 1 {
			e.trigger = OnRetry
		}
	}
	return s.settleClaim(ctx, e, job, before.SlotAt, func(ctx context.Context, q *crondb.Queries, row crondb.Job) (bool, error) {
		return q.Claim(ctx, row, planOf(next, next, zone))
	})
}

// settleClaim writes a claim and the run's line in the log, and remembers both.
func (s *Scheduler) settleClaim(ctx context.Context, e *errand, job Job, slot time.Time, take func(context.Context, *crondb.Queries, crondb.Job) (bool, error)) (bool, error) {
	now := s.now()
	run := Run{ID: runID(job), JobID: job.ID, JobName: job.Name, Trigger: e.trigger, ScheduledAt: slot, StartedAt: now, Status: Running}
	row, err := rowOf(job)
	if err != nil {
		return false, err
	}
	row.RunID, row.RunningSince, row.LeaseUntil = run.ID, now.UnixMilli(), now.Add(leaseTime).UnixMilli()
	line, err := runRow(run, job.State.Runs+1)
	if err != nil {
		return false, err
	}
	claimed := false
	err = s.store.write(ctx, func(ctx context.Context, q *crondb.Queries) error {
		var err error
		if claimed, err = take(ctx, q, row); err != nil || !claimed {
			return err
		}
		if err := q.InsertRun(ctx, line); err != nil {
			return err
		}
		return q.PruneRuns(ctx, job.ID, line.Seq-maxRuns)
	})
	if err != nil || !claimed {
		return false, err
	}
	job.State.RunID, job.State.RunningSince, job.State.Runs = run.ID, now, line.Seq
	s.mu.Lock()
	if !e.claimed {
		delete(s.queued, e.job)
	}
	e.claimed, e.task = true, Task{RunID: run.ID, Job: job, Trigger: e.trigger, Scheduled: slot}
	s.live[run.ID] = e
	s.dirty[e.job] = true
	s.mu.Unlock()
	return true, nil
}

// RunNow runs a job at once, beside its schedule, also one that is switched off, and returns the id of
// the run; the run waits for a place in the lane. With due it takes the job's slot instead, if that has
// come (else ErrNotDue). ErrRunning tells that a run is under way.
func (s *Scheduler) RunNow(ctx context.Context, id string, due bool) (string, error) {
	s.mu.Lock()
	ready := s.up && !s.stopped
	s.mu.Unlock()
	if !ready {
		return "", ErrStopped
	}
	job, err := s.store.Get(ctx, id)
	if err != nil {
		return "", err
	}
	now := s.now()
	if due && (!job.Enabled || job.State.NextRunAt.IsZero() || job.State.NextRunAt.After(now)) {
		return "", ErrNotDue
	}
	if job.State.Running() || s.isLagging(id) {
		return "", ErrRunning
	}
	e := &errand{job: id, trigger: ByHand}
	take, slot := byHand, now
	if due {
		e.trigger, slot = OnSchedule, job.State.SlotAt
		if take, err = s.takeSlot(&job, now); err != nil {
			return "", err
		}
	}
	ok, err := s.settleClaim(ctx, e, job, slot, take)
	switch {
	case err != nil:
		return "", fmt.Errorf("running task %s: %w", id, err)
	case !ok:
		return "", ErrRunning
	}
	s.mu.Lock()
	stopped := s.stopped
	if !stopped {
		s.queue = append(s.queue, e)
	}
	s.mu.Unlock()
	if stopped {
		s.interrupt(ctx, e.task)
		return "", ErrStopped
	}
	s.nudge()
	return e.task.RunID, nil
}

func byHand(ctx context.Context, q *crondb.Queries, row crondb.Job) (bool, error) {
	return q.ClaimByHand(ctx, row)
}

// takeSlot is the claim of a due job's slot.
func (s *Scheduler) takeSlot(job *Job, now time.Time) (func(context.Context, *crondb.Queries, crondb.Job) (bool, error), error) {
	sched, err := s.compile(*job)
	if err != nil {
		return nil, &Invalid{"schedule", err}
	}
	next := s.after(*job, sched, now)
	if job.once() {
		job.State.Tries++
	}
	zone := planZone(*job, sched)
	return func(ctx context.Context, q *crondb.Queries, row crondb.Job) (bool, error) {
		return q.Claim(ctx, row, planOf(next, next, zone))
	}, nil
}

func (s *Scheduler) isLagging(job string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lagging[job] > 0
}

// WaitRun waits until a run is over and its result has arrived, and returns its line of the log. It
// returns the line as it is when ctx ends, with the cause.
func (s *Scheduler) WaitRun(ctx context.Context, id string) (Run, error) {
	for {
		run, err := s.store.Run(context.WithoutCancel(ctx), id)
		if err != nil || run.Over() {
			return run, err
		}
		if err := s.clock.Sleep(ctx, time.Second); err != nil {
			return run, err
		}
	}
}

// ignoreMissing makes nothing of a job that was removed meanwhile.
func ignoreMissing(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
