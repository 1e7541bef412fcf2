package app

import (
	"context"
	"encoding/json"
	"errors"

	"understudy/llm"
	"understudy/session"
)

// task is how the message waits for its turn (spec/chat.md §1.5). Messages that are answered as one have
// to come from one place, because the answer goes there.
func (j *job) task(ctx context.Context) session.Task {
	q := j.queue(ctx)
	place := j.in.Address.Destination()
	t := session.Task{
		Owner: j.in.Sender.ID, Item: j, Cap: q.Cap, Drop: q.Drop, Batch: place,
		RunAll:  func(ctx context.Context, w session.Work) { j.a.runTurn(ctx, place, w) },
		Dropped: j.dropped, Front: j.first,
	}
	if j.steers {
		t.Front, t.Steer = true, true
		if r, ok := j.a.turns.byKey.Load(j.key); ok && r.(*running).place() == place {
			t.Batch = r.(*running).batch
		}
		return t
	}
	switch q.Mode {
	case session.QueueSteer:
		// What was overheard has to stand above the message, which the steps of a turn have no place for.
		t.Steer, t.Quiet = len(j.overheard) == 0, *q.Debounce
	case session.QueueCollect:
		t.Quiet = *q.Debounce
	case session.QueueInterrupt:
		t.Preempt = llm.ErrInterrupted
	case session.QueueFollowup:
		t.Batch = place + "\x00" + j.turn // nothing else is of its batch
		t.RunAll = func(ctx context.Context, w session.Work) { j.a.runTurn(ctx, t.Batch, w) }
	}
	return t
}

// queue is the way in which the message waits: what it says itself, else what its conversation chose,
// else the configuration.
func (j *job) queue(ctx context.Context) session.Queue {
	var stored session.Queue
	s, err := j.a.sessions.Get(ctx, j.key)
	switch {
	case errors.Is(err, session.ErrNotFound):
	case err != nil:
		j.a.log.WarnContext(ctx, "queue_settings_not_read", "turn", j.turn, "error", err.Error())
	case len(s.Queue) > 0:
		if json.Unmarshal(s.Queue, &stored) != nil {
			stored = session.Queue{} // as configured
		}
	}
	channel := j.in.Address.Channel
	q := j.a.cfg().Queue.For(channel, stored)
	quiet := int(q.Debounce.Milliseconds())
	return session.QueueConfig{Mode: q.Mode, DebounceMs: &quiet, Cap: q.Cap, Drop: q.Drop}.For(channel, j.once.Queue)
}

// place is where the turn's answer goes.
func (r *running) place() string { return r.to.Destination() }
