package discord

import (
	"context"
	"fmt"
	"time"

	"understudy/channels"
)

// A new session replays nothing, so what was said before it is looked for in the histories:
//
//	READY ─► owe: every conversation is owed a look behind its mark
//	  the servers told their channels' last messages, or took too long
//	        ─► sift: those where nothing was said are let off, new places are added
//	        ─► look, one place at a time, and between two of them what is said live
//	  a live message in a place that is owed a look waits for it: each place keeps its order
//
// All of it is the worker's.

const (
	// serversLimit is how long the servers may take to tell what they hold.
	serversLimit = 10 * time.Second
	// lookEvery is the pace of looking: less than half of the calls that Discord allows a bot.
	lookEvery = 50 * time.Millisecond
	// mostUntold is how many places are looked into without knowing whether anything was said there:
	// direct messages and threads that are archived.
	mostUntold = 500
	// mostNew is how many places are looked into in which the bot was never active.
	mostNew = channels.MostConversations
)

// debt is what is still to be looked into.
type debt struct {
	order  []string // the places, in the order in which they are looked into
	behind map[string]owed
	sifted bool
	heard  string    // the newest message that was heard, of any place
	gap    string    // the one that was heard last before the gap
	next   time.Time // no look before
	sum    channels.Look
	open   bool // sum is not reported yet
}

// owed is a place with the message behind which it is looked into.
type owed struct{ server, last string }

// markedPlace is where the messages of a mark stand.
func markedPlace(m channels.Mark) string {
	if m.Address.Thread != "" {
		return m.Address.Thread
	}
	return m.Address.Conversation
}

// owe notes what is to be looked into after a session has begun. What an earlier one left is still
// owed, from where it was.
func (r *run) owe(ctx context.Context) {
	if r.deps.Seen == nil {
		return
	}
	marks, err := r.deps.Seen.Marks(ctx, time.Now().Add(-channels.RecentFor), channels.MostMarks)
	if err != nil {
		r.log.Warn("cannot catch up", "error", err)
		return
	}
	d := &r.debt
	if d.behind == nil {
		d.behind = map[string]owed{}
	}
	for _, m := range marks {
		place := markedPlace(m)
		if _, known := d.behind[place]; !known && isID(m.LastID) {
			d.behind[place] = owed{m.Space, m.LastID}
			d.order = append(d.order, place)
			d.heard = later(d.heard, m.LastID)
		}
	}
	if d.sifted || d.gap == "" { // else an earlier gap was not looked into yet
		d.gap = d.heard
	}
	d.sifted, d.open = false, true
	d.sum = channels.Look{}
}

// sift lets off the places where nothing was said, as far as that is known, and adds places of the same
// servers where something was said and the bot was never active, such as new threads. The latest
// conversations are looked into in any case.
func (r *run) sift() {
	d := &r.debt
	if d.sifted {
		return
	}
	d.sifted = true
	order, untold, known, servers := []string{}, 0, map[string]bool{}, map[string]bool{}
	for i, place := range d.order {
		known[place] = true
		o, ok := d.behind[place]
		if !ok {
			continue
		}
		if o.server != "" {
			servers[o.server] = true
		}
		last, told := r.newest.of(place)
		switch {
		case i < channels.MostConversations:
		case told && compareIDs(last, o.last) <= 0:
			delete(d.behind, place)
			continue
		case !told:
			if untold++; untold > mostUntold {
				delete(d.behind, place)
				d.sum.Left++
				d.sum.Why = fmt.Sprintf("more than %d conversations of which Discord does not tell whether anything was said", mostUntold)
				continue
			}
		}
		order = append(order, place)
	}
	d.order = append(order, r.strange(servers, known)...)
}

// strange owes a look to places where the bot was never active and something was said since the last
// message that was heard before the gap.
func (r *run) strange(servers, known map[string]bool) []string {
	d := &r.debt
	if d.gap == "" {
		return nil
	}
	behind := shortlyBefore(d.gap)
	var out []string
	for _, t := range r.newest.since(behind, servers) {
		if known[t.place] || r.isForum(t.place) {
			continue
		}
		if len(out) == mostNew {
			d.sum.Left++
			d.sum.Why = fmt.Sprintf("more than %d places in which the bot was never active", mostNew)
			continue
		}
		d.behind[t.place] = owed{t.server, behind}
		out = append(out, t.place)
	}
	return out
}

// lookOn looks into the next place, and comes again for the one after it when what has arrived
// meanwhile is done.
func (r *run) lookOn(ctx context.Context) {
	d := &r.debt
	r.sift()
	for len(d.order) > 0 {
		place := d.order[0]
		d.order = d.order[1:]
		if _, still := d.behind[place]; !still {
			continue
		}
		sleep(ctx, time.Until(d.next))
		d.next = time.Now().Add(lookEvery)
		r.lookInto(ctx, place, "")
		r.queue.put(task{look: true})
		return
	}
	r.looked()
}

// lookInto passes on what was missed in a place, if it is owed a look: oldest first, and only what stands
// before a message, "" = up to the newest. What was heard all the same is recognised by its key.
func (r *run) lookInto(ctx context.Context, place, before string) {
	d := &r.debt
	o, ok := d.behind[place]
	if !ok || ctx.Err() != nil {
		return
	}
	delete(d.behind, place)
	d.sum.Looked++
	missed, err := r.missed(ctx, place, o.last, before)
	if err != nil {
		if passes(err) { // else there is nothing to be seen for the bot
			d.sum.Left++
			d.sum.Why = err.Error()
		}
		d.sum.Looked--
		r.log.Info("conversation not caught up", "place", place, "error", err)
	}
	for i := range missed {
		missed[i].Guild = o.server
		d.heard = later(d.heard, missed[i].ID)
		in, ok := r.inbound(ctx, &missed[i], false)
		if !ok {
			continue
		}
		in.CatchUp = true
		d.sum.Found++
		if _ = r.accept(ctx, in); ctx.Err() != nil { // nobody waits for a refusal
			return
		}
	}
}

// looked reports what came of the looks, once.
func (r *run) looked() {
	d := &r.debt
	if !d.open {
		return
	}
	d.open, d.order = false, nil
	r.lookedAt.Ended(d.sum, r.log)
}

// LastLook implements channels.Looker.
func (b *Bot) LastLook() (channels.Look, bool) { return b.lookedAt.Last() }
