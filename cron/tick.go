package cron

import (
	"context"
	"time"

	"understudy/cron/internal/crondb"
)

// tick compares everything with the clock: what another process did, what the library slept through,
// whose runs are dead (spec/chat.md §5.3).
func (s *Scheduler) tick(ctx context.Context, now time.Time) {
	s.renew(ctx, now)
	s.bury(ctx, now)
	s.mu.Lock()
	s.dirty, s.rang = map[string]bool{}, false
	s.mu.Unlock()
	if err := s.follow(ctx, now); err != nil {
		s.trouble(ctx, "tasks cannot follow the time zone", err)
	}
	rows, err := s.store.q.Waiting(ctx, "")
	if err != nil {
		s.trouble(ctx, "tasks cannot be read", err)
		return
	}
	alive := make(map[string]bool, len(rows))
	for _, r := range rows {
		alive[r.ID] = true
		s.arm(r.ID, at(r.NextRunAt), now)
	}
	for _, id := range s.waker.known() {
		if !alive[id] {
			s.waker.drop(id)
		}
	}
	if !s.began {
		s.began = true
		s.waker.start()
	}
	s.decide(ctx, now, rows)
	if s.pruned.IsZero() || now.Sub(s.pruned) >= time.Hour || now.Before(s.pruned) {
		s.pruned = now
		if err := s.store.Prune(ctx, now); err != nil {
			s.trouble(ctx, "run log cannot be pruned", err)
		}
	}
}

// trouble logs what the database refused; the next tick tries again.
func (s *Scheduler) trouble(ctx context.Context, what string, err error) {
	if ctx.Err() == nil {
		s.log.Error(what, "error", err)
	}
}

// arm tells the waker of a job's next run. One that has come needs no waking.
func (s *Scheduler) arm(id string, next, now time.Time) {
	switch {
	case !next.After(now):
		s.waker.drop(id)
	case !s.waker.at(id).Equal(next):
		s.waker.set(id, next)
	}
}

// refresh looks at the jobs whose next run may have changed.
func (s *Scheduler) refresh(ctx context.Context, now time.Time) {
	s.mu.Lock()
	dirty := s.dirty
	s.dirty = map[string]bool{}
	s.mu.Unlock()
	for id := range dirty {
		rows, err := s.store.q.Waiting(ctx, id)
		if err != nil {
			s.trouble(ctx, "task cannot be read", err)
			continue
		}
		if len(rows) == 0 {
			s.waker.drop(id)
			continue
		}
		next := at(rows[0].NextRunAt)
		s.arm(id, next, now)
		if !next.After(now) {
			s.mu.Lock()
			s.rang = true
			s.mu.Unlock()
		}
	}
}

// scan looks at the jobs that are due, if any may be.
func (s *Scheduler) scan(ctx context.Context, now time.Time) {
	s.mu.Lock()
	rang := s.rang
	s.rang = false
	s.mu.Unlock()
	if !rang {
		return
	}
	rows, err := s.store.q.DueBy(ctx, now.UnixMilli())
	if err != nil {
		s.trouble(ctx, "tasks cannot be read", err)
		return
	}
	s.decide(ctx, now, rows)
}

// decide does what Due says about jobs that are not on their way already.
func (s *Scheduler) decide(ctx context.Context, now time.Time, rows []crondb.Waiting) {
	cfg := s.config()
	if !*cfg.Enabled {
		return
	}
	s.mu.Lock()
	since, held := s.since, s.stopped
	waiting := make([]Waiting, 0, len(rows))
	for _, r := range rows {
		if !s.queued[r.ID] {
			waiting = append(waiting, Waiting{r.ID, r.Once, at(r.NextRunAt), r.Running, at(r.LastSlotAt)})
		}
	}
	s.mu.Unlock()
	if held {
		return
	}
	slots := make(map[string]time.Time, len(waiting))
	for _, w := range waiting {
		slots[w.ID] = w.NextRunAt
	}
	var passed []Step
	for _, step := range Due(now, since, Rules{cfg.CatchUp, cfg.MissedAtGrace}, waiting) {
		switch step.Verb {
		case Start:
			s.enqueue(step, slots[step.ID])
		default:
			passed = append(passed, step)
		}
	}
	s.pass(ctx, now, passed)
}

// enqueue puts a job into the lane's queue; a job stands in it once. Before the channels are there
// nothing does.
func (s *Scheduler) enqueue(step Step, slot time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ready || s.queued[step.ID] {
		return
	}
	e := &errand{job: step.ID, slot: slot, trigger: OnSchedule}
	if step.CatchUp {
		e.trigger = OnCatchUp
	}
	s.queued[step.ID] = true
	s.queue = append(s.queue, e)
}

// batch bounds how many jobs one transaction passes over.
const batch = 200

// pass records slots that are not run and goes on to the next ones.
func (s *Scheduler) pass(ctx context.Context, now time.Time, steps []Step) {
	for len(steps) > 0 {
		some := steps[:min(batch, len(steps))]
		steps = steps[len(some):]
		err := s.commit(ctx, func(ctx context.Context, p *page) error {
			for _, step := range some {
				if err := s.passOne(ctx, p, now, step); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			s.trouble(ctx, "missed runs cannot be recorded", err)
			return
		}
		for _, step := range some {
			s.mu.Lock()
			s.dirty[step.ID] = true
			s.mu.Unlock()
		}
	}
	s.refresh(ctx, now)
}

// passOne gives up one slot.
func (s *Scheduler) passOne(ctx context.Context, p *page, now time.Time, step Step) error {
	job, err := get(ctx, p.Queries, step.ID)
	if err != nil {
		return ignoreMissing(err)
	}
	sched, err := s.compile(job)
	if err != nil {
		return s.broken(ctx, p, job, now)
	}
	old := job
	next := s.after(job, sched, now)
	job.State.planZone = planZone(job, sched)
	run := Run{
		ID: runID(job), JobID: job.ID, JobName: job.Name, Trigger: OnSchedule, ScheduledAt: job.State.SlotAt, StartedAt: now, FinishedAt: now,
		Status: Skipped, Reason: ReasonMissed,
	}
	var letters []letter
	switch step.Verb {
	case Pass:
		run.Reason = ReasonStillRunning
		job.State.ConsecutiveSkips++
	case GiveUp:
		job.Enabled, job.State.DisabledReason, job.State.DisabledAt = false, "missed: "+ReasonMissed.Text(), now
		letters = append(letters, toOwner(job, run, "missed its time "+job.State.SlotAt.In(sched.Zone()).Format("2006-01-02 15:04 MST")+" because nobody was there to run it", "run"))
	}
	run.Error = run.Reason.Text()
	if step.Verb == Reset {
		s.log.Warn("next run settled anew: the clock was wrong", "job", job.ID, "was", job.State.NextRunAt.UTC())
		job.State.LastSlotAt = time.Time{}
		return s.advance(ctx, p, old, job, next)
	}
	job.State.LastSlotAt = job.State.NextRunAt
	job.State.LastStatus, job.State.LastCompletion, job.State.LastError = run.Status, run.Completion, run.Error
	if letters == nil {
		letters = skipAlert(&job, run, s.config(), now)
	}
	return s.record(ctx, p, old, job, run, next, letters)
}

// skipAlert tells of skipped runs where the job wants that.
func skipAlert(job *Job, run Run, cfg Config, now time.Time) []letter {
	rules := job.FailureAlert.over(cfg.FailureAlert)
	n := job.State.ConsecutiveSkips + job.State.ConsecutiveErrors
	if rules.Off || !rules.IncludeSkipped || n < rules.After || now.Sub(job.State.AlertedAt) < rules.Cooldown {
		return nil
	}
	job.State.AlertedAt = now
	return []letter{alertLetter(*job, run, rules, n, run.Reason, false)}
}

// record advances a job and, if it was still where it was, adds a line to its log.
func (s *Scheduler) record(ctx context.Context, p *page, old, job Job, run Run, next time.Time, letters []letter) error {
	row, err := advanced(old, job)
	if err != nil {
		return err
	}
	if ok, err := p.Advance(ctx, row, planOf(next, next, job.State.planZone)); err != nil || !ok {
		return err
	}
	line, err := runRow(run, job.State.Runs+1)
	if err != nil {
		return err
	}
	if err := p.InsertRun(ctx, line); err != nil {
		return err
	}
	p.ended = append(p.ended, run)
	return putLetters(ctx, p.Queries, letters, s.now())
}

// advance advances a job without a line.
func (s *Scheduler) advance(ctx context.Context, p *page, old, job Job, next time.Time) error {
	row, err := advanced(old, job)
	if err != nil {
		return err
	}
	_, err = p.Advance(ctx, row, planOf(next, next, job.State.planZone))
	return err
}

// advanced is the row of a changed job that Advance finds by what it was.
func advanced(old, job Job) (crondb.Job, error) {
	row, err := rowOf(job)
	row.NextRunAt, row.SlotAt = ms(old.State.NextRunAt), ms(old.State.SlotAt)
	return row, err
}

// broken deals with a job whose schedule cannot be read any more, such as one in a zone that the zone
// database lost.
func (s *Scheduler) broken(ctx context.Context, p *page, job Job, now time.Time) error {
	old := job
	job.State.ScheduleErrors++
	job.State.planZone = ""
	n := job.State.ScheduleErrors
	s.log.Error("schedule of a task cannot be read", "job", job.ID, "times", n)
	run := Run{
		ID: runID(job), JobID: job.ID, JobName: job.Name, Trigger: OnSchedule, ScheduledAt: job.State.SlotAt, StartedAt: now, FinishedAt: now,
		Status: Failed, Completion: Incomplete, Reason: ReasonSchedule, Error: ReasonSchedule.Text(),
	}
	job.State.LastStatus, job.State.LastCompletion, job.State.LastError = run.Status, run.Completion, run.Error
	next := now.Add(ladder(n))
	var letters []letter
	if n >= maxScheduleErrors {
		next, job.Enabled, job.State.DisabledReason, job.State.DisabledAt = time.Time{}, false, ReasonSchedule.Text(), now
		letters = append(letters, toOwner(job, run, "was switched off: "+ReasonSchedule.Text(), "edit"))
	}
	return s.record(ctx, p, old, job, run, next, letters)
}

// page is a transaction, with the runs that end in it.
type page struct {
	*crondb.Queries
	ended []Run
}

// commit runs f in one transaction; what ended in it is logged and counted once it is written down.
func (s *Scheduler) commit(ctx context.Context, f func(context.Context, *page) error) error {
	var p page
	err := s.store.write(ctx, func(ctx context.Context, q *crondb.Queries) error {
		p = page{Queries: q}
		return f(ctx, &p)
	})
	if err != nil {
		return err
	}
	for _, run := range p.ended {
		s.log.Info("task ended", "job", run.JobID, "run", run.ID, "trigger", string(run.Trigger), "slot", run.ScheduledAt.UTC(),
			"status", string(run.Status), "completion", string(run.Completion), "reason", string(run.Reason))
		if s.deps.Metrics != nil {
			s.deps.Metrics.Ran(run.Status, run.Reason)
		}
	}
	return nil
}

// renew extends the claims of the runs of this process.
func (s *Scheduler) renew(ctx context.Context, now time.Time) {
	s.mu.Lock()
	live := make(map[string]string, len(s.live))
	for run, e := range s.live {
		live[run] = e.job
	}
	s.mu.Unlock()
	for run, job := range live {
		if _, err := s.store.q.Renew(ctx, job, run, now.Add(leaseTime).UnixMilli()); err != nil {
			s.trouble(ctx, "run cannot be renewed", err)
		}
	}
}

// bury ends the runs of processes that are gone: nobody knows how far they came, so they are not
// repeated (spec/chat.md §5.4).
func (s *Scheduler) bury(ctx context.Context, now time.Time) {
	limit := now
	if s.deps.Alone && !s.began {
		limit = now.AddDate(100, 0, 0)
	}
	rows, err := s.store.q.Expired(ctx, limit.UnixMilli())
	if err != nil {
		s.trouble(ctx, "tasks cannot be read", err)
		return
	}
	for _, row := range rows {
		s.mu.Lock()
		_, ours := s.live[row.RunID]
		s.mu.Unlock()
		if ours {
			continue
		}
		job, err := jobOf(row)
		if err != nil {
			s.trouble(ctx, "task cannot be read", err)
			continue
		}
		s.log.Warn("run was interrupted", "job", job.ID, "run", row.RunID)
		task, how := Task{RunID: row.RunID, Job: job}, failed(ReasonInterrupted, Result{Acted: true})
		if err := s.commit(ctx, func(ctx context.Context, p *page) error { return s.recordEnd(ctx, p, task, how) }); err != nil {
			s.trouble(ctx, "interrupted run cannot be recorded", err)
		}
	}
}
