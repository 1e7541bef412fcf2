package cron

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"understudy/cron/internal/crondb"
)

// Bounds of what is under way to people at the same time, and how long one try and the pause after it
// may take.
const (
	mostSending  = 16
	sendTime     = 30 * time.Second
	shortestWait = 30 * time.Second
	longestWait  = 10 * time.Minute
)

// post hands over what waits to be said. A letter stays stored until it is known what became of it,
// and its key makes a second try harmless: so a crash at any moment neither loses nor doubles anything.
func (s *Scheduler) post(ctx context.Context) {
	s.mu.Lock()
	room := mostSending - len(s.sending)
	open := s.ready && room > 0 && ctx.Err() == nil
	s.mu.Unlock()
	if !open {
		return
	}
	now, horizon := s.window()
	// Those under way are among the first, so a few more are read than there is room for.
	rows, err := s.store.q.Letters(ctx, now, horizon, 2*mostSending)
	if err != nil {
		s.trouble(ctx, "messages cannot be read", err)
		return
	}
	for _, row := range rows {
		l, err := letterOf(row)
		if err != nil {
			s.trouble(ctx, "message cannot be read", err)
			continue
		}
		if !s.pick(l.key) {
			continue
		}
		s.spawn(func() {
			defer s.unpick(l.key)
			s.send(ctx, l)
		})
	}
}

// pick marks a letter as under way, if it is not and there is room.
func (s *Scheduler) pick(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.sending[key]; ok || len(s.sending) >= mostSending {
		return false
	}
	s.sending[key] = struct{}{}
	return true
}

func (s *Scheduler) unpick(key string) {
	s.mu.Lock()
	delete(s.sending, key)
	s.mu.Unlock()
	s.nudge()
}

// window is until when letters wait for now, and beyond which they wait for nothing real.
func (s *Scheduler) window() (now, horizon int64) {
	t := s.now()
	return t.UnixMilli(), t.Add(2 * longestWait).UnixMilli()
}

// send makes one try at a letter and writes down what came of it.
func (s *Scheduler) send(ctx context.Context, l letter) {
	now, horizon := s.window()
	media, waits, err := s.store.q.LetterWaits(ctx, l.key, now, horizon)
	if err != nil || !waits { // somebody else has just sent it
		return
	}
	if err := decode(media, &l.media); err != nil {
		s.trouble(ctx, "files of a message cannot be read", err)
	}
	limit, cancel := s.clock.WithTimeout(ctx, sendTime, nil)
	defer cancel()
	how, ids, err := s.handOver(limit, l)
	if err != nil {
		s.log.Warn("message of a task not handed over", "job", l.job, "run", l.run, "kind", string(l.kind), "error", err)
	}
	age := s.now().Sub(l.since)
	if err != nil || how == OnItsWay {
		if age < l.patience() {
			wait := min(max(age, shortestWait), longestWait)
			if err := s.store.q.Postpone(context.WithoutCancel(ctx), l.key, s.now().Add(wait).UnixMilli()); err != nil {
				s.trouble(ctx, "message cannot be postponed", err)
			}
			return
		}
		s.log.Error("message of a task given up", "job", l.job, "run", l.run, "kind", string(l.kind))
		how = Uncertain
	}
	err = s.store.write(ctx, func(ctx context.Context, q *crondb.Queries) error { return s.recordArrival(ctx, q, l, how, ids) })
	if err != nil {
		s.trouble(ctx, "delivery cannot be recorded", err)
	}
}

// handOver gives a letter to whoever says it.
func (s *Scheduler) handOver(ctx context.Context, l letter) (how Arrival, ids []string, err error) {
	defer func() {
		if r := recover(); r != nil {
			s.log.Error("handing a message over panicked", "job", l.job, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			err = errors.New("panic")
		}
	}()
	if l.kind == ownerLetter {
		return Arrived, nil, s.deps.Owner.Tell(ctx, l.key, l.text)
	}
	return s.deps.Announcer.Announce(ctx, Announcement{Key: l.key, To: l.to, Text: l.text, Media: l.media, Alert: l.kind == alertKind, Job: l.job, Run: l.run})
}

// recordArrival ends a letter.
func (s *Scheduler) recordArrival(ctx context.Context, q *crondb.Queries, l letter, how Arrival, ids []string) error {
	if ok, err := q.DropLetter(ctx, l.key); err != nil || !ok {
		return err // another process was faster
	}
	now := s.now()
	if l.kind == alertKind && how == Rejected {
		l.key, l.kind = l.key+":owner", ownerLetter
		return putLetters(ctx, q, []letter{l}, now)
	}
	if l.kind != resultLetter {
		return nil
	}
	row, err := q.GetRun(ctx, l.run)
	if err != nil {
		return err
	}
	run, err := runOf(row)
	if err != nil {
		return err
	}
	job, err := get(ctx, q, l.job)
	gone := errors.Is(err, ErrNotFound)
	if err != nil && !gone {
		return err
	}
	run.Receipts = ids
	run.StartedAt = run.StartedAt.In(s.zoneOf(job))
	remove, letters := arrived(&job, &run, how, s.config(), now)
	line, err := runRow(run, row.Seq)
	if err != nil {
		return err
	}
	s.log.Info("result of a task settled", "job", l.job, "run", run.ID, "completion", string(run.Completion), "reason", string(run.Reason))
	if err := q.CompleteRun(ctx, line); err != nil || gone {
		return err
	}
	return s.recordDelivered(ctx, q, job, remove, letters, now)
}

// recordDelivered stores what a result's arrival means for its job.
func (s *Scheduler) recordDelivered(ctx context.Context, q *crondb.Queries, job Job, remove bool, letters []letter, now time.Time) error {
	row, err := rowOf(job)
	if err != nil {
		return err
	}
	if err := q.Delivered(ctx, row); err != nil {
		return err
	}
	if remove && !job.State.Running() {
		if _, err := q.DeleteJob(ctx, job.ID); err != nil {
			return err
		}
	}
	return putLetters(ctx, q, letters, now)
}

// zoneOf is the zone in which the times of a job are told.
func (s *Scheduler) zoneOf(job Job) *time.Location {
	if sched, err := s.compile(job); err == nil {
		return sched.Zone()
	}
	return s.cfg.Load().zone
}
