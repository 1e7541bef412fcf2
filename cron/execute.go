package cron

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"understudy/chat"
)

// outcome is what a Runner returned.
type outcome struct {
	res  Result
	err  error
	late bool // its time was over before
}

// execute does one run and writes down what came of it.
func (s *Scheduler) execute(ctx context.Context, e *errand) {
	task := e.task
	limit, cancel := s.clock.WithTimeout(ctx, task.Job.Payload.Timeout(), errTimeout)
	defer cancel()
	if limit.Err() != nil { // dropped before it began
		s.conclude(ctx, task, failed(causeOf(limit), Result{}))
		return
	}
	var out outcome
	done := make(chan struct{})
	s.clock.Go(func() {
		defer close(done)
		out = s.guarded(limit, task)
	})
	if s.clock.Await(limit, done) != nil && !s.cleanedUp(ctx, done) {
		s.lag(e, done)
		s.conclude(ctx, task, failed(causeOf(limit), Result{Acted: true}))
		return
	}
	v := verdictOf(out.res, out.err)
	if out.err != nil {
		s.log.Warn("task failed", "job", task.Job.ID, "run", task.RunID, "reason", string(v.reason), "error", out.err)
	}
	// What comes after the end of its time is not used, because a retry may say the same; what is
	// complete when the bot shuts down is.
	// What never began needs neither.
	if why := causeOf(limit); out.late && v.status != Skipped && (v.status != OK || why != ReasonInterrupted) {
		out.res.Text, out.res.Media = "", nil
		v = failed(why, out.res)
	}
	s.conclude(ctx, task, v)
}

// failed is the verdict on a run that something else ended.
func failed(why Reason, res Result) verdict {
	return verdict{status: Failed, reason: why, detail: why.Text(), result: res}
}

// cleanedUp gives a run whose time is over a little more to end.
func (s *Scheduler) cleanedUp(ctx context.Context, done <-chan struct{}) bool {
	limit, cancel := s.clock.WithTimeout(context.WithoutCancel(ctx), cleanup, nil)
	defer cancel()
	return s.clock.Await(limit, done) == nil
}

// guarded calls the Runner and turns a panic into a failure.
func (s *Scheduler) guarded(ctx context.Context, task Task) (out outcome) {
	defer func() {
		if r := recover(); r != nil {
			s.log.Error("task panicked", "job", task.Job.ID, "run", task.RunID, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			out = outcome{err: &Error{Reason: ReasonPanic}, late: ctx.Err() != nil}
		}
	}()
	res, err := s.deps.Runner.Run(ctx, task)
	return outcome{res, err, ctx.Err() != nil}
}

// lag remembers a run that goes on although its time is over. Its place in the lane is free, but its
// job does not run again before it ends; what it returns is not used.
func (s *Scheduler) lag(e *errand, done <-chan struct{}) {
	s.log.Error("run does not end; its result will not be used", "job", e.job, "run", e.task.RunID)
	s.mu.Lock()
	s.lagging[e.job]++
	s.mu.Unlock()
	s.clock.Go(func() {
		_ = s.clock.Await(context.Background(), done)
		s.mu.Lock()
		if s.lagging[e.job]--; s.lagging[e.job] == 0 {
			delete(s.lagging, e.job)
		}
		s.mu.Unlock()
		s.log.Warn("run ended late; its result is not used", "job", e.job, "run", e.task.RunID)
	})
}

// Tries at writing down the end of a run.
const (
	recordTries = 6
	recordPause = 500 * time.Millisecond
)

// conclude writes down the end of an execution and what follows from it, in one transaction. When the
// database refuses for long, the claim runs out, and the run counts as interrupted.
func (s *Scheduler) conclude(ctx context.Context, task Task, v verdict) {
	ctx = context.WithoutCancel(ctx)
	pause := recordPause
	for try := range recordTries {
		err := s.commit(ctx, func(ctx context.Context, p *page) error { return s.recordEnd(ctx, p, task, v) })
		if err == nil {
			break
		}
		s.log.Error("end of a run cannot be recorded", "job", task.Job.ID, "run", task.RunID, "try", try+1, "error", err)
		_ = s.clock.Sleep(ctx, pause)
		pause *= 2
	}
	s.touch(task.Job.ID)
}

// interrupt ends a run of which nobody knows how far it came.
func (s *Scheduler) interrupt(ctx context.Context, task Task) {
	s.conclude(ctx, task, failed(ReasonInterrupted, Result{Acted: true}))
}

func (s *Scheduler) recordEnd(ctx context.Context, p *page, task Task, v verdict) error {
	now := s.now()
	row, err := p.GetRun(ctx, task.RunID)
	if err != nil {
		return err
	}
	run, err := runOf(row)
	if err != nil {
		return err
	}
	job, err := get(ctx, p.Queries, task.Job.ID)
	gone := errors.Is(err, ErrNotFound)
	if err != nil && !gone {
		return err
	}
	d := run.end(v, task.Job, now)
	if gone && !d.empty() {
		run.Completion = Unknown // what a removed job has to say is not said
	}
	line, err := runRow(run, row.Seq)
	if err != nil {
		return err
	}
	if ok, err := p.FinishRun(ctx, line); err != nil || !ok {
		return err // it was ended in its absence
	}
	p.ended = append(p.ended, run)
	if gone || job.State.RunID != run.ID {
		return nil
	}
	return s.recordSettlement(ctx, p, job, run, d, v.result.Acted, now)
}

// deliverable is what a run has to say. Files are sent also without words.
type deliverable struct {
	text  string
	media []chat.Attachment
}

func (d deliverable) empty() bool { return d.text == "" && len(d.media) == 0 }

// end fills a run with how it ended and returns what is to be sent.
func (r *Run) end(v verdict, job Job, now time.Time) deliverable {
	r.Status, r.Reason, r.Error, r.FinishedAt = v.status, v.reason, v.detail, now
	r.Error = clip(r.Error, 500)
	res := v.result
	r.Requested, r.Model, r.FallbackUsed, r.FallbackReason = res.Requested, res.Model, res.FallbackUsed, res.FallbackReason
	r.Usage, r.CostMicros, r.Excerpt = res.Usage, res.CostMicros, clip(res.Text, excerpts)
	switch {
	case v.status == Skipped:
		r.Completion = NoCompletion
		return deliverable{}
	case v.reason == ReasonInterrupted || v.reason == ReasonTimeout && res.Acted:
		r.Completion = Unknown
		return deliverable{}
	case v.status != OK:
		r.Completion = Incomplete
		return deliverable{}
	}
	d := deliverable{Deliverable(res.Text), res.Media}
	if res.Said {
		d.text = "" // the agent has told it; its files have not been sent
	}
	if job.Delivery.Mode == Webhook {
		d.media = nil // what is posted holds no files
	}
	if d.empty() || job.Delivery.Mode == Quiet {
		r.Completion = Succeeded
		return deliverable{}
	}
	r.Completion = Pending
	return d
}

// recordSettlement stores what a run means for its job.
func (s *Scheduler) recordSettlement(ctx context.Context, p *page, job Job, run Run, d deliverable, acted bool, now time.Time) error {
	sched, err := s.compile(job)
	if err != nil {
		s.log.Error("schedule of a task cannot be read", "job", job.ID, "error", err)
	}
	told := run
	told.StartedAt = run.StartedAt.In(s.zoneOf(job))
	out := settle(job, told, acted, sched, s.config(), now)
	job.Enabled, job.State = out.enabled, out.state
	row, err := rowOf(job)
	if err != nil {
		return err
	}
	row.RunID = run.ID
	if _, err := p.Release(ctx, row); err != nil {
		return err
	}
	ours, err := p.Replan(ctx, row)
	if err != nil {
		return err
	}
	letters := out.letters
	if !ours {
		letters = nil // people made a new plan meanwhile: they know how it stands
	} else if out.remove {
		if _, err := p.DeleteJob(ctx, job.ID); err != nil {
			return err
		}
	}
	if !d.empty() {
		letters = append(letters, resultOf(job, run, d))
	}
	return putLetters(ctx, p.Queries, letters, now)
}
