package discord

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"understudy/channels"
	"understudy/chat"
)

// Waits between attempts to hand a message over, and to learn where it was written.
const (
	firstRepeat   = 250 * time.Millisecond
	longestRepeat = 15 * time.Second
	lookAttempts  = 4
)

// take takes an event off the gateway. It reports false when there is no room for it.
func (r *run) take(ctx context.Context, kind string, data json.RawMessage) (ok bool) {
	defer r.survive(kind, func() { ok = true })
	if kind == "GUILD_CREATE" {
		r.server(data)
		return true
	}
	return r.directory.learn(kind, data) || r.event(ctx, kind, data)
}

// server takes what a server tells when a session begins. The last one of them starts the look for what
// was missed.
func (r *run) server(data json.RawMessage) {
	var g guild
	decode(data, &g)
	r.directory.join(g)
	if r.newest.learn(g) {
		r.queue.put(task{look: true})
	}
}

// survive keeps what no reading of Discord's data foresaw from ending the process: it loses that one
// event. It is deferred.
func (r *run) survive(kind string, then func()) {
	if p := recover(); p != nil {
		r.log.Error("event skipped", "kind", kind, "panic", p, "stack", string(debug.Stack()))
		then()
	}
}

// event takes what is not about channels and roles: it is queued, except for requests for suggestions, which
// cannot wait. It reports false when there is no room.
func (r *run) event(ctx context.Context, kind string, data json.RawMessage) bool {
	switch kind {
	case "MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE", "MESSAGE_DELETE_BULK":
		return r.queue.put(task{kind: kind, data: data})
	case "INTERACTION_CREATE":
		var i interaction
		decode(data, &i)
		if !isID(i.ID) || i.Token == "" || i.author() == nil {
			return true
		}
		switch i.Type {
		case interactionComplete:
			r.suggest(ctx, &i)
		case interactionCommand, interactionComponent:
			t := r.newTicket(&i)
			if !r.queue.put(task{kind: kind, data: data, ticket: t}) {
				return false
			}
			r.hurry(ctx, t)
		}
	}
	return true
}

// worker works on the queue until ctx ends.
func (r *run) worker(ctx context.Context) {
	for {
		t, ok := r.queue.take(ctx)
		if !ok {
			return
		}
		r.perform(ctx, t)
	}
}

// perform works on one task.
func (r *run) perform(ctx context.Context, t task) {
	defer r.survive(t.kind, func() {})
	switch {
	case t.catchUp:
		r.owe(ctx)
	case t.look:
		r.lookOn(ctx)
	case t.ticket != nil:
		r.interaction(ctx, t.ticket)
	case t.kind == "MESSAGE_CREATE", t.kind == "MESSAGE_UPDATE":
		var m message
		decode(t.data, &m)
		if t.kind == "MESSAGE_CREATE" && isID(m.ID) {
			r.lookInto(ctx, m.Channel, m.ID) // what was said there before comes first
			r.debt.heard = later(r.debt.heard, m.ID)
		}
		if in, ok := r.inbound(ctx, &m, t.kind == "MESSAGE_UPDATE"); ok {
			_ = r.accept(ctx, in) // ctx has ended, or nobody waits for a refusal
		}
	case t.kind == "MESSAGE_DELETE", t.kind == "MESSAGE_DELETE_BULK":
		r.deleted(ctx, t.data)
	}
}

// accept hands a message to the sink, again and again until it is stored: Discord does not say it
// twice. The error is a *channels.Refusal or the end of ctx.
func (r *run) accept(ctx context.Context, in chat.Inbound) error {
	wait := firstRepeat
	for {
		err := r.sink.Accept(ctx, in)
		var refusal *channels.Refusal
		if err == nil || errors.As(err, &refusal) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.log.Error("message not stored", "event", in.EventKey, "error", err, "seconds", wait.Seconds())
		sleep(ctx, wait/2+time.Duration(rand.Int64N(int64(wait/2))))
		wait = min(2*wait, longestRepeat)
	}
}

// deleted passes on that messages were removed: also those from before the start, of which no more is
// known than where they stood.
func (r *run) deleted(ctx context.Context, data json.RawMessage) {
	var e struct {
		ID      string   `json:"id"`
		IDs     []string `json:"ids"`
		Channel string   `json:"channel_id"`
		Guild   string   `json:"guild_id"`
	}
	decode(data, &e)
	if e.ID != "" {
		e.IDs = append(e.IDs, e.ID)
	}
	for _, id := range e.IDs {
		was, known := r.recent.get(id)
		if _, told := r.directory.channel(e.Channel); !known && !told || !isID(id) {
			continue
		}
		if !known {
			was.address = r.address(ctx, e.Channel, e.Guild)
		}
		r.recent.drop(id)
		_ = r.accept(ctx, chat.Inbound{
			ID: id, EventKey: r.eventKey(id + ":deleted"), Address: was.address, Space: e.Guild, Sender: was.sender, Deleted: true, At: time.Now().UTC(),
		}) // ctx has ended, or nobody waits for a refusal
	}
}
