package delivery

import (
	"context"
	"time"

	"understudy/chat"
)

// Bounds of the queues.
const (
	// queueLimit is how much one destination holds in memory. What is durable beyond it waits in
	// the outbox; a notice beyond it is dropped.
	queueLimit = 64
	// lineIdle is how long a destination without work is remembered.
	lineIdle = 5 * time.Minute
	// leastSweep is the number of destinations from which on idle ones are forgotten.
	leastSweep = 256
)

// job is one piece of work of a destination. It is done, or given up, when it returns; it returns
// soon after ctx ends.
type job func(ctx context.Context)

// line is the queue of one destination. Its fields belong to Service.mu; while busy is set, one
// goroutine works it off.
type line struct {
	key     string
	queue   []job
	backlog bool // rows beyond the queue wait in the outbox
	added   int  // counts rows left to the backlog, so that none is overlooked
	notices int  // so many were queued
	busy    bool
	used    time.Time
}

// line returns the queue of a destination; s.mu is held.
func (s *Service) line(to chat.Address) *line {
	key := destKey(to)
	l := s.lines[key]
	if l == nil {
		s.sweep()
		l = &line{key: key}
		s.lines[key] = l
	}
	l.used = s.clock.Now()
	return l
}

// sweep forgets idle destinations once there are many; s.mu is held.
func (s *Service) sweep() {
	if len(s.lines) < s.sweepAt {
		return
	}
	now := s.clock.Now()
	for k, l := range s.lines {
		if !l.busy && now.Sub(l.used) > lineIdle {
			delete(s.lines, k)
		}
	}
	s.sweepConversations(now)
	s.sweepAt = max(leastSweep, 2*len(s.lines))
}

// push queues a job that lives in memory only and reports whether there was room. A job that must
// not be lost is queued in any case; there is at most one such per turn.
func (s *Service) push(to chat.Address, must bool, j job) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	l := s.line(to)
	if len(l.queue) >= queueLimit && !must {
		return false
	}
	l.queue = append(l.queue, j)
	s.start(l)
	return true
}

// pushRow queues a stored row.
func (s *Service) pushRow(to chat.Address, id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.line(to)
	if l.backlog || len(l.queue) >= queueLimit {
		l.backlog = true
		l.added++
	} else {
		l.queue = append(l.queue, func(ctx context.Context) { s.deliver(ctx, id) })
	}
	s.start(l)
}

// start gives a line its goroutine; s.mu is held.
func (s *Service) start(l *line) {
	if l.busy || s.stopped {
		return
	}
	l.busy = true
	s.spawn(func(ctx context.Context) { s.work(ctx, l) })
}

// work does a line's jobs in order until there are none.
func (s *Service) work(ctx context.Context, l *line) {
	for {
		j := s.next(ctx, l)
		if j == nil {
			return
		}
		j(ctx)
	}
}

// next returns the next job, or nil after it has taken the line out of work.
func (s *Service) next(ctx context.Context, l *line) job {
	for {
		s.mu.Lock()
		l.used = s.clock.Now()
		if ctx.Err() != nil {
			l.busy = false
			s.mu.Unlock()
			return nil
		}
		if len(l.queue) > 0 {
			j := l.queue[0]
			l.queue[0] = nil
			l.queue = l.queue[1:]
			s.mu.Unlock()
			return j
		}
		if !l.backlog {
			l.busy, l.queue = false, nil
			s.mu.Unlock()
			return nil
		}
		added := l.added
		s.mu.Unlock()
		s.refill(ctx, l, added)
	}
}

// refill moves waiting rows of the outbox into the queue. added is what the line's counter was
// before: only if it is unchanged can an empty result mean that nothing waits.
func (s *Service) refill(ctx context.Context, l *line, added int) {
	rows, err := s.store.q.PendingOf(ctx, l.key, queueLimit)
	if err != nil {
		s.log.Error("reading the outbox", "error", err)
		_ = s.clock.Sleep(ctx, roundPause) // the end of ctx is seen by next
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(rows) == 0 && l.added == added {
		l.backlog = false
	}
	for _, r := range rows {
		l.queue = append(l.queue, func(ctx context.Context) { s.deliver(ctx, r.ID) })
	}
}
