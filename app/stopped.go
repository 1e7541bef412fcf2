package app

import (
	"context"
	"errors"
	"slices"

	"understudy/chat"
	"understudy/reply"
	"understudy/session"
)

// textStoppedByOther is said about a message whose answer somebody else has stopped, after something was done
// for it.
const textStoppedByOther = "⏹ Somebody else stopped the answer to this. Please say it again if you still want one."

// giveBack takes the messages that a turn gives back out of it (reply.Outcome.Returned), with those of which
// a line stands above them, and returns them in the order in which they are to be queued again: a person
// stops the own words and not those of others (spec/chat.md §1.5). Whose words are lost all the same is told.
func (r *running) giveBack(ctx context.Context, o reply.Outcome, cause error) (back []*job) {
	var by *session.StoppedBy
	if o.Status != reply.Stopped || !errors.As(cause, &by) {
		return nil
	}
	var kept []*job
	for _, j := range r.jobs {
		if slices.Contains(o.Returned, &j.in) {
			back = append(append(back, j.told...), j)
			continue
		}
		if j.in.Sender.ID != by.Owner {
			j.say(ctx, chat.Notice, textStoppedByOther)
		}
		kept = append(kept, j)
	}
	if err := r.a.joined.part(ctx, turnsOf(withTold(r.jobs))...); err != nil {
		r.a.log.ErrorContext(ctx, "joined_turns_not_stored", "turn", r.jobs[0].turn, "error", err.Error())
	}
	r.jobs = kept
	for i, j := range back {
		x := *j
		x.told, x.first = nil, true
		back[i] = &x
	}
	return back
}
