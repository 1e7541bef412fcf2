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

// missed returns what was said in a conversation since a mark, as far as it may still be answered. It
// reads backwards from the newest message: in a busy channel the way from the mark to what is fresh
// may be longer than what is looked at.
func (r *run) missed(ctx context.Context, m channels.Mark) ([]message, error) {
	if !isID(m.LastID) {
		return nil, nil
	}
	place := m.Address.Conversation
	if m.Address.Thread != "" {
		place = m.Address.Thread
	}
	oldest, amount := r.bounds()
	known := func(one message) bool { // or too old to be answered
		return compareIDs(one.ID, m.LastID) <= 0 || timestamp(one.Timestamp).Before(oldest)
	}
	var all []message
	before := ""
	for range mostPages {
		page, more, err := r.page(ctx, place, before)
		if err != nil {
			return newest(all, amount), err
		}
		last := !more || len(page) == 0 || known(page[0])
		all = append(slices.DeleteFunc(page, known), all...)
		if last || len(all) >= amount {
			break
		}
		before = all[0].ID
	}
	return newest(all, amount), nil
}

// newest leaves so many messages from the end of a list.
func newest(all []message, amount int) []message { return all[max(len(all)-amount, 0):] }

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

// page reads the last messages before an id, "" = the newest ones, oldest first. A failure that passes,
// such as a rate limit, is waited for. It reports whether there may be more.
func (r *run) page(ctx context.Context, place, before string) (list []message, more bool, err error) {
	query := url.Values{"limit": {strconv.Itoa(pageSize)}}
	if before != "" {
		query.Set("before", before)
	}
	req := request{what: "get messages", method: http.MethodGet, url: discordgo.EndpointChannelMessages(place) + "?" + query.Encode(), route: "get messages " + place}
	for attempt := 1; ; attempt++ {
		data, err := r.api.call(ctx, req)
		if err == nil {
			return messages(data)
		}
		var e *callError
		if !errors.As(err, &e) || e.status != 0 && e.status < http.StatusTooManyRequests || attempt == lookAttempts || e.retryAfter > lookBackWait || ctx.Err() != nil {
			return nil, false, err
		}
		sleep(ctx, max(e.retryAfter, time.Second))
	}
}

// messages decodes a page, one by one: a message that cannot be read must not hide the others,
// nor that the page was full.
func messages(data json.RawMessage) (list []message, full bool, err error) {
	var raw []json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, false, &callError{what: "get messages", status: http.StatusOK, garbled: true}
	}
	out := make([]message, 0, len(raw))
	for _, one := range slices.Backward(raw) {
		var m message
		if decode(one, &m); isID(m.ID) {
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b message) int { return compareIDs(a.ID, b.ID) })
	return out, len(raw) >= pageSize, nil
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
