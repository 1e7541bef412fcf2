package discord

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/bwmarrin/discordgo"

	"understudy/channels"
)

const (
	pageSize      = 100
	mostPages     = 5
	lookBackWait  = 30 * time.Second // longest wait for a rate limit
	catchUpAge    = time.Hour
	catchUpAmount = 50
)

// lookBack passes on what was said in the bot's conversations while no session heard it, each oldest
// first. What was heard all the same is recognised by its key.
func (r *run) lookBack(ctx context.Context) {
	if r.deps.Seen == nil {
		return
	}
	marks, err := r.deps.Seen.Marks(ctx, time.Now().Add(-channels.RecentFor), channels.MostConversations)
	if err != nil {
		r.log.Warn("cannot catch up", "error", err)
		return
	}
	found := 0
	for _, m := range marks {
		if ctx.Err() != nil {
			return
		}
		missed, err := r.missed(ctx, m)
		if err != nil {
			r.log.Info("conversation not caught up", "conversation", m.Address.Conversation, "thread", m.Address.Thread, "error", err)
		}
		for i := range missed {
			missed[i].Guild = m.Space
			in, ok := r.inbound(ctx, &missed[i], false)
			if !ok {
				continue
			}
			in.CatchUp = true
			found++
			if _ = r.accept(ctx, in); ctx.Err() != nil { // nobody waits for a refusal
				return
			}
		}
	}
	r.log.Debug("caught up", "conversations", len(marks), "messages", found)
}

// missed returns what was said in a conversation since a mark, as far as it may still be answered.
func (r *run) missed(ctx context.Context, m channels.Mark) ([]message, error) {
	if !isID(m.LastID) {
		return nil, nil
	}
	place := m.Address.Conversation
	if m.Address.Thread != "" {
		place = m.Address.Thread
	}
	var all []message
	after := m.LastID
	for range mostPages {
		page, err := r.page(ctx, place, after)
		if err != nil {
			return all, err
		}
		all = append(all, page...)
		if len(page) < pageSize {
			break
		}
		after = page[len(page)-1].ID
	}
	oldest, amount := r.bounds()
	all = slices.DeleteFunc(all, func(m message) bool { return timestamp(m.Timestamp).Before(oldest) })
	return all[max(len(all)-amount, 0):], nil
}

// bounds are how old, and how many, messages may be to be caught up.
func (r *run) bounds() (oldest time.Time, amount int) {
	age, amount := r.cfg.CatchUp.MaxAge, r.cfg.CatchUp.MaxMessages
	if age == 0 {
		age = catchUpAge
	}
	if amount == 0 {
		amount = catchUpAmount
	}
	return time.Now().Add(-age), amount
}

// page reads the messages behind an id, oldest first. One that passes, the rate limit, is waited for.
func (r *run) page(ctx context.Context, place, after string) ([]message, error) {
	query := url.Values{"limit": {strconv.Itoa(pageSize)}, "after": {after}}
	req := request{what: "get messages", method: http.MethodGet, url: discordgo.EndpointChannelMessages(place) + "?" + query.Encode(), route: "get messages " + place}
	for attempt := 1; ; attempt++ {
		data, err := r.api.call(ctx, req)
		if err == nil {
			return messages(data)
		}
		var e *callError
		if !errors.As(err, &e) || e.status != 0 && e.status < http.StatusTooManyRequests || attempt == lookAttempts || e.retryAfter > lookBackWait || ctx.Err() != nil {
			return nil, err
		}
		sleep(ctx, max(e.retryAfter, time.Second))
	}
}

// messages decodes a page, one by one: a message that cannot be read must not hide the others.
func messages(data json.RawMessage) ([]message, error) {
	var raw []json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, &callError{what: "get messages", status: http.StatusOK, garbled: true}
	}
	out := make([]message, 0, len(raw))
	for _, one := range slices.Backward(raw) {
		var m message
		if decode(one, &m); isID(m.ID) {
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b message) int { return compareIDs(a.ID, b.ID) })
	return out, nil
}

// compareIDs orders ids by age.
func compareIDs(a, b string) int {
	x, _ := strconv.ParseUint(a, 10, 64)
	y, _ := strconv.ParseUint(b, 10, 64)
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}
